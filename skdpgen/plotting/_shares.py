"""Shares of one column in two tables, as pictures need them: few bars, or a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from skdpgen.data.columns import Categorical, Column, Ordinal
from skdpgen.data.datetime_columns import Datetime
from skdpgen.data.numeric_columns import Numeric
from skdpgen.evaluation._columns import codes, is_number, levels, unit_values

__all__ = ["Marginal", "marginal_of"]

Shares = npt.NDArray[np.float64]

# Bars of a list of values, and bins of a range.
_MOST_BARS = 9
_N_BINS = 24
# Fewer whole numbers than this get a bar each.
_FEW_WHOLE = 32
# Where nobody declared a scale: this much of the column in so small a part of its range wants a
# logarithmic one.
_CROWDED, _CORNER = 0.75, 0.05
_SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True)
class Marginal:
    """What is drawn of one column.

    Parameters
    ----------
    name : hashable
        Its name.
    kind : {"bars", "histogram", "dates"}
        What it is drawn as.
    labels : tuple of str
        Of bars, in the order of the picture; those of histograms have none.
    edges : ndarray of shape (n + 1,)
        Of the bins of a histogram, in the units of the column (of dates, days since 1970); empty
        for bars.
    synthetic, real : ndarray of shape (n,) or None
        Share of each bar or bin among all rows; NaN for a table without rows. None: no such table.
    missing : tuple of float or None
        Shares of cells without a value, synthetic and real; None where there are none, and none
        are declared.
    missing_label : str
        "missing", or "not listed" where missing cells are not declared.
    log : bool
        Whether bins are to be drawn on a logarithmic scale that begins at the first edge.
    whole : bool
        Whether bins hold whole numbers: they begin and end halfway between two.
    """

    name: Any
    kind: Literal["bars", "histogram", "dates"]
    labels: tuple[str, ...]
    edges: Shares
    synthetic: Shares
    real: Shares | None
    missing: tuple[float, float] | None
    missing_label: str
    log: bool = False
    whole: bool = False


def marginal_of(
    name: Any,
    column: Column,
    synthetic: pd.Series[Any],
    real: pd.Series[Any] | None,
    *,
    declared: bool,
) -> Marginal:
    """Shares of one column.

    Parameters
    ----------
    name : hashable
        Its name.
    column : Column
        With bounds or values.
    synthetic, real : Series
        The column in both tables; ``real`` may be None.
    declared : bool
        Whether the facts are those of a schema, and not read off rows.
    """
    cells = [synthetic] if real is None else [synthetic, real]
    if not declared and isinstance(column, Categorical) and len(column.categories) > _MOST_BARS:
        column = _as_numbers(column)
    if is_number(column):
        return _histogram(name, column, cells, declared)
    return _bars(name, column, cells)


def _as_numbers(column: Categorical) -> Column:
    """Many whole numbers that were taken for a list of values, as a range."""
    values = [v for v in column.categories if isinstance(v, int) and not isinstance(v, bool)]
    if len(values) < len(column.categories):
        return column
    return Numeric((min(values), max(values)), "int", missing=column.missing)


def _bars(name: Any, column: Column, cells: list[pd.Series[Any]]) -> Marginal:
    values = levels(column)
    found = [_codes(series, column) for series in cells]
    shares = [_shares(c[c >= 0], len(values), len(c)) for c in found]
    missing = _missing([c < 0 for c in found], bool(getattr(column, "missing", False)))
    order = np.argsort(-np.nan_to_num(shares[-1]), kind="stable")
    kept = order[: _MOST_BARS - 1] if len(values) > _MOST_BARS else order
    # Values with an order of their own keep it.
    if isinstance(column, Ordinal) or all(_is_real(v) for v in values):
        kept = np.sort(kept)
    labels = [str(values[i]) for i in kept]
    drawn = [share[kept] for share in shares]
    rest = len(values) - len(kept)
    if rest:
        labels.append(f"{rest:,} others")
        drawn = [
            np.append(some, share.sum() - some.sum())
            for some, share in zip(drawn, shares, strict=True)
        ]
    return Marginal(
        name,
        "bars",
        tuple(labels),
        np.zeros(0),
        drawn[0],
        drawn[1] if len(drawn) > 1 else None,
        missing,
        "missing" if getattr(column, "missing", False) else "not listed",
    )


def _codes(series: pd.Series[Any], column: Column) -> npt.NDArray[np.int64]:
    """Positions in the list of values; one that isn't in it is "other" where that is declared."""
    found = codes(series, column)
    if isinstance(column, Categorical) and column.other is not None:
        other = levels(column).index(column.other)
        tokens = column.missing if isinstance(column.missing, tuple) else ()
        none = series.isna() | series.astype(object).isin(list(tokens))
        found = np.where((found < 0) & ~none.to_numpy(dtype=bool), other, found)
    return found


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _histogram(name: Any, column: Column, cells: list[pd.Series[Any]], declared: bool) -> Marginal:
    units = [unit_values(series, column) for series in cells]
    low, high = _bounds(column)
    values = [low + u[~np.isnan(u)] * (high - low) for u in units]
    known = np.concatenate(values)
    whole = isinstance(column, Numeric) and (
        column.dtype == "int" if declared else bool((known == np.rint(known)).all())
    )
    if whole:
        values = [np.rint(v) for v in values]
        known = np.rint(known)
    log = isinstance(column, Numeric) and (
        column.scale == "log1p" if declared else _is_crowded(known)
    )
    # Bounds are wide on purpose: what is drawn is where there is something.
    start, stop = (float(known.min()), float(known.max())) if known.size else (low, high)
    dates = isinstance(column, Datetime)
    edges = _edges(start, stop, whole=whole, log=log, dates=dates)
    shares = [
        _shares(np.clip(np.searchsorted(edges, v, side="right") - 1, 0, len(edges) - 2),
                len(edges) - 1, len(u))
        for v, u in zip(values, units, strict=True)
    ]  # fmt: skip
    missing = _missing([np.isnan(u) for u in units], bool(getattr(column, "missing", False)))
    return Marginal(
        name,
        "dates" if dates else "histogram",
        (),
        edges,
        shares[0],
        shares[1] if len(shares) > 1 else None,
        missing,
        "missing",
        log=log,
        whole=whole,
    )


