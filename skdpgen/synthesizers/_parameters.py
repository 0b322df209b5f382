"""Parameters of synthesizers, checked and resolved from public facts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from skdpgen.data.arrays import read_cells, read_levels, read_numbers, read_ticks
from skdpgen.data.cells import moment_of, number_of
from skdpgen.data.dtypes import backend_of, describe_dtype
from skdpgen.data.frames import MappedTable, as_series
from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError, PrivacyParameterError, SchemaError
from skdpgen.privacy.ledger import PrivacyLedger

__all__ = [
    "as_schema",
    "check_number",
    "checked_ledger",
    "given_numbers",
    "given_schema",
    "n_rows_hint",
    "seed_sequence",
    "unit_codes",
    "unit_column",
]

# What defaults take for the number of rows where it is private and no hint is given.
_USUAL_N_ROWS = 30_000


def as_schema(schema: object, X: Any) -> Schema:
    """The schema in any of its forms; None takes what the dtypes of ``X`` declare."""
    given = given_schema(schema)
    return Schema.from_dtypes(X) if given is None else given


def given_schema(schema: object) -> Schema | None:
    """The schema in any of its forms, None included."""
    if schema is None:
        return None
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema)
    if isinstance(schema, (str, os.PathLike)):
        return Schema.from_json(schema)
    raise SchemaError(
        f"schema must be a Schema, its dictionary form, a path or None, "
        f"got an object of type {type(schema).__name__}."
    )


def seed_sequence(random_state: object) -> np.random.SeedSequence:
    """Public randomness of one fit or retraining; privacy noise never comes from here."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    raise InputError(
        f"random_state must be None, a nonnegative integer or a numpy RandomState, "
        f"got {random_state!r}."
    )


def n_rows_hint(value: Any) -> int:
    """The hint that a user gave about a private number of rows, or what is usual."""
    if value is None:
        return _USUAL_N_ROWS
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integer or not 1 <= value < 2**53:
        raise PrivacyParameterError(f"n_rows_hint must be an integer in 1 .. 2^53, got {value!r}.")
    return int(value)


def check_number(name: str, value: object, kind: type) -> None:
    """Refuse a parameter that is no ``numbers.Integral`` or ``numbers.Real``, or is a boolean."""
    if isinstance(value, bool) or not isinstance(value, kind):
        expected = "an integer" if kind is Integral else "a number"
        raise InputError(f"{name} must be {expected}, got {value!r}.")


def given_numbers(values: Mapping[str, tuple[Any, type]]) -> dict[str, Any]:
    """The parameters that aren't None, each checked to be a number of its kind."""
    given = {name: (value, kind) for name, (value, kind) in values.items() if value is not None}
    for name, (value, kind) in given.items():
        check_number(name, value, kind)
    return {name: value for name, (value, _) in given.items()}


def checked_ledger(ledger: object) -> PrivacyLedger | None:
    """The ledger parameter, or an error for anything that isn't a ledger."""
    if ledger is None or isinstance(ledger, PrivacyLedger):
        return ledger
    raise PrivacyParameterError(
        f"ledger must be a PrivacyLedger or None, got an object of type {type(ledger).__name__}."
    )


def unit_column(unit_id: Any, n_rows: int) -> Any:
    """The units that rows belong to, as a native column, or one to be read; no cell is read."""
    ids = unit_id if isinstance(unit_id, MappedTable) else as_series(unit_id)
    if ids.shape[0] != n_rows:
        raise InputError("unit_id must have one entry for each row of X.")
    column = as_series(ids.structure) if isinstance(ids, MappedTable) else ids
    describe_dtype(column.dtype, backend_of(column), "unit_id")
    return ids


def unit_codes(ids: Any) -> npt.NDArray[np.int64]:
    """Integer codes of the units that rows belong to; reads cells, so the charge comes first.

    Which rows share a unit is decided by pairs of cells: no cell can fail, or change how others
    are compared (one null makes floats of a column of integers, and merges large ones). Rows
    without an id, or with one that is no number, text or time, form one unit.
    """
    if isinstance(ids, MappedTable):
        ids = as_series(ids.function(ids.source))
    dtype = describe_dtype(ids.dtype, backend_of(ids), "unit_id")
    if dtype.family in ("int", "float", "bool"):
        values, nulls = read_numbers(ids, dtype)
    elif dtype.family == "datetime":
        values, nulls = read_ticks(ids, dtype)
    elif dtype.native is None:
        values, _ = read_levels(ids)
        nulls = values < 0
    else:
        keys = [_unit_key(cell) for cell in read_cells(ids, dtype)]
        seen: dict[Any, int] = {None: 0}
        return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
    codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return np.where(nulls, 0, codes + 1)


def _unit_key(cell: Any) -> Any:
    """Something hashable that equals the keys of the same unit only; None for no id."""
    kind = type(cell)
    if issubclass(kind, str):
        return str.__str__(cell)
    number = number_of(cell)
    if number is not None:
        return number
    moment = moment_of(cell, None)
    if moment is not None:
        return "time", moment
    return ("uuid", cell.int) if kind is UUID else None
