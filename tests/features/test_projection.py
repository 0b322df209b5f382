"""Projections of encoded rows: the sums that a release of straight slices cuts into cells."""

import numpy as np
import pandas as pd
import pytest
import torch

from skdpgen.atoms import AtomColumn, AtomLayout
from skdpgen.data import Categorical, Datetime, Numeric, Schema
from skdpgen.features.projection import SliceProjection
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.synthesizers._table import TableCodec

STRAIGHT = ["sparse", "dense", "frame"]
N_CELLS = 32
# Entries of tables are rounded down to 2^-16 of the range; float32 adds less than that.
STEP = N_CELLS / 2**16


def number(position, n, missing=None):
    """Bins of equal width, with all values in between."""
    edges = np.linspace(0, 1, n + 1)
    upper = (*np.nextafter(edges[1:-1], 0).tolist(), 1.0)
    return AtomColumn(position, missing, tuple(edges[:-1].tolist()), upper, (0,) * n)


def values(position, n, missing=None):
    """Single values, evenly spaced."""
    at = tuple(np.linspace(0, 1, n).tolist())
    return AtomColumn(position, missing, at, at, (1,) * n)


# A category, single values, bins, values and bins that may be missing, a flag; nothing at 6.
ATOMS = AtomLayout(
    (
        AtomColumn(None, (0, 3)),
        values(3, 9),
        number(4, 20),
        values(5, 5, (7, 9)),
        number(9, 12, (10, 12)),
        AtomColumn(None, (12, 14)),
    ),
    14,
)


def draw(atoms=ATOMS, directions="sparse", n_slices=40, n_cells=N_CELLS):
    return SliceFeatureMap.draw(
        atoms,
        n_bins=64,
        directions=directions,
        n_slices=n_slices,
        n_cells=n_cells,
        random_state=0,
    )


def project(features, rows, chosen=None):
    chosen = torch.arange(features.n_slices) if chosen is None else torch.as_tensor(chosen)
    return SliceProjection(features)(torch.as_tensor(rows, dtype=torch.float32), chosen).numpy()


def hard_rows(atoms, n=400, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, n) for k in atoms.n_codes], axis=1)
    return codes, atoms.decode(codes, rng.random(codes.shape))


def table_sums(features, codes):
    """What the release cuts into cells, in cells and before it is cut."""
    sums = np.zeros((len(codes), features.n_slices))
    for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
        for j, table in zip(subset, tables, strict=True):
            sums[:, s] += table[codes[:, j]].astype(float) * STEP
    return sums


@pytest.mark.parametrize("directions", STRAIGHT)
def test_single_values_and_categories_have_the_sums_of_the_release(directions):
    atoms = AtomLayout(tuple(c for c in ATOMS.columns if set(c.steps) <= {1}), 14)
    assert len(atoms.columns) == 4
    features = draw(atoms, directions)
    codes, rows = hard_rows(atoms)
    found = project(features, rows)
    # Per column an entry and both ends of its line are rounded.
    assert np.abs(found - table_sums(features, codes)).max() < 4 * 2 * STEP
    # So rows lie in the cell that the release counts, unless within this of an edge.
    cells = features.cells(codes)
    off = np.maximum(cells - found, found - (cells + 1))
    assert off.max() < 4 * 2 * STEP
    assert (off <= 0).mean() > 0.97


@pytest.mark.parametrize("directions", STRAIGHT)
def test_bins_are_right_up_to_their_width(directions):
    features = draw(ATOMS, directions)
    codes, rows = hard_rows(ATOMS)
    found = project(features, rows)
    cells, sums = features.cells(codes), table_sums(features, codes)
    spread = np.zeros(features.n_slices)
    for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
        for j, table in zip(subset, tables, strict=True):
            column = ATOMS.columns[j]
            # Half of what lies between the middles of two neighboring bins.
            n = column.n_ordered
            if n in (20, 12):
                spread[s] += abs(float(table[n - 1]) - float(table[0])) / (n - 1) / 2 * STEP
    bound = spread + 6 * 2 * STEP
    assert (np.abs(found - sums) <= bound).all()
    assert (found >= cells - bound).all()
    assert (found <= cells + 1 + bound).all()
    # The bins of a slice average out: its mean is that of the release.
    assert np.abs((found - sums).mean(axis=0)).max() < 6 * spread.max() / np.sqrt(len(rows)) + STEP


def test_a_missing_number_has_its_own_place_whatever_its_value():
    atoms = AtomLayout((values(0, 5, (1, 3)),), 3)
    features = draw(atoms)
    rows = np.array([[v, 1, 0] for v in (0, 0.25, 0.5, 1)] + [[0.1, 0, 1], [0.5, 0, 1], [1, 0, 1]])
    codes = atoms.encode(rows)
    assert codes[:, 0].tolist() == [0, 1, 2, 4, 5, 5, 5]
    found = project(features, rows)
    assert found == pytest.approx(table_sums(features, codes), abs=3 * STEP)
    assert (found[4] == found[5]).all()
    assert (found[4] == found[6]).all()


