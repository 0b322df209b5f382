"""How strongly two columns of one table go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["Associations", "correlation_ratio", "cramers_v", "pearson"]

Pair = tuple[Any, Any]
Codes = npt.NDArray[np.integer[Any]]
Values = npt.NDArray[np.float64]


class Associations:
    """How strongly the columns of one table go together.

    Parameters
    ----------
    values : mapping of name to array
        Columns as :func:`~skdpgen.evaluation._columns.values_of` gives them.
    pairs : iterable of (name, name)
        Which to look at; others are NaN.
    """

    def __init__(self, values: Mapping[Any, npt.NDArray[Any]], pairs: Iterable[Pair]) -> None:
        self._values = values
        self._numbers = {name: v for name, v in values.items() if v.dtype.kind == "f"}
        self._signed: dict[Pair, float] = {}
        self._strengths: dict[Pair, float] = {}
        for i, j in pairs:
            if i in self._numbers and j in self._numbers:
                self._signed[i, j] = pearson(values[i], values[j])
                self._strengths[i, j] = abs(self._signed[i, j])
            elif i in self._numbers:
                self._strengths[i, j] = correlation_ratio(values[j], values[i])
            elif j in self._numbers:
                self._strengths[i, j] = correlation_ratio(values[i], values[j])
            else:
                self._strengths[i, j] = cramers_v(values[i], values[j])

    @property
    def strengths(self) -> pd.DataFrame:
        """Cramer's V, correlation ratio or absolute correlation, 0 to 1; 1 with itself."""
        return self._square(list(self._values), self._strengths)

    @property
    def correlations(self) -> pd.DataFrame:
        """Correlation of the numbers, -1 to 1."""
        return self._square(list(self._numbers), self._signed)

    def why_undefined(self, name: Any) -> str:
        """Why a column goes together with nothing; empty if that isn't so."""
        values = self._values[name]
        known = values[~np.isnan(values)] if name in self._numbers else values[values > 0]
        if not len(known):
            return "no cell has a value"
        return "all cells have the same value" if np.ptp(known) == 0 else ""

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
    missing = np.isnan(x) | np.isnan(y)
    if missing.any():
        x, y = x[~missing], y[~missing]
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
