"""Pictures, as scikit-learn displays: the only place that imports matplotlib.

A display holds plain data; its ``plot`` draws them. matplotlib is imported there, and only there.
"""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ._associations import AssociationDisplay as AssociationDisplay
    from ._loss import LossDisplay as LossDisplay
    from ._marginals import MarginalsDisplay as MarginalsDisplay
    from ._privacy import PrivacyCurveDisplay as PrivacyCurveDisplay
    from ._tstr import TSTRDisplay as TSTRDisplay

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "AssociationDisplay": "_associations",
        "LossDisplay": "_loss",
        "MarginalsDisplay": "_marginals",
        "PrivacyCurveDisplay": "_privacy",
        "TSTRDisplay": "_tstr",
    },
)
