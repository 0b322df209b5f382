"""Exact maps between numbers within bounds and the unit interval.

Whole numbers and times are first turned into offsets 0 .. span from their lower bound, in exact
integer arithmetic; everything else is elementwise IEEE arithmetic. Either way the result for a
cell does not depend on the cells around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

__all__ = [
    "offsets_of_floats",
    "offsets_of_integers",
    "offsets_of_numbers",
    "offsets_to_unit",
    "reals_to_unit",
    "unit_to_offsets",
    "unit_to_reals",
]

# Up to here k / span * span is within 1/4 of k, so that rounding gives k back.
_SAFE_SPAN = 2**51


def offsets_of_integers(values: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Clip integers to bounds and subtract the lower one.

    Parameters
    ----------
    values : ndarray of integers or booleans, any shape
        The cells.
    lower, upper : int
        Bounds, of any size; ``upper - lower < 2**64``.

    Returns
    -------
    ndarray of uint64
        Exact offsets in 0 .. upper - lower.

    Examples
    --------
    >>> offsets_of_integers(np.array([2**64 - 1, 0], dtype="uint64"), 2**64 - 9, 2**64 - 3)
    array([6, 0], dtype=uint64)
    """
    wide = np.uint64 if values.dtype.kind == "u" else np.int64
    info = np.iinfo(wide)
    if upper < info.min or lower > info.max:  # every cell is on the same side of the bounds
        outside = 0 if lower > info.max else upper - lower
        return np.full(values.shape, outside, dtype=np.uint64)
    low, high = wide(max(lower, int(info.min))), wide(min(upper, int(info.max)))
    clipped = np.clip(values.astype(wide), low, high)
    # Unsigned arithmetic wraps modulo 2**64, and the true difference is in 0 .. 2**64 - 1.
    return clipped.astype(np.uint64) - np.uint64(lower % 2**64)


