"""How good a synthetic table is, measured on real rows.

Everything here reads private rows and adds no noise: no result is covered by any epsilon.
"""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._fidelity import FidelityResult as FidelityResult
    from ._fidelity import fidelity as fidelity
    from ._marginals import marginal_distances as marginal_distances
    from ._tstr import TSTRResult as TSTRResult
    from ._tstr import tstr as tstr
    from .audit import EpsilonAudit as EpsilonAudit
    from .audit import empirical_epsilon as empirical_epsilon
    from .copies import CopyResult as CopyResult
    from .copies import copy_check as copy_check
    from .membership import MembershipResult as MembershipResult
    from .membership import membership_inference as membership_inference
    from .privacy import PrivacyCheck as PrivacyCheck
    from .privacy import privacy_check as privacy_check

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "CopyResult": "copies",
        "EpsilonAudit": "audit",
        "FidelityResult": "_fidelity",
        "MembershipResult": "membership",
        "PrivacyCheck": "privacy",
        "TSTRResult": "_tstr",
        "copy_check": "copies",
        "empirical_epsilon": "audit",
        "fidelity": "_fidelity",
        "marginal_distances": "_marginals",
        "membership_inference": "membership",
        "privacy_check": "privacy",
        "tstr": "_tstr",
    },
)
