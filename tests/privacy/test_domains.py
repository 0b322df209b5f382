"""The domain mechanism: counts in exact integers, thresholds, calibration, and nothing else out."""

import functools
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import special, stats

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy import domains as domains_module
from skdpgen.privacy.accounting import composed_delta, gaussian_delta
from skdpgen.privacy.domain_batches import DomainBatch, KeyColumn, count_rows
from skdpgen.privacy.domains import MAXIMUM_KEYS, Domain, DomainMechanism
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import current_source, insecure_noise
from skdpgen.privacy.shares import nominal_mu

SETTINGS = [
    {},
    {"adjacency": "add-remove"},
    {"rows_per_unit": 3},
    {"rows_per_unit": 5, "adjacency": "add-remove"},
    {"epsilon": 0.01, "delta": 1e-9},
    {"epsilon": 20.0, "budget": 0.5},
]


def mechanism(n_bins=(4, 3), n_key_columns=2, epsilon=1.0, delta=1e-5, **kwargs):
    return DomainMechanism(n_bins, n_key_columns, epsilon, delta, **kwargs)


def batch(bins, keys=(), keep=None):
    """Rows: a tuple of bins each; a list of keys for each key column."""
    n = len(bins) if bins else len(keys[0])
    columns = []
    for cells in keys:
        distinct = tuple(dict.fromkeys(cells))
        codes = np.array([distinct.index(cell) for cell in cells], dtype=np.int64)
        columns.append(KeyColumn(codes, distinct))
    return DomainBatch(
        bins=np.array(bins, dtype=np.int64).reshape(n, -1 if bins else 0),
        keys=tuple(columns),
        keep=None if keep is None else np.array(keep, dtype=np.bool_),
    )


def exact_tail(variance, threshold):
    """P[noise > threshold] of the discrete Gaussian, summed term by term."""
    x, tails = upper_tails(variance)
    return float(tails[np.searchsorted(x, threshold + 1)])


@functools.cache
def upper_tails(variance):
    reach = int(45 * math.sqrt(variance))
    x = np.arange(-reach, reach + 2)
    atoms = np.exp(-(x.astype(float) ** 2) / (2 * variance))
    atoms[-1] = 0.0
    # Summed from the far end, so that small tails keep their digits.
    return x, np.cumsum(atoms[::-1])[::-1] / math.fsum(atoms)


# -- sensitivity ----------------------------------------------------------------------------------


def vector(mech, rows):
    bins, keys = count_rows([rows], mech.n_bins, mech.n_key_columns, mech.rows_bounded)
    flat = Counter({(j, i): c for j, b in enumerate(bins) for i, c in enumerate(b)})
    flat.update({(f"k{j}", key): c for j, column in enumerate(keys) for key, c in column.items()})
    return flat


def distance(a, b):
    return sum((a[key] - b[key]) ** 2 for key in a.keys() | b.keys())


def test_no_pair_of_rows_is_farther_apart_than_the_sensitivity():
    """All rows over two bins, out-of-range ones and two keys, in two columns of each kind."""
    options = [(i, j, k) for i in (-1, 0, 1, 9) for j in (0, 2) for k in ("a", "b", ())]
    replace, add = mechanism(), mechanism(adjacency="add-remove")
    step = 4**replace.lattice_bits
    vectors = [vector(replace, batch([(i, j)], [[k], [k]])) for i, j, k in options]
    largest = max(distance(a, b) for a in vectors for b in vectors)
    assert replace.sensitivity_squared == 2 * 4 * step == largest * step
    assert add.sensitivity_squared == 4 * 4**add.lattice_bits
    assert max(distance(a, Counter()) for a in vectors) == 4


def test_a_unit_stays_within_the_sensitivity():
    mech = mechanism((3,), 1, rows_per_unit=3, rows_bounded=True)
    old = batch([(0,)] * 3, [["a"] * 3], keep=[True] * 3)
    new = batch([(1,)] * 3, [["b"] * 3], keep=[True] * 3)
    apart = distance(vector(mech, old), vector(mech, new))
    assert apart * 4**mech.lattice_bits == mech.sensitivity_squared == 9 * 4 * 4**mech.lattice_bits


