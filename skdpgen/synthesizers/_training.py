"""Training on a release: plan it before rows are read, run it after; neither sees a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt
import torch

from skdpgen.divergences.mmd import Objective
from skdpgen.exceptions import InputError
from skdpgen.features.mixed import MixedFeatureMap
from skdpgen.generators.base import Generator, GeneratorSpec, build_generator
from skdpgen.layout import EncodedLayout
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._parameters import given_numbers
from skdpgen.training.progress import unwatched
from skdpgen.training.trainer import TrainingResult, TrainingSettings, resolve_device, train

__all__ = ["TrainingPlan", "plan_training"]


@dataclass(frozen=True)
class TrainingPlan:
    """All that is decided before training: built first, so that bad settings cost no budget.

    Parameters
    ----------
    generator : Generator
        With its initial weights.
    settings : TrainingSettings
        Steps, batch, learning rate, objective, device, seed.
    sampling_seed : int
        Seed of the synthesizer's stream of samples.
    """

    generator: Generator
    settings: TrainingSettings
    sampling_seed: int

    def train(self, release: Release, parts: npt.NDArray[np.int64] | None = None) -> TrainingResult:
        """Run the plan on a release of Gaussian features.

        There are no rows in this signature: by construction it is post-processing. With ``parts``
        nothing of the other frequencies is used.
        """
        features = MixedFeatureMap.from_release(release)
        target = release.mean_embedding()
        if parts is not None:
            parts = np.sort(parts)
            categories = np.arange(2 * features.n_parts, features.width)
            target = target[:, np.concatenate([features.coordinates(parts), categories])]
        return train(
            self.generator,
            features.embedding(parts).to(resolve_device(self.settings.device)),
            target,
            release.class_proportions(),
            release.coordinate_stddev,
            self.settings,
            n_features=features.width,
        )


def plan_training(
    layout: EncodedLayout,
    n_classes: int,
    *,
    generator: GeneratorSpec,
    n_steps: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    objective: Objective,
    device: str,
    seeds: np.random.SeedSequence,
) -> TrainingPlan:
    """Build and check everything that training needs beside a release.

    Raises
    ------
    InputError
        If a setting is out of range, the generator doesn't fit the layout or can't be trained,
        or the device isn't there.
    """
    weights, training, sampling = (
        int(child.generate_state(1, np.uint64)[0]) >> 1 for child in seeds.spawn(3)
    )
    chosen = given_numbers(
        {
            "n_steps": (n_steps, Integral),
            "batch_size": (batch_size, Integral),
            "learning_rate": (learning_rate, Real),
        }
    )
    settings = TrainingSettings(**chosen, objective=objective, device=device, seed=training)
    resolve_device(device)
    built = build_generator(generator, layout, n_classes, seed=weights)
    _rehearse(built, settings)
    return TrainingPlan(built, settings, sampling)


def _rehearse(generator: Generator, settings: TrainingSettings) -> None:
    """Train a copy for one step towards nothing, with the encoded rows as their own features.

    What would fail after the release (no weights, no gradient, too little memory for a batch)
    fails before the budget is spent.
    """
    target = np.zeros((generator.n_classes, generator.head.width))
    shares = np.full(generator.n_classes, 1 / generator.n_classes)
    one_step = replace(settings, n_steps=1)
    try:
        with unwatched():
            status = train(generator, torch.nn.Identity(), target, shares, 0.0, one_step).status
    except Exception as error:
        raise InputError(f"the generator can't be trained: {error}") from error
    if status == "diverged":
        raise InputError("the generator can't be trained: its gradient isn't finite.")
