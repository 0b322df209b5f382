"""Numbers and names as a page shows them."""

from __future__ import annotations

import math
import re
from typing import Any

from ..privacy.ledger_report import up

__all__ = ["at_most", "clean", "count", "counted", "epsilon", "percent", "share", "short"]

# What no XML text may hold: control characters and halves of surrogate pairs.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOTHING = "\N{EN DASH}"


def clean(text: Any) -> str:
    """A text without characters that HTML and SVG can't hold.

    Examples
    --------
    >>> clean("a" + chr(0) + "b")
    'a\N{REPLACEMENT CHARACTER}b'
    """
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text))


def short(text: Any, length: int = 60) -> str:
    """A text cut in its middle where it is long.

    Examples
    --------
    >>> short("abcdefghij", 5)
    'ab\N{HORIZONTAL ELLIPSIS}ij'
    """
    text = clean(text)
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[: length - 1 - half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def count(number: Any) -> str:
    """A whole number with separators.

    Examples
    --------
    >>> count(32561)
    '32,561'
    """
    return _NOTHING if number is None else f"{number:,.0f}"


def counted(number: Any, noun: str) -> str:
    """A number of things, in singular or plural.

    Examples
    --------
    >>> counted(1, "row"), counted(0, "row"), counted(2000, "row")
    ('1 row', '0 rows', '2,000 rows')
    """
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def share(number: Any, digits: int = 3) -> str:
    """A score or a distance; a dash for NaN.

    Examples
    --------
    >>> share(0.12345), share(-0.0001), share(float("nan"))
    ('0.123', '0.000', '\N{EN DASH}')
    """
    if number is None or math.isnan(number):
        return _NOTHING
    # What rounds to zero has no sign.
    return f"{round(number, digits) + 0.0:.{digits}f}"


def percent(number: Any, digits: int | None = None) -> str:
    """A share as a percentage; small ones keep a digit, and what isn't all or nothing says so.

    Examples
    --------
    >>> percent(0.934), percent(0.0123), percent(0.99998), percent(0.0001)
    ('93%', '1.2%', 'over 99.9%', 'under 0.1%')
    """
    if number is None or math.isnan(number):
        return _NOTHING
    if number in (0, 1):
        return f"{100 * number:.0f}%"
    if 0 < number < 0.001:
        return "under 0.1%"
    if 0.999 < number < 1:
        return "over 99.9%"
    if digits is None:
        digits = 1 if abs(number) < 0.095 or 0.99 < number < 1 else 0
    return f"{100 * number:.{digits}f}%"


def at_most(probability: float) -> str:
    """A probability in percent, with a digit and never below it.

    Examples
    --------
    >>> at_most(0.5533), at_most(0.5), at_most(0.99999)
    ('55.4%', '50%', '100%')
    """
    return f"{math.ceil(round(1000 * probability, 6)) / 10:g}%"


def epsilon(number: float) -> str:
    """Four digits, never below the number; "infinite" where it is.

    Examples
    --------
    >>> epsilon(1.23451), epsilon(float("inf"))
    ('1.235', 'infinite')
    """
    return "infinite" if number == math.inf else up(number)
