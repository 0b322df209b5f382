"""How strongly two columns of one table go together, 0 to 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.columns import Column
from ._columns import codes, is_number, unit_values

__all__ = ["Associations", "correlation_ratio", "cramers_v", "pearson"]

Pair = tuple[Any, Any]
Codes = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class Associations:
    """The columns of one table as numbers or codes, and how strongly they go together.

    Parameters
    ----------
    frame : DataFrame
        The table.
    columns : mapping of name to Column
        Their facts.
    """

    def __init__(self, frame: pd.DataFrame, columns: Mapping[Any, Column]) -> None:
        self._names = list(columns)
        self._numbers = {
            name: unit_values(frame[name], c) for name, c in columns.items() if is_number(c)
        }
        # Code 0 is a missing value or one that isn't declared.
        self._codes = {
            name: codes(frame[name], c) + 1 for name, c in columns.items() if not is_number(c)
        }

    def why_undefined(self, name: Any) -> str:
        """Why a column goes together with nothing; empty if that isn't so."""
        if name in self._numbers:
            values: npt.NDArray[Any] = self._numbers[name]
            values = values[~np.isnan(values)]
        else:
            values = self._codes[name][self._codes[name] > 0]
        if not len(values):
            return "no cell has a value"
        return "all cells have the same value" if np.ptp(values) == 0 else ""

    def strengths(self, pairs: Iterable[Pair]) -> pd.DataFrame:
        """Cramer's V, correlation ratio or absolute correlation of these pairs, 0 to 1."""
        return self._square(self._names, {pair: self._strength(*pair) for pair in pairs})

    def correlations(self, pairs: Iterable[Pair]) -> pd.DataFrame:
        """Correlation of these pairs as far as both are numbers, -1 to 1."""
        numbers = self._numbers
        found = {
            (i, j): pearson(numbers[i], numbers[j])
            for i, j in pairs
            if i in numbers and j in numbers
        }
        return self._square(list(numbers), found)

    def _strength(self, i: Any, j: Any) -> float:
        numbers, groups = self._numbers, self._codes
        if i in numbers and j in numbers:
            return abs(pearson(numbers[i], numbers[j]))
        if i in numbers:
            return correlation_ratio(groups[j], numbers[i])
        if j in numbers:
            return correlation_ratio(groups[i], numbers[j])
        return cramers_v(groups[i], groups[j])

    def _square(self, names: list[Any], found: Mapping[Pair, float]) -> pd.DataFrame:
        place = {name: position for position, name in enumerate(names)}
        values = np.full((len(names), len(names)), np.nan)
        for name, position in place.items():
            if not self.why_undefined(name):
                values[position, position] = 1.0
        for (i, j), value in found.items():
            values[place[i], place[j]] = values[place[j], place[i]] = value
        labels = pd.Index(names, dtype=object)
        return pd.DataFrame(values, index=labels, columns=labels)


def pearson(x: Values, y: Values) -> float:
    """Correlation of two numbers, -1 to 1; NaN where one is constant.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Rows in which one is NaN do not count.
    """
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def correlation_ratio(groups: Codes, y: Values) -> float:
    """Root of the share of a number's variance that lies between groups, 0 to 1.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Category codes; rows with code 0 (missing) do not count.
    y : ndarray of shape (n,)
        Rows in which it is NaN do not count.

    Returns
    -------
    float
        Pearson's eta; NaN where the number is constant or all rows are in one group.
    """
    both = (groups > 0) & ~np.isnan(y)
    groups, y = groups[both], y[both]
    counts = np.bincount(groups)
    if (counts > 0).sum() < 2 or np.ptp(y) == 0:
        return np.nan
    y = y - y.mean()
    sums = np.bincount(groups, y)
    between = (sums[counts > 0] ** 2 / counts[counts > 0]).sum()
    return float(np.sqrt(np.clip(between / (y @ y), 0.0, 1.0)))


def cramers_v(a: Codes, b: Codes) -> float:
    """Cramer's V of two lists of categories, 0 to 1, without a correction for small tables.

    Parameters
    ----------
    a, b : ndarray of shape (n,)
        Category codes; rows in which one is 0 (missing) do not count.

    Returns
    -------
    float
        sqrt(chi2 / (n (min(r, c) - 1))) over the r and c categories that occur; NaN where one of
        them is 1.
    """
    both = (a > 0) & (b > 0)
    a, b = a[both], b[both]
    row_totals, column_totals = np.bincount(a), np.bincount(b)
    fewer = min((row_totals > 0).sum(), (column_totals > 0).sum())
    if fewer < 2:
        return np.nan
    width = len(column_totals)
    pairs, counts = _occupied(a * width + b, len(row_totals) * width)
    # Cells that no row is in add nothing: chi2 / n = sum of n_ij^2 / (n_i n_j) - 1.
    expected = row_totals[pairs // width] * column_totals[pairs % width]
    return float(np.sqrt(np.clip((counts**2 / expected).sum() - 1, 0.0, fewer - 1) / (fewer - 1)))


def _occupied(cells: Codes, size: int) -> tuple[Codes, Codes]:
    """The cells that rows are in, in order, and how many rows are in each.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Numbers from 0 to ``size - 1``.
    size : int
        Number of cells; where it is far above n, rows are sorted instead of counted.
    """
    if size > 4 * len(cells) + 1000:
        # A histogram of thousands of categories by thousands would not fit the memory.
        return np.unique(cells, return_counts=True)
    counts = np.bincount(cells, minlength=size)
    found = np.flatnonzero(counts)
    return found, counts[found]
