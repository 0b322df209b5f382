"""Fitting mixtures of products to a release: plan it before rows are read, run it after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import InputError
from skdpgen.features.mixed import MixedFeatureMap
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.generators.mixture import MixtureGenerator, ProductMixture
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._feature_maps import feature_map_of
from skdpgen.synthesizers._mixture_target import mixture_target
from skdpgen.synthesizers._parameters import given_numbers
from skdpgen.training.mixture_trainer import MixtureSettings, fit_mixture
from skdpgen.training.trainer import resolve_device

__all__ = ["MixturePlan", "MixtureResult", "plan_mixture"]

# Up to which noise on a feature (standard deviation at amplitude 1) settings other than those of
# MixtureSettings are better. With the least noise a fit is limited by what a mixture can express:
# one large mixture, fitted fast. With more, several small ones are averaged, fitted slowly.
_UP_TO_NOISE: tuple[tuple[float, dict[str, Any]], ...] = (
    (
        0.004,
        {
            "n_components": 1000,
            "n_mixtures": 1,
            "learning_rate": 0.1,
            "n_steps": 1300,
            "floor_ratio": 0.97,
        },
    ),
    (0.03, {"learning_rate": 0.05, "floor_ratio": 0.97}),
)
# Slices are fitted more slowly than single waves: each is many waves with one direction.
_STEPS_FOR_SLICES = 2000


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
    status : {"floor", "finished", "stopped", "diverged"}
        Why the fit ended.
    """

    generator: ProductMixture
    loss_curve: npt.NDArray[np.float64]
    noise_floor: float
    status: Literal["floor", "finished", "stopped", "diverged"]

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

    def train(self, release: Release, parts: npt.NDArray[np.int64] | None = None) -> MixtureResult:
        """Run the plan on a release of interaction features or wrapped slices.

        There are no rows in this signature: by construction it is post-processing. With ``parts``
        nothing of the other families of frequencies, or of the other slices, is used.
        """
        features = feature_map_of(release)
        assert not isinstance(features, MixedFeatureMap)
        target = mixture_target(features, release, self.settings, self.balanced, parts)
        suited = next((v for limit, v in _UP_TO_NOISE if target.feature_stddev < limit), {})
        if isinstance(features, SliceFeatureMap):
            suited = {"n_steps": _STEPS_FOR_SLICES, **suited}
        free = {name: value for name, value in suited.items() if name not in self.chosen}
        settings = replace(self.settings, **free)
        fitted = fit_mixture(target, settings)
        return MixtureResult(
            generator=ProductMixture.average(features.atoms, fitted.probabilities, fitted.shares),
            loss_curve=fitted.loss_curve,
            noise_floor=target.noise_floor,
            status=fitted.status,
        )


def plan_mixture(
    generator: object,
    *,
    what: str,
    otherwise: str,
    n_steps: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    balanced: bool,
    device: str,
    seeds: np.random.SeedSequence,
) -> MixturePlan:
    """Check everything that the fit needs beside a release.

    Parameters
    ----------
    generator : object
        What the user asked for.
    what, otherwise : str
        What is released, and what to release for another generator: for the message.
    n_steps, batch_size, learning_rate : number or None
        See :class:`MixtureSettings`; None leaves the choice to the noise of the release.
    balanced : bool
        Whether rare classes get more weight than their share.
    device : str
        Where to train.
    seeds : SeedSequence
        Public randomness.

    Raises
    ------
    InputError
        If the generator is none of a mixture, a setting is out of range, or the device isn't
        there.
    """
    if isinstance(generator, str) and generator in ("auto", "mixture"):
        generator = MixtureGenerator()
    if not isinstance(generator, MixtureGenerator):
        raise InputError(
            f"{what} train a mixture: leave generator at 'auto' or give a MixtureGenerator, or "
            f"release {otherwise} for a network."
        )
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
