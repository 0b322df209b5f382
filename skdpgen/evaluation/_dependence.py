"""How much of the dependence between columns survives in a synthetic table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ._marginals import Cells

__all__ = ["dependence_kept"]

FEWEST_ROWS = 100
"""Below this many rows, dependence can't be told from noise."""

CLEAR = 1.1
"""No dependence must be at least this much farther off than noise, or there is none to keep."""

MOST_CELLS = 64
"""A column of more keeps its most frequent ones; the others become one."""


def dependence_kept(
    cells: Mapping[Any, Cells], pairs: list[tuple[Any, Any]], rng: np.random.Generator
) -> tuple[float, str]:
    """Share of the dependence between two columns that a synthetic table keeps.

    The dependence of two columns is their joint table minus the product of its margins,
    D = p_ij - p_i p_j, so columns whose margins alone are off lose little. The distance of two
    tables is half the sum of abs(D - D'), as a mean over pairs of columns. Three are compared:

    - d, of the synthetic table to the real one;
    - b, of a table without dependence to the real one: as many rows as the synthetic table has,
      each column drawn from the real one by itself;
    - s, of a fresh sample of as many rows to the real one. Two random halves of the real rows are
      fresh to each other; their distance times sqrt((1/n + 1/m) / (4/n)) is that of n and m rows.

    What is kept is (b - d) / (b - s), cut to 0 .. 1.

    Parameters
    ----------
    cells : mapping of name to Cells
        Columns of the real and the synthetic table.
    pairs : list of (name, name)
        Which to compare, at least one.
    rng : Generator
        Draws the halves and the columns without dependence.

    Returns
    -------
    kept : float
        0 to 1, or NaN.
    reason : str
        Why it is NaN.
    """
    any_column = next(iter(cells.values()))
    n, m = len(any_column.real), len(any_column.synthetic)
    if min(n, m) < FEWEST_ROWS:
        return np.nan, f"a table has fewer than {FEWEST_ROWS} rows"
    half = np.zeros(n, dtype=bool)
    half[rng.permutation(n)[: n // 2]] = True
    coarse = {name: _coarse(column) for name, column in cells.items()}
    first = {name: column.real[half] for name, column in coarse.items()}
    alone = {name: column.real[rng.integers(n, size=m)] for name, column in coarse.items()}
    sums = np.zeros(3)
    for i, j in pairs:
        a, b = coarse[i], coarse[j]
        shape = (a.size, b.size)
        real = _counts(a.real, b.real, shape)
        one_half = _counts(first[i], first[j], shape)
        others = (
            (real, _counts(a.synthetic, b.synthetic, shape)),
            (real, _counts(alone[i], alone[j], shape)),
            (one_half, real - one_half),
        )
        sums += [np.abs(_dependence(x) - _dependence(y)).sum() / 2 for x, y in others]
    synthetic, nothing, halves = sums / len(pairs)
    fresh = halves * np.sqrt((1 / n + 1 / m) / (4 / n))
    if nothing <= CLEAR * fresh:
        return np.nan, "the real columns do not depend on each other beyond sampling noise"
    return float(np.clip((nothing - synthetic) / (nothing - fresh), 0.0, 1.0)), ""


def _counts(
    a: npt.NDArray[np.integer[Any]], b: npt.NDArray[np.integer[Any]], shape: tuple[int, int]
) -> npt.NDArray[np.int64]:
    return np.bincount(a * shape[1] + b, minlength=shape[0] * shape[1]).reshape(shape)


def _dependence(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    share = counts / counts.sum()
    return np.asarray(share - share.sum(axis=1, keepdims=True) * share.sum(axis=0))


def _coarse(cells: Cells) -> Cells:
    if cells.size <= MOST_CELLS:
        return cells
    frequent = np.argsort(-np.bincount(cells.real, minlength=cells.size), kind="stable")
    number = np.full(cells.size, MOST_CELLS - 1, dtype=np.int32)
    number[frequent[: MOST_CELLS - 1]] = np.arange(MOST_CELLS - 1)
    return Cells(number[cells.real], number[cells.synthetic], MOST_CELLS)
