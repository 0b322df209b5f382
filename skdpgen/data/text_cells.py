"""Columns of texts, as a CSV file has them, converted by a schema.

Dtypes come from the schema alone. Where a parser would guess them from the cells, one odd cell
would show in all rows. Every function here is row-wise and total: a cell that says nothing that the
schema knows becomes missing, or stays for the encoder to map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from .arrays import build_ticks
from .cells import microseconds, moment_parser, number_of, parse_number
from .columns import Boolean, Categorical, Column
from .datetime_columns import Datetime
from .dtypes import describe_dtype
from .numeric_columns import Numeric

__all__ = ["column_of_texts"]

_T = TypeVar("_T")

_TRUE = {"true", "t", "yes", "y"}
_FALSE = {"false", "f", "no", "n"}
_TEXT = pd.StringDtype("python")


def column_of_texts(cells: Sequence[str], column: Column | None) -> Any:
    """A column of texts in the dtype that a schema gives it.

    Parameters
    ----------
    cells : sequence of str, length n
        As they stand in the file; an empty one is missing.
    column : Column or None
        What is known; None leaves texts.

    Returns
    -------
    pandas extension array or ndarray of length n
        Numbers as ``Float64`` or as ``Int64`` (``UInt64`` where bounds go beyond), booleans as
        ``boolean``, times as ``datetime64[us]`` (of UTC where bounds have a time zone), everything
        else as ``string``.

    Notes
    -----
    Spaces around a cell mean nothing. A value that is declared as a number is recognized in any
    notation ("1.0" is 1), one that is declared as a text only as it is; a boolean as true/false,
    t/f, yes/no, y/n or 1/0 in any case.

    Examples
    --------
    >>> column_of_texts(["12", "", "many"], Numeric((0, 99), "int")).tolist()
    [12, <NA>, <NA>]
    >>> column_of_texts([" red", "1.0"], Categorical(["red", 1])).tolist()
    ['red', '1']
    """
    if isinstance(column, Numeric):
        return _numbers(cells, column)
    if isinstance(column, Datetime):
        return _times(cells, column)
    if isinstance(column, Boolean):
        tokens = _tokens(column)
        return pd.array(
            _mapped(cells, lambda t: None if t in tokens else _truth(t)),
            dtype="boolean",
        )
    known = _known_texts(column) if isinstance(column, Categorical) else {}
    return pd.array(_mapped(cells, lambda t: _text(t, known)), dtype=_TEXT)


def _mapped(cells: Sequence[str], function: Callable[[str], _T]) -> list[_T]:
    # Cells repeat: each text is looked at once.
    found = {text: function(text) for text in set(cells)}
    return [found[text] for text in cells]


def _tokens(column: Column) -> set[str]:
    missing = getattr(column, "missing", False)
    return {str(token) for token in missing} if isinstance(missing, tuple) else set()


def _numbers(cells: Sequence[str], column: Numeric) -> Any:
    tokens = _tokens(column)
    as_numbers = {number_of(token) for token in tokens} - {None}

    def read(text: str) -> int | float | None:
        number = None if text in tokens else parse_number(text)
        return None if number in as_numbers else number

    numbers = _mapped(cells, read)
    nulls = np.array([number is None for number in numbers], dtype=bool)
    if column.dtype == "float":
        floats = np.array([_as_float(number) for number in numbers], dtype=np.float64)
        return pd.arrays.FloatingArray(floats, nulls)
    unsigned = column.bounds is not None and column.bounds[1] >= 2**63
    limits = np.iinfo(np.uint64 if unsigned else np.int64)
    whole = [_as_whole(number, int(limits.min), int(limits.max)) for number in numbers]
    return pd.arrays.IntegerArray(np.array(whole, dtype=limits.dtype), nulls)


def _as_float(number: int | float | None) -> float:
    if number is None:
        return 0.0
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def _as_whole(number: int | float | None, lowest: int, highest: int) -> int:
    if number is None:
        return 0
    if isinstance(number, float) and np.isinf(number):
        return highest if number > 0 else lowest
    return min(max(round(number), lowest), highest)


def _times(cells: Sequence[str], column: Datetime) -> Any:
    tokens = _tokens(column)
    parse = _iso if column.format is None else moment_parser(column.format)
    zone = column.bounds is not None and column.parsed_bounds[0].tzinfo is not None

    def read(text: str) -> int | None:
        moment = None if text in tokens else parse(text.strip())
        return None if moment is None else microseconds(moment)

    moments = _mapped(cells, read)
    nulls = np.array([moment is None for moment in moments], dtype=bool)
    ticks = np.array([moment or 0 for moment in moments], dtype=np.int64)
    native = pd.DatetimeTZDtype("us", "UTC") if zone else np.dtype("datetime64[us]")
    return build_ticks(describe_dtype(native, "pandas"), ticks, nulls)


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except Exception:
        return None


def _truth(text: str) -> bool | None:
    word = text.strip().casefold()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    return {0: False, 1: True}.get(parse_number(text))  # type: ignore[arg-type]


def _known_texts(column: Categorical) -> dict[Any, str | None]:
    """Declared texts and numbers, and the text that each is written as; None means missing."""
    values = [*(column.values or ()), *([] if column.other is None else [column.other])]
    known: dict[Any, str | None] = {}
    missing = column.missing if isinstance(column.missing, tuple) else ()
    pairs: list[tuple[str | None, Any]] = [(None, token) for token in missing]
    pairs += [(str(value), value) for value in values]
    for text, value in pairs:
        known[str(value)] = text
        if not isinstance(value, str):
            known[value] = text
    return known


def _text(text: str, known: Mapping[Any, str | None]) -> str | None:
    stripped = text.strip()
    for key in (text, stripped):
        if key in known:
            return known[key]
    if not stripped:
        return None
    number = parse_number(stripped) if known else None
    return text if number is None else known.get(number, text)
