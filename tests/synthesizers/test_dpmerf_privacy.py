"""DP-MERF: what the noise, the neighboring relation and the unit of privacy do."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from skdpgen import GaussianFeatures, PrivacyLedger, insecure_noise
from skdpgen.exceptions import BudgetExceededError, PrivacyWarning, SkdpgenWarning
from skdpgen.privacy.units import bounded_rows

# -- noise and public randomness -------------------------------------------------------------------


def test_the_seed_fixes_frequencies_and_never_the_noise(make, schema, table):
    first, second = make(schema).fit(table), make(schema).fit(table)
    frequencies = [s.release_.public_arrays["frequencies"] for s in (first, second)]
    assert np.array_equal(*frequencies)
    # Noise is 10^8 steps wide: that two coordinates agree by chance has probability below 1e-6.
    assert not (first.release_.noisy_sums == second.release_.noisy_sums).any()
    other = make(schema, random_state=1).fit(table)
    assert not np.array_equal(frequencies[0], other.release_.public_arrays["frequencies"])


def test_global_seeds_do_not_fix_the_noise(make, schema, table):
    releases = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        torch.manual_seed(0)
        releases.append(make(schema).fit(table).release_)
    assert not (releases[0].noisy_sums == releases[1].noisy_sums).any()


def test_insecure_noise_makes_the_whole_pipeline_reproducible(make, schema, table):
    samples, synthesizers = [], []
    for _ in range(2):
        with insecure_noise(seed=5):
            synthesizer = make(schema).fit(table)
        synthesizers.append(synthesizer)
        samples.append(synthesizer.sample(20))
    pd.testing.assert_frame_equal(*samples)
    assert np.array_equal(synthesizers[0].loss_curve_, synthesizers[1].loss_curve_)
    assert "NOT PRIVATE" in synthesizers[0].privacy_statement()
    assert synthesizers[0].ledger_.spent(1e-5) == math.inf
    assert synthesizers[0].release_.verify() == math.inf


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.2, 10.0])
def test_noise_has_the_stated_width_at_every_epsilon(
    make, schema, table, epsilon, adjacency, exact_sums
):
    synthesizer = make(schema, epsilon=epsilon, adjacency=adjacency, features=GaussianFeatures(400))
    exact = exact_sums(synthesizer, table)
    release = synthesizer.fit(table).release_
    noise = np.concatenate([release.noisy_sums.ravel(), release.noisy_counts]) - exact
    stddev = synthesizer.release_.noise_stddev
    # 818 values: the ratio of variances has standard deviation 0.0494. Six of them: false alarms
    # below 1e-8 a run; half the noise would give a ratio of 0.25.
    assert abs(np.mean((noise / stddev) ** 2) - 1) < 6 * math.sqrt(2 / len(noise))
    assert abs(np.mean(noise / stddev)) < 6 / math.sqrt(len(noise))


def test_noise_shrinks_with_epsilon_and_grows_with_rows_per_unit(make, schema, table):
    def stddev(**params):
        return make(schema, **params).fit(table).release_.coordinate_stddev

    # Exact noise multipliers of the Gaussian at delta = 1e-5: 3.7306 and 0.49988.
    assert stddev(epsilon=1.0) / stddev(epsilon=10.0) == pytest.approx(7.463, rel=1e-3)
    assert stddev(rows_per_unit=3) / stddev() == pytest.approx(3.0, rel=1e-9)


# -- adjacency and units ---------------------------------------------------------------------------


def test_statements_name_adjacency_and_unit(make, schema, table):
    assert "replacing one row" in make(schema).fit(table).privacy_statement()
    removing = make(schema, adjacency="add-remove").fit(table).privacy_statement()
    assert "adding or removing one row" in removing
    promised = make(schema, rows_per_unit=2).fit(table).privacy_statement()
    assert "at most 2 rows a unit, promised" in promised
    kept = make(schema, rows_per_unit=2).fit(table, unit_id=table["key"]).privacy_statement()
    assert "at most 2 rows a unit, kept" in kept


def test_rows_beyond_the_limit_of_their_unit_do_not_count(make, schema, table, exact_sums):
    units = np.repeat(np.arange(12), 5)
    kept = np.tile([True, True, False, False, False], 12)
    synthesizer = make(schema, rows_per_unit=2)
    bounded = exact_sums(synthesizer, table, unit_id=units)
    assert synthesizer.release_.n_rows is None
    first_two = exact_sums(synthesizer, table[kept], unit_id=units[kept])
    assert np.array_equal(bounded, first_two)
    wild = table.copy()
    wild.loc[~kept, "age"] = 99
    wild.loc[~kept, "smoker"] = "no"
    assert np.array_equal(bounded, exact_sums(synthesizer, wild, unit_id=units))


@pytest.mark.parametrize("learns", [False, True])
def test_the_limit_is_the_one_that_the_noise_was_made_for(make, schema, table, monkeypatch, learns):
    """Somebody sets rows_per_unit anew after the charge, before rows are read."""
    limits = []

    def bounded(units, limit):
        limits.append(limit)
        return bounded_rows(units, limit)

    monkeypatch.setattr("skdpgen.synthesizers._embedding.bounded_rows", bounded)

    class Meddling(PrivacyLedger):
        def charge_all(self, entries):
            super().charge_all(entries)
            synthesizer.set_params(rows_per_unit=60)

    synthesizer = make(None if learns else schema, rows_per_unit=1, ledger=Meddling())
    if learns:
        with pytest.raises(BudgetExceededError, match="charged ahead"):
            synthesizer.fit(table[["age"]], unit_id=np.zeros(60, dtype=int))
    else:
        synthesizer.fit(table, unit_id=np.zeros(60, dtype=int))
        assert synthesizer.release_.rows_per_unit == 1
    assert limits == [1]


def test_no_cell_and_no_unit_is_read_before_the_charge(make, schema, table, monkeypatch):
    def read(*args):
        raise AssertionError("read before the charge")

    monkeypatch.setattr("skdpgen.synthesizers._embedding.unit_codes", read)
    monkeypatch.setattr("skdpgen.synthesizers._table.TableCodec.encode", read)
    full = PrivacyLedger(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        make(schema, ledger=full).fit(table, unit_id=table["key"])
    assert full.entries == ()


def test_delta_above_one_over_n_warns_where_n_is_public(make, schema, table, recwarn):
    with pytest.warns(PrivacyWarning, match="larger than one over the number of rows") as caught:
        make(schema, delta=0.02).fit(table)
    assert caught[0].filename == __file__
    assert "60" not in str(caught[0].message)
    recwarn.clear()
    make(schema, delta=0.02, adjacency="add-remove").fit(table)
    # With units n is private: a unit may be replaced by one with another number of rows.
    make(schema, delta=0.02, rows_per_unit=9).fit(table, unit_id=np.arange(60) % 7)
    make(schema, delta=1 / 60).fit(table)
    assert not [w for w in recwarn if issubclass(w.category, SkdpgenWarning)]
