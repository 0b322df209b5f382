"""Public grids on which private bounds are found: bins of numbers, bins of times.

A cell falls into one bin, whatever it is, and a bin has public edges. Which bins are occupied is
for a mechanism to find out; here they become bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from .arrays import read_cells, read_numbers, read_ticks
from .cells import moment_of, moment_parser, number_of
from .datetime_columns import Datetime
from .dtypes import ColumnDtype
from .numeric_columns import Numeric

__all__ = ["NumberGrid", "TimeGrid"]

# Numbers are binned by sign and power of two, from 2^-50 to 2^50; whole ones on a log scale to
# 2^44, beyond which 64 bits don't do. What is larger counts as largest, what is smaller as zero.
_LOWEST, _HIGHEST, _HIGHEST_LOG = -50, 50, 44
# Where nothing is found: a range that says nothing.
_USUAL = 1000
# Times are binned by calendar year; texts with two-digit years mean those of the second line.
_FIRST_YEAR, _LAST_YEAR = 1700, 2199
_USUAL_YEARS = 1970, 2068
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class NumberGrid:
    """Sign times power of two, and zero.

    Parameters
    ----------
    column : Numeric
        Whose bounds are to be found.
    dtype : ColumnDtype
        Of the cells.
    count_missing : bool
        Whether a last bin is for missing cells; else they are in none.

    Examples
    --------
    >>> from skdpgen.data.dtypes import describe_dtype
    >>> ages = np.array([17.0, 90.0, 0.0, np.nan])
    >>> grid = NumberGrid(Numeric(None), describe_dtype(ages.dtype, "numpy"), True)
    >>> bins = grid.bins(ages)
    >>> grid.bounds(bins[:3].tolist()), bins[3] == grid.n_bins - 1
    ((0.0, 128.0), np.True_)
    """

    column: Numeric
    dtype: ColumnDtype
    count_missing: bool

    @property
    def _whole(self) -> bool:
        return self.column.dtype == "int" or self.dtype.family in ("int", "bool")

    @property
    def _powers(self) -> tuple[int, int]:
        """Exponents of the smallest and of the largest edge."""
        highest = _HIGHEST_LOG if self._whole and self.column.scale == "log1p" else _HIGHEST
        return (0 if self._whole else _LOWEST), highest

    @property
    def _n_magnitudes(self) -> int:
        lowest, highest = self._powers
        return highest - lowest

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return 2 * self._n_magnitudes + 1 + self.count_missing

    def bins(self, column: Any) -> np.ndarray:
        """The bin of each cell.

        Parameters
        ----------
        column : native column of n cells

        Returns
        -------
        ndarray of int64, shape (n,)
            From the most negative numbers to the largest; -1 for a cell without a bin.
        """
        with np.errstate(all="ignore"):
            values, nulls = self._read(column)
            lowest = self._powers[0]
            # |x| = mantissa * 2^exponent with a mantissa in [1/2, 1): exact.
            exponents = np.frexp(values)[1].astype(np.int64)
            magnitudes = np.clip(exponents - lowest, 0, self._n_magnitudes)
            magnitudes[values == 0] = 0
            magnitudes[np.isinf(values)] = self._n_magnitudes
            bins = self._n_magnitudes + np.where(values < 0, -magnitudes, magnitudes)
        return np.where(nulls, self.n_bins - 1 if self.count_missing else -1, bins)

    def _read(self, column: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers as float64, and where there is none."""
        missing = self.column.missing
        numbers = map(number_of, missing if isinstance(missing, tuple) else ())
        tokens = [n for n in numbers if n is not None]
        if self.dtype.family in ("text", "object"):
            cells = [number_of(cell) for cell in read_cells(column, self.dtype)]
            nulls = np.array([n is None or n in tokens for n in cells], dtype=bool)
            reals = [0.0 if n is None else _as_float(n) for n in cells]
            return np.array(reals, dtype=np.float64), nulls
        values, nulls = read_numbers(column, self.dtype)
        for token in tokens:
            nulls = nulls | (values == token)
        return np.where(nulls, 0.0, values.astype(np.float64)), nulls

    def bounds(self, bins: Sequence[int]) -> tuple[int | float, int | float]:
        """Bounds that hold these bins, inside the dtype.

        Parameters
        ----------
        bins : sequence of int
            Without that of missing cells. None gives a public range.

        Returns
        -------
        (number, number)
            In order, and different.
        """
        edges = [edge for bin in bins for edge in self._edges(bin - self._n_magnitudes)]
        lower, upper = (min(edges), max(edges)) if edges else (-_USUAL, _USUAL)
        if self.dtype.family in ("int", "float", "bool"):
            least, most = self.dtype.limits
            lower, upper = (min(max(edge, least), most) for edge in (lower, upper))
        if lower == upper:
            lower, upper = min(lower, 0), max(upper, 0)
        if lower == upper:
            upper = 1
        return (int(lower), int(upper)) if self._whole else (float(lower), float(upper))

    def _edges(self, position: int) -> tuple[int | float, int | float]:
        magnitude = abs(position)
        if magnitude == 0:
            return 0, 0
        lowest = self._powers[0]
        near, far = 2.0 ** (lowest + magnitude - 1), 2.0 ** (lowest + magnitude)
        if self._whole:
            near, far = int(near), int(far) - 1
        return (near, far) if position > 0 else (-far, -near)


