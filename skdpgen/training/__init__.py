"""Training of generators on releases: post-processing, free of privacy cost."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .mixture_trainer import MixtureSettings as MixtureSettings
    from .mixture_trainer import MixtureTarget as MixtureTarget
    from .mixture_trainer import fit_mixture as fit_mixture
    from .progress import watching as watching
    from .trainer import TrainingResult as TrainingResult
    from .trainer import TrainingSettings as TrainingSettings
    from .trainer import train as train

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "MixtureSettings": "mixture_trainer",
        "MixtureTarget": "mixture_trainer",
        "TrainingResult": "trainer",
        "TrainingSettings": "trainer",
        "fit_mixture": "mixture_trainer",
        "train": "trainer",
        "watching": "progress",
    },
)
