import json
import math

import numpy as np
import opendp.measurements
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
    SlicedRowsSynthesizer,
)
from skdpgen.evaluation import membership_inference
from skdpgen.evaluation.membership import _threshold
from skdpgen.exceptions import InputError
from skdpgen.privacy import noise_multiplier

SCHEMA = Schema.from_dict(
    {
        "target": "smoker",
        "columns": {
            "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
            "smoker": {"kind": "label", "values": ["no", "yes"]},
        },
    }
)
# The oldest stands far from all others.
TABLE = pd.DataFrame({"age": [30, 31, 32, 33, 90, 34, 35, 36], "smoker": ["no", "yes"] * 4})
SURE = 1 - 1e-6


def merf(epsilon, adjacency="add-remove", **params):
    params = {"features": GaussianFeatures(), "schema": SCHEMA} | params
    return DPMERFSynthesizer(epsilon, 1e-5, adjacency=adjacency, **params)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_advantage_is_that_of_the_best_test(adjacency):
    # Under add-remove every record is a worst case, and so is one that changes its label: the
    # advantage is the total variation distance of two Gaussians.
    result = membership_inference(merf(10.0, adjacency), TABLE, [4], n_shadows=100, confidence=SURE)
    best = 2 * norm.cdf(1 / noise_multiplier(10.0, 1e-5) / 2) - 1
    assert result.bound == pytest.approx(best, abs=1e-6)
    # Two rates of 50 runs each: six standard errors, and what a threshold of 100 scores loses.
    assert best - 0.5 < result.advantage < best + 0.35
    assert not result.violated
    low, high = result.interval
    assert low < result.advantage < high


def test_too_little_noise_is_more_than_what_is_allowed(monkeypatch):
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain, metric, scale):
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 20)

        def __call__(self, values):
            return self.sample(values)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", Liar)
    # mu = 20 * 0.268: 99 percent of the runs are told right; 50 of 50 have a lower bound of 0.7.
    result = membership_inference(merf(1.0), TABLE, 1, n_shadows=100, confidence=SURE)
    assert result.violated
    assert result.advantage > 0.8
    assert "VIOLATES" in result.summary()


def test_bounds_in_closed_form():
    result = membership_inference(merf(1.0), TABLE, 1, n_shadows=10)
    assert result.bound == pytest.approx(2 * norm.cdf(1 / 3.7306317 / 2) - 1, abs=1e-6)
    expected = (math.e - 1 + 2e-5) / (math.e + 1)
    assert result.bound_epsilon == pytest.approx(expected, abs=1e-12)
    assert result.bound < result.bound_epsilon


def test_the_most_exposed_records_are_chosen():
    result = membership_inference(merf(1.0), TABLE, 1, n_shadows=10)
    assert result.targets["row"].tolist() == [4]
    given = membership_inference(merf(1.0), TABLE, [1, 6], n_shadows=10)
    assert given.targets["row"].tolist() == [1, 6]
    assert result.n_shadows == given.n_shadows == 10
    assert given.shadow["fits"] == 2 * 2 * 10


def test_polars_and_large_tables_are_cut_down():
    table = pl.from_pandas(pd.concat([TABLE] * 200, ignore_index=True))
    result = membership_inference(merf(1.0, "replace-one"), table, [1500], n_shadows=10)
    assert result.targets["row"].tolist() == [1500]
    assert "Read 1001 rows" in result.reads or "Read 1000 rows" in result.reads
    assert "no epsilon" in result.reads


@pytest.mark.parametrize("directions", ["gaussian", "frame"])
def test_noisy_rows(directions):
    synthesizer = SlicedRowsSynthesizer(
        500.0, 1e-5, schema=SCHEMA, n_slices=3, directions=directions
    )
    # Two rows that are as far apart as rows can be: mu is 27 for a frame.
    table = TABLE.iloc[[0, 4]].assign(age=[18, 90], smoker=["no", "yes"])
    n = 10 if directions == "gaussian" else 40
    result = membership_inference(synthesizer, table, [1], n_shadows=n, confidence=SURE)
    assert not result.violated
    assert 0.9 < result.bound <= 1
    if directions == "frame":
        assert result.advantage == 1.0


def test_an_attack_on_synthetic_rows_trains():
    synthesizer = merf(
        5.0,
        features=InteractionFeatures(20, n_bins=8, orders=(2,)),
        generator=MixtureGenerator(4),
        n_steps=2,
    )
    result = membership_inference(synthesizer, TABLE, 1, attack="synthetic", n_shadows=10)
    assert result.changed == {}
    assert result.shadow["fits"] == 20
    assert -1 <= result.advantage <= 1
    assert "a synthetic table" in result.summary()


def test_the_threshold_separates_best():
    scores = np.array([[3.0, 1.0], [4.0, 2.0], [1.5, 0.0]])
    assert _threshold(scores) in (1.25, 2.5)
    assert _threshold(np.array([[5.0, 0.0], [9.0, 1.0]])) == 3.0
    assert _threshold(np.array([[1.0, 1.0]] * 3)) == 1.0


def test_the_ledger_is_left_alone_and_the_result_is_plain():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    synthesizer = merf(1.0, ledger=ledger)
    result = membership_inference(synthesizer, TABLE, 1, n_shadows=10, confidence=SURE)
    assert ledger.entries == ()
    assert "never publish" in result.shadow["warning"]
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["violated"] is False
    assert plain["targets"][0]["row"] == 4
    assert "guarantee covers them" in str(result)


def test_errors():
    with pytest.raises(InputError, match="attack"):
        membership_inference(merf(1.0), TABLE, attack="rows")
    with pytest.raises(InputError, match="n_shadows"):
        membership_inference(merf(1.0), TABLE, n_shadows=3)
    with pytest.raises(InputError, match="confidence"):
        membership_inference(merf(1.0), TABLE, confidence=1.5)
    for targets in (0, 9, [], [8], [-1]):
        with pytest.raises(InputError, match="targets"):
            membership_inference(merf(1.0), TABLE, targets)
    with pytest.raises(InputError, match="two rows"):
        membership_inference(merf(1.0), TABLE[:1])