@dataclass(frozen=True)
class TimeGrid:
    """Calendar years.

    Parameters
    ----------
    column : Datetime
        Whose bounds are to be found.
    dtype : ColumnDtype
        Of the cells.
    count_missing : bool
        Whether a last bin is for missing cells; else they are in none.

    Examples
    --------
    >>> from skdpgen.data.dtypes import describe_dtype
    >>> times = np.array(["2019-02-01", "2021-07-04"], dtype="datetime64[s]")
    >>> grid = TimeGrid(Datetime(None), describe_dtype(times.dtype, "numpy"), True)
    >>> [str(bound) for bound in grid.bounds(grid.bins(times).tolist())]
    ['2019-01-01 00:00:00', '2021-12-31 23:59:59']
    """

    column: Datetime
    dtype: ColumnDtype
    count_missing: bool

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return _LAST_YEAR - _FIRST_YEAR + 1 + self.count_missing

    def bins(self, column: Any) -> np.ndarray:
        """The bin of each cell; see :meth:`NumberGrid.bins`."""
        if self.dtype.family == "datetime":
            ticks, nulls = read_ticks(column, self.dtype)
            unit = self.dtype.unit or "us"
        else:
            ticks, nulls = self._read_cells(column)
            unit = "us"
        # Clipped first: far from the calendar, conversions between units overflow.
        first, after = (
            int(np.datetime64(f"{year}-01-01").astype(f"datetime64[{unit}]").astype(np.int64))
            for year in (_FIRST_YEAR, _LAST_YEAR + 1)
        )
        inside = np.clip(ticks, first, after - 1).astype(f"datetime64[{unit}]")
        years = inside.astype("datetime64[Y]").astype(np.int64) + 1970
        return np.where(nulls, self.n_bins - 1 if self.count_missing else -1, years - _FIRST_YEAR)

    def _read_cells(self, column: Any) -> tuple[np.ndarray, np.ndarray]:
        parse = moment_parser(self.column.format) if self.column.format else None
        tokens = self.column.missing if isinstance(self.column.missing, tuple) else ()
        texts = {str(token) for token in tokens}
        cells = read_cells(column, self.dtype)
        moments = [
            None if type(cell) is str and cell in texts else moment_of(cell, parse)
            for cell in cells
        ]
        ticks = np.array([0 if m is None else m for m in moments], dtype=np.int64)
        return ticks, np.array([m is None for m in moments], dtype=bool)

    def bounds(self, bins: Sequence[int]) -> tuple[datetime, datetime]:
        """Bounds that hold these bins; see :meth:`NumberGrid.bounds`."""
        years = [_FIRST_YEAR + bin for bin in bins] or list(_USUAL_YEARS)
        return datetime(min(years), 1, 1), datetime(max(years), 12, 31, 23, 59, 59)


def _as_float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
