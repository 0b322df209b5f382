"""Column facts read off the real rows, for evaluation where nobody has declared them."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..data.columns import Boolean, Categorical, Column
from ..data.datetime_columns import Datetime
from ..data.numeric_columns import Numeric
from ..exceptions import SchemaError

__all__ = ["OBSERVING", "observed_column"]

MOST = 0.9
"""So much of a column of texts has to be numbers (or dates); the rest is missing."""

FEW_NUMBERS = 20
"""So many different whole numbers are categories; more are numbers."""

MANY_TEXTS = 100
"""A column with more different texts than this says little by its shares."""

OBSERVING = (
    f"whole numbers and texts of at most {FEW_NUMBERS} values are categories, other numbers and "
    f"dates lie between their extremes, texts of at most {MANY_TEXTS} values are categories"
)


def observed_column(series: pd.Series[Any]) -> Column | str:
    """Describe a column by its cells, or say in words why it is left out.

    Parameters
    ----------
    series : Series
        Of real rows.

    Returns
    -------
    Column or str
        With bounds or values, and whether a cell is missing.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    known = series.dropna().infer_objects()
    missing = len(known) < len(series)
    if known.empty:
        return "no real row has a value"
    try:
        if types.is_bool_dtype(known.dtype):
            return Boolean(missing=missing)
        if types.is_datetime64_any_dtype(known.dtype):
            return _date(known, missing)
        if types.is_numeric_dtype(known.dtype):
            return _number(known, missing)
        return _text(known, missing)
    except (SchemaError, TypeError, ValueError, OverflowError):
        # Lists, mixtures such as 1 and "1", values that JSON couldn't hold.
        return "its cells are neither numbers nor texts nor dates"


def _number(known: pd.Series[Any], missing: bool) -> Column | str:
    values = known.to_numpy(np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return "no real row has a finite value"
    distinct = np.unique(values)
    whole = bool((distinct == np.rint(distinct)).all())
    if whole and len(distinct) <= FEW_NUMBERS:
        return Categorical(tuple(int(value) for value in distinct), missing=missing)
    low, high = float(distinct[0]), float(distinct[-1])
    if whole and len(distinct) == len(known) == high - low + 1:
        return "its cells count the rows"
    return Numeric((low, high), missing=missing)


def _date(known: pd.Series[Any], missing: bool) -> Column:
    return Datetime((known.min().isoformat(), known.max().isoformat()), missing=missing)


def _text(known: pd.Series[Any], missing: bool) -> Column | str:
    n_distinct = known.nunique()
    texts = all(isinstance(cell, str) for cell in known)
    if n_distinct > FEW_NUMBERS or not texts:
        numbers = pd.to_numeric(known, errors="coerce").dropna()
        if len(numbers) >= MOST * len(known):
            return _number(numbers, missing or len(numbers) < len(known))
    if (n_distinct > FEW_NUMBERS and texts) or all(isinstance(cell, date) for cell in known):
        times = pd.to_datetime(known, format="ISO8601", errors="coerce", utc=True).dropna()
        if len(times) >= MOST * len(known):
            return _date(times, missing or len(times) < len(known))
    if n_distinct > MANY_TEXTS or (n_distinct > FEW_NUMBERS and n_distinct == len(known)):
        return "it has too many different texts"
    return _categories(known, missing)


def _categories(known: pd.Series[Any], missing: bool) -> Column:
    distinct = known.astype(object).unique()
    return Categorical(tuple(sorted(distinct, key=lambda v: (str(type(v)), v))), missing=missing)
