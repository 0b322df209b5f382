"""How good a synthetic table is, measured on real rows.

Everything here reads private rows and adds no noise: no result is covered by any epsilon.
"""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .audit import EpsilonAudit as EpsilonAudit
    from .audit import empirical_epsilon as empirical_epsilon
    from .copies import CopyResult as CopyResult
    from .copies import copy_check as copy_check
    from .fidelity import fidelity_scores as fidelity_scores
    from .fidelity import marginal_distances as marginal_distances
    from .tstr import default_classifiers as default_classifiers
    from .tstr import tstr_scores as tstr_scores

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "CopyResult": "copies",
        "EpsilonAudit": "audit",
        "copy_check": "copies",
        "empirical_epsilon": "audit",
        "default_classifiers": "tstr",
        "fidelity_scores": "fidelity",
        "marginal_distances": "fidelity",
        "tstr_scores": "tstr",
    },
)
