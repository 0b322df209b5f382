import json

import numpy as np
import opendp.measurements
import pandas as pd
import pytest
from sklearn.base import clone

import skdpgen.privacy.mechanisms as mechanisms
from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    PrivacyLedger,
    Schema,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    SynthesisPipeline,
)
from skdpgen.evaluation import empirical_epsilon
from skdpgen.evaluation.audit import _bounds, _power, _single_bound
from skdpgen.exceptions import InputError, SchemaError
from skdpgen.privacy import noise_multiplier
from skdpgen.privacy.slicing_layout import SlicingLayout

SCHEMA = Schema.from_dict(
    {
        "target": "smoker",
        "columns": {
            "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
            "city": {"kind": "categorical", "values": ["a", "b", "c"], "missing": [""]},
            "smoker": {"kind": "label", "values": ["no", "yes"]},
        },
    }
)
# False alarms of a sound synthesizer: 1e-6 each.
SURE = 1 - 1e-6


def merf(epsilon=1.0, adjacency="replace-one", **params):
    # The seed is that of the features; the noise has none.
    params = {"features": GaussianFeatures(), "schema": SCHEMA, "random_state": 0} | params
    return DPMERFSynthesizer(epsilon, 1e-5, adjacency=adjacency, **params)


def sliced(epsilon=1.0, adjacency="replace-one", **params):
    return SlicedFDivSynthesizer(epsilon, 1e-5, schema=SCHEMA, adjacency=adjacency, **params)


def halve_the_noise(monkeypatch, below=np.inf):
    """Make the sampler lie: the privacy map it was asked for, but half the noise."""
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain, metric, scale):
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 2 if scale < below else scale)

        def __call__(self, values):
            return self.sample(values)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", Liar)


def count_twice(monkeypatch):
    """Let every row contribute twice, behind the back of the sensitivity."""
    for name in ("code_sums", "row_sums"):
        once = getattr(mechanisms, name)
        monkeypatch.setattr(
            mechanisms, name, lambda *args, once=once: tuple(2 * part for part in once(*args))
        )


def halve_the_calibration(monkeypatch):
    """Ask for half the noise: the release is consistent with itself, but not with epsilon."""
    right = mechanisms.multiplier_beside
    monkeypatch.setattr(mechanisms, "multiplier_beside", lambda *args: right(*args) / 2)


FAULTS = {"noise": halve_the_noise, "twice": count_twice, "calibration": halve_the_calibration}


# -- the real ones pass ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "epsilon"), [(merf, 0.1), (merf, 1.0), (merf, 10.0), (sliced, 1.0)]
)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_what_keeps_its_claim_passes(make, adjacency, epsilon):
    audit = empirical_epsilon(make(epsilon, adjacency), n_runs=20, confidence=SURE)
    assert (audit.verdict, audit.violated) == ("consistent", False)
    assert (audit.epsilon, audit.delta, audit.adjacency) == (epsilon, 1e-5, adjacency)
    assert audit.epsilon_lower <= epsilon
    # The record that the audit takes moves the release as far as any can.
    assert audit.tightness == pytest.approx(1, abs=1e-3)
    # About two standard deviations between the tables, whatever epsilon is.
    assert 1.5 < audit.group / noise_multiplier(epsilon, 1e-5) < 2.5
    assert audit.shadow["fits"] == 40


def test_the_default_features_and_unlabeled_tables():
    audit = empirical_epsilon(
        merf(schema=SCHEMA.unlabeled(), features="auto"), n_runs=30, confidence=SURE
    )
    assert audit.verdict == "consistent"
    assert audit.changed["features"].n_frequencies == 8
    # Of one label, the worst pair has opposite waves: found among rows that were made up.
    assert 0.9 < audit.tightness <= 1


# -- faults are caught -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "fault"), [(sliced, "noise"), *((merf, fault) for fault in FAULTS)]
)
def test_faults_are_caught(make, fault, monkeypatch):
    FAULTS[fault](monkeypatch)
    # Missed with probability 1e-6 or less, see the power.
    audit = empirical_epsilon(make(), n_runs=80, confidence=0.999)
    assert audit.verdict == "VIOLATED"
    assert 1.2 < audit.epsilon_lower < 2.2
    assert "VIOLATED" in audit.summary()
    assert audit.tightness == pytest.approx({"noise": 1, "twice": 2, "calibration": 1}[fault])
    assert audit.power > 1 - 1e-6


