"""What all column encoders have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..atoms import largest
from ..exceptions import InputError
from .columns import Column
from .dtypes import ColumnDtype, backend_of, describe_dtype

__all__ = ["MISSING", "ColumnEncoder", "check_family", "largest", "one_hot"]

MISSING = "<missing>"
"""How the category of missing values is called in the names of encoded features."""


def check_family(column: Column, dtype: ColumnDtype, name: Hashable) -> None:
    """Refuse a dtype that cannot hold a column of this kind.

    Parameters
    ----------
    column : Column
        The specification.
    dtype : ColumnDtype
        The dtype in the frame.
    name : hashable
        Name of the column, for the message.

    Raises
    ------
    InputError
        If the family of the dtype is not among the families of the kind.
    """
    if dtype.family not in column.families:
        raise InputError(
            f"column {name!r} is declared {column.kind} but has the dtype {dtype.label}; "
            f"expected one of: {', '.join(sorted(column.families))}."
        )


class ColumnEncoder(ABC):
    """Encoder of one column: a total function of a cell and of public facts.

    Parameters
    ----------
    column : Column
        What is publicly known.
    dtype : ColumnDtype
        The dtype that decoded columns have. A dtype that cannot hold nulls makes the column
        one that is never missing, whatever the schema says.
    name : hashable
        Name of the column, for messages.

    Attributes
    ----------
    numeric : tuple of int
        Positions within this column's features that hold one number in [0, 1]: () or (0,).
    groups : tuple of (int, int)
        Half-open ranges of positions that form a one-hot group: none or one.
    suffixes : tuple of str
        What tells the features apart, appended to the column's name.
    nullable : bool
        Whether missing values are kept as such.
    """

    numeric: tuple[int, ...] = ()
    groups: tuple[tuple[int, int], ...] = ()
    suffixes: tuple[str, ...] = ()

    def __init__(self, column: Column, dtype: ColumnDtype, name: Hashable) -> None:
        check_family(column, dtype, name)
        self.column = column
        self.dtype = dtype
        self.name = name
        self.nullable = bool(getattr(column, "missing", False)) and dtype.nullable

    @property
    def width(self) -> int:
        """Number of encoded features."""
        return len(self.suffixes)

    def encode(self, column: Any) -> np.ndarray:
        """Encode cells.

        Parameters
        ----------
        column : native column of n cells
            Of any dtype that can hold this kind of column, not only of the encoder's.

        Returns
        -------
        ndarray of float64, shape (n, width)
            In [0, 1]. A row depends on its own cell only.

        Raises
        ------
        InputError
            If the dtype cannot hold this kind of column.
        """
        dtype = self._checked_dtype(column)
        with np.errstate(all="ignore"):  # warnings of numpy depend on values
            return self._encode(column, dtype)

    def _checked_dtype(self, column: Any) -> ColumnDtype:
        dtype = describe_dtype(column.dtype, backend_of(column), self.name)
        check_family(self.column, dtype, self.name)
        return dtype

    @abstractmethod
    def _encode(self, column: Any, dtype: ColumnDtype) -> np.ndarray:
        """Encode cells of a checked dtype."""

    @abstractmethod
    def decode(self, features: np.ndarray) -> Any:
        """Decode features.

        Parameters
        ----------
        features : ndarray of shape (n, width)
            Any real numbers; NaN and infinities are allowed.

        Returns
        -------
        native column of n cells
            Of the encoder's dtype, inside the schema.
        """


def one_hot(codes: np.ndarray, width: int) -> np.ndarray:
    """Rows with a single one.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Where the ones are, in 0 .. width - 1.
    width : int
        Number of columns.

    Returns
    -------
    ndarray of float64, shape (n, width)

    Examples
    --------
    >>> one_hot(np.array([1, 0]), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    result = np.zeros((len(codes), width))
    result[np.arange(len(codes)), codes] = 1.0
    return result
