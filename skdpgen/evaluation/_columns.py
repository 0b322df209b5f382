"""Columns as numbers or codes, for evaluation only.

Deliberately not the encoders of :mod:`skdpgen.data`: a fault there would hide from an evaluation
that shared it.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from ..data.schema import Schema

PRIVACY = "not private"


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
    cells = pd.Index(series.astype(object), dtype=object)
    # Object hashing takes 1, 1.0 and True for the same value, as the schema does; a column read
    # as text holds their texts.
    found = pd.Index(declared, dtype=object).get_indexer(cells)
    as_text = pd.Index([str(value) for value in declared], dtype=object).get_indexer(cells)
    return np.where(found >= 0, found, as_text).astype(np.int64)
