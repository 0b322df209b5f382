"""Tools for those who write synthesizers of their own."""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .estimator_checks import check_synthesizer as check_synthesizer
    from .estimator_checks import parametrize_with_checks as parametrize_with_checks
    from .estimator_checks import synthesizer_checks as synthesizer_checks

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "check_synthesizer": "estimator_checks",
        "parametrize_with_checks": "estimator_checks",
        "synthesizer_checks": "estimator_checks",
    },
)