def _bounds(column: Column) -> tuple[float, float]:
    """The bounds as numbers; of dates, as days since 1970."""
    if isinstance(column, Datetime):
        stamps = pd.to_datetime(list(column.parsed_bounds), utc=True)
        days = [stamp.timestamp() / _SECONDS_A_DAY for stamp in stamps]
        return days[0], days[1]
    assert isinstance(column, Numeric)
    assert column.bounds is not None
    return float(column.bounds[0]), float(column.bounds[1])


def _is_crowded(known: Shares) -> bool:
    if not known.size or known.min() < 0:
        return False
    corner = known.min() + _CORNER * np.ptp(known)
    return bool(np.ptp(known) > 0 and (known <= corner).mean() > _CROWDED)


def _edges(start: float, stop: float, *, whole: bool, log: bool, dates: bool = False) -> Shares:
    """Edges of bins over a range; bins of whole numbers hold as many each, except on a log scale.

    Examples
    --------
    >>> _edges(3, 5, whole=True, log=False)
    array([2.5, 3.5, 4.5, 5.5])
    >>> _edges(0, 99, whole=True, log=False)[:3]
    array([-0.5,  4.5,  9.5])
    """
    if whole:
        n = int(stop - start) + 1
        width = 1 if n <= _FEW_WHOLE else -(-n // _N_BINS)
        if not log or n <= _FEW_WHOLE:
            return np.asarray(start - 0.5 + width * np.arange(-(-n // width) + 1.0))
        steps = np.expm1(np.linspace(0, np.log1p(stop - start + 1), _N_BINS + 1))
        # Small numbers have a bin each, whatever the scale says.
        return start - 0.5 + np.unique(np.rint(steps))
    if stop == start:
        half = 0.5 if dates else max(abs(start), 1.0) * 0.005
        return np.array([start - half, start + half])
    if log:
        return start + np.expm1(np.linspace(0, np.log1p(stop - start), _N_BINS + 1))
    return np.linspace(start, stop, _N_BINS + 1)


def _shares(places: npt.NDArray[np.integer[Any]], size: int, n_rows: int) -> Shares:
    counts = np.bincount(places, minlength=size).astype(np.float64)
    return counts / n_rows if n_rows else np.full(size, np.nan)


def _missing(masks: Sequence[npt.NDArray[np.bool_]], declared: bool) -> tuple[float, float] | None:
    shares = [float(mask.mean()) if len(mask) else np.nan for mask in masks]
    if not declared and not any(share > 0 for share in shares):
        return None
    return shares[0], shares[-1]
