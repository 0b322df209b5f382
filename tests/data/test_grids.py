"""Grids of bins for private bounds: total, row-wise, and bounds that hold what was binned."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Datetime, Numeric, make_encoder
from skdpgen.data.dtypes import backend_of, describe_dtype
from skdpgen.data.frames import as_series
from skdpgen.data.grids import NumberGrid, TimeGrid


def number_grid(column, kind="float", count_missing=True, **options):
    dtype = describe_dtype(column.dtype, backend_of(column))
    return NumberGrid(Numeric(None, kind, **options), dtype, count_missing)


def time_grid(column, count_missing=True, **options):
    dtype = describe_dtype(column.dtype, backend_of(column))
    return TimeGrid(Datetime(None, **options), dtype, count_missing)


@pytest.mark.parametrize(
    ("number", "lower", "upper"),
    [
        (1.0, 1, 2),
        (1.999, 1, 2),
        (2.0, 2, 4),
        (0.75, 0.5, 1),
        (1e-3, 2.0**-10, 2.0**-9),
        (-3.0, -4, -2),
        (-0.5, -1, -0.5),
        (1e9, 2.0**29, 2.0**30),
        # Beyond the grid a number counts as its last, or as zero.
        (1e300, 2.0**49, 2.0**50),
        (np.inf, 2.0**49, 2.0**50),
        (-np.inf, -(2.0**50), -(2.0**49)),
        (1e-300, 0, 1),
        (5e-324, 0, 1),
        (-0.0, 0, 1),
    ],
)
def test_bounds_of_a_single_real(number, lower, upper):
    column = np.array([number])
    grid = number_grid(column)
    assert grid.n_bins == 202
    assert grid.bounds(grid.bins(column).tolist()) == (lower, upper)


@pytest.mark.parametrize(
    ("numbers", "bounds"),
    [
        ([0, 1], (0, 1)),
        ([17, 90], (16, 127)),
        ([1], (0, 1)),
        ([-1], (-1, 0)),
        ([0], (0, 1)),
        ([2, 3], (2, 3)),
        ([-5, 1000], (-7, 1023)),
        ([2**62, -(2**63)], (-(2**50) + 1, 2**50 - 1)),
        ([], (-1000, 1000)),
    ],
)
def test_bounds_of_whole_numbers(numbers, bounds):
    column = np.array(numbers, dtype=np.int64)
    grid = number_grid(column, "int", count_missing=False)
    found = grid.bounds(grid.bins(column).tolist())
    assert found == bounds
    assert {type(bound) for bound in found} == {int}
    Numeric(found, "int")


@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [
        ("uint8", (0, 255)),
        ("int8", (-128, 127)),
        ("uint64", (0, 1000)),
        ("float16", (-1000.0, 1000.0)),
        ("bool", (0, 1)),
    ],
)
def test_nothing_found_gives_a_public_range_inside_the_dtype(dtype, bounds):
    grid = number_grid(np.zeros(1, dtype=dtype))
    assert grid.bounds([]) == bounds


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int64", "uint64", "float16", "float32", "bool"]
)
@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("scale", ["linear", "log1p"])
def test_every_pair_of_bins_makes_a_column_that_can_be_encoded(dtype, kind, scale):
    column = np.array([0, 1], dtype=dtype)
    grid = number_grid(column, kind, count_missing=False, scale=scale)
    ends = sorted(
        {0, 1, grid.n_bins // 2 - 1, grid.n_bins // 2, grid.n_bins // 2 + 1, grid.n_bins - 1}
    )
    for first in ends:
        for last in ends:
            bounds = grid.bounds([first, last])
            assert bounds[0] < bounds[1]
            encoder = make_encoder(Numeric(bounds, kind, scale), column)
            assert not encoder.is_constant


@pytest.mark.parametrize(
    ("column", "nulls"),
    [
        (np.array([1.0, np.nan]), [0, 1]),
        (pd.Series([1, None], dtype="Int64"), [0, 1]),
        (pd.Series([1.5, None], dtype="Float32"), [0, 1]),
        (pd.Series([True, None], dtype="boolean"), [0, 1]),
        (pd.Series([1, None], dtype="int64[pyarrow]"), [0, 1]),
        (pl.Series([1, None]), [0, 1]),
        (pl.Series([1.0, float("nan")]), [0, 1]),
        (np.array(["1", "?"]), [0, 1]),
        (pd.Series(["1", None], dtype="string"), [0, 1]),
        (np.array([1, None, Decimal(1), np.float32(1)], dtype=object), [0, 1, 0, 0]),
    ],
)
def test_missing_cells_have_the_last_bin_or_none(column, nulls):
    missing = np.array(nulls, dtype=bool)
    counted, ignored = number_grid(column), number_grid(column, count_missing=False)
    assert (counted.bins(column)[missing] == counted.n_bins - 1).all()
    assert (ignored.bins(column)[missing] == -1).all()
    assert (counted.bins(column)[~missing] == counted.bins(column)[0]).all()
    assert ignored.n_bins == counted.n_bins - 1


def test_texts_are_bound_by_nothing_but_the_grid():
    column = np.array(["300", "x"])
    grid = number_grid(column, "int", count_missing=False)
    assert grid.bounds(grid.bins(column)[:1].tolist()) == (256, 511)


def test_tokens_for_missing_have_no_bin():
    for column in (np.array([-9, 5]), np.array([-9.0, 5]), np.array(["-9", "5"], dtype=object)):
        grid = number_grid(column, count_missing=False, missing=(-9,))
        assert (grid.bins(column) == -1).tolist() == [True, False]


def test_no_cell_can_fail(hostile_cells):
    column = as_series(hostile_cells)
    for grid in (number_grid(column), time_grid(column, format="%Y-%m-%d")):
        bins = grid.bins(column)
        assert bins.dtype == np.int64
        assert ((bins >= 0) & (bins < grid.n_bins)).all()
        # A function of one cell.
        alone = [grid.bins(column[i : i + 1])[0] for i in range(len(column))]
        assert bins.tolist() == alone


@pytest.mark.parametrize(
    "column",
    [
        np.array(["2019-02-01", "NaT", "2021-12-31T23:59"], dtype="datetime64[m]"),
        pd.Series(pd.to_datetime(["2019-02-01", None, "2021-12-31"])),
        pd.Series(pd.to_datetime(["2019-02-01", None, "2021-12-31"])).dt.tz_localize("UTC"),
        pd.Series(pd.to_datetime(["2019-02-01", None, "2021-12-31"])).astype(
            "timestamp[us][pyarrow]"
        ),
        pl.Series([datetime(2019, 2, 1), None, datetime(2021, 12, 31)]),
        pl.Series([datetime(2019, 2, 1), None, datetime(2021, 12, 31)]).cast(pl.Date),
        np.array([datetime(2019, 2, 1), "no time", pd.Timestamp("2021-12-31")], dtype=object),
    ],
)
def test_years(column):
    grid = time_grid(column)
    assert grid.bins(column).tolist() == [319, grid.n_bins - 1, 321]
    assert time_grid(column, count_missing=False).bins(column).tolist() == [319, -1, 321]
    assert grid.bounds([319, 321]) == (datetime(2019, 1, 1), datetime(2021, 12, 31, 23, 59, 59))


def test_texts_with_a_format():
    column = np.array(["01.02.19", "31.12.21", "?", "none", "01.13.20"], dtype=object)
    grid = time_grid(column, count_missing=False, format="%d.%m.%y", missing=("none",))
    assert grid.bins(column).tolist() == [319, 321, -1, -1, -1]
    # Nothing found: bounds that two-digit years can say.
    bounds = Datetime(grid.bounds([]), format="%d.%m.%y").parsed_bounds
    assert bounds == (datetime(1970, 1, 1), datetime(2068, 12, 31))


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_times_beyond_the_calendar_are_clipped(unit):
    ends = np.array([-(2**63) + 1, 2**63 - 1]).view(f"datetime64[{unit}]")
    grid = time_grid(ends)
    assert grid.bins(ends).tolist() == [0, 499]
    make_encoder(Datetime(grid.bounds([0, 499])), ends)
    make_encoder(Datetime(grid.bounds([])), ends)