def test_a_single_value_that_may_be_missing_has_no_slope():
    atoms = AtomLayout((AtomColumn(0, (1, 3), (0.5,), (0.5,), (1,)), AtomColumn(None, (3, 6))), 6)
    features = draw(atoms, n_slices=9)
    codes, rows = hard_rows(atoms, 30)
    assert np.isfinite(project(features, rows)).all()
    assert project(features, rows) == pytest.approx(table_sums(features, codes), abs=3 * STEP)


def test_probabilities_give_the_mean_over_their_categories():
    atoms = AtomLayout((ATOMS.columns[0], ATOMS.columns[5]), 14)
    features = draw(atoms)
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2))
    soft = np.zeros((1, 14))
    soft[0, :3], soft[0, 12:] = p, q
    codes = np.array([[a, b] for a in range(3) for b in range(2)])
    mean = np.outer(p, q).ravel() @ table_sums(features, codes)
    assert project(features, soft)[0] == pytest.approx(mean, abs=3 * STEP)


def test_chosen_slices_come_in_their_order():
    features = draw()
    _, rows = hard_rows(ATOMS, 10)
    everything = project(features, rows)
    chosen = [7, 3, 39, 3]
    assert project(features, rows, chosen) == pytest.approx(everything[:, chosen], abs=1e-5)


@pytest.mark.parametrize("directions", STRAIGHT)
def test_the_gradient_is_finite_and_right(directions):
    module = SliceProjection(draw(directions=directions)).double()
    rng = torch.Generator().manual_seed(0)
    rows = torch.rand(3, ATOMS.width, generator=rng, dtype=torch.float64).requires_grad_()
    chosen = torch.tensor([0, 11, 25])
    assert torch.autograd.gradcheck(lambda r: module(r, chosen), (rows,))
    sums = module(rows, torch.arange(40))
    (gradient,) = torch.autograd.grad(sums.sum(), rows)
    assert torch.isfinite(gradient).all()
    # The place at which no column stands says nothing.
    assert (gradient[:, 6] == 0).all()
    assert (gradient[:, 3] != 0).all()
    # At a row that has no number, the number has no gradient, and "present" and "missing" do.
    missing = rows.detach().clone()
    missing[:, 7], missing[:, 8] = 0.0, 1.0
    (gradient,) = torch.autograd.grad(
        module(missing.requires_grad_(), torch.arange(40)).sum(), missing
    )
    assert (gradient[:, 5] == 0).all()
    assert (gradient[:, 8] != 0).all()


def test_it_has_no_weights_to_train_and_nothing_to_save():
    module = SliceProjection(draw())
    assert list(module.parameters()) == []
    assert module.state_dict() == {}


def test_wrapped_slices_have_none():
    with pytest.raises(ValueError, match="wrapped slices have no projection"):
        SliceProjection(draw(directions="wrapped"))


@pytest.mark.parametrize("directions", STRAIGHT)
def test_rows_of_a_table_lie_in_the_cells_that_are_counted(directions):
    rng = np.random.default_rng(0)
    n = 500
    df = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(10, 1, n)),
            "color": rng.choice(["red", "green", "blue"], n),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), "D"),
        }
    )
    schema = Schema(
        {
            "age": Numeric((18, 89), "int"),
            "income": Numeric((0, 1e5), missing=True),
            "color": Categorical(["red", "green", "blue"]),
            "when": Datetime(("2020-01-01", "2020-12-31")),
        }
    )
    codec = TableCodec.build(df, None, schema)
    features = draw(codec.atoms(128), directions, n_cells=8)
    ((rows, _),) = codec.encode(df, None)
    found = project(features, rows)
    codes = features.atoms.encode(rows)
    spread = np.zeros(features.n_slices)
    for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
        for j, table in zip(subset, tables, strict=True):
            column = features.atoms.columns[j]
            if column.n_ordered:
                slope = abs(float(table[column.n_ordered - 1]) - float(table[0])) * 8 / 2**16
                widest = (np.array(column.upper) - np.array(column.lower)).max()
                middle = np.diff(column.centers).max()
                spread[s] += slope * max(widest, middle) / 2 / np.ptp(column.centers)
    bound = spread + 4 * 2 * 8 / 2**16
    cells = features.cells(codes)
    off = np.maximum(cells - found, found - (cells + 1))
    assert (off <= bound).all()
    assert (off <= 0).mean() > 0.9
