"""Fitting mixtures of products to a release: plan it before rows are read, run it after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skdpgen.features.interactions import InteractionFeatureMap
from skdpgen.generators.mixture import MixtureGenerator, ProductMixture
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._parameters import given_numbers
from skdpgen.training.mixture_objective import frequency_groups
from skdpgen.training.mixture_trainer import MixtureSettings, MixtureTarget, fit_mixture
from skdpgen.training.trainer import resolve_device

__all__ = ["MixturePlan", "MixtureResult", "plan_mixture"]

# Features with less noise than this are limited by what a mixture can express: one large mixture,
# fitted fast. Above it, several small ones are averaged, fitted slowly.
_SMALL_NOISE = 0.004
_FOR_SMALL_NOISE: dict[str, Any] = {
    "n_components": 1000,
    "n_mixtures": 1,
    "learning_rate": 0.1,
    "n_steps": 1600,
}

# Classes rarer than this get no more weight: their released features are mostly noise.
_RAREST = 0.01


@dataclass(frozen=True)
class MixtureResult:
    """A fitted mixture and how the fit went.

    Parameters
    ----------
    generator : ProductMixture
        The average of all mixtures.
    loss_curve : ndarray of shape (n_steps_done,)
        Loss of each step.
    noise_floor : float
        What privacy noise contributes to each of them in expectation.
    status : {"floor", "finished", "diverged"}
        Why the fit ended.
    """

    generator: ProductMixture
    loss_curve: npt.NDArray[np.float64]
    noise_floor: float
    status: Literal["floor", "finished", "diverged"]

    @property
    def debiased_loss_curve(self) -> npt.NDArray[np.float64]:
        """Loss curve less the noise floor."""
        return self.loss_curve - self.noise_floor


@dataclass(frozen=True)
class MixturePlan:
    """All that is decided before the fit: built first, so that bad settings cost no budget.

    Parameters
    ----------
    settings : MixtureSettings
        Components, steps, learning rate, device, seed.
    chosen : frozenset of str
        Names of the settings that the user chose; the others may follow the noise of the release.
    balanced : bool
        Whether rare classes get more weight than their share.
    sampling_seed : int
        Seed of the synthesizer's stream of samples.
    """

    settings: MixtureSettings
    chosen: frozenset[str]
    balanced: bool
    sampling_seed: int

    def train(self, release: Release) -> MixtureResult:
        """Run the plan on a release of interaction features.

        There are no rows in this signature: by construction it is post-processing.
        """
        features = InteractionFeatureMap.from_release(release)
        target = mixture_target(features, release, self.settings, self.balanced)
        settings = self.settings
        if target.feature_stddev < _SMALL_NOISE:
            free = {n: v for n, v in _FOR_SMALL_NOISE.items() if n not in self.chosen}
            settings = replace(settings, **free)
        fitted = fit_mixture(target, settings)
        return MixtureResult(
            generator=ProductMixture.average(features.atoms, fitted.probabilities, fitted.shares),
            loss_curve=fitted.loss_curve,
            noise_floor=target.noise_floor,
            status=fitted.status,
        )


def plan_mixture(
    generator: MixtureGenerator,
    *,
    n_steps: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    balanced: bool,
    device: str,
    seeds: np.random.SeedSequence,
) -> MixturePlan:
    """Check everything that the fit needs beside a release.

    Raises
    ------
    InputError
        If a setting is out of range or the device isn't there.
    """
    chosen = given_numbers(
        {
            "n_components": (generator.n_components, Integral),
            "n_mixtures": (generator.n_mixtures, Integral),
            "spread": (generator.spread, Real),
            "floor_ratio": (generator.floor_ratio, Real),
            "n_steps": (n_steps, Integral),
            "batch_size": (batch_size, Integral),
            "learning_rate": (learning_rate, Real),
        }
    )
    fit, sampling = (int(child.generate_state(1, np.uint64)[0]) >> 1 for child in seeds.spawn(2))
    if "n_components" in chosen and "n_mixtures" not in chosen:
        chosen["n_mixtures"] = min(MixtureSettings.n_mixtures, max(1, chosen["n_components"]))
    settings = MixtureSettings(**chosen, device=device, seed=fit)
    if "n_mixtures" in chosen:
        # Each mixture needs a component, whatever the release asks for.
        chosen.setdefault("n_components", settings.n_components)
    resolve_device(device)
    return MixturePlan(settings, frozenset(chosen), balanced, sampling)


def mixture_target(
    features: InteractionFeatureMap, release: Release, settings: MixtureSettings, balanced: bool
) -> MixtureTarget:
    """What a release says about features of mean squared amplitude 1 and shares of codes."""
    spec = release.spec
    one = 2.0**spec.lattice_bits
    harmonics = np.array(features.fourier.amplitudes(spec.signed_bound)) / one
    amplitude = float(np.sqrt(np.mean(harmonics**2)))
    category = spec.category_steps / one
    embedding = release.mean_embedding()
    n_signed = spec.n_signed
    waves = features.waves()
    sizes = [tables[0].shape[1] // len(harmonics) for tables in waves]
    groups = frequency_groups(
        features.subsets,
        waves,
        embedding[:, :n_signed] / amplitude,
        np.concatenate([np.repeat(harmonics, size) for size in sizes]) / amplitude,
        settings.batch_size,
        np.random.default_rng(settings.seed),
        resolve_device(settings.device),
    )
    proportions = release.class_proportions()
    weights = np.ones(len(proportions))
    if balanced:
        # Between the joint objective, in which a rare class counts by its squared share, and one
        # in which all count the same and the rarest, mostly noise, count most.
        weights = 1 / np.sqrt(np.maximum(proportions, _RAREST))
    return MixtureTarget(
        groups=groups,
        n_codes=features.atoms.n_codes,
        n_ordered=features.atoms.n_ordered,
        one_way=embedding[:, n_signed:] / category if category else None,
        proportions=proportions,
        feature_stddev=release.coordinate_stddev / amplitude,
        one_way_stddev=release.coordinate_stddev / category if category else 0.0,
        class_weights=weights / weights.mean(),
        # Released coordinates all have the same noise, so squared errors count alike on that scale.
        one_way_weight=(category / amplitude) ** 2 / features.n_frequencies,
    )
