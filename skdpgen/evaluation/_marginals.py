"""Total variation distance of one-way and two-way marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.columns import Column
from ..exceptions import InputError
from ._columns import facts, is_number, levels, table, values_of

if TYPE_CHECKING:
    from ..data.schema import Schema

__all__ = [
    "Binning",
    "Cells",
    "cells_of",
    "check_bins",
    "empty_note",
    "joint",
    "marginal_distances",
]

Binning = Literal["uniform", "quantile"]


@dataclass(frozen=True)
class Cells:
    """One column, or several together, of two tables as cell numbers.

    Parameters
    ----------
    real, synthetic : ndarray of int
        Cell of each row, 0 to ``size - 1``; cell 0 is a missing value or one that isn't declared.
    size : int
        Number of cells.
    """

    real: npt.NDArray[np.integer[Any]]
    synthetic: npt.NDArray[np.integer[Any]]
    size: int

    @property
    def distance(self) -> float:
        """Total variation distance of the two tables."""
        p = np.bincount(self.real, minlength=self.size) / len(self.real)
        q = np.bincount(self.synthetic, minlength=self.size) / len(self.synthetic)
        # Rounding can lead a little above 1.
        return min(1.0, float(np.abs(p - q).sum() / 2))


def marginal_distances(
    synthetic: Any,
    real: Any,
    schema: Schema | None = None,
    *,
    binning: Binning = "uniform",
    n_bins: int = 16,
) -> pd.DataFrame:
    """Total variation distance of every one-way and two-way marginal. **Not private**.

    The distance of two histograms p and q is half the sum of abs(p - q): 0 where they agree, 1
    where they share no cell. Categories count one by one, numbers and dates in bins; a missing
    value is one more cell of its column, and so is a value that the schema does not declare.

    Parameters
    ----------
    synthetic, real : DataFrame
        pandas or polars tables with the columns of the schema. The result reads the real rows
        and adds no noise, so no epsilon covers it.
    schema : Schema, default=None
        Column facts; id and text columns are left out. None reads them off the real rows.
    binning : {"uniform", "quantile"}, default="uniform"
        ``"uniform"`` cuts the range between the bounds into equal bins; ``"quantile"`` cuts at
        the quantiles of the real column, which sees more of a skewed one.
    n_bins : int, default=16
        Number of bins of a number or a date.

    Returns
    -------
    DataFrame
        One row a marginal: ``columns`` (a tuple of one or two names), ``order`` (1 or 2),
        ``binning``, ``distance`` (0 to 1; NaN with a reason in ``note``) and ``note``.

    Raises
    ------
    InputError
        If a table lacks a column of the schema, or ``binning`` or ``n_bins`` is unknown.
    SchemaError
        If a column of the schema lacks its bounds or its list of values.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Schema
    >>> from skdpgen.evaluation import marginal_distances
    >>> schema = Schema.from_dict({"target": None, "columns": {
    ...     "age": {"kind": "numeric", "bounds": [0, 100], "dtype": "int"},
    ...     "sex": {"kind": "categorical", "values": ["f", "m"]}}})
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> synthetic = real.assign(sex=["f", "f", "f", "m"])
    >>> marginal_distances(synthetic, real, schema)[["columns", "distance"]]
          columns  distance
    0      (age,)      0.00
    1      (sex,)      0.25
    2  (age, sex)      0.25
    """
    if binning not in ("uniform", "quantile"):
        raise InputError(f"binning must be 'uniform' or 'quantile', not {binning!r}.")
    check_bins(n_bins)
    columns = facts(schema, [real], {"synthetic": synthetic}).columns
    a, b = table(real, list(columns), "real"), table(synthetic, list(columns), "synthetic")
    cells = cells_of(values_of(a, columns), values_of(b, columns), columns, binning, n_bins)
    note = empty_note(a, b)
    rows = []
    for names in [*((n,) for n in cells), *combinations(cells, 2)]:
        distance = np.nan if note else joint([cells[n] for n in names]).distance
        rows.append((names, len(names), binning, distance, note))
    return pd.DataFrame(rows, columns=["columns", "order", "binning", "distance", "note"])


def check_bins(n_bins: int) -> None:
    """Refuse a number of bins below 1.

    Raises
    ------
    InputError
        If it is.
    """
    if n_bins < 1:
        raise InputError("n_bins must be at least 1.")


def empty_note(real: pd.DataFrame, synthetic: pd.DataFrame) -> str:
    """Why two tables have no distance; empty where both have rows."""
    empty = [r for r, t in (("real", real), ("synthetic", synthetic)) if t.empty]
    return f"the {empty[0]} table has no rows" if empty else ""


def cells_of(
    real: Mapping[Any, npt.NDArray[Any]],
    synthetic: Mapping[Any, npt.NDArray[Any]],
    columns: Mapping[Any, Column],
    binning: Binning,
    n_bins: int,
) -> dict[Any, Cells]:
    """Cell numbers of every column from :func:`values_of`; numbers and dates in bins."""
    found = {}
    for name, column in columns.items():
        x, y = real[name], synthetic[name]
        if is_number(column):
            edges = _edges(x, binning, n_bins)
            found[name] = Cells(_bins(x, edges), _bins(y, edges), len(edges) + 2)
        else:
            found[name] = Cells(x, y, len(levels(column)) + 1)
    return found


def joint(cells: Sequence[Cells]) -> Cells:
    """The cross of columns; cells that no row is in are dropped where there are many."""
    size = cells[0].size
    a, b = cells[0].real.astype(np.int64), cells[0].synthetic.astype(np.int64)
    for other in cells[1:]:
        a = a * other.size + other.real
        b = b * other.size + other.synthetic
        size *= other.size
        if size > 4 * (len(a) + len(b)) + 1000:
            # A histogram of thousands of categories by thousands would not fit the memory.
            seen, numbers = np.unique(np.concatenate([a, b]), return_inverse=True)
            a, b, size = numbers[: len(a)], numbers[len(a) :], len(seen)
    return Cells(a, b, size)


def _edges(real: npt.NDArray[np.float64], binning: Binning, n_bins: int) -> npt.NDArray[np.float64]:
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    if binning == "uniform":
        return inner
    seen = np.unique(real[~np.isnan(real)])
    if not seen.size:
        return np.empty(0)
    # A spike covers several quantiles: it becomes one edge, and one cell ends after it, halfway to
    # the next value. An edge on a value itself would cut through what is a hair off, such as the
    # values of a table that was sampled from narrow bins.
    quantiles = np.quantile(real[~np.isnan(real)], inner)
    after = np.append(seen, 1.0)[np.searchsorted(seen, quantiles, side="right")]
    before = seen[np.searchsorted(seen, quantiles, side="right") - 1]
    return np.unique((before + after) / 2)


def _bins(values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Cell of each value: 0 where missing, then one cell up to each edge and one above."""
    return np.where(np.isnan(values), 0, np.searchsorted(edges, values) + 1).astype(np.int32)
