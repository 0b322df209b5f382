"""Columns as numbers or codes, for evaluation only.

Deliberately not the encoders of :mod:`skdpgen.data`: a fault there would hide from an evaluation
that shared it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.columns import Boolean, Categorical, Column, declaration_hint
from ..data.datetime_columns import Datetime
from ..data.numeric_columns import Numeric
from ..data.opaque_columns import Id, Text
from ..exceptions import InputError, SchemaError
from ._observed import OBSERVING, observed_column

if TYPE_CHECKING:
    from ..data.schema import Schema


def table(frame: Any, columns: list[Any], role: str) -> pd.DataFrame:
    """The named columns of a pandas or polars frame, as pandas.

    Raises
    ------
    InputError
        If a column is missing; ``role`` says in which table.
    """
    pandas = nw.from_native(frame, eager_only=True).to_pandas()
    missing = [name for name in columns if name not in pandas.columns]
    if missing:
        raise InputError(
            f"the {role} table lacks column {missing[0]!r} of the schema; drop it from the schema "
            "or add it to the table."
        )
    return pandas[columns].reset_index(drop=True)


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
    frames = [nw.from_native(frame, eager_only=True) for frame in real]
    names = [name for name in frames[0].columns if all(name in f.columns for f in frames)]
    if schema is not None:
        columns = features(schema)
        if schema.default is not None:
            rest = [name for name in names if name not in schema.columns]
            columns.update(dict.fromkeys(rest, schema.default))
        opaque = {n: c for n, c in schema.columns.items() if n not in columns}
        return Facts(columns, {n: f"declared as {c.kind}" for n, c in opaque.items()})
    pandas = pd.concat([frame.to_pandas()[names] for frame in frames], ignore_index=True)
    found = {name: observed_column(pandas[name]) for name in names}
    for role, other in others.items():
        there = set(nw.from_native(other, eager_only=True).columns)
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
    """Numbers or dates as positions in the public bounds, 0 to 1; NaN where missing."""
    if isinstance(column, Datetime):
        parsed = pd.to_datetime(series, format=column.format, errors="coerce", utc=True)
        values = _seconds(parsed)
        low, high = _seconds(pd.Series(pd.to_datetime(list(column.parsed_bounds), utc=True)))
    else:
        assert isinstance(column, Numeric)
        assert column.bounds is not None
        values = pd.to_numeric(series, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        low, high = column.bounds
    width = float(high - low) or 1.0
    return np.asarray(np.clip((values - low) / width, 0.0, 1.0))


def _seconds(times: pd.Series[Any]) -> npt.NDArray[np.float64]:
    elapsed = times - pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray(elapsed.dt.total_seconds(), dtype=np.float64)


def codes(series: pd.Series[Any], column: Column) -> npt.NDArray[np.int64]:
    """Position of each value in the declared list; -1 where missing or not declared."""
    declared = levels(column)
    cells = pd.Index([cell if _is_plain(cell) else None for cell in series], dtype=object)
    # Object hashing takes 1, 1.0 and True for the same value, as the schema does; a column read
    # as text holds their texts.
    found = pd.Index(declared, dtype=object).get_indexer(cells)
    as_text = pd.Index([str(value) for value in declared], dtype=object).get_indexer(cells)
    return np.where(found >= 0, found, as_text).astype(np.int64)


def _is_plain(cell: Any) -> bool:
    """Whether a cell can equal a declared value; a list or a dict is not even hashable."""
    return isinstance(cell, (str, int, float, bool, np.generic))