def offsets_of_floats(values: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Round floats half to even, clip them to whole bounds and subtract the lower one.

    Parameters
    ----------
    values : ndarray of floats, any shape
        The cells; NaN counts as the lower bound.
    lower, upper : int
        Bounds within -2**63 .. 2**64 - 1.

    Returns
    -------
    ndarray of uint64
        Exact offsets in 0 .. upper - lower.

    Examples
    --------
    >>> offsets_of_floats(np.array([0.5, 1.5, np.inf]), 0, 9)
    array([0, 2, 9], dtype=uint64)
    """
    rounded = np.rint(values.astype(np.float64))
    # Float bounds inside the whole ones: a comparison with an int would round the int first.
    low, high = float(lower), float(upper)
    low = math.nextafter(low, math.inf) if int(low) < lower else low
    high = math.nextafter(high, -math.inf) if int(high) > upper else high
    inside = (rounded >= low) & (rounded <= high)
    wide = np.int64 if lower < 0 else np.uint64
    whole = np.where(inside, rounded, low if low <= high else 0.0).astype(wide)
    exact = whole.astype(np.uint64) - np.uint64(lower % 2**64)
    above = np.where(rounded > high, np.uint64(upper - lower), np.uint64(0))
    return np.where(inside, exact, above)


def offsets_of_numbers(
    numbers: Iterable[int | float | None], lower: int, upper: int, fill: int
) -> np.ndarray:
    """The same for Python numbers of any size.

    Parameters
    ----------
    numbers : iterable of int, float or None
        The cells; infinities allowed, NaN not.
    lower, upper : int
        Bounds, ``upper - lower < 2**64``.
    fill : int
        The offset of None.

    Returns
    -------
    ndarray of uint64, shape (n,)
        Exact offsets in 0 .. upper - lower.

    Examples
    --------
    >>> offsets_of_numbers([10**400, 2.5, None], 0, 9, fill=4)
    array([9, 2, 4], dtype=uint64)
    """
    span = upper - lower

    def offset(number: int | float | None) -> int:
        if number is None:
            return fill
        if isinstance(number, float) and math.isinf(number):
            return span if number > 0 else 0
        return min(max(round(number) - lower, 0), span)

    return np.array([offset(number) for number in numbers], dtype=np.uint64)


def offsets_to_unit(offsets: np.ndarray, span: int, log: bool) -> np.ndarray:
    """Scale offsets 0 .. span to [0, 1].

    Parameters
    ----------
    offsets : ndarray of integers, any shape
        At most ``span``.
    span : int
        At least 1 and less than 2**53.
    log : bool
        Whether to scale ``log(1 + offset)`` instead of the offset.

    Returns
    -------
    ndarray of float64
        In [0, 1], increasing in the offset.
    """
    z = offsets.astype(np.float64)
    # numpy's vectorized log1p and the C library's may differ in the last bit, hence the minimum.
    return np.minimum(np.log1p(z) / math.log1p(span), 1.0) if log else z / span


def unit_to_offsets(z: np.ndarray, span: int, log: bool) -> np.ndarray:
    """The inverse of :func:`offsets_to_unit`: the nearest offset.

    Parameters
    ----------
    z : ndarray of floats, any shape
        In [0, 1].
    span : int
        At least 1 and less than 2**53.
    log : bool
        As in :func:`offsets_to_unit`.

    Returns
    -------
    ndarray of uint64
        In 0 .. span; exact for encoded offsets (up to 2**45 on a log scale).

    Examples
    --------
    >>> span = 2**53 - 1
    >>> unit_to_offsets(offsets_to_unit(np.array([span - 1]), span, False), span, False) == span - 1
    array([ True])
    """
    k = np.clip(np.rint(np.expm1(z * math.log1p(span)) if log else z * span), 0, span)
    if span > _SAFE_SPAN and not log:
        # Neighboring offsets still have different quotients: take the one that fits best.
        for step in (-1.0, 1.0):
            other = np.clip(np.rint(z * span) + step, 0, span)
            k = np.where(np.abs(other / span - z) < np.abs(k / span - z), other, k)
    return k.astype(np.uint64)


def reals_to_unit(x: np.ndarray, lower: float, upper: float, log: bool) -> np.ndarray:
    """Clip real numbers to bounds and scale them to [0, 1].

    Parameters
    ----------
    x : ndarray of floats, any shape
        Infinities allowed; NaN stays NaN.
    lower, upper : float
        Bounds, ``lower < upper``.
    log : bool
        Whether to scale ``log(1 + x - lower)`` instead of ``x - lower``.

    Returns
    -------
    ndarray of float64
        In [0, 1], never decreasing in ``x``.

    Examples
    --------
    >>> reals_to_unit(np.array([-np.inf, 5.0, 99.0]), 0.0, 10.0, log=False)
    array([0. , 0.5, 1. ])
    """
    shifted = np.clip(x.astype(np.float64), lower, upper) - lower
    if log:
        return np.minimum(np.log1p(shifted) / math.log1p(upper - lower), 1.0)
    return shifted / (upper - lower) + 0.0  # no negative zero


def unit_to_reals(z: np.ndarray, lower: float, upper: float, log: bool) -> np.ndarray:
    """The inverse of :func:`reals_to_unit`.

    The shortest decimal number that has the very encoding ``z`` is preferred, so that 0.1 comes
    back as 0.1: it is exact for numbers of up to about 13 significant digits, counted from the
    leading digit of the larger bound (12 on a log scale). Other numbers come back up to a few
    units in the last place of the larger bound.

    Parameters
    ----------
    z : ndarray of floats, any shape
        In [0, 1].
    lower, upper : float
        Bounds, ``lower < upper``.
    log : bool
        As in :func:`reals_to_unit`.

    Returns
    -------
    ndarray of float64
        Within the bounds.

    Examples
    --------
    >>> unit_to_reals(reals_to_unit(np.array([0.1, 36.6]), 0.0, 42.0, False), 0.0, 42.0, False)
    array([ 0.1, 36.6])
    """
    spread = upper - lower
    raw = lower + (np.expm1(z * math.log1p(spread)) if log else z * spread)
    raw = np.clip(raw, lower, upper)
    largest = max(abs(lower), abs(upper), spread)
    for digits in (15, 14, 13):
        decimals = digits - math.ceil(math.log10(largest))
        if abs(decimals) > 22:  # from 10**23 on, powers of ten are not exact
            continue
        power = 10.0 ** abs(decimals)
        rounded = np.rint(raw * power) / power if decimals >= 0 else np.rint(raw / power) * power
        rounded = np.clip(rounded, lower, upper)
        fits = reals_to_unit(rounded, lower, upper, log) == z
        raw = np.where(fits, rounded, raw)
    return raw
