"""Slices: cells by integer arithmetic, directions, exact sensitivity, and the way to a release."""

import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdpgen.atoms import AtomColumn, AtomLayout
from skdpgen.exceptions import PrivacyParameterError
from skdpgen.features.slices import SliceFeatureMap, _dense_weights
from skdpgen.privacy import MeanEmbeddingMechanism, PrivacyLedger, Release, insecure_noise

DIRECTIONS = ["sparse", "dense", "frame", "wrapped"]
STRAIGHT = DIRECTIONS[:3]


def layout(*columns):
    """Columns of so many categories, or of so many single values of a number, if negative.

    A text stands for a number that may be missing.
    """
    made, position = [], 0
    for n in columns:
        if isinstance(n, int) and n > 0:
            made.append(AtomColumn(None, (position, position + n)))
            position += n
            continue
        missing, n = isinstance(n, str), abs(int(n))
        values = tuple(np.linspace(0, 1, n).tolist())
        group = (position + 1, position + 3) if missing else None
        made.append(AtomColumn(position, group, values, values, (1,) * n))
        position += 3 if missing else 1
    return AtomLayout(tuple(made), position)


MIXED = layout(3, -40, "9", 2, -5)


def draw(atoms, directions="sparse", n_slices=30, n_cells=16, seed=0):
    return SliceFeatureMap.draw(
        atoms,
        n_bins=64,
        directions=directions,
        n_slices=n_slices,
        n_cells=n_cells,
        random_state=seed,
    )


def random_codes(atoms, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, k, n) for k in atoms.n_codes], axis=1)


def rows_of(atoms, codes):
    return atoms.decode(codes, np.zeros(codes.shape))


def totals(features, codes):
    """Sums of the tables, in Python integers, and no other arithmetic."""
    return [
        [
            sum(int(table[row[j]]) for j, table in zip(subset, tables, strict=True))
            for subset, tables in zip(features.subsets, features.tables, strict=True)
        ]
        for row in codes.tolist()
    ]


def released(features, rows, labels, *, n_classes=2, weight=0.2, adjacency="replace-one"):
    spec = features.spec(n_classes, weight)
    facts, arrays = features.to_public()
    return MeanEmbeddingMechanism(spec, 1.0, 1e-5, adjacency).release(
        features.batches(rows, labels, None),
        PrivacyLedger(),
        public={"feature_map": facts},
        public_arrays=arrays,
    )