# -- calibration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("shape", [((), 3), ((9, 9), 0), ((9, 9), 3)])
def test_learning_and_what_follows_make_the_whole_budget(settings, shape):
    mech = mechanism(*shape, **settings)
    budget = settings.get("budget", 0.1)
    entries = mech.entries(current_source())
    reserved = mech._reserve(entries, current_source())
    mu = math.sqrt(sum(entry.mu**2 for entry in entries))
    total = math.hypot(mu, reserved.mu)
    extra = sum(entry.extra_delta for entry in entries)
    assert extra == (budget * mech.delta if shape[1] else 0.0)
    # Written out: extra + (1 - extra) (Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)).
    a, b = total / 2 - mech.epsilon / total, -total / 2 - mech.epsilon / total
    # In logarithms, or e^eps times a tail overflows or underflows.
    log_delta = special.log_ndtr(a) + np.log1p(
        -np.exp(mech.epsilon + special.log_ndtr(b) - special.log_ndtr(a))
    )
    assert extra + (1 - extra) * math.exp(log_delta) == pytest.approx(mech.delta, rel=1e-6)
    assert composed_delta(mech.epsilon, total, extra) <= mech.delta
    assert mu**2 / total**2 == pytest.approx(budget, rel=1e-6)
    rows = settings.get("rows_per_unit", 1)
    kind = 1 if settings.get("adjacency") == "add-remove" else 2
    k = len(shape[0]) + shape[1]
    stddev = mech.noise_stddev / 2**mech.lattice_bits
    assert mu == pytest.approx(rows * math.sqrt(kind * k) / stddev, rel=1e-9)


