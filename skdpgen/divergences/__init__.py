"""Distances between released and generated distributions, and what is known about their error."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .bounds import MMDErrorBound as MMDErrorBound
    from .bounds import mmd_error_bound as mmd_error_bound
    from .mmd import class_weights as class_weights
    from .mmd import embedding_loss as embedding_loss
    from .mmd import noise_floor as noise_floor
    from .mmd import squared_distance as squared_distance

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "MMDErrorBound": "bounds",
        "class_weights": "mmd",
        "embedding_loss": "mmd",
        "mmd_error_bound": "bounds",
        "noise_floor": "mmd",
        "squared_distance": "mmd",
    },
)
