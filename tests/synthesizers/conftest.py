"""Small tables, cheap settings, and a watch on the noise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    Schema,
    insecure_noise,
)
from skdpgen.data import Boolean, Categorical, Id, Numeric, Text
from skdpgen.privacy import mechanisms


@pytest.fixture(scope="session")
def make() -> Callable[..., DPMERFSynthesizer]:
    """A synthesizer that takes milliseconds to fit."""

    def make_synthesizer(schema: Any, **params: Any) -> DPMERFSynthesizer:
        cheap = {
            "epsilon": 1.0,
            "delta": 1e-5,
            "features": GaussianFeatures(20),
            "n_steps": 3,
            "batch_size": 20,
            "random_state": 0,
        }
        return DPMERFSynthesizer(schema=schema, **{**cheap, **params})

    return make_synthesizer


@pytest.fixture(scope="session")
def make_mixture(make: Callable[..., DPMERFSynthesizer]) -> Callable[..., DPMERFSynthesizer]:
    """The same with interaction features and a mixture, the default for tables."""

    def make_synthesizer(schema: Any, **params: Any) -> DPMERFSynthesizer:
        cheap = {
            "features": InteractionFeatures(60, n_bins=8),
            "generator": MixtureGenerator(8, n_mixtures=2),
        }
        return make(schema, **{**cheap, **params})

    return make_synthesizer


@pytest.fixture
def table() -> pd.DataFrame:
    """Every kind of column that a small survey has, and a label."""
    rng = np.random.default_rng(1)
    n = 60
    return pd.DataFrame(
        {
            "key": [f"person-{i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 1e5, n)),
            "color": rng.choice(["red", "green", "blue"], n),
            "member": rng.random(n) < 0.3,
            "remark": "some words",
            "smoker": rng.choice(["no", "yes"], n),
        }
    )


@pytest.fixture
def schema() -> Schema:
    """The public facts about ``table``."""
    return Schema(
        {
            "key": Id(),
            "age": Numeric((18, 99), "int"),
            "income": Numeric((0, 100_000), missing=True),
            "color": Categorical(["red", "green", "blue"], other="other"),
            "member": Boolean(),
            "remark": Text(constant="-"),
            "smoker": Categorical(["no", "yes"]),
        },
        target="smoker",
    )


@pytest.fixture
def noise_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the mechanism adds noise."""
    calls: list[int] = []
    add_noise = mechanisms.add_gaussian_noise

    def watched(values: Any, *rest: Any) -> Any:
        calls.append(len(values))
        return add_noise(values, *rest)

    monkeypatch.setattr(mechanisms, "add_gaussian_noise", watched)
    return calls


@pytest.fixture(scope="session")
def exact_sums() -> Callable[..., np.ndarray]:
    """What a fit would release without noise, in lattice steps."""

    def fit_without_noise(
        synthesizer: DPMERFSynthesizer, *data: Any, **keywords: Any
    ) -> np.ndarray:
        with insecure_noise(scale=0):
            release = synthesizer.fit(*data, **keywords).release_
        return np.concatenate([release.noisy_sums.ravel(), release.noisy_counts])

    return fit_without_noise
