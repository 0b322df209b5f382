"""Columns as numbers or codes, for evaluation only.

Deliberately not the encoders of :mod:`skdpgen.data`: a fault there would hide from an evaluation
that shared it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.arrays import utf8_texts
from ..data.columns import Boolean, Categorical, Column, declaration_hint
from ..data.datetime_columns import Datetime
from ..data.frames import as_table
from ..data.numeric_columns import Numeric
from ..data.opaque_columns import Id, Text
from ..exceptions import InputError, SchemaError
from ._observed import OBSERVING, observed_column

if TYPE_CHECKING:
    from ..data.schema import Schema


def table(
    frame: Any,
    columns: list[Any],
    role: str,
    advice: str = "add it, or drop it from the schema and the other tables",
) -> pd.DataFrame:
    """The named columns of a pandas or polars frame, as pandas.

    Raises
    ------
    InputError
        If it is no table, two columns share a name or one is missing; ``role`` says in which.
    """
    pandas = _pandas(frame, role)
    missing = [name for name in columns if name not in pandas.columns]
    if missing:
        raise InputError(f"the {role} table lacks column {missing[0]!r}; {advice}.")
    return pandas[columns].reset_index(drop=True)


def _pandas(frame: Any, role: str) -> pd.DataFrame:
    native = as_table(frame)
    if isinstance(native, np.ndarray):
        return pd.DataFrame(native)
    if len(set(native.columns)) < len(native.columns):
        raise InputError(f"two columns of the {role} table share a name; rename one of them.")
    return _readable(nw.from_native(native, eager_only=True).to_pandas())


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame; texts in Arrow's memory that aren't UTF-8 raise, and quote, nothing later."""
    mended = {}
    for name, series in frame.items():
        in_arrow = isinstance(series.dtype, (pd.ArrowDtype, pd.StringDtype))
        if in_arrow and pd.api.types.is_string_dtype(series.dtype):
            try:
                series.to_numpy(dtype=object)
            except Exception:
                mended[name] = utf8_texts(series.array.__arrow_array__())
    if mended:
        frame = frame.copy()
        for name, texts in mended.items():
            frame[name] = pd.Series(texts, index=frame.index, dtype=object)
    return frame


def features(schema: Schema) -> dict[Any, Column]:
    """The columns that say something about a person: all but ids and free text.

    Raises
    ------
    SchemaError
        If a column lacks its bounds or its list of values.
    """
    kept = {k: c for k, c in schema.columns.items() if not isinstance(c, (Id, Text))}
    for name, column in kept.items():
        if column.undeclared is not None:
            raise SchemaError(
                f"column {name!r} can't be evaluated without its {column.undeclared}; declare them "
                f"by {declaration_hint(name, column.undeclared)}, or drop the column."
            )
    return kept


@dataclass(frozen=True)
class Facts:
    """What an evaluation knows about the columns that it compares.

    Parameters
    ----------
    columns : dict of name to Column
        What is compared, each with bounds or values.
    left_out : dict of name to str
        Why a column is not.
    reads : str
        What was read off the real rows for it, as a sentence; empty where all was declared.
    """

    columns: dict[Any, Column]
    left_out: dict[Any, str] = field(default_factory=dict)
    reads: str = ""


def facts(schema: Schema | None, real: Sequence[Any], others: Mapping[str, Any]) -> Facts:
    """The columns to compare, as declared or as observed on the real rows.

    Parameters
    ----------
    schema : Schema or None
        Public column facts; None reads them off the real rows.
    real : sequence of DataFrame
        pandas or polars tables of real rows.
    others : mapping of str to DataFrame
        The other tables by role. Without a schema, a column that one of them lacks is left out.

    Raises
    ------
    SchemaError
        If a schema is given and a column lacks its bounds or its list of values.
    """
    frames = [_pandas(frame, "real") for frame in real]
    names = [name for name in frames[0] if all(name in f for f in frames)]
    if schema is not None:
        columns = features(schema)
        if schema.default is not None:
            rest = [name for name in names if name not in schema.columns]
            columns.update(dict.fromkeys(rest, schema.default))
        opaque = {n: c for n, c in schema.columns.items() if n not in columns}
        return Facts(columns, {n: f"the schema says {c.kind}" for n, c in opaque.items()})
    # Joined with rows, a table without rows would only blur the dtypes.
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    found = {
        name: observed_column(pd.concat([frame[name] for frame in frames], ignore_index=True))
        for name in names
    }
    for role, other in others.items():
        there = set(_pandas(other, role))
        found.update({n: f"the {role} table lacks it" for n in found if n not in there})
    return Facts(
        {name: column for name, column in found.items() if isinstance(column, Column)},
        {name: reason for name, reason in found.items() if isinstance(reason, str)},
        f" Without a schema, the facts about columns come from the real rows: {OBSERVING}.",
    )


