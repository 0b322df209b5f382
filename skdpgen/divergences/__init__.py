"""Distances between released and generated distributions, and what is known about their error."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .bounds import MMDErrorBound as MMDErrorBound
    from .bounds import mmd_error_bound as mmd_error_bound
    from .histograms import draw_from_histograms as draw_from_histograms
    from .histograms import histogram_f_divergence as histogram_f_divergence
    from .histograms import histogram_quantiles as histogram_quantiles
    from .mmd import class_weights as class_weights
    from .mmd import embedding_loss as embedding_loss
    from .mmd import noise_floor as noise_floor
    from .mmd import squared_distance as squared_distance
    from .sliced import density_ratio as density_ratio
    from .sliced import f_generator as f_generator
    from .sliced import rational_quadratic as rational_quadratic
    from .sliced import sliced_f_divergence as sliced_f_divergence
    from .sliced import sliced_mmd as sliced_mmd
    from .sliced import sliced_wasserstein as sliced_wasserstein

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "MMDErrorBound": "bounds",
        "class_weights": "mmd",
        "density_ratio": "sliced",
        "draw_from_histograms": "histograms",
        "embedding_loss": "mmd",
        "f_generator": "sliced",
        "histogram_f_divergence": "histograms",
        "histogram_quantiles": "histograms",
        "mmd_error_bound": "bounds",
        "noise_floor": "mmd",
        "rational_quadratic": "sliced",
        "sliced_f_divergence": "sliced",
        "sliced_mmd": "sliced",
        "sliced_wasserstein": "sliced",
        "squared_distance": "mmd",
    },
)