def test_the_default_features_with_halved_noise(monkeypatch):
    halve_the_noise(monkeypatch)
    synthesizer = merf(10.0, "add-remove", features="auto")
    assert empirical_epsilon(synthesizer, n_runs=80, confidence=0.999).violated


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("where", ["everywhere", "counts", "one number"])
def test_noise_that_is_missing_is_caught_wherever_it_is(adjacency, where, monkeypatch):
    # Along all numbers together that of a few would hardly show.
    def partial(values, stddev, sensitivity_squared, source):
        noisy = noise(values, stddev, sensitivity_squared, source)
        # The rows that are told apart, or those of one of the tables, are of the first label.
        bare = {"everywhere": slice(None), "counts": slice(-2, None), "one number": slice(-2, -1)}
        noisy[bare[where]] = values[bare[where]]
        return noisy

    noise = mechanisms.add_gaussian_noise
    monkeypatch.setattr(mechanisms, "add_gaussian_noise", partial)
    audit = empirical_epsilon(merf(adjacency=adjacency), n_runs=20)
    assert audit.violated
    assert audit.epsilon_lower > 1e3
    assert "VIOLATED" in audit.summary()
    json.dumps(audit.to_dict(), allow_nan=False)


def test_noise_that_is_the_same_in_every_run_is_caught(monkeypatch):
    def seeded(values, stddev, sensitivity_squared, source):
        drawn = np.random.default_rng(0).normal(0, stddev, len(values))
        return values if source.rng is not None else values + np.rint(drawn).astype(np.int64)

    monkeypatch.setattr(mechanisms, "add_gaussian_noise", seeded)
    assert empirical_epsilon(merf(), n_runs=20).violated


def test_noise_of_another_kind_is_caught_by_counting(monkeypatch):
    # Mostly no noise, seldom a lot: of the right variance, and far from private.
    def spiky(values, stddev, sensitivity_squared, source):
        if source.rng is not None:
            return values
        rng = np.random.default_rng()
        big = rng.normal(0, stddev, len(values)) * (10 if rng.uniform() < 0.01 else 0.01)
        return values + np.rint(big).astype(np.int64)

    monkeypatch.setattr(mechanisms, "add_gaussian_noise", spiky)
    audit = empirical_epsilon(sliced(), n_runs=200)
    assert audit.epsilon_lower_counting > audit.epsilon
    assert audit.violated
    assert audit.normality < 1e-6


@pytest.mark.parametrize(
    ("directions", "fault"),
    [("gaussian", None), ("gaussian", "noise"), ("frame", None), ("frame", "weights")],
)
def test_noisy_rows(directions, fault, monkeypatch):
    if fault == "noise":
        # Of values only. Directions are drawn by the same sampler: halved too, they would hide it.
        halve_the_noise(monkeypatch, below=2.0**27)
    if fault == "weights":
        right = SlicingLayout.block_weight.fget
        monkeypatch.setattr(SlicingLayout, "block_weight", property(lambda s: 2 * right(s)))
    synthesizer = SlicedRowsSynthesizer(
        10.0, 1e-5, schema=SCHEMA, n_slices=14, directions=directions
    )
    audit = empirical_epsilon(synthesizer, n_runs=200, confidence=0.999 if fault else SURE)
    assert audit.violated == (fault is not None)
    assert audit.power > 0.9999
    assert audit.tightness == pytest.approx(2 if fault == "weights" else 1, abs=1e-3)
    assert np.isnan(audit.epsilon_lower_counting)
    json.dumps(audit.to_dict(), allow_nan=False)


# -- the figures -----------------------------------------------------------------------------------


def test_bounds_and_power_are_as_stated():
    # mu = 2, a thousand audits of thirty runs a side; fixed seed.
    rng = np.random.default_rng(0)
    runs = rng.normal([1.0, -1.0], 1.0, (1000, 30, 2))
    found = np.array([_bounds(run, 0.05) for run in runs])
    wrong = (found > 2).mean(axis=0)
    # Exact for the t statistic, with a standard error of 0.007; counts are conservative.
    assert wrong[0] == pytest.approx(0.05, abs=0.03)
    assert wrong[1] < 0.05
    doubled = np.array([_bounds(run, 0.05)[0] for run in rng.normal([1, -1], 0.5, (400, 10, 2))])
    assert (doubled > 2).mean() == pytest.approx(_power(2.0, 2.0, 10, 0.85), abs=0.08)


