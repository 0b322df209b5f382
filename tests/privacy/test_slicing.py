"""The slicing mechanism: diameter and projections in exact integers, noise, order of events."""

import itertools
import math
import pickle
import pickletools

import numpy as np
import opendp.measurements
import pytest
from scipy import stats

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError, ReleaseError
from skdpgen.privacy import slicing as slicing_module
from skdpgen.privacy.accounting import gaussian_delta
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import NoiseSource, insecure_noise
from skdpgen.privacy.slicing import SlicingBatch, SlicingMechanism, encoded
from skdpgen.privacy.slicing_accounting import frame_sensitivity, slicing_noise_stddev
from skdpgen.privacy.slicing_layout import ROW_BITS, SlicingLayout, largest_stretch

INT64 = np.iinfo(np.int64)
ONE = 2**20
SEEDED = NoiseSource(np.random.default_rng(0))


def mechanism(n_numeric=2, group_widths=(3,), n_slices=5, slice_dim=2, **kwargs):
    kwargs = {"epsilon": 1.0, "delta": 1e-5} | kwargs
    return SlicingMechanism(n_numeric, group_widths, n_slices, slice_dim, **kwargs)


def batch(rows, layout):
    """Rows are (numbers, codes) pairs of Python integers."""
    shape = len(rows), -1
    numbers = np.array([row[0] for row in rows], dtype=np.int64).reshape(len(rows), -1)
    codes = np.array([row[1] for row in rows], dtype=np.int64).reshape(shape)
    assert numbers.shape == (len(rows), layout.n_numeric)
    return SlicingBatch(numbers, codes)


def random_batch(layout, n, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-ONE // 4, ONE + ONE // 4, (n, layout.n_numeric))
    codes = [rng.integers(-1, width + 1, n) for width in layout.group_widths]
    return SlicingBatch(numbers, np.array(codes, dtype=np.int64).reshape(-1, n).T.copy())


def zero_rows(n, layout):
    """Rows that encode to nothing at all: their release is pure noise."""
    numbers = np.zeros((n, layout.n_numeric), dtype=np.int64)
    return SlicingBatch(numbers, np.full((n, len(layout.group_widths)), -1))


def all_rows(layout):
    numbers = itertools.product(
        [INT64.min, 0, 1, ONE // 3, ONE, INT64.max], repeat=layout.n_numeric
    )
    codes = list(itertools.product(*([INT64.min, *range(w), w] for w in layout.group_widths)))
    return [(list(a), list(b)) for a in numbers for b in codes]


def squared_distances(matrix):
    exact = matrix.astype(object)
    return [sum((a - b) ** 2) for a, b in itertools.combinations(exact, 2)]


LAYOUTS = [(1, ()), (0, (2,)), (0, (1, 2)), (2, (3,)), (1, (2, 2)), (0, (2, 3, 2))]


# -- diameter ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_numeric", "widths"), LAYOUTS)
def test_no_two_rows_are_farther_apart_than_one(n_numeric, widths):
    layout = SlicingLayout(n_numeric, widths, 1, 1)
    rows = encoded(batch(all_rows(layout), layout), slice(None), layout)
    largest = max(squared_distances(rows))
    assert largest <= layout.n_blocks * layout.block_weight**2 <= 4**ROW_BITS
    # A block of one category changes by at most its entry: half a square.
    full = layout.n_blocks - 0.5 * widths.count(1)
    assert largest > 4**ROW_BITS * full / layout.n_blocks * (1 - 1e-3)
    assert (rows >= 0).all()
    assert rows.sum(axis=1).max() <= layout.n_blocks * layout.block_weight


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 14, 100, 1000, 65536])
def test_the_weights_of_many_blocks_stay_within_one(n_blocks):
    for layout in (SlicingLayout(n_blocks, (), 1, 1), SlicingLayout(0, (2,) * n_blocks, 1, 1)):
        assert 2 * layout.category_weight**2 <= layout.block_weight**2
        assert n_blocks * layout.block_weight**2 <= 4**ROW_BITS
        assert n_blocks * (layout.block_weight + 1) ** 2 > 4**ROW_BITS


