"""Columns as finite lists of atoms: a category, a value or a bin of a number, "missing".

An encoded row becomes one integer code a column, and codes become encoded rows again. Everything
here is public and made from the schema alone, so a row's codes depend on that row only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["AtomColumn", "AtomLayout", "largest"]


@dataclass(frozen=True)
class AtomColumn:
    """One column as a list of atoms, in the terms of an encoded row.

    Parameters
    ----------
    position : int or None
        Where its number stands in an encoded row; None for a category.
    group : (int, int) or None
        Half-open range of its one-hot group: the categories, or (present, missing) beside a
        number.
    lower, upper : tuple of float
        Numbers only: ends of the atoms, disjoint intervals of [0, 1] in ascending order. Equal
        ends make an atom of one value.
    steps : tuple of int
        Numbers only: how many evenly spaced values an atom has, its ends included; 0 for all
        values in between.

    Raises
    ------
    ValueError
        If the atoms aren't intervals of [0, 1] in order, or there are none.

    Examples
    --------
    >>> AtomColumn(0, None, lower=(0.0, 0.5), upper=(0.25, 1.0), steps=(2, 0)).n_codes
    2
    """

    position: int | None
    group: tuple[int, int] | None
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if (self.position is None) != (not self.lower) or (
            self.position is None and self.group is None
        ):
            raise ValueError("a column has a number with atoms, or a one-hot group.")
        if not len(self.lower) == len(self.upper) == len(self.steps):
            raise ValueError("there must be one lower end, upper end and number of steps an atom.")
        ends = [end for pair in zip(self.lower, self.upper, strict=True) for end in pair]
        inside = not ends or (ends[0] >= 0 and ends[-1] <= 1)
        if not inside or ends != sorted(ends) or len(set(self.lower)) < len(self.lower):
            raise ValueError("atoms must be disjoint intervals of [0, 1] in ascending order.")

    @property
    def n_ordered(self) -> int:
        """Number of leading codes that are in order: the atoms of a number."""
        return len(self.lower)

    @property
    def n_codes(self) -> int:
        """Number of codes: atoms of the number and "missing", or categories."""
        if self.position is None:
            assert self.group is not None
            return self.group[1] - self.group[0]
        return len(self.lower) + (self.group is not None)

    @cached_property
    def _cuts(self) -> npt.NDArray[np.float64]:
        """From where on a number belongs to the next atom: halfway, if anything lies between."""
        below, above = np.array(self.upper[:-1]), np.array(self.lower[1:])
        middle = below + (above - below) / 2
        cuts: npt.NDArray[np.float64] = np.where(middle > below, middle, above)
        return cuts

    @property
    def centers(self) -> npt.NDArray[np.float64]:
        """Middle of each atom of a number, in [0, 1]; empty for a category."""
        return (np.array(self.lower) + np.array(self.upper)) / 2

    def encode(self, rows: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
        """Code of each encoded row, shape (n,)."""
        if self.position is None:
            assert self.group is not None
            return largest(rows[:, self.group[0] : self.group[1]])
        number = rows[:, self.position]
        number = np.where(np.isnan(number), 0.5, number)
        codes = np.searchsorted(self._cuts, number, side="right").astype(np.int64)
        if self.group is not None:
            missing = largest(rows[:, self.group[0] : self.group[1]]) == 1
            codes[missing] = len(self.lower)
        return codes

    def decode(
        self,
        codes: npt.NDArray[np.int64],
        uniforms: npt.NDArray[np.float64],
        rows: npt.NDArray[np.float64],
    ) -> None:
        """Write this column of encoded rows, which are zero before."""
        if self.position is None:
            assert self.group is not None
            rows[np.arange(len(codes)), self.group[0] + codes] = 1.0
            return
        lower, upper, steps = (np.array(a) for a in (self.lower, self.upper, self.steps))
        atom = np.minimum(codes, len(lower) - 1)
        m = steps[atom]
        # A whole number of equally likely values, or any value in between.
        share = np.where(m > 0, np.floor(uniforms * m) / np.maximum(m - 1, 1), uniforms)
        value = lower[atom] + share * (upper[atom] - lower[atom])
        rows[:, self.position] = np.clip(value, lower[atom], upper[atom])
        if self.group is not None:
            missing = codes >= len(lower)
            rows[missing, self.position] = 0.5
            rows[:, self.group[0]] = ~missing
            rows[:, self.group[0] + 1] = missing


@dataclass(frozen=True)
class AtomLayout:
    """The codes of a table: which columns have how many, and how encoded rows become codes.

    Parameters
    ----------
    columns : tuple of AtomColumn
        The columns with two codes or more.
    width : int
        Width of an encoded row.

    Examples
    --------
    >>> import numpy as np
    >>> number = AtomColumn(0, None, lower=(0.0, 0.5), upper=(0.5 - 2**-54, 1.0), steps=(0, 0))
    >>> layout = AtomLayout((number, AtomColumn(None, (1, 4))), width=4)
    >>> layout.n_codes
    (2, 3)
    >>> layout.encode(np.array([[0.75, 0.0, 0.0, 1.0]]))
    array([[1, 2]])
    >>> layout.decode(np.array([[1, 2]]), np.array([[0.5, 0.0]]))
    array([[0.75, 0.  , 0.  , 1.  ]])
    """

    columns: tuple[AtomColumn, ...]
    width: int

    @property
    def n_codes(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        return tuple(column.n_codes for column in self.columns)

    @property
    def n_ordered(self) -> tuple[int, ...]:
        """Number of leading codes of each column that are in order; 0 for categories."""
        return tuple(column.n_ordered for column in self.columns)

    def encode(self, rows: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
        """Codes of encoded rows: an exact function of each row alone.

        Parameters
        ----------
        rows : ndarray of float, shape (n, width)
            Total on all floats: numbers outside the atoms get the nearest code below, NaN that of
            0.5; groups are read by their largest entry.

        Returns
        -------
        ndarray of int64, shape (n, n_columns)
        """
        codes = np.empty((len(rows), len(self.columns)), dtype=np.int64)
        for j, column in enumerate(self.columns):
            codes[:, j] = column.encode(rows)
        return codes

    def decode(
        self, codes: npt.NDArray[np.int64], uniforms: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Encoded rows from codes.

        Parameters
        ----------
        codes : ndarray of int64, shape (n, n_columns)
            In range.
        uniforms : ndarray of float, shape (n, n_columns)
            In [0, 1): where in its atom a number lies.

        Returns
        -------
        ndarray of float64, shape (n, width)
            With these very codes.
        """
        rows = np.zeros((len(codes), self.width))
        for j, column in enumerate(self.columns):
            column.decode(codes[:, j], uniforms[:, j], rows)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "width": self.width,
            "columns": [
                {
                    "position": c.position,
                    "group": None if c.group is None else list(c.group),
                    "lower": list(c.lower),
                    "upper": list(c.upper),
                    "steps": list(c.steps),
                }
                for c in self.columns
            ],
        }

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> AtomLayout:
        """The inverse of :meth:`to_dict`."""
        columns = (
            AtomColumn(
                position=None if c["position"] is None else int(c["position"]),
                group=None if c["group"] is None else (int(c["group"][0]), int(c["group"][1])),
                lower=tuple(map(float, c["lower"])),
                upper=tuple(map(float, c["upper"])),
                steps=tuple(map(int, c["steps"])),
            )
            for c in d["columns"]
        )
        return cls(tuple(columns), int(d["width"]))


def largest(features: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Position of the largest entry of each row; NaN is never the largest.

    Parameters
    ----------
    features : ndarray of shape (n, width)
        Any real numbers.

    Returns
    -------
    ndarray of int64, shape (n,)
        The first one where several are equal.

    Examples
    --------
    >>> largest(np.array([[0.2, 0.7], [np.nan, -3.0], [np.nan, np.nan]]))
    array([1, 1, 0])
    """
    found: npt.NDArray[np.int64] = np.argmax(features, axis=1).astype(np.int64)
    # numpy takes the first NaN for the largest, so only these rows have to be looked at again:
    # many times faster than to replace NaN everywhere first.
    odd = np.flatnonzero(np.isnan(features[np.arange(len(features)), found]))
    if len(odd):
        rows = features[odd]
        found[odd] = np.argmax(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    return found