def test_a_single_number_is_found_and_seldom_by_mistake():
    rng = np.random.default_rng(0)
    shift = np.full(5, 2.0)
    # Five numbers of mu = 2 each, of which the best is taken: wrong in at most 5 % of the cases.
    runs = rng.normal(0, 1, (1000, 30, 2, 5)) + np.array([1.0, -1.0])[:, None]
    wrong = np.mean([_single_bound(run, shift, 0.05) > 2 for run in runs])
    assert wrong < 0.05 + 4 * 0.007
    runs[..., 3] *= [1, -1]  # whatever the sign
    assert np.mean([_single_bound(run, shift, 0.05) > 2 for run in runs]) < 0.05 + 4 * 0.007
    still = runs[0].copy()
    still[:, 0, 2], still[:, 1, 2] = 1.0, -1.0
    assert _single_bound(still, shift, 0.05) == np.inf


# -- the ledger is left alone ----------------------------------------------------------------------


def test_the_synthesizer_and_its_ledger_stay_as_they_are():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    table = pd.DataFrame({"age": [30, 60] * 20, "city": ["a", "b"] * 20, "smoker": ["no"] * 40})
    synthesizer = merf(ledger=ledger, n_steps=2).fit(table)
    release, before, params = synthesizer.release_, ledger.entries, synthesizer.get_params()
    audit = empirical_epsilon(synthesizer, n_runs=20)
    assert ledger.entries == before
    assert synthesizer.release_ is release
    assert synthesizer.get_params() == params
    assert audit.shadow["epsilon"] > 1.0
    assert "never publish" in audit.shadow["warning"]
    own = merf()
    empirical_epsilon(own, n_runs=20)
    assert own._ensure_own_ledger().entries == ()
    assert clone(own)._ensure_own_ledger().entries == ()


def test_a_learned_schema_is_taken_as_declared():
    table = pd.DataFrame({"age": [30.0, 60.0] * 200, "smoker": ["no", "yes"] * 200})
    synthesizer = merf(100.0, schema=None, n_steps=2).fit(table)
    assert empirical_epsilon(synthesizer, n_runs=20, confidence=SURE).verdict == "consistent"


# -- pairs of one's own ----------------------------------------------------------------------------


def test_a_pair_of_ones_own():
    table = pd.DataFrame({"age": [30, 60, 40], "city": ["a", None, "c"], "smoker": ["no"] * 3})
    other = table.assign(smoker=["no", "no", "yes"])
    audit = empirical_epsilon(merf(), (table, other), n_runs=20, confidence=SURE)
    assert (audit.group, audit.verdict) == (1, "consistent")
    assert "not private" in audit.reads
    both = table.assign(smoker=["no", "yes", "yes"])
    assert empirical_epsilon(merf(), (table, both), n_runs=20, confidence=SURE).group == 2
    units = merf(rows_per_unit=2)
    assert empirical_epsilon(units, (table, both), n_runs=20, confidence=SURE).group == 1
    smaller = empirical_epsilon(
        merf(adjacency="add-remove"), (table, table[:2]), n_runs=20, confidence=SURE
    )
    assert (smaller.group, smaller.verdict) == (1, "consistent")


def test_units_of_several_rows():
    audit = empirical_epsilon(merf(rows_per_unit=3), n_runs=20, confidence=SURE)
    assert audit.verdict == "consistent"
    assert audit.tightness == pytest.approx(1, abs=1e-3)


def test_errors():
    table = pd.DataFrame({"age": [30, 60], "city": ["a", "b"], "smoker": ["no", "yes"]})
    with pytest.raises(InputError, match="same"):
        empirical_epsilon(merf(), (table, table))
    with pytest.raises(InputError, match="as many rows"):
        empirical_epsilon(merf(), (table, table[:1]))
    with pytest.raises(InputError, match="part of the first"):
        empirical_epsilon(merf(adjacency="add-remove"), (table[:1], table))
    with pytest.raises(InputError, match="leave pair out"):
        empirical_epsilon(SlicedRowsSynthesizer(1.0, 1e-5, schema=SCHEMA), (table, table[:1]))
    with pytest.raises(InputError, match="n_runs"):
        empirical_epsilon(merf(), n_runs=5)
    with pytest.raises(InputError, match="confidence"):
        empirical_epsilon(merf(), confidence=0.0)
    with pytest.raises(InputError, match="need the public facts"):
        empirical_epsilon(merf(schema=None))
    with pytest.raises(InputError, match="of a pipeline or a search"):
        empirical_epsilon(SynthesisPipeline([("synth", merf())]))
    with pytest.raises(SchemaError, match="'age'"):
        empirical_epsilon(merf(schema=Schema.from_dtypes(table, leave_open=True)))


def test_to_dict_is_plain():
    audit = empirical_epsilon(
        merf(features=InteractionFeatures(4, orders=(2,))), n_runs=20, confidence=SURE
    )
    plain = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert plain["verdict"] == "consistent"
    assert plain["reads"] == "Read made-up rows only: nothing private."
    assert "only the proof" in str(audit)
