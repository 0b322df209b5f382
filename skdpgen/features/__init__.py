"""Feature maps: public random features of encoded rows."""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .embedding import MixedEmbedding as MixedEmbedding
    from .interactions import InteractionFeatureMap as InteractionFeatureMap
    from .mixed import MixedFeatureMap as MixedFeatureMap
    from .settings import GaussianFeatures as GaussianFeatures
    from .settings import InteractionFeatures as InteractionFeatures

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "GaussianFeatures": "settings",
        "InteractionFeatureMap": "interactions",
        "InteractionFeatures": "settings",
        "MixedEmbedding": "embedding",
        "MixedFeatureMap": "mixed",
    },
)
