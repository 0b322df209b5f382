"""What is read off real rows where nobody has declared it."""

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Boolean, Categorical, Datetime, Numeric
from skdpgen.evaluation._columns import facts, unit_values, values_of
from skdpgen.evaluation._observed import observed_column

DAYS = [date(2020, 1, 1) + timedelta(days=i) for i in range(40)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([3, 1, 2, 2], Categorical((1, 2, 3))),
        ([3.0, 1.0, np.nan], Categorical((1, 3), missing=True)),
        ([0.5, 1.5, 1.5], Numeric((0.5, 1.5))),
        ([0.5, np.inf, None], Numeric((0.5, 0.5), missing=True)),
        ([5, *range(30)], Numeric((0, 29))),
        ([5, *range(30), None], Numeric((0, 29), missing=True)),
        ([True, False, True], Boolean()),
        ([True, None], Boolean(missing=True)),
        (["b", "a", "b", None], Categorical(("a", "b"), missing=True)),
        (["1", "2"], Categorical(("1", "2"))),
        ([str(i) for i in (5, *range(30))], Numeric((0, 29))),
        ([*(str(i / 2) for i in range(30)), " "], Numeric((0, 14.5), missing=True)),
        ([f"t{i % 90}" for i in range(99)], Categorical(tuple(sorted(f"t{i}" for i in range(90))))),
        (DAYS, Datetime((DAYS[0], DAYS[-1]))),
        ([str(d) for d in DAYS], Datetime((DAYS[0], DAYS[-1]))),
        (pd.to_datetime(["2020-01-01", "2021-01-01", None]), Datetime((DAYS[0], DAYS[-1]))),
        ([Decimal("0.5"), Decimal("1.25")], Numeric((0.5, 1.25))),
        (pd.Categorical(["x", "y"], categories=["z", "y", "x"]), Categorical(("x", "y"))),
        (pd.Categorical([4, 3]), Categorical((3, 4))),
    ],
)
def test_columns_by_their_cells(cells, expected):
    found = observed_column(pd.Series(cells))
    if isinstance(expected, Datetime):  # the bounds have other texts
        assert isinstance(found, Datetime)
        inside = unit_values(pd.Series(cells), found)
        assert np.nanmin(inside) == 0
        assert np.nanmax(inside) == 1
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([], "no real row has a value"),
        ([None, np.nan], "no real row has a value"),
        ([np.inf, -np.inf], "no real row has a finite value"),
        (range(5, 90), "its cells count the rows"),
        ([f"name {i}" for i in range(30)], "it has too many different texts"),
        ([f"name {i % 200}" for i in range(999)], "it has too many different texts"),
        ([[1], [2]], "its cells are neither numbers nor texts nor dates"),
        ([{}, {"a": 1}], "its cells are neither numbers nor texts nor dates"),
        ([b"a", b"b"], "its cells are neither numbers nor texts nor dates"),
        ([1, "1", "x"], "its cells are neither numbers nor texts nor dates"),
    ],
)
def test_what_is_left_out_has_a_reason(cells, reason):
    assert observed_column(pd.Series(cells, dtype=object)) == reason


def test_facts_come_from_all_real_tables_and_not_from_the_synthetic_one():
    real = [pd.DataFrame({"c": ["a", "b"], "x": 1}), pd.DataFrame({"c": ["d"], "y": 1})]
    known = facts(None, real, {"synthetic": pd.DataFrame({"c": ["e"]})})
    assert known.columns == {"c": Categorical(("a", "b", "d"))}
    assert known.left_out == {}
    known = facts(None, real[:1], {"synthetic": pd.DataFrame({"c": ["e"]})})
    assert known.left_out == {"x": "the synthetic table lacks it"}
    empty = facts(None, [real[0][:0], real[0]], {})
    assert empty.columns["x"] == Categorical((1,))


def test_polars_and_pandas_are_observed_alike():
    frame = pd.DataFrame({"n": np.arange(40) / 3, "c": ["a", None] * 20, "d": pd.to_datetime(DAYS)})
    first = facts(None, [frame], {}).columns
    second = facts(None, [pl.from_pandas(frame)], {}).columns
    assert first == second
    for name, values in values_of(frame, first).items():
        np.testing.assert_array_equal(values, values_of(frame, second)[name])


def test_dates_of_several_iso_forms_are_all_read():
    column = Datetime(("2020-01-01", "2020-12-31"))
    cells = pd.Series(["2020-01-01", "2020-07-01T12:30:00", "2020-12-31 00:00", "never", None])
    found = unit_values(cells, column)
    assert found[0] == 0
    assert found[2] == 1
    assert 0.49 < found[1] < 0.51
    assert np.isnan(found[3:]).all()