def test_the_figures_that_are_quoted():
    """At epsilon = 1, 14 columns: noise 62, threshold 330 counts (of rows)."""
    mech = mechanism((), 14)
    assert mech.noise_stddev / 2**mech.lattice_bits == pytest.approx(62, abs=1)
    assert mech.key_threshold / 2**mech.lattice_bits == pytest.approx(330, abs=3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_lattice_is_fine_enough(settings):
    mech = mechanism(**settings)
    assert mech.noise_stddev >= 2**10
    assert mech.lattice_bits == 0 or mech.noise_stddev < 2**11 + 1


@pytest.mark.parametrize("settings", SETTINGS[:4])
def test_the_threshold_against_the_exact_tail(settings):
    """1 - (1 - p)^(keys of a unit) <= delta2, with p summed over the lattice; and hardly less."""
    mech = mechanism((), 14, **settings)
    rows = mech.rows_per_unit
    variance = mech.noise_stddev**2 + 4
    own = rows * 2**mech.lattice_bits  # the largest count that one unit can give a key
    p = exact_tail(variance, mech.key_threshold - own)
    fails = -math.expm1(14 * rows * math.log1p(-p))
    assert 0.97 * mech.extra_delta < fails <= mech.extra_delta
    closed = own + math.sqrt(variance) * stats.norm.isf(
        -special.expm1(np.log1p(-mech.extra_delta) / (14 * rows))
    )
    assert mech.key_threshold == pytest.approx(closed, abs=1.001)


def test_empty_bins_seldom_look_occupied():
    mech = mechanism((200,) * 6, 0)
    p = exact_tail(mech.noise_stddev**2 + 4, mech.bin_threshold)
    assert 0.97e-6 < -math.expm1(1200 * math.log1p(-p)) <= 1e-6


def test_halved_noise_or_doubled_sensitivity_would_break_the_guarantee():
    mech = mechanism((), 3)
    (entry,) = mech.entries(current_source())
    reserved = mech._reserve((entry,), current_source())
    for factor in (2.0, 1.001):
        total = math.hypot(factor * entry.mu, reserved.mu)
        assert composed_delta(1.0, total, entry.extra_delta) > 1e-5


# -- the mechanism's privacy, at a scale where it can be enumerated ------------------------------


def outcome_probabilities(mech, present):
    """Exact probability of each released set of keys, for counts in rows."""
    variance = mech.noise_stddev**2 + 4
    above = {
        key: exact_tail(variance, mech.key_threshold - count * 2**mech.lattice_bits)
        for key, count in present.items()
    }
    outcomes = {(): 1.0}
    for key, p in above.items():
        outcomes = {
            kept: q * r
            for old, q in outcomes.items()
            for kept, r in ((old, 1 - p), ((*old, key), p))
        }
    return Counter({tuple(sorted(kept)): q for kept, q in outcomes.items()})


def hockey_stick(p, q, epsilon):
    return math.fsum(max(p[s] - math.exp(epsilon) * q[s], 0.0) for s in p.keys() | q.keys())


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
def test_two_neighbors_with_and_without_a_unique_value(epsilon):
    """One column: a row of a common value against a row with a value of its own, both ways.

    The released sets of keys are enumerated exactly; counts near the threshold are the worst.
    """
    mech = mechanism((), 1, epsilon=3.0, delta=1e-2, budget=0.5)
    own = mech.entries(current_source())[0]
    allowed = composed_delta(epsilon, own.mu, own.extra_delta)
    threshold = mech.key_threshold / 2**mech.lattice_bits
    largest = 0.0
    for common in range(1, int(2 * threshold), 2):
        with_it = outcome_probabilities(mech, {"common": common, "unique": 1})
        without = outcome_probabilities(mech, {"common": common + 1})
        released = sum(q for kept, q in with_it.items() if "unique" in kept)
        assert released <= mech.extra_delta
        other = outcome_probabilities(mech, {"common": common, "also unique": 1})
        for p, q in ((with_it, without), (without, with_it), (with_it, other)):
            largest = max(largest, hockey_stick(p, q, epsilon))
    assert largest <= allowed
    # The worst pair comes close: a smaller bound would fail here.
    assert largest > mech.extra_delta / 2


def test_a_lower_threshold_would_release_unique_values():
    mech = mechanism((), 1, epsilon=3.0, delta=1e-2, budget=0.5)
    variance = mech.noise_stddev**2 + 4
    lower = mech.key_threshold - 2**mech.lattice_bits  # as if nobody's own row counted
    p = exact_tail(variance, lower - 2**mech.lattice_bits)
    assert p > 1.05 * mech.extra_delta


# -- the release ----------------------------------------------------------------------------------


def large(n=20_000):
    """Rows in bin 1 and in bin 3, keys "b" and 7 and None in many of them, others in few."""
    bins = [(1,)] * (n // 2) + [(3,)] * (n // 2)
    keys = ["b"] * (n // 2) + [7] * (n // 4) + [None] * (n // 4 - 3) + ["rare"] * 2 + ["x"]
    return batch(bins, [keys])


def test_occupied_bins_and_frequent_keys_come_out_in_order():
    """False alarms below 1e-6: noise is 40, counts are 0 to 3 or 5,000."""
    domain = mechanism((5,), 1).release([large()], PrivacyLedger())
    assert domain.bins == ((1, 3),)
    assert domain.keys == ((7, "b", None),)


def test_few_rows_give_nothing():
    """False alarms below 1e-6, twice."""
    rows = batch([(0,)] * 10, [["only value"] * 10])
    domain = mechanism((5,), 1).release([rows], PrivacyLedger())
    assert (domain.bins, domain.keys) == (((),), ((),))
    empty = mechanism((5,), 1).release([], PrivacyLedger())
    assert (empty.bins, empty.keys) == (((),), ((),))


def test_noise_does_not_go_by_the_order_of_the_rows(monkeypatch):
    """Of equal counts, the noise decides; it must belong to the keys and not to the rows."""
    monkeypatch.setattr(domains_module, "MAXIMUM_KEYS", 3)
    cells = [letter for letter in "abcdefghij" for _ in range(200)]
    found = set()
    for turn in range(5):
        cells = cells[turn * 400 :] + cells[: turn * 400]
        with insecure_noise(seed=1, scale=1.0):
            mech = mechanism((), 1, epsilon=10.0)
            found.add(mech.release([batch([], [cells])], PrivacyLedger()).keys)
    ((keys,),) = found
    assert len(keys) == 3


def test_at_most_so_many_keys_come_out(monkeypatch):
    monkeypatch.setattr(domains_module, "MAXIMUM_KEYS", 2)
    cells = ["a"] * 300 + ["b"] * 200 + ["c"] * 400 + ["d"] * 100
    with insecure_noise(scale=0):
        mech = mechanism((), 1, epsilon=50.0)
        domain = mech.release([batch([], [cells])], PrivacyLedger())
    assert domain.keys == (("a", "c"),)
    assert MAXIMUM_KEYS == 1000


def test_the_noise_has_the_stated_variance(monkeypatch):
    """Noise on 20,000 counts; false alarm 1e-6. Halved noise is 60 standard deviations off."""
    seen = {}
    original = domains_module.add_gaussian_noise

    def spy(values, stddev, sensitivity_squared, source):
        seen["noise"] = original(values, stddev, sensitivity_squared, source) - values
        seen["stated"] = stddev
        return seen["noise"] + values

    monkeypatch.setattr(domains_module, "add_gaussian_noise", spy)
    mech = mechanism((20_000,), 0)
    mech.release([batch([(0,)])], PrivacyLedger())
    scaled = (seen["noise"] / mech.noise_stddev) ** 2
    assert seen["stated"] == mech.noise_stddev
    interval = stats.chi2.ppf([5e-7, 1 - 5e-7], 20_000)
    assert interval[0] < scaled.sum() < interval[1]
    expected = math.sqrt(2) / mech._mu * 2**mech.lattice_bits
    assert mech.noise_stddev == pytest.approx(expected, rel=1e-12)


def test_the_charge_comes_before_the_rows_for_everything_at_once():
    ledger = PrivacyLedger(1.0, 1e-5)

    def rows():
        assert [e.mechanism for e in ledger.entries] == [
            "private bounds",
            "private categories",
            "mean embedding",
        ]
        yield large()

    domain = mechanism((5,), 1).release(rows(), ledger)
    assert ledger.spent(1e-5) == pytest.approx(1.0, rel=1e-6)
    assert ledger.spent(1e-5) <= 1.0
    assert ledger.entries[:2] == domain.entries
    assert ledger.entries[2] == domain.reserved.entry
    assert domain.entries[0].epsilon < domain.entries[1].epsilon < 1
    for entry in ledger.entries:
        delta = composed_delta(entry.epsilon, nominal_mu(entry), entry.extra_delta)
        assert delta == pytest.approx(1e-5, rel=1e-5)


def test_a_refused_charge_reads_and_records_nothing():
    ledger = PrivacyLedger(0.9, 1e-5)

    def rows():
        raise AssertionError("rows were read")
        yield

    with pytest.raises(BudgetExceededError):
        mechanism((5,), 1).release(rows(), ledger)
    assert ledger.entries == ()


def test_insecure_noise_is_written_into_every_entry():
    ledger = PrivacyLedger()
    with insecure_noise(0):
        domain = mechanism((5,), 1).release([large()], ledger)
    assert not any(entry.private for entry in ledger.entries)
    assert {entry.epsilon for entry in domain.entries} == {math.inf}
    assert ledger.spent(1e-5) == math.inf


@pytest.mark.parametrize("settings", SETTINGS[2:4])
def test_units_are_named(settings):
    entries = mechanism(**settings).entries(current_source())
    assert {entry.unit for entry in entries} == {"unit"}
    assert {entry.rows_per_unit for entry in entries} == {settings["rows_per_unit"]}
    assert mechanism(rows_bounded=True).unit == "unit"
    assert mechanism().unit == "row"


def test_nothing_else_of_the_rows_stays(caplog):
    """What isn't released is in no attribute and no pickle."""
    rows = batch([(0,), (1,)], [["marker", "marker 2"]])
    mech = mechanism((5,), 1)
    domain = mech.release([rows], PrivacyLedger())
    assert domain == Domain(((),), ((),), domain.entries, domain.reserved)
    assert b"marker" not in pickle.dumps((mech, domain.bins, domain.keys, domain.entries))
    assert "marker" not in repr(domain) + repr(mech)
    assert not caplog.records


# -- what is refused ------------------------------------------------------------------------------


HUGE = {"epsilon": 1e-6, "delta": 1e-100, "rows_per_unit": 2**20}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must"),
        ({"delta": 1}, "delta must"),
        ({"adjacency": "both"}, "adjacency must"),
        ({"rows_per_unit": 0}, "rows_per_unit must"),
        ({"rows_bounded": 1}, "rows_bounded must"),
        ({"budget": True}, "domain_budget must be a number"),
        ({"budget": "auto"}, "domain_budget must be a number"),
        ({"budget": 0.0}, "domain_budget must be in"),
        ({"budget": math.nan}, "domain_budget must be in"),
        ({"budget": 1.0}, "domain_budget must be in"),
        ({"n_bins": [4]}, "out of range"),
        ({"n_bins": (0,)}, "out of range"),
        ({"n_bins": (4.0,)}, "out of range"),
        ({"n_key_columns": -1}, "out of range"),
        ({"n_key_columns": True}, "out of range"),
        ({"n_bins": (), "n_key_columns": 0}, "no column"),
        ({**HUGE, "n_bins": (2,) * 10**5}, "2\\^52"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(PrivacyParameterError, match=message):
        mechanism(**change)


def test_delta_of_the_gaussian_part_is_what_the_ledger_adds():
    """The composition formula of the ledger, with numbers: 1e-6 + (1 - 1e-6) delta_G."""
    (entry,) = mechanism((), 14).entries(current_source())
    assert composed_delta(0.3, entry.mu, entry.extra_delta) == pytest.approx(
        1e-6 + (1 - 1e-6) * gaussian_delta(0.3, entry.mu), rel=1e-12
    )
