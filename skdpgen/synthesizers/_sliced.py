"""Training a network on histograms of slices: plan it before rows are read, run it after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from skdpgen.divergences.sliced import Divergence
from skdpgen.exceptions import InputError
from skdpgen.features.projection import SliceProjection
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.generators.base import Generator
from skdpgen.generators.mixture import MixtureGenerator
from skdpgen.generators.mlp import MLPGenerator
from skdpgen.layout import EncodedLayout
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._training import TrainingPlan, plan_training
from skdpgen.training.sliced_objective import (
    Distance,
    SlicedLoss,
    check_distance,
    project_to_simplex,
)
from skdpgen.training.trainer import TrainingResult, TrainingSettings, descend, resolve_device

__all__ = ["SlicedPlan", "plan_network", "plan_sliced"]

# Largest learning rates of Adam, by held-out training rows of Adult.
_F_DIVERGENCE_RATE, _OTHER_RATE = 1e-3, 2e-3


@dataclass(frozen=True)
class SlicedPlan:
    """All that is decided before training: built first, so that bad settings cost no budget.

    Parameters
    ----------
    generator : Generator
        With its initial weights.
    settings : TrainingSettings
        Steps, batch, learning rate, device, seed.
    divergence : str
        What compares slices.
    balanced : bool
        Whether all classes count the same; else each by its share.
    sampling_seed : int
        Seed of the synthesizer's stream of samples.
    """

    generator: Generator
    settings: TrainingSettings
    divergence: Distance
    balanced: bool
    sampling_seed: int

    def train(self, release: Release, parts: npt.NDArray[np.int64] | None = None) -> TrainingResult:
        """Run the plan on a release of straight slices.

        There are no rows in this signature: by construction it is post-processing. With ``parts``
        nothing of the other slices is used.
        """
        features = SliceFeatureMap.from_release(release)
        device = resolve_device(self.settings.device)
        proportions = release.class_proportions()
        within = features.histograms(release) / proportions[:, None, None]
        if parts is not None:
            within, features = within[:, np.sort(parts)], features.part(parts)
        weights = np.ones(len(proportions)) if self.balanced else proportions
        loss = SlicedLoss(
            head=self.generator.head.to(device),
            project=SliceProjection(features).to(device),
            # Known sums and signs: the nearest distributions are closer to the truth.
            histograms=project_to_simplex(within),
            class_weights=weights,
            divergence=self.divergence,
            device=device,
            seed=self.settings.seed,
        )
        return descend(self.generator, loss, 0.0, self.settings)


def plan_network(
    no_mixture: str, layout: EncodedLayout, n_classes: int, *, generator: Any, **training: Any
) -> TrainingPlan:
    """A network that sees several columns at once; ``no_mixture`` says why nothing else goes."""
    if isinstance(generator, MixtureGenerator) or generator == "mixture":
        raise InputError(no_mixture)
    if isinstance(generator, str) and generator in ("auto", "mlp"):
        generator = _coupled_mlp
    return plan_training(layout, n_classes, generator=generator, objective="joint", **training)


def _coupled_mlp(layout: EncodedLayout, n_classes: int) -> MLPGenerator:
    """A network whose categories depend on its noise: slices see several columns at once."""
    return MLPGenerator(layout, n_classes, couple_categories=True)


def plan_sliced(
    divergence: Any,
    balanced: bool,
    layout: EncodedLayout,
    n_classes: int,
    *,
    learning_rate: float | None,
    **training: Any,
) -> SlicedPlan:
    """Check everything that training needs beside a release; see :func:`plan_training`.

    A learning rate of None is what suits the divergence.

    Raises
    ------
    InputError
        If a setting is out of range, or the generator can't be trained.
    """
    distance = check_distance(divergence)
    no_mixture = "a mixture needs a release of directions='wrapped'."
    if learning_rate is None:
        learning_rate = _F_DIVERGENCE_RATE if distance in get_args(Divergence) else _OTHER_RATE
    plan = plan_network(no_mixture, layout, n_classes, learning_rate=learning_rate, **training)
    return SlicedPlan(plan.generator, plan.settings, distance, balanced, plan.sampling_seed)
