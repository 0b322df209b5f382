"""Parameters: what is accepted, and units that no cell can break."""

import math
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import PrivacyLedger, Schema
from skdpgen.data import Boolean, Numeric
from skdpgen.exceptions import InputError, PrivacyParameterError, SchemaError
from skdpgen.synthesizers._parameters import (
    as_schema,
    check_number,
    checked_ledger,
    seed_sequence,
    unit_codes,
    unit_column,
)


def test_schemas_in_every_form(tmp_path):
    schema = Schema({"a": Numeric((0, 1))})
    path = tmp_path / "schema.json"
    schema.to_json(path)
    assert as_schema(schema, None) is schema
    assert as_schema(schema.to_dict(), None) == schema
    assert as_schema(path, None) == as_schema(str(path), None) == schema
    assert as_schema(None, pd.DataFrame({"b": [True]})).columns == {"b": Boolean()}
    with pytest.raises(SchemaError, match=r"bounds=\{'a'"):
        as_schema(None, pd.DataFrame({"a": [1.5]}))
    with pytest.raises(SchemaError, match="of type list"):
        as_schema([1], None)


def test_seeds():
    def state(random_state):
        return seed_sequence(random_state).generate_state(2).tolist()

    assert state(3) == state(np.int64(3)) != state(4)
    assert state(None) != state(None)
    assert state(np.random.RandomState(0)) == state(np.random.RandomState(0))
    stream = np.random.RandomState(0)
    assert state(stream) != state(stream)


@pytest.mark.parametrize("bad", [-1, 0.5, "0", [1], np.random.default_rng(0)])
def test_bad_seeds_are_refused(bad):
    with pytest.raises(InputError, match="random_state must be None"):
        seed_sequence(bad)


def test_numbers_are_told_from_booleans_and_texts():
    check_number("k", np.int32(3), Integral)
    check_number("x", np.float32(0.5), Real)
    for bad in (True, "3", None, 3.0):
        with pytest.raises(InputError, match="k must be an integer"):
            check_number("k", bad, Integral)
    with pytest.raises(InputError, match="x must be a number, got '3'"):
        check_number("x", "3", Real)


def test_only_ledgers_are_ledgers():
    ledger = PrivacyLedger()
    assert checked_ledger(ledger) is ledger
    assert checked_ledger(None) is None
    with pytest.raises(PrivacyParameterError, match="of type dict"):
        checked_ledger({})


# -- units -----------------------------------------------------------------------------------------


def groups(unit_id):
    """Positions of the rows of each unit, as a set of sets."""
    codes = unit_codes(unit_column(unit_id, len(unit_id)))
    assert codes.dtype == np.int64
    return {frozenset(np.flatnonzero(codes == c).tolist()) for c in set(codes.tolist())}


@pytest.mark.parametrize(
    "unit_id",
    [
        [7, 8, 7, None, None],
        ["a", "b", "a", None, math.nan],
        np.array([7.0, 8.0, 7.0, math.nan, math.nan]),
        pd.array([7, 8, 7, None, None], dtype="Int64"),
        pd.Series([7, 8, 7, None, None], dtype="category", index=[3, 3, 1, 0, 9]),
        pd.Series(["a", "b", "a", None, None], dtype="string"),
        pd.to_datetime(["2020", "2021", "2020", None, None]),
        pl.Series([7, 8, 7, None, None]),
        pl.Series(["a", "b", "a", None, None], dtype=pl.Categorical),
        pl.DataFrame({"u": [7, 8, 7, None, None]}),
        [date(2020, 1, 1), date(2020, 1, 2), datetime(2020, 1, 1), pd.NaT, pd.NA],
        [UUID(int=1), UUID(int=2), UUID(int=1), None, None],
        [Decimal(7), Decimal(8), 7, Decimal("nan"), Decimal("sNaN")],
    ],
)
def test_equal_cells_are_one_unit_and_rows_without_an_id_another(unit_id):
    assert groups(unit_id) == {frozenset({0, 2}), frozenset({1}), frozenset({3, 4})}


@pytest.mark.parametrize("dtype", ["pandas", "polars", "objects"])
def test_one_null_does_not_merge_large_ids(dtype):
    # As floats 2**60 and 2**60 + 1 are equal: a null in one row would change what others count.
    ids = [2**60, 2**60 + 1, None]
    wrapped = {
        "pandas": lambda: pd.array(ids, dtype="Int64"),
        "polars": lambda: pl.Series(ids),
        "objects": lambda: ids,
    }[dtype]()
    assert len(groups(wrapped)) == 3


class Hostile:
    """A cell whose methods all fail."""

    def __eq__(self, other):
        raise RuntimeError("private cell")

    def __hash__(self):
        raise RuntimeError("private cell")

    def __repr__(self):
        raise RuntimeError("private cell")


@pytest.mark.parametrize("cell", [[1], {}, Hostile(), object(), (1, [2]), Decimal("sNaN"), {1}])
def test_no_cell_can_fail_or_change_how_others_are_grouped(cell):
    assert groups(["a", cell, "a", "b", 1, True]) == {
        frozenset({0, 2}),
        frozenset({1}),
        frozenset({3}),
        frozenset({4, 5}),
    }


@pytest.mark.parametrize(
    "unit_id", [np.arange(4), "abcde", np.zeros((5, 2)), 5, np.zeros(5, dtype=complex)]
)
def test_bad_units_are_refused(unit_id):
    with pytest.raises(InputError):
        unit_column(unit_id, 5)
