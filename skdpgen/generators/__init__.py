"""Generators: torch modules that turn noise and labels into encoded rows."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .base import Generator as Generator
    from .base import build_generator as build_generator
    from .conv import ConvGenerator as ConvGenerator
    from .heads import OutputHead as OutputHead
    from .mixture import MixtureGenerator as MixtureGenerator
    from .mixture import ProductMixture as ProductMixture
    from .mlp import MLPGenerator as MLPGenerator

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "ConvGenerator": "conv",
        "Generator": "base",
        "MLPGenerator": "mlp",
        "MixtureGenerator": "mixture",
        "OutputHead": "heads",
        "ProductMixture": "mixture",
        "build_generator": "base",
    },
)
