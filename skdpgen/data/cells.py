"""Total functions of one cell: whatever object stands in it, they return and never raise.

A column of Python objects may hold anything: lists, integers of a thousand digits, instances of
classes whose ``__eq__`` or ``__str__`` raises. Whether that happens is private, so it must not
show. A cell's class is therefore compared with a short list of classes that are understood, and
methods are taken from those classes, never from the cell's own. Everything else is unreadable
(None), like a missing value. That includes datetimes with a time zone of a class that is neither of
the standard library nor inside a :class:`pandas.Timestamp`: what its offset is, only it could say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import NoneType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

__all__ = ["canonical_number", "moment_of", "moment_parser", "number_of", "parse_number"]

# Longer texts are no numbers or times. Without a limit the time taken would tell of one long cell.
_LONGEST = 400
_FIELDS = ["year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo", "fold"]
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def parse_number(text: str) -> int | float | None:
    """Read a number from a text.

    Parameters
    ----------
    text : str
        Decimal notation with optional exponent, spaces around it allowed.

    Returns
    -------
    int, float or None
        An exact integer where the text is one; None where it is no number, or NaN, or longer
        than 400 characters.

    Examples
    --------
    >>> parse_number(" 0311"), parse_number("1e3"), parse_number("?"), parse_number("nan")
    (311, 1000.0, None, None)
    """
    if len(text) > _LONGEST or "_" in text:  # Python reads "1_000", no data format does
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def canonical_number(text: str) -> int | float | None:
    """The finite number that is written exactly like this, or None.

    Examples
    --------
    >>> canonical_number("94"), canonical_number("1.5"), canonical_number("0311")
    (94, 1.5, None)
    """
    number = parse_number(text)
    if number is None or not math.isfinite(number) or str(number) != text:
        return None
    return number


def number_of(cell: Any) -> int | float | None:
    """The number that a cell holds, infinities included; None where it holds none.

    Parameters
    ----------
    cell : object
        Numbers of Python, numpy and :mod:`decimal`, booleans and texts are understood.

    Returns
    -------
    int, float or None
        Integers are exact, however long. NaN, nulls and everything else give None.

    Examples
    --------
    >>> number_of("12"), number_of(True), number_of(float("nan")), number_of([1])
    (12, 1, None, None)
    """
    kind = type(cell)
    try:
        if issubclass(kind, str):
            return parse_number(str.__str__(cell))
        if issubclass(kind, int):
            return int.__index__(cell)
        if issubclass(kind, np.timedelta64):  # numpy counts it among the integers
            return None
        if issubclass(kind, np.integer | np.bool_):
            return int(np.generic.item(cell))
        if issubclass(kind, Decimal):
            return _number_of_decimal(cell)
        if issubclass(kind, float):
            number = float.__float__(cell)
        elif issubclass(kind, np.longdouble):
            number = np.longdouble.__float__(cell)
        elif issubclass(kind, np.floating):
            number = np.generic.item(cell)
        else:
            return None
    except Exception:
        return None
    return None if math.isnan(number) else number


def _number_of_decimal(cell: Decimal) -> int | float | None:
    # int(Decimal("1e1000000000")) would take for ever, so only moderate ones are read exactly.
    number = Decimal.__float__(cell)
    if math.isnan(number):
        return None
    if abs(number) < 1e30 and Decimal.__eq__(cell, Decimal.to_integral_value(cell)):
        return Decimal.__int__(cell)
    return number


def moment_parser(format: str) -> Callable[[str], datetime | None]:
    """Make a total reader of texts in a :meth:`datetime.datetime.strptime` format.

    Parameters
    ----------
    format : str
        The public format of the column.

    Returns
    -------
    callable
        From a text to a datetime, or None where the text does not follow the format.

    Examples
    --------
    >>> parse = moment_parser("%Y-%m-%d")
    >>> parse("2024-02-29"), parse("2023-02-29")
    (datetime.datetime(2024, 2, 29, 0, 0), None)
    """

    def parse(text: str) -> datetime | None:
        if len(text) > _LONGEST:
            return None
        try:
            return datetime.strptime(text, format)
        except Exception:
            return None

    return parse


def moment_of(cell: Any, parse: Callable[[str], datetime | None] | None) -> int | None:
    """Microseconds from 1970-01-01 (UTC if the cell has a time zone) to the time in a cell.

    Parameters
    ----------
    cell : object
        Dates and datetimes of Python, numpy and pandas are understood, and texts if there is a
        parser for them.
    parse : callable or None
        A reader made by :func:`moment_parser`.

    Returns
    -------
    int or None
        Exact for whole microseconds; None where the cell holds no time.

    Examples
    --------
    >>> moment_of(date(1970, 1, 2), None)
    86400000000
    >>> moment_of("1970-01-02", None) is None
    True
    """
    kind = type(cell)
    try:
        if issubclass(kind, str):
            parsed = parse(str.__str__(cell)) if parse else None
            return None if parsed is None else microseconds(parsed)
        if kind is pd.Timestamp:  # knows its time in UTC without asking its zone
            cell, kind = cell.asm8, np.datetime64
        if kind is np.datetime64:
            return None if np.isnat(cell) else int(np.datetime64(cell, "us").astype(np.int64))
        if issubclass(kind, date) and cell is not pd.NaT:
            plain = _plain_date(cell)
            return None if plain is None else microseconds(plain)
    except Exception:
        return None
    return None


def _plain_date(cell: date) -> date | None:
    """A date or datetime without methods of its own; None if its time zone may have some."""
    kind = type(cell)
    if not issubclass(kind, datetime):
        return cell if kind is date else date.fromordinal(date.toordinal(cell))
    if type(datetime.tzinfo.__get__(cell)) not in (NoneType, timezone, ZoneInfo):
        return None
    if kind is datetime:
        return cell
    return datetime(**{name: getattr(datetime, name).__get__(cell) for name in _FIELDS})


def microseconds(moment: date) -> int:
    """Microseconds since 1970-01-01, of UTC for a datetime with a time zone.

    Parameters
    ----------
    moment : date or datetime
        A date without time means midnight.

    Returns
    -------
    int
        Exact.

    Examples
    --------
    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5))
    1000005
    """
    seconds = (moment.toordinal() - _EPOCH_ORDINAL) * 86_400
    if not isinstance(moment, datetime):
        return seconds * 1_000_000
    seconds += moment.hour * 3600 + moment.minute * 60 + moment.second
    total = seconds * 1_000_000 + moment.microsecond
    offset = moment.utcoffset()
    return total if offset is None else total - offset // timedelta(microseconds=1)