def is_number(column: Column) -> bool:
    """Whether a column lies on a line (numbers and dates) rather than in a list of values."""
    return isinstance(column, (Numeric, Datetime))


def levels(column: Column) -> list[Any]:
    """The declared values of a categorical, ordinal or boolean column."""
    assert isinstance(column, (Categorical, Boolean))
    return list(column.categories)


def unit_values(series: pd.Series[Any], column: Column) -> npt.NDArray[np.float64]:
    """Numbers or dates as positions in the public bounds, 0 to 1; NaN where missing.

    Missing is what is empty, can't be read, or is declared to mean that.
    """
    if isinstance(column, Datetime):
        # Without a format pandas would take that of the first cell for all.
        form = column.format or "ISO8601"
        parsed = pd.to_datetime(_plain_cells(series), format=form, errors="coerce", utc=True)
        tokens = pd.to_datetime(_tokens(column).map(str), format=form, errors="coerce", utc=True)
        values, absent = _seconds(parsed), _seconds(tokens)
        low, high = _seconds(pd.Series(pd.to_datetime(list(column.parsed_bounds), utc=True)))
    else:
        assert isinstance(column, Numeric)
        assert column.bounds is not None
        cells = pd.to_numeric(_plain_cells(series), errors="coerce")
        values = cells.to_numpy(np.float64, na_value=np.nan)
        absent = pd.to_numeric(_tokens(column), errors="coerce").to_numpy(np.float64)
        low, high = column.bounds
    # What is declared to mean missing is often out of bounds: -9 is no small number.
    values = np.where(np.isin(values, absent), np.nan, values)
    width = float(high - low) or 1.0
    return np.asarray(np.clip((values - low) / width, 0.0, 1.0))


def missing_cells(series: pd.Series[Any], column: Column) -> npt.NDArray[np.bool_]:
    """Which cells are empty, hold what is declared to mean missing, or are no number or date."""
    if is_number(column):
        return np.isnan(unit_values(series, column))
    cells, tokens = _plain_cells(series).astype(object), _tokens(column)
    texts = cells.map(str).isin(set(tokens.map(str)))
    return np.asarray(cells.isna() | cells.isin(list(tokens)) | texts, dtype=bool)


def _tokens(column: Column) -> pd.Series[Any]:
    """What is declared to mean missing, besides an empty cell."""
    declared = getattr(column, "missing", False)
    return pd.Series(declared if isinstance(declared, tuple) else (), dtype=object)


def _seconds(times: pd.Series[Any]) -> npt.NDArray[np.float64]:
    elapsed = times - pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray(elapsed.dt.total_seconds(), dtype=np.float64)


def _plain_cells(series: pd.Series[Any]) -> pd.Series[Any]:
    """The same cells, with None for those of a kind that no column can declare (lists, dicts)."""
    if series.dtype != object:
        return series
    return series.map(lambda cell: cell if isinstance(cell, Hashable) else None)


def codes(series: pd.Series[Any], column: Column) -> npt.NDArray[np.int64]:
    """Position of each value in the declared list; -1 where missing or not declared."""
    declared = levels(column)
    numbers, seen = pd.factorize(_plain_cells(series).astype(object))
    cells = pd.Index(seen, dtype=object)
    # Object hashing takes 1, 1.0 and True for the same value, as the schema does; a column read
    # as text holds their texts.
    found = pd.Index(declared, dtype=object).get_indexer(cells)
    as_text = pd.Index([str(value) for value in declared], dtype=object).get_indexer(cells)
    # Factor -1 is a missing cell: it finds the last entry.
    positions = np.append(np.where(found >= 0, found, as_text), -1)
    return positions[numbers].astype(np.int64)


def values_of(
    frame: pd.DataFrame, columns: Mapping[Any, Column]
) -> dict[Any, npt.NDArray[np.float64] | npt.NDArray[np.int32]]:
    """Each column as floats (positions in the bounds, NaN where missing) or as int32.

    Integers are codes of categories, from 1; 0 is a missing value or one that isn't declared.
    """
    return {
        name: unit_values(frame[name], column)
        if is_number(column)
        # Many columns by many rows: half the memory of the default integers.
        else (codes(frame[name], column) + 1).astype(np.int32)
        for name, column in columns.items()
    }
