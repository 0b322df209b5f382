"""Fidelity: total variation distance of all one-way and two-way marginals."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..exceptions import InputError
from ._columns import PRIVACY, codes, features, is_number, levels, table, unit_values

if TYPE_CHECKING:
    from ..data.schema import Schema

__all__ = ["fidelity_scores", "marginal_distances"]

Binning = Literal["uniform", "quantile"]


def marginal_distances(
    real: Any,
    synthetic: Any,
    schema: Schema,
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
    real, synthetic : DataFrame
        pandas or polars tables with the columns of the schema. The result reads the real rows
        and adds no noise, so no epsilon covers it.
    schema : Schema
        Public column facts; id and text columns are left out.
    binning : {"uniform", "quantile"}, default="uniform"
        ``"uniform"`` cuts the public range into equal bins; ``"quantile"`` cuts at the quantiles
        of the real column, which sees more of a skewed one.
    n_bins : int, default=16
        Number of bins of a number or a date.

    Returns
    -------
    DataFrame
        One row a marginal: ``columns`` (a tuple of one or two names), ``order`` (1 or 2),
        ``distance`` (0 to 1; NaN with a reason in ``note``), ``note`` and ``privacy``.

    Raises
    ------
    InputError
        If a table lacks a column of the schema, or ``binning`` or ``n_bins`` is unknown.
    SchemaError
        If a column lacks its bounds or its list of values.

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
    >>> marginal_distances(real, synthetic, schema)[["columns", "distance"]]
          columns  distance
    0      (age,)      0.00
    1      (sex,)      0.25
    2  (age, sex)      0.25
    """
    if binning not in ("uniform", "quantile"):
        raise InputError(f"binning must be 'uniform' or 'quantile', not {binning!r}.")
    if n_bins < 1:
        raise InputError("n_bins must be at least 1.")
    columns = features(schema)
    a = table(real, list(columns), "real")
    b = table(synthetic, list(columns), "synthetic")
    cells: dict[Any, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]] = {}
    for name, column in columns.items():
        if is_number(column):
            x, y = unit_values(a[name], column), unit_values(b[name], column)
            edges = _edges(x, binning, n_bins)
            cells[name] = (_bins(x, edges), _bins(y, edges), len(edges) + 2)
        else:
            # Code -1, missing or not declared, is the first cell.
            size = len(levels(column)) + 1
            cells[name] = (codes(a[name], column) + 1, codes(b[name], column) + 1, size)
    empty = [role for role, t in (("real", a), ("synthetic", b)) if t.empty]
    note = f"the {empty[0]} table has no rows" if empty else ""
    rows = []
    for names in [*((n,) for n in cells), *combinations(cells, 2)]:
        distance = np.nan if note else _distance([cells[n] for n in names])
        rows.append((names, len(names), distance, note, PRIVACY))
    return pd.DataFrame(rows, columns=["columns", "order", "distance", "note", "privacy"])


def fidelity_scores(real: Any, synthetic: Any, schema: Schema, *, n_bins: int = 16) -> pd.DataFrame:
    """Mean and worst total variation distance of the marginals. **Not private**.

    Parameters
    ----------
    real, synthetic : DataFrame
        pandas or polars tables with the columns of the schema. The result reads the real rows
        and adds no noise, so no epsilon covers it.
    schema : Schema
        Public column facts; id and text columns are left out.
    n_bins : int, default=16
        Number of bins of a number or a date.

    Returns
    -------
    DataFrame
        One row for each order (1 and 2) and binning (uniform and quantile): ``order``,
        ``binning``, ``mean`` and ``worst`` distance (0 to 1), ``worst_columns``, ``note`` (why a
        distance is NaN) and ``privacy``.

    See Also
    --------
    marginal_distances : The distances one by one, and the errors raised.

    Examples
    --------
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import fidelity_scores
    >>> real, schema = make_gaussian_grid(2000, random_state=0)
    >>> same, _ = make_gaussian_grid(2000, random_state=1)
    >>> fidelity_scores(real, same, schema)[["order", "binning", "mean"]].round(2)
       order   binning  mean
    0      1   uniform  0.04
    1      2   uniform  0.11
    2      1  quantile  0.05
    3      2  quantile  0.12
    """
    rows = []
    binnings: tuple[Binning, ...] = ("uniform", "quantile")
    for binning in binnings:
        every = marginal_distances(real, synthetic, schema, binning=binning, n_bins=n_bins)
        for order, part in every.groupby("order"):
            known = part["distance"].notna().all()
            worst = part.sort_values("distance")["columns"].iloc[-1] if known else None
            mean, most = part["distance"].mean(), part["distance"].max()
            rows.append((order, binning, mean, most, worst, part["note"].iloc[0], PRIVACY))
    names = ["order", "binning", "mean", "worst", "worst_columns", "note", "privacy"]
    return pd.DataFrame(rows, columns=names)


def _edges(real: npt.NDArray[np.float64], binning: Binning, n_bins: int) -> npt.NDArray[np.float64]:
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    if binning == "uniform":
        return inner
    seen = real[~np.isnan(real)]
    # A spike covers several quantiles: it becomes one edge, and one cell ends at it.
    return np.unique(np.quantile(seen, inner)) if seen.size else np.empty(0)


def _bins(values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Cell of each value: 0 where missing, then one cell up to each edge and one above."""
    return np.where(np.isnan(values), 0, np.searchsorted(edges, values) + 1)


def _distance(
    cells: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]],
) -> float:
    a, b, size = cells[0]
    for other_a, other_b, other_size in cells[1:]:
        a, b, size = a * other_size + other_a, b * other_size + other_b, size * other_size
    p = np.bincount(a, minlength=size) / len(a)
    q = np.bincount(b, minlength=size) / len(b)
    return float(np.abs(p - q).sum() / 2)
