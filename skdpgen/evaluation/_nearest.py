"""Distances between rows of mixed columns: Gower's, in integers, so that ties are ties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import cdist

from ..data.columns import Column
from ._columns import codes, is_number, unit_values

__all__ = ["ONE", "GowerRows", "blocks", "distances"]

#: One, the distance of two different categories or of the two bounds of a number. Sums over
#: columns are integers below 2^53, exact in whatever order they are added.
ONE = 2**20
# Distances looked at once: bounds the memory.
_BLOCK = 2**22


@dataclass(frozen=True)
class GowerRows:
    """Rows by which distances are measured.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n, p)
        Whole numbers: position in the bounds, 0 .. ONE; half where missing.
    codes : ndarray of int32, shape (n, q)
        One column a category.
    missing : ndarray of int32, shape (n, p)
        Whether a number is missing.
    """

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    missing: npt.NDArray[np.int32]

    @classmethod
    def encode(cls, table: pd.DataFrame, columns: Mapping[Any, Column]) -> GowerRows:
        """Encode a table; what its columns don't declare counts as missing."""
        n = len(table)
        units = [unit_values(table[k], c) for k, c in columns.items() if is_number(c)]
        listed = [codes(table[k], c) for k, c in columns.items() if not is_number(c)]
        unit = np.stack([np.empty(n), *units], axis=1)[:, 1:]
        absent = np.isnan(unit)
        return cls(
            np.rint(np.where(absent, 0.5, unit) * ONE),
            np.stack([np.empty(n), *listed], axis=1)[:, 1:].astype(np.int32),
            absent.astype(np.int32),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> GowerRows:
        return GowerRows(self.numbers[rows], self.codes[rows], self.missing[rows])

    def identities(self) -> list[bytes]:
        """A text for each row, the same for rows without distance."""
        parts = (self.numbers, self.codes, self.missing)
        # Whole numbers; as integers zero has no sign.
        cells = np.concatenate([part.astype(np.int64) for part in parts], axis=1)
        return [row.tobytes() for row in np.ascontiguousarray(cells)]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.numbers.shape[1] + self.codes.shape[1]


def distances(a: GowerRows, b: GowerRows) -> npt.NDArray[np.float64]:
    """Sum over the columns of the distance in each, in steps of ``1 / ONE``.

    Parameters
    ----------
    a, b : GowerRows
        Of the same columns.

    Returns
    -------
    ndarray of float64, shape (len(a), len(b))
        Whole numbers. A column adds 0 to ONE: the difference of two numbers in their bounds; ONE
        for two categories that differ; ONE / 2 to ONE for a number against a missing one.
    """
    # Without columns there is nothing to compare: cdist would refuse it.
    shape = len(a), len(b)
    total = cdist(a.numbers, b.numbers, "cityblock") if a.numbers.shape[1] else np.zeros(shape)
    total += ONE * _differing(a.codes, b.codes)
    seldom = [
        j for j in range(a.missing.shape[1]) if a.missing[:, j].any() or b.missing[:, j].any()
    ]
    if seldom:
        total += ONE // 2 * _differing(a.missing[:, seldom], b.missing[:, seldom])
    return np.asarray(total)


def _differing(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    """In how many columns two rows differ."""
    count = np.zeros((len(a), len(b)), dtype=np.uint32)
    for x, y in zip(a.T, b.T, strict=True):
        count += x[:, None] != np.ascontiguousarray(y)
    return count


def blocks(rows: GowerRows, others: int) -> Iterator[tuple[slice, GowerRows]]:
    """Rows in blocks that are small enough to be compared with so many others at once."""
    size = max(1, _BLOCK // max(1, others))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        yield part, rows[part]