# -- cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_cells", [4, 16, 1024])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_cells_are_sums_of_public_integers(directions, n_cells):
    features = draw(MIXED, directions, n_cells=n_cells)
    codes = random_codes(MIXED, 80)
    expected = [
        [total % 2**16 * n_cells // 2**16 for total in row] for row in totals(features, codes)
    ]
    cells = features.cells(codes)
    assert cells.dtype == np.int64
    assert cells.tolist() == expected


def test_wrapped_cells_are_sums_modulo_their_number():
    features = draw(MIXED, "wrapped", n_cells=8)
    # Whole cells a column: there is nothing below a cell that could carry over.
    assert all(not (table % 2**13).any() for tables in features.tables for table in tables)
    codes = random_codes(MIXED, 200)
    for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
        jumps = [features.in_cells(t)[codes[:, j]] for j, t in zip(subset, tables, strict=True)]
        assert np.array_equal(features.cells(codes)[:, s], np.sum(jumps, axis=0) % 8)
    assert any(total >= 2**16 for row in totals(features, codes) for total in row)


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_a_row_has_the_same_cells_in_any_company(directions, monkeypatch):
    features = draw(MIXED, directions)
    codes = random_codes(MIXED, 101)
    rows, labels = rows_of(MIXED, codes), np.arange(101) % 3
    keep = np.arange(101) % 4 > 0
    monkeypatch.setattr("skdpgen.features.slices._CHUNK", 7 * 30 + 5)
    batches = list(features.batches(rows, labels, keep))
    assert [len(b.labels) for b in batches] == [7] * 14 + [3]
    together = np.concatenate([b.codes for b in batches])
    assert np.array_equal(together, features.cells(codes))
    assert np.array_equal(np.concatenate([b.labels for b in batches]), labels)
    assert np.array_equal(np.concatenate([b.keep for b in batches]), keep)
    assert all(b.signed.shape == (len(b.labels), 0) for b in batches)
    order = np.random.default_rng(1).permutation(101)
    assert np.array_equal(features.cells(codes[order]), together[order])
    assert np.array_equal(
        np.concatenate([features.cells(codes[i : i + 1]) for i in range(101)]), together
    )
    assert all(b.keep is None for b in features.batches(rows, labels, None))


@pytest.mark.parametrize("n_cells", [4, 32, 1024])
@pytest.mark.parametrize("directions", STRAIGHT)
def test_straight_slices_use_all_of_their_range_and_never_leave_it(directions, n_cells):
    features = draw(MIXED, directions, n_slices=60, n_cells=n_cells)
    for subset, tables in zip(features.subsets, features.tables, strict=True):
        assert all(int(t.min()) == 0 for t in tables)
        # Rounded down column by column: less than a step each is lost.
        assert 2**16 - 1 - len(tables) <= sum(int(t.max()) for t in tables) <= 2**16 - 1
        assert len(set(subset)) == len(subset)
    lowest, highest = np.zeros((60, 5), dtype=int), np.zeros((60, 5), dtype=int)
    for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
        lowest[s, list(subset)] = [t.argmin() for t in tables]
        highest[s, list(subset)] = [t.argmax() for t in tables]
    assert np.diag(features.cells(lowest)).tolist() == [0] * 60
    assert np.diag(features.cells(highest)).tolist() == [n_cells - 1] * 60
    cells = features.cells(random_codes(MIXED, 2000))
    assert cells.min() >= 0
    assert cells.max() < n_cells


def test_the_data_pass_needs_bounded_memory():
    atoms = layout(2, 3)
    features = draw(atoms, n_slices=512)
    rows, labels = rows_of(atoms, random_codes(atoms, 60_000)), np.zeros(60_000, dtype=np.int64)
    tracemalloc.start()
    seen = sum(b.codes.shape[0] for b in features.batches(rows, labels, None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 60_000
    # All cells at once are 246 MB; two chunks of 2^22 cells are 67 MB.
    assert peak < 110e6


# -- directions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", ["sparse", "wrapped"])
def test_sparse_slices_look_at_two_and_three_columns_wide_ones_more_often(directions):
    features = draw(layout(2, 4, 16, 16), directions, n_slices=101)
    orders = [len(subset) for subset in features.subsets]
    assert (orders.count(2), orders.count(3)) == (51, 50)
    assert all(list(subset) == sorted(set(subset)) for subset in features.subsets)
    pairs = [subset for subset in features.subsets if len(subset) == 2]
    # Bits 1, 2, 4, 4: products 2, 4, 4, 8, 8 and 16 of 42.
    sizes = [pairs.count(pair) for pair in itertools.combinations(range(4), 2)]
    assert np.abs(np.array(sizes) - 51 * np.array([2, 4, 4, 8, 8, 16]) / 42).max() <= 1


@pytest.mark.parametrize("directions", ["sparse", "wrapped"])
@pytest.mark.parametrize(("columns", "orders"), [((5,), {1}), ((5, 3), {2}), ((5, 3, 2), {2, 3})])
def test_orders_beyond_the_table_become_the_largest(columns, orders, directions):
    features = draw(layout(*columns), directions, n_slices=9)
    assert {len(subset) for subset in features.subsets} == orders
    assert features.n_slices == 9
    assert features.width == 9 * 16
    assert draw(layout(*columns), directions, n_slices=1).n_slices == 1


def test_sparse_numbers_run_up_or_down_and_share_the_range():
    features = draw(layout(-40, -5, -9), n_slices=60)
    signs = set()
    for subset, tables in zip(features.subsets, features.tables, strict=True):
        part = (2**16 - 1) / len(subset)
        for table in tables:
            straight = np.linspace(0, part, len(table))
            up = table[-1] > table[0]
            signs.add(bool(up))
            # Entries are rounded down.
            assert np.abs(table - (straight if up else straight[::-1])).max() <= 1
    assert signs == {False, True}


def test_sparse_categories_have_random_places():
    features = draw(layout(4000), n_slices=1, n_cells=1024)
    places = features.tables[0][0] / 2**16
    assert stats.kstest(places, "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 6 / math.sqrt(4000)


def test_missing_is_a_place_of_its_own():
    straight, wrapped = (draw(layout("9"), d, n_slices=200) for d in ("sparse", "wrapped"))
    for features in (straight, wrapped):
        assert all(tables[0].shape == (10,) for tables in features.tables)
        # Its place is independent of the values': it has all 16 cells among 200 slices.
        missing = features.cells(np.array([[9]]))[0]
        assert set(missing.tolist()) == set(range(16))


def test_wrapped_numbers_wind_around_evenly():
    features = draw(layout(-256), "wrapped", n_slices=40, n_cells=64)
    winds = []
    for (table,) in features.tables:
        steps = np.diff(features.in_cells(table))
        steps = (steps + 32) % 64 - 32
        # Evenly spaced turns, cut into cells: steps of two neighboring whole numbers.
        assert np.ptp(steps) <= 1
        winds.append(steps.sum() / 64 * 256 / 255)
    assert min(winds) < 0 < max(winds)
    # Log-uniform in 0.25 .. 2 cycles, times a standard normal.
    assert 0.1 < np.median(np.abs(winds)) < 2
    assert np.abs(winds).max() < 12


def test_dense_slices_have_gaussian_weights_on_all_columns():
    features = draw(layout(4000, -7), "dense", n_slices=3)
    assert features.subsets == ((0, 1),) * 3
    for categories, number in features.tables:
        z = (categories - categories.mean()) / categories.std()
        assert stats.kstest(z, "norm").pvalue > 1e-6
        straight = np.linspace(number[0], number[-1], 7)
        assert np.abs(number - straight).max() <= 1


@pytest.mark.parametrize("directions", ["dense", "frame"])
def test_tables_of_dense_slices_are_their_weights_up_to_scale(directions):
    atoms = layout(3, 4, -5)
    features = draw(atoms, directions, n_slices=20)
    # Three and four categories, and one number.
    weights = _dense_weights(8, 20, directions, np.random.RandomState(0))
    for row, tables in zip(weights, features.tables, strict=True):
        places = [row[:3], row[3:7], row[7] * np.linspace(0, 1, 5)]
        scale = (2**16 - 1) / sum(np.ptp(p) for p in places)
        for place, table in zip(places, tables, strict=True):
            assert np.abs(table - (place - place.min()) * scale).max() <= 1 + 1e-6


def test_frames_are_orthogonal_block_by_block():
    weights = _dense_weights(12, 30, "frame", np.random.RandomState(0))
    assert weights.shape == (30, 12)
    for block in (weights[:12], weights[12:24], weights[24:]):
        assert block @ block.T == pytest.approx(np.eye(len(block)), abs=1e-12)
    # Blocks are independent of each other.
    assert np.abs(weights[:12] @ weights[12:24].T).max() > 0.3


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_the_seed_decides_everything(directions):
    first, again, other = (draw(MIXED, directions, seed=s) for s in (3, 3, 4))

    def flat(features):
        return [table.tolist() for tables in features.tables for table in tables]

    assert (first.subsets, flat(first)) == (again.subsets, flat(again))
    assert flat(first) != flat(other)


# -- what a row contributes ------------------------------------------------------------------------


@pytest.mark.parametrize("n_slices", [1, 7, 400])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_the_sensitivity_is_that_of_one_cell_a_slice(n_slices, n_classes):
    spec = draw(MIXED, "wrapped", n_slices).spec(n_classes, 0.0)
    assert spec.group_widths == (16,) * n_slices
    # In integers: sqrt(2 m) cells where a row is replaced, sqrt(m) where one comes or goes.
    cell = spec.category_steps**2
    assert spec.sensitivity_squared("replace-one") == 2 * n_slices * cell
    assert spec.sensitivity_squared("add-remove") == n_slices * cell
    # A row's slices have norm 1, rounded down to the lattice.
    norm = math.sqrt(n_slices * cell) / 2**spec.lattice_bits
    assert 1 - 1e-6 < norm <= 1
    one = 4.0**spec.lattice_bits
    assert math.sqrt(spec.sensitivity_squared("replace-one") / one) == pytest.approx(2**0.5, 1e-6)


def test_counts_add_their_weight():
    features = draw(MIXED, "wrapped", 64)
    spec = features.spec(2, 0.2)
    one = 4.0**spec.lattice_bits
    assert spec.sensitivity_squared("add-remove") / one == pytest.approx(1.04, rel=1e-6)
    assert spec.sensitivity_squared("replace-one") / one == pytest.approx(2.08, rel=1e-6)
    # With a single class the count of a replaced row stays.
    single = features.spec(1, 0.2).sensitivity_squared("replace-one") / one
    assert single == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("weight", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [1, 2])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_all_pairs_of_rows_keep_the_stated_distance(directions, n_classes, weight):
    atoms = layout(2, -3, 2)
    features = draw(atoms, directions, n_slices=5, n_cells=8, seed=2)
    spec = features.spec(n_classes, weight)
    codes = np.array(list(itertools.product(range(2), range(3), range(2))))
    rows, cells = rows_of(atoms, codes), features.cells(codes)
    vectors, kinds = [], []
    with insecure_noise(scale=0):
        for i, label in itertools.product(range(len(rows)), range(n_classes)):
            labels = np.array([label])
            release = released(
                features, rows[i : i + 1], labels, n_classes=n_classes, weight=weight
            )
            sums = np.concatenate([release.noisy_sums.ravel(), release.noisy_counts])
            vectors.append(sums.tolist())
            kinds.append((cells[i].tolist(), label))
    norms = {sum(v * v for v in vector) for vector in vectors}
    assert norms == {spec.sensitivity_squared("add-remove")}
    cell, count = spec.category_steps**2, spec.count_steps**2
    distances = []
    for (v, (a, x)), (w, (b, y)) in itertools.combinations(zip(vectors, kinds, strict=True), 2):
        found = sum((p - q) ** 2 for p, q in zip(v, w, strict=True))
        moved = sum(p != q for p, q in zip(a, b, strict=True))
        assert found == (2 * cell * moved if x == y else 2 * cell * 5 + 2 * count)
        distances.append(found)
    assert max(distances) <= spec.sensitivity_squared("replace-one")
    # With labels the bound is reached; without, where two rows share no cell.
    apart = max(sum(a != b) for a, b in itertools.combinations(cells, 2))
    if n_classes > 1 or apart == 5:
        assert max(distances) == spec.sensitivity_squared("replace-one")
    assert n_classes > 1 or max(distances) == 2 * cell * apart


# -- through a release -----------------------------------------------------------------------------


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_histograms_without_noise_are_the_shares_of_class_and_cell(directions):
    features = draw(MIXED, directions)
    codes = random_codes(MIXED, 500)
    labels = np.random.default_rng(1).integers(0, 3, 500)
    with insecure_noise(scale=0):
        release = released(features, rows_of(MIXED, codes), labels, n_classes=3)
    histograms = features.histograms(release)
    assert histograms.shape == (3, 30, 16)
    found = totals(features, codes)
    for s in range(30):
        cells = np.array([row[s] % 2**16 * 16 // 2**16 for row in found])
        for label in range(3):
            shares = np.bincount(cells[labels == label], minlength=16) / 500
            assert histograms[label, s] == pytest.approx(shares, abs=1e-12)
    assert histograms.sum(axis=2) == pytest.approx(
        np.repeat(release.class_proportions()[:, None], 30, axis=1), abs=1e-9
    )


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_stated_noise_is_that_of_the_histograms(adjacency):
    features = draw(MIXED, "wrapped", n_slices=100)
    codes = random_codes(MIXED, 400)
    rows, labels = rows_of(MIXED, codes), np.arange(400) % 2
    with insecure_noise(scale=0):
        exact = released(features, rows, labels, adjacency=adjacency)
    with insecure_noise(seed=5):
        noisy = released(features, rows, labels, adjacency=adjacency)
    # In rows: under add-remove both are divided by the noisy number of rows.
    noise = features.histograms(noisy) * noisy.row_count - features.histograms(exact) * 400
    z = noise.ravel() / (features.stddev(noisy) * noisy.row_count)
    # 3200 values: six standard deviations of the mean and of the mean square, false alarm 4e-9.
    assert abs(z.mean()) < 6 / math.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 6 * math.sqrt(2 / z.size)
    # Noise multiplier 3.7306 at (1, 1e-5), sqrt(2 m) cells, and the counts.
    sensitivity = math.sqrt((2 if adjacency == "replace-one" else 1) * 100 * 1.04)
    expected = 3.7306 * sensitivity / noisy.row_count
    assert features.stddev(noisy) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_through_a_release_and_a_file(directions, tmp_path):
    features = draw(MIXED, directions)
    codes = random_codes(MIXED, 20)
    release = released(features, rows_of(MIXED, codes), np.zeros(20, dtype=np.int64))
    release.save(tmp_path / "release")
    again = SliceFeatureMap.from_release(Release.load(tmp_path / "release"))
    for name in ("atoms", "n_bins", "n_cells", "directions", "subsets", "width", "wrapped"):
        assert getattr(again, name) == getattr(features, name)
    for one, other in zip(again.tables, features.tables, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert again.spec(2, 0.2) == release.spec
    assert np.array_equal(again.cells(codes), features.cells(codes))
    with pytest.raises(ValueError, match=r"(?i)writeable"):
        again.tables[0][0].setflags(write=True)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"directions": "random"}, "directions must be"),
        ({"directions": None}, "directions must be"),
        ({"directions": ["sparse"]}, "directions must be"),
        ({"n_slices": 0}, "n_slices must be an integer in 1"),
        ({"n_slices": 2**16 + 1}, "n_slices must be an integer in 1"),
        ({"n_slices": 10.0}, "n_slices must be an integer"),
        ({"n_slices": True}, "n_slices must be an integer"),
        ({"n_cells": "many"}, "n_cells must be an integer"),
        ({"n_cells": 2}, "n_cells must be a power of two, at least 4"),
        ({"n_cells": 24}, "n_cells must be a power of two"),
        ({"n_cells": 2**13}, "n_cells must be an integer in 1 .. 1024"),
        ({"n_cells": -16}, "n_cells must be an integer in 1"),
        ({"atoms": layout()}, "nothing to release"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(PrivacyParameterError, match=message):
        draw(**{"atoms": MIXED, **params})
    assert draw(MIXED, n_slices=np.int64(3), n_cells=np.int32(8)).n_slices == 3


def test_tables_that_do_not_fit():
    features = draw(layout(3, 4), n_slices=2)
    good = features.tables
    (a, b), second = good
    for bad in [(a[:2], b), (a, b.astype(np.int64)), (a, b[:, None]), (b, a), (a,), (a, b, b)]:
        with pytest.raises(ValueError, match="a table of uint16 for each of its columns"):
            replace(features, tables=(bad, second))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        replace(features, tables=good[:1])
    high = np.full(3, 2**16 - 1 - int(b.max()), dtype=np.uint16)
    replace(features, tables=((high, b), second))
    with pytest.raises(ValueError, match="must stay in its range"):
        replace(features, tables=((high + np.uint16(1), b), second))
    # A wrapped slice has no range to leave.
    replace(features, tables=((high + np.uint16(1), b), second), directions="wrapped")


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_a_part_of_the_map_has_the_slices_of_the_whole_in_order(directions):
    features = draw(MIXED, directions)
    codes = random_codes(MIXED, 50)
    part = features.part(np.array([12, 3, 29]))
    assert (features.n_parts, part.n_parts) == (30, 3)
    assert np.array_equal(part.cells(codes), features.cells(codes)[:, [3, 12, 29]])
