"""Training of generators on releases: post-processing, free of privacy cost."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .trainer import TrainingResult as TrainingResult
    from .trainer import TrainingSettings as TrainingSettings
    from .trainer import train as train

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"TrainingResult": "trainer", "TrainingSettings": "trainer", "train": "trainer"},
)
