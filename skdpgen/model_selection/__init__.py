"""Choosing settings: by the release, free of privacy cost, or by rows, with its price stated."""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .private import PrivateSearchCV as PrivateSearchCV
    from .release_search import ReleaseHalvingSearchCV as ReleaseHalvingSearchCV
    from .release_search import ReleaseRandomizedSearchCV as ReleaseRandomizedSearchCV
    from .release_search import ReleaseSearchCV as ReleaseSearchCV
    from .scorers import make_tstr_scorer as make_tstr_scorer

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "PrivateSearchCV": "private",
        "ReleaseHalvingSearchCV": "release_search",
        "ReleaseRandomizedSearchCV": "release_search",
        "ReleaseSearchCV": "release_search",
        "make_tstr_scorer": "scorers",
    },
)