def test_rows_that_break_a_bound_are_clipped_or_contribute_nothing_there():
    layout = SlicingLayout(1, (2, 3), 1, 1)
    w, c = layout.block_weight, layout.category_weight
    rows = [([-7], [0, 2]), ([INT64.max], [2, 0]), ([ONE // 2], [INT64.min, -1])]
    assert encoded(batch(rows, layout), slice(None), layout).tolist() == [
        [0, c, 0, 0, 0, c],
        [w, 0, 0, c, 0, 0],
        [w // 2, 0, 0, 0, 0, 0],
    ]
    assert layout.column_weights() * 2**ROW_BITS == pytest.approx([w, c, c, c, c, c], rel=0)


# -- projections are exact -------------------------------------------------------------------------


def project(mech, batches, directions):
    return mech._project(batches, directions)


def by_hand(mech, rows, directions):
    """The same in Python integers."""
    half = 2 ** (ROW_BITS + mech.layout.direction_bits - mech.value_bits)
    matrix = rows.astype(object) @ directions.astype(object)
    return [[(2 * int(p) + half) // (2 * half) for p in line] for line in matrix]


@pytest.mark.parametrize("kind", ["gaussian", "frame"])
@pytest.mark.parametrize("extreme", [False, True])
def test_projections_against_exact_integer_arithmetic(kind, extreme):
    mech = mechanism(3, (4, 3), 10, 2, directions=kind)
    directions = slicing_module._draw(mech.layout, SEEDED)
    if extreme:
        directions = np.sign(directions) * mech.layout.direction_limit
        directions[:, 0] = mech.layout.direction_limit
    data = random_batch(mech.layout, 30)
    rows = encoded(data, slice(None), mech.layout)
    assert project(mech, [data], directions).tolist() == by_hand(mech, rows, directions)


def test_a_projection_is_a_function_of_its_row(monkeypatch):
    mech = mechanism(20, (4, 30), 40, 3)
    directions = slicing_module._draw(mech.layout, SEEDED)
    data = random_batch(mech.layout, 500)
    whole = project(mech, [data], directions)
    order = np.random.default_rng(1).permutation(500)
    moved = SlicingBatch(data.numbers[order], data.codes[order])
    assert np.array_equal(project(mech, [moved], directions), whole[order])
    cuts = [0, 1, 1, 18, 337, 500]
    parts = [
        SlicingBatch(data.numbers[a:b], np.asfortranarray(data.codes[a:b]))
        for a, b in itertools.pairwise(cuts)
    ]
    assert np.array_equal(project(mech, parts, directions), whole)
    monkeypatch.setattr(slicing_module, "_CHUNK", 700)
    assert np.array_equal(project(mech, [data], directions), whole)


@pytest.mark.parametrize("kind", ["gaussian", "frame"])
@pytest.mark.parametrize(
    "columns", [(1, ()), (14, ()), (0, (2,)), (6, (16, 7, 42)), (500, (3,) * 9)]
)
def test_no_partial_sum_reaches_what_float64_cannot_count(kind, columns):
    d = columns[0] + sum(columns[1])
    for copies in (1, 7):
        layout = SlicingLayout(*columns, copies, d, kind)
        assert layout.n_blocks * layout.block_weight * layout.direction_limit < 2**53
        assert 1 <= layout.direction_bits <= 40
        largest = 2 ** (53 - ROW_BITS - layout.direction_bits + layout.largest_value_bits)
        assert largest <= 2**52
        assert layout.direction_stddev >= 2**10


def test_the_largest_layouts_are_still_fine():
    for layout in (SlicingLayout(65536, (), 1, 1), SlicingLayout(0, (2**20,), 2**20, 1)):
        assert layout.direction_stddev >= 2**20
        assert layout.n_blocks * layout.block_weight * layout.direction_limit < 2**53


# -- sensitivity -----------------------------------------------------------------------------------


def moves_within_the_bound(mech, directions):
    """Whether every change of a row is released as a shift within the accounted one.

    A Gaussian matrix: ``|v U|`` for the row's own v, and one step a value; for a frame its bound.
    """
    layout = mech.layout
    data = batch(all_rows(layout), layout)
    rows = encoded(data, slice(None), layout).astype(object) @ directions.astype(object)
    released = project(mech, [data], directions).astype(object)
    step = 2 ** (ROW_BITS + layout.direction_bits - mech.value_bits)
    for i, j in itertools.combinations(range(len(rows)), 2):
        shift = math.sqrt(sum((released[i] - released[j]) ** 2))
        ideal = math.sqrt(sum((rows[i] - rows[j]) ** 2)) / step
        if not shift <= ideal + math.sqrt(layout.n_directions) + 1e-6:
            return False
        if layout.kind == "frame" and not shift**2 <= layout.sensitivity_squared(mech.value_bits):
            return False
    return True


@pytest.mark.parametrize("kind", ["gaussian", "frame"])
@pytest.mark.parametrize("columns", [(1, ()), (1, (3,)), (0, (2, 2))])
def test_every_change_of_a_row_stays_within_the_accounted_shift(kind, columns):
    d = columns[0] + sum(columns[1])
    mech = mechanism(*columns, 2, d, directions=kind)
    assert moves_within_the_bound(mech, slicing_module._draw(mech.layout, SEEDED))


@pytest.mark.parametrize("weight", ["block_weight", "category_weight"])
def test_doubled_weights_exceed_the_bounds(weight, monkeypatch):
    honest = getattr(SlicingLayout, weight).fget
    mech = mechanism(1, (3,), 2, 4, directions="frame")
    monkeypatch.setattr(SlicingLayout, weight, property(lambda self: 2 * honest(self)))
    rows = encoded(batch(all_rows(mech.layout), mech.layout), slice(None), mech.layout)
    assert max(squared_distances(rows)) > 4**ROW_BITS
    assert not moves_within_the_bound(mech, slicing_module._draw(mech.layout, SEEDED))


@pytest.mark.parametrize("d", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("copies", [1, 2, 5])
def test_a_frame_stretches_by_no_more_than_its_bound(d, copies):
    layout = SlicingLayout(d, (), copies, d, "frame")
    one = 2**layout.direction_bits
    for _ in range(3):
        frame = slicing_module._draw(layout, SEEDED)
        bound = largest_stretch(frame)
        assert bound <= layout.frame_bound <= copies * one**2 * (1 + 1e-3)
        assert np.linalg.svd(frame.astype(float))[1].max() ** 2 <= bound * (1 + 1e-12)
        scaled = frame.astype(object) @ frame.T.astype(object) / (copies * one**2)
        assert scaled.astype(float) == pytest.approx(np.eye(d), abs=1e-4)
    # A unit change along a direction attains it, but for roundings.
    mech = mechanism(d, (), copies, d, directions="frame")
    steps = math.sqrt(mech.layout.sensitivity_squared(mech.value_bits)) / 2**mech.value_bits
    ideal = frame_sensitivity(copies * d, d)
    assert ideal < steps < ideal * (1 + 1e-4)


def test_inner_products_that_might_not_be_exact_count_as_too_large():
    assert largest_stretch(np.full((2, 4), 2**25)) >= 2**52
    assert largest_stretch(np.array([[3, 4], [4, -3]])) == 25


def test_orthogonal_matrices_that_are_none_are_refused_before_the_charge(monkeypatch):
    monkeypatch.setattr(np.linalg, "qr", lambda matrix: (np.ones_like(matrix), matrix))
    ledger = PrivacyLedger()
    mech = mechanism(2, (), 2, 1, directions="frame")
    with pytest.raises(RuntimeError, match="nothing was charged"):
        mech.release([zero_rows(1, mech.layout)], ledger)
    assert ledger.entries == ()


# -- what discreteness costs -----------------------------------------------------------------------


def test_the_rounding_of_directions_has_the_moments_of_a_gaussian_of_variance_four():
    j = np.arange(-80, 81)
    for c in np.linspace(0, 1, 11):
        weights = np.exp(-((j - c) ** 2) / 8)
        weights /= weights.sum()
        for t in (-3.0, -0.7, -0.01, 0.01, 0.5, 2.0):
            assert (weights * np.exp(t * (j - c))).sum() <= math.exp(2 * t * t) * (1 + 1e-12)


def test_a_clipped_discrete_gaussian_has_no_larger_moments_than_the_gaussian():
    j = np.arange(-200, 201)
    weights = np.exp(-(j**2) / (2 * 9.0))
    weights /= weights.sum()
    for cut in (4, 10, 200):
        for t in (0.01, 0.3, 1.0):
            moment = (weights * np.exp(t * np.clip(j, -cut, cut))).sum()
            assert moment <= math.exp(9.0 * t * t / 2) * (1 + 1e-12)


@pytest.mark.parametrize("m", [1, 2, 50, 1000, 2**20])
def test_the_tail_that_is_left_out_is_far_below_every_delta(m):
    bound = (math.sqrt(m) + math.sqrt(1000.0)) ** 2
    assert stats.chi2.logsf(bound, m) <= -500 < math.log(1e-200 * 1e-16)
    assert math.log(2) - 40**2 / 2 + math.log(2.0**40) < math.log(1e-300)


def test_the_value_step_counts_both_roundings():
    layout = SlicingLayout(5, (3,), 25, 2)
    spread = 1 + math.sqrt(1000 / 50)
    for bits in (10, 24, layout.largest_value_bits):
        expected = 1 + 2 * 2.0 ** (bits - layout.direction_bits) * spread
        assert expected < layout.value_step(bits) < expected * (1 + 1e-11)
    assert SlicingLayout(2, (), 1, 2, "frame").value_step(20) == 1.0


@pytest.mark.parametrize("columns", [(5, ()), (14, (9, 7, 16, 6, 5, 2, 41))])
def test_discreteness_costs_next_to_nothing(columns):
    layout = SlicingLayout(*columns, 50, 1)
    for epsilon in (0.1, 1.0, 10.0, 500.0):
        mech = mechanism(*columns, 50, 1, epsilon=epsilon)
        ideal = slicing_noise_stddev(epsilon, 1e-5, n_directions=50, dimension=layout.dimension)
        scale = mech.noise_stddev / 2.0**mech.value_bits
        assert ideal <= scale <= ideal * (1 + 1e-5)
        assert mech.noise_stddev >= 2**20


def test_the_profile_holds_for_the_directions_that_are_drawn():
    """Mean of the Gaussian profile over drawn matrices, for a change at the diameter."""
    mech = mechanism(2, (), 2, 1, epsilon=1.0, delta=0.02)
    change = np.array([mech.layout.block_weight, -mech.layout.block_weight])
    step = 2 ** (ROW_BITS + mech.layout.direction_bits - mech.value_bits)
    deltas = []
    for _ in range(4000):
        moved = change @ slicing_module._draw(mech.layout, SEEDED) / step
        deltas.append(gaussian_delta(1.0, float(np.linalg.norm(moved)) / mech.noise_stddev))
    error = np.std(deltas) / math.sqrt(4000)
    # Six standard errors: false-alarm rate 2e-9, with a fixed seed in any case.
    assert abs(np.mean(deltas) - 0.02) < 6 * error < 0.004


# -- noise, directions, order ----------------------------------------------------------------------


def halve_the_noise(monkeypatch):
    """Make the sampler lie about narrow noise, that is about values but not about directions."""
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain, metric, scale):
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 2 if scale < 2.0**27 else scale)

        def __call__(self, values):
            return self.sample(values)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", Liar)


@pytest.mark.parametrize("halved", [False, True])
def test_every_value_has_the_stated_variance(halved, monkeypatch):
    mech = mechanism()
    assert mech.noise_stddev < 2**26 < mech.layout.direction_stddev
    if halved:
        halve_the_noise(monkeypatch)
    monkeypatch.setattr(slicing_module, "_CHUNK", 333)  # chunks are no excuse
    release = mech.release([zero_rows(200, mech.layout)], PrivacyLedger())
    ratio = (release.noisy_rows.astype(float) ** 2).sum(axis=0) / (mech.noise_stddev**2 + 4)
    # Chi-square with 200 degrees, 1e-8 for each of ten values: false-alarm rate 1e-7.
    low, high = stats.chi2(200).ppf([5e-9, 1 - 5e-9])
    assert bool(((low < ratio) & (ratio < high)).all()) == (not halved)
    # No value repeats, or one draw of noise would cancel another (2e-2 pairs collide by chance).
    assert len(np.unique(release.noisy_rows)) >= 1990
    correlation = np.corrcoef(release.noisy_rows.T)[np.triu_indices(10, 1)]
    assert np.abs(correlation).max() < 6.5 / math.sqrt(200)


def test_directions_have_the_stated_variance():
    mech = mechanism(3, (4, 3), 20, 5)
    release = mech.release([], PrivacyLedger())
    ratio = (release.direction_matrix() ** 2).sum() * mech.layout.dimension
    low, high = stats.chi2(1000).ppf([5e-8, 1 - 5e-8])
    assert low < ratio < high
    assert abs(stats.norm.isf(5e-8)) > abs(release.direction_matrix().sum() / math.sqrt(100))
    assert np.abs(release.directions).max() <= mech.layout.direction_limit


def draws_are_fresh(mech):
    releases = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        releases.append(mech.release([zero_rows(3, mech.layout)], PrivacyLedger()))
    a, b = releases
    return not (a.directions == b.directions).any() and not (a.noisy_rows == b.noisy_rows).any()


@pytest.mark.parametrize("kind", ["gaussian", "frame"])
def test_directions_and_noise_are_fresh_whatever_is_seeded(kind, monkeypatch):
    mech = mechanism(2, (3,), 5, 2, directions=kind)
    assert draws_are_fresh(mech)  # 1e-6 by chance
    kept = slicing_module._draw(mech.layout, SEEDED)
    monkeypatch.setattr(slicing_module, "_draw", lambda layout, source: kept)
    assert not draws_are_fresh(mech)


def test_switched_off_noise_does_not_switch_off_the_directions():
    mech = mechanism()
    with insecure_noise(seed=1, scale=0):
        one = mech.release([random_batch(mech.layout, 4)], PrivacyLedger())
    with insecure_noise(seed=1, scale=1):
        other = mech.release([random_batch(mech.layout, 4)], PrivacyLedger())
    assert np.array_equal(one.directions, other.directions)
    assert np.abs(one.directions).max() > mech.layout.direction_stddev


def test_without_noise_the_release_is_the_projection_in_random_order():
    mech = mechanism()
    data = random_batch(mech.layout, 50)
    with insecure_noise(seed=0, scale=0):
        release = mech.release([data], PrivacyLedger())
    expected = project(mech, [data], release.directions)
    assert not np.array_equal(release.noisy_rows, expected)
    assert sorted(release.noisy_rows.tolist()) == sorted(expected.tolist())


def test_rows_leave_in_random_order():
    # Little noise: which of two kinds of rows a released one is, is plain to see.
    mech = mechanism(1, (), 16, 1, epsilon=500.0)
    rows = SlicingBatch(np.repeat([0, ONE], 32)[:, None], np.zeros((64, 0), np.int64))
    seen = set()
    for _ in range(2):
        release = mech.release([rows], PrivacyLedger())
        score = release.projections()[:, :, 0] @ release.direction_matrix()[0]
        kind = score > (release.direction_matrix() ** 2).sum() / 2
        assert abs(kind.sum() - 32) < 8
        seen.add(tuple(kind))
    assert len(seen | {tuple(rows.numbers[:, 0] > 0)}) == 3  # less than 1e-12 by chance


def test_every_order_is_equally_likely():
    orders = [tuple(slicing_module._permutation(3, NoiseSource())) for _ in range(6000)]
    counts = np.array([orders.count(order) for order in itertools.permutations(range(3))])
    # Chi-square with 5 degrees, false-alarm rate 1e-7.
    assert counts.sum() == 6000
    assert ((counts - 1000) ** 2 / 1000).sum() < stats.chi2(5).isf(1e-7)


@pytest.mark.parametrize("kind", ["gaussian", "frame"])
@pytest.mark.parametrize("fault", [None, "noise halved", "weights doubled"])
def test_matched_statistic_audit(kind, fault, monkeypatch):
    """Estimate the mean squared mu from releases of two tables of one row, knowing U.

    Along ``v U`` the statistic is Gaussian around a mean that differs by ``|v U|`` between the
    tables; its own spread is the yardstick, so that the stated noise isn't trusted.
    """
    mech = mechanism(1, (), 2, 1, directions=kind)
    mu_squared = 4.0**mech.value_bits * 2 / mech.noise_stddev**2
    if fault == "noise halved":
        halve_the_noise(monkeypatch)
    if fault == "weights doubled":
        honest = SlicingLayout.block_weight.fget
        monkeypatch.setattr(SlicingLayout, "block_weight", property(lambda s: 2 * honest(s)))
    runs, samples, lengths = 500, [], []
    for number in (0, ONE):
        rows = SlicingBatch(np.array([[number]]), np.zeros((1, 0), np.int64))
        for _ in range(runs):
            release = mech.release([rows], PrivacyLedger())
            along = release.directions[0] / np.linalg.norm(release.directions[0])
            ideal = project(mech, [rows], release.directions)[0]
            samples.append(float((release.noisy_rows[0] - ideal) @ along))
            lengths.append(float(ideal @ ideal) if number else 0.0)
    spread = np.var(samples)
    estimate = 2 * np.mean(lengths) / spread
    # The spread is a chi-square with 1000 degrees, the lengths one with 1000 (fixed for a frame):
    # seven standard errors are 0.45 at most, and both faults make it four times too large.
    close = abs(math.log(estimate / mu_squared)) < 0.45
    assert close == (fault is None)


# -- order of events -------------------------------------------------------------------------------


class Reading:
    def __init__(self, batches, events):
        self.batches, self.events = batches, events

    def __iter__(self):
        for item in self.batches:
            self.events.append("read")
            yield item


class RecordingLedger(PrivacyLedger):
    def __init__(self, events):
        super().__init__()
        self.events = events

    def charge(self, entry):
        self.events.append("charge")
        super().charge(entry)


def test_the_charge_comes_after_the_directions_and_before_the_rows(monkeypatch):
    mech, events = mechanism(), []
    draw = slicing_module._draw

    def recorded(layout, source):
        events.append("draw")
        return draw(layout, source)

    monkeypatch.setattr(slicing_module, "_draw", recorded)
    rows = [zero_rows(1, mech.layout)] * 2
    release = mech.release(Reading(rows, events), RecordingLedger(events))
    assert events == ["draw", "charge", "read", "read"]
    assert release.n_rows == 2


def test_a_refused_charge_reads_nothing():
    mech, events = mechanism(), []
    ledger = PrivacyLedger(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        mech.release(Reading([zero_rows(1, mech.layout)], events), ledger)
    assert events == []
    assert ledger.entries == ()
    with pytest.raises(PrivacyParameterError, match="adding or removing"):
        mech.release(Reading([], events), PrivacyLedger(adjacency="add-remove"))


def test_a_failure_while_reading_stays_charged():
    def failing():
        yield zero_rows(1, mechanism().layout)
        raise OSError("disk")

    ledger = PrivacyLedger()
    with pytest.raises(OSError, match="disk"):
        mechanism().release(failing(), ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("public", "arrays"),
    [({"x": math.nan}, {}), ({"x": object()}, {}), ({}, {"x": np.array([object()])})],
)
def test_public_facts_that_cannot_be_stored_cost_nothing(public, arrays):
    mech, events = mechanism(), []
    with pytest.raises((TypeError, ValueError, ReleaseError)):
        mech.release(
            Reading([zero_rows(1, mech.layout)], events),
            RecordingLedger(events),
            public=public,
            public_arrays=arrays,
        )
    assert events == []


@pytest.mark.parametrize("kind", ["gaussian", "frame"])
def test_the_entry_says_what_was_spent(kind):
    ledger = PrivacyLedger(1.0, 1e-5)
    mech = mechanism(2, (3,), 5, 2, directions=kind)
    mech.release([zero_rows(1, mech.layout)], ledger)
    (entry,) = ledger.entries
    assert (entry.adjacency, entry.unit, entry.rows_per_unit) == ("replace-one", "row", 1)
    assert (entry.epsilon, entry.delta, entry.private) == (1.0, 1e-5, True)
    assert entry.noise_stddev == mech.noise_stddev
    if kind == "gaussian":
        assert (entry.mechanism, entry.n_directions, entry.dimension) == ("slicing", 10, 5)
        assert entry.sensitivity_squared == 4**mech.value_bits
        assert entry.value_step == mech.layout.value_step(mech.value_bits)
    else:
        assert (entry.mechanism, entry.n_directions, entry.dimension) == ("slicing by frames", 0, 0)
    assert 1 - 1e-6 < ledger.spent(1e-5) <= 1.0


def test_insecure_noise_is_written_into_entry_and_release():
    ledger = PrivacyLedger()
    with insecure_noise(seed=0):
        release = mechanism().release([zero_rows(1, mechanism().layout)], ledger)
    assert (release.noise, release.private) == ("insecure", False)
    assert ledger.spent(1e-5) == math.inf
    with pytest.raises(BudgetExceededError), insecure_noise(seed=0):
        mechanism().release([], PrivacyLedger(epsilon=500.0, delta=0.5))


def test_the_noise_source_is_taken_before_the_rows():
    mech, context = mechanism(), insecure_noise(scale=0)

    def sneaky():
        context.__enter__()
        yield zero_rows(5, mech.layout)

    try:
        release = mech.release(sneaky(), PrivacyLedger())
    finally:
        context.__exit__(None, None, None)
    assert release.private
    assert np.abs(release.noisy_rows).max() > mech.noise_stddev / 10


# -- batches ---------------------------------------------------------------------------------------


def test_batches_with_the_wrong_structure_are_refused():
    mech = mechanism(2, (3,))
    good = zero_rows(4, mech.layout)
    numbers, codes = good.numbers, good.codes

    class Sub(SlicingBatch):
        pass

    for bad in (
        (numbers, codes),
        Sub(numbers, codes),
        SlicingBatch(numbers.astype(float), codes),
        SlicingBatch(numbers, codes.astype(np.int32)),
        SlicingBatch(np.ma.masked_array(numbers), codes),
        SlicingBatch(numbers, codes.tolist()),
        SlicingBatch(numbers[:, :1], codes),
        SlicingBatch(numbers[:3], codes),
        SlicingBatch(numbers, codes[:1]),
        SlicingBatch(numbers, codes.ravel()),
        SlicingBatch(numbers, np.repeat(codes, 2, axis=1)),
        SlicingBatch(numbers, np.int64(0) * codes[0, 0]),
    ):
        ledger = PrivacyLedger()
        with pytest.raises(PrivacyParameterError):
            mech.release([good, bad], ledger)
        assert len(ledger.entries) == 1


def test_errors_quote_nothing_of_the_batch():
    mech = mechanism(2, (3,))
    secret = 123454321
    for bad in (
        SlicingBatch(np.full((2, 3), secret), np.full((2, 1), secret)),
        SlicingBatch(np.full((2, 2), float(secret)), np.full((2, 1), secret)),
        [secret],
    ):
        with pytest.raises(PrivacyParameterError) as error:
            mech.release([bad], PrivacyLedger())
        assert str(secret) not in str(error.value)


def test_codes_overwritten_meanwhile_are_not_looked_up(monkeypatch):
    """What was checked is what is used: no index error tells of a value, no block is written to."""
    layout = SlicingLayout(0, (2, 2), 1, 1)
    codes = np.zeros((3, 2), dtype=np.int64)
    find = np.flatnonzero

    def meddling(mask):
        codes[:] = 3
        return find(mask)

    monkeypatch.setattr(np, "flatnonzero", meddling)
    rows = encoded(SlicingBatch(np.zeros((3, 0), np.int64), codes), slice(None), layout)
    assert rows.tolist() == [[layout.category_weight, 0] * 2] * 3


def test_no_rows_are_a_table_too():
    release = mechanism().release([], PrivacyLedger())
    assert release.projections().shape == (0, 5, 2)
    assert release.verify() <= 1.0


def test_nothing_of_the_rows_stays_in_release_or_mechanism():
    mech = mechanism()
    before = pickle.dumps(mech)
    secret = 7654321
    rows = SlicingBatch(np.full((4, 2), secret), np.zeros((4, 1), np.int64))
    ledger = PrivacyLedger()
    release = mech.release([rows], ledger)
    assert pickle.dumps(mech) == before
    text = pickle.dumps((release, ledger.entries))
    assert rows.numbers.tobytes() not in text
    assert np.int64(secret).tobytes() not in text
    assert secret not in {argument for _, argument, _ in pickletools.genops(text)}


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"n_numeric": -1}, "n_numeric"),
        ({"n_numeric": True}, "n_numeric"),
        ({"n_numeric": 2.0}, "n_numeric"),
        ({"n_numeric": 0, "group_widths": ()}, "n_numeric"),
        ({"n_numeric": 65536}, "65536 blocks"),
        ({"group_widths": [3]}, "group_widths"),
        ({"group_widths": (0,)}, "group_widths"),
        ({"group_widths": (2**20,)}, "coordinates"),
        ({"n_slices": 0}, "n_slices"),
        ({"slice_dim": 1.0}, "slice_dim"),
        ({"n_slices": 2**20}, "n_slices"),
        ({"directions": "sparse"}, "'gaussian' or 'frame'"),
        ({"directions": "frame", "slice_dim": 1, "n_slices": 7}, "multiple .* here 5"),
        ({"directions": "frame", "group_widths": (2047,), "slice_dim": 2049}, "at most 2048"),
    ],
)
def test_bad_parameters_fail_before_there_is_anything_to_spend(change, message):
    with pytest.raises(PrivacyParameterError, match=message):
        mechanism(**change)


def test_the_mechanism_is_frozen():
    with pytest.raises(AttributeError):
        mechanism().noise_stddev = 1.0
