"""Feature maps: public random features of encoded rows."""

from typing import TYPE_CHECKING

from skdpgen._lazy import attach

if TYPE_CHECKING:
    from .embedding import MixedEmbedding as MixedEmbedding
    from .mixed import MixedFeatureMap as MixedFeatureMap

__getattr__, __dir__, __all__ = attach(
    __name__, {"MixedEmbedding": "embedding", "MixedFeatureMap": "mixed"}
)
