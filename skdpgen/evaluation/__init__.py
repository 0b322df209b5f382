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

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "FidelityResult": "_fidelity",
        "TSTRResult": "_tstr",
        "fidelity": "_fidelity",
        "marginal_distances": "_marginals",
        "tstr": "_tstr",
    },
)
