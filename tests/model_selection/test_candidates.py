"""Candidates: trained on what they were given and on nothing else, wherever they travel."""

import pickle
import struct
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
    SlicedFDivSynthesizer,
)
from skdpgen.data import Categorical, Numeric
from skdpgen.model_selection import ReleaseSearchCV, _held_out, release_search
from skdpgen.model_selection._candidates import Candidate, Rehearsal, with_settings
from skdpgen.synthesizers._feature_maps import feature_map_of

SCHEMA = Schema(
    {
        "dose": Numeric((0, 1)),
        "ward": Categorical(["a", "b", "c"]),
        "ill": Categorical(["no", "yes"]),
    },
    target="ill",
)
KINDS = {
    "families": (DPMERFSynthesizer, {"features": InteractionFeatures(60, n_bins=4)}),
    "frequencies": (DPMERFSynthesizer, {"features": GaussianFeatures(30)}),
    "wrapped": (SlicedFDivSynthesizer, {"n_slices": 15, "n_cells": 4}),
    "sparse": (SlicedFDivSynthesizer, {"n_slices": 15, "n_cells": 4, "directions": "sparse"}),
}
TRAINED, HELD_OUT = np.array([8, 1, 4, 0, 14]), np.array([2, 3, 11])
MARKER = 0.123456789


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "dose": np.where(rng.random(50) < 0.5, MARKER, rng.random(50)),
            "ward": rng.choice(["a", "b", "c"], 50),
            "ill": rng.choice(["no", "yes"], 50),
        },
        index=[f"person-{i}" for i in range(50)],
    )


@pytest.fixture(params=KINDS)
def synth(request, monkeypatch):
    monkeypatch.setattr(_held_out, "_ROWS", 400)
    cls, params = KINDS[request.param]
    return cls(1.0, 1e-5, schema=SCHEMA, n_steps=4, batch_size=20, random_state=0, **params).fit(
        table()
    )


def coordinates(release, parts):
    """Where the parts of a release stand, worked out from its arrays."""
    if not release.spec.n_signed:
        return np.concatenate([np.arange(s * 4, s * 4 + 4) for s in parts])
    n = release.spec.n_signed // 2
    if release.spec.n_harmonics == 1:
        waves = np.array(parts)
    else:
        # Within a subset: all its families at their phases, then at twice their phases, ...
        sizes = release.public_arrays["subset_shapes"][:, 1]
        starts = np.cumsum(sizes) - sizes
        subset = np.searchsorted(np.cumsum(sizes), parts, side="right")
        own = 4 * starts[subset] + (parts - starts[subset])
        waves = np.concatenate([own + k * sizes[subset] for k in range(4)])
    return np.concatenate([waves, n + waves])


def poisoned(synth, kept):
    """The same, with a release of which only some parts and the counts are as they were."""
    release = synth.release_
    sums = release.noisy_sums.copy()
    n_parts = feature_map_of(release).n_parts
    lost = coordinates(release, np.setdiff1d(np.arange(n_parts), kept))
    sums[:, lost] += np.random.default_rng(0).integers(-(2**40), 2**40, (2, len(lost)))
    other = with_settings(synth, {})
    other.release_ = replace(release, noisy_sums=sums)
    return other


def outcome(generator):
    rows = generator.sample(np.repeat([0, 1], 20), seed=1)
    return rows.tobytes()


def test_training_looks_at_its_own_parts_only(synth):
    candidate = Candidate.of(synth).fit(TRAINED)
    other = Candidate.of(poisoned(synth, TRAINED)).fit(TRAINED)
    assert outcome(candidate.generator_) == outcome(other.generator_)
    assert outcome(candidate.generator_) != outcome(
        Candidate.of(poisoned(synth, HELD_OUT)).fit(TRAINED).generator_
    )


def test_a_score_looks_at_its_own_parts_only(synth):
    candidate = Candidate.of(synth).fit(TRAINED)
    score = candidate.score(HELD_OUT)
    candidate.synthesizer = poisoned(synth, HELD_OUT)
    assert candidate.score(HELD_OUT) == score
    candidate.synthesizer = poisoned(synth, TRAINED)
    assert candidate.score(HELD_OUT) != score


def test_training_on_all_parts_is_training_on_the_release(synth):
    n_parts = feature_map_of(synth.release_).n_parts
    candidate = Candidate.of(synth).fit(np.random.default_rng(0).permutation(n_parts))
    assert outcome(candidate.generator_) == outcome(synth.generator_)


def test_settings_are_the_candidates_own(synth):
    candidate = Candidate.of(synth)
    other = clone(candidate).set_params(learning_rate=0.3).set_params(n_steps=2)
    assert (other.get_params()["learning_rate"], other.get_params()["n_steps"]) == (0.3, 2)
    assert clone(other).get_params()["n_steps"] == synth.n_steps == 4
    assert other.fit(TRAINED).generator_ is not candidate.fit(TRAINED).generator_
    assert synth.learning_rate is None


def test_nested_settings_change_a_copy():
    mixture = MixtureGenerator(8, n_mixtures=2)
    synth = DPMERFSynthesizer(1.0, 1e-5, generator=mixture)
    assert with_settings(synth, {"generator__n_components": 4}).generator.n_components == 4
    both = with_settings(synth, {"generator": MixtureGenerator(2), "generator__spread": 0.5})
    assert (both.generator.n_components, both.generator.spread) == (2, 0.5)
    assert (mixture.n_components, mixture.spread) == (8, 0.2)


def test_a_rehearsal_trains_nothing(synth):
    rehearsal = Rehearsal(synth).fit(TRAINED)
    assert rehearsal.score(HELD_OUT) == 0
    assert not hasattr(rehearsal, "generator_")


def test_no_row_travels_to_the_workers(monkeypatch):
    travelled = []

    class Watched(release_search.GridSearchCV):
        def fit(self, X):
            travelled.append(pickle.dumps((self.estimator, X, self.param_grid, self.cv)))
            return super().fit(X)

    monkeypatch.setattr(release_search, "GridSearchCV", Watched)
    ledger = PrivacyLedger()
    synth = DPMERFSynthesizer(
        1.0,
        1e-5,
        schema=SCHEMA,
        features=InteractionFeatures(20, n_bins=4),
        n_steps=2,
        ledger=ledger,
    )
    frame = table()
    search = ReleaseSearchCV(synth, {"learning_rate": [0.1]}, cv=2).fit(frame)
    marker = struct.pack("<d", MARKER)
    assert marker in pickle.dumps(frame)
    assert b"person-" in pickle.dumps(frame)
    rehearsed, searched = travelled
    for payload in (rehearsed, searched, pickle.dumps(search)):
        assert marker not in payload
        assert b"person-" not in payload
    candidate = pickle.loads(searched)[0]
    assert candidate.synthesizer.ledger is None
    assert candidate.synthesizer._ensure_own_ledger().entries == ()
    assert not {"ledger_", "generator_"} & vars(candidate.synthesizer).keys()
    assert synth.ledger is ledger
    assert len(ledger.entries) == 1
