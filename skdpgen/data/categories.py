"""One-hot encoding of columns with a declared list of values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from ..exceptions import InputError
from .arrays import build_categories, read_cells, read_levels, read_numbers
from .cells import canonical_number, number_of
from .columns import Boolean, Categorical
from .dtypes import ColumnDtype
from .encoder_base import MISSING, ColumnEncoder, largest, one_hot

__all__ = ["CategoryEncoder", "is_null"]


class CategoryEncoder(ColumnEncoder):
    """Encoder of a categorical, ordinal or boolean column: one feature for each value.

    A missing value is the last category. Cells of a numeric dtype are compared with the declared
    values as numbers (1, 1.0 and True are equal), numbers in a pandas ``category`` as floats; texts
    are compared exactly, with ``str`` of the declared value (``"0311"`` is not ``"311"``). An
    unknown value becomes ``other`` where it is declared, else missing where that is, else the first
    value.

    Parameters
    ----------
    column : Categorical, Ordinal or Boolean
        Its values must be declared.
    dtype : ColumnDtype
        Of any family but ``datetime``.
    name : hashable
        Name of the column, for messages.

    Raises
    ------
    InputError
        If the dtype cannot hold one of the values, or not tell two of them apart.
    """

    column: Categorical | Boolean

    def __init__(self, column: Categorical | Boolean, dtype: ColumnDtype, name: Hashable) -> None:
        super().__init__(column, dtype, name)
        self.values = _native_values(column, dtype, name)
        self.n_codes = len(self.values) + self.nullable
        if self.n_codes > 1:
            self.groups = ((0, self.n_codes),)
            shown = [str(v) for v in column.categories] + [MISSING] * self.nullable
            self.suffixes = tuple(f"_{v}" for v in shown)

    def codes(self, column: Any) -> np.ndarray:
        """Positions of the cells in the list of categories.

        Parameters
        ----------
        column : native column of n cells
            Of any dtype that can hold this kind of column.

        Returns
        -------
        ndarray of int64, shape (n,)
            In 0 .. n_codes - 1; the last code is that of missing values where there are any.
        """
        dtype = self._checked_dtype(column)
        dtype = self._checked_dtype(column)
        with np.errstate(all="ignore"):
            return self._codes(column, dtype)

    def _codes(self, column: Any, dtype: ColumnDtype) -> np.ndarray:
        if dtype.family in ("int", "float", "bool"):
            return self._codes_of_numbers(*read_numbers(column, dtype))
        if dtype.native is None:
            positions, levels = read_levels(column)
            # A level is looked up once for all its cells; the last one stands for missing.
            table = self._codes_of_cells([*levels, None])
            return table[positions]
        return self._codes_of_cells(read_cells(column, dtype))

    @property
    def _null_code(self) -> int:
        return self.n_codes - 1 if self.nullable else self._unknown_code

    @property
    def _unknown_code(self) -> int:
        if self.column.other is not None:
            return self.column.categories.index(self.column.other)
        return self.n_codes - 1 if self.nullable else 0

    @property
    def _tokens(self) -> tuple[Any, ...]:
        return self.column.missing if isinstance(self.column.missing, tuple) else ()

    def _codes_by_number(self) -> dict[int | float, int]:
        """Codes of all values and tokens that are numbers, or texts that are one's notation."""
        found: dict[int | float, int] = {}
        pairs = [(t, self._null_code) for t in self._tokens]
        for value, code in [*pairs, *((v, i) for i, v in enumerate(self.column.categories))]:
            number = canonical_number(value) if isinstance(value, str) else value
            if number is not None:
                found[number] = code
        return found

    def _codes_of_numbers(self, values: np.ndarray, nulls: np.ndarray) -> np.ndarray:
        known = self._codes_by_number()
        if values.dtype.kind == "b":
            values = values.astype(np.uint8)
        if values.dtype.kind in "iu":
            info = np.iinfo(values.dtype)
            known = {k: c for k, c in known.items() if k == int(k) and info.min <= k <= info.max}
        codes = np.full(values.shape, self._unknown_code, dtype=np.int64)
        if known:
            keys = np.array(list(known), dtype=values.dtype)
            order = np.argsort(keys)
            keys, targets = keys[order], np.array(list(known.values()))[order]
            at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
            codes = np.where(keys[at] == values, targets[at], codes)
        return np.where(nulls, self._null_code, codes)

    def _codes_of_cells(self, cells: list[Any]) -> np.ndarray:
        texts: dict[str, int] = {str(t): self._null_code for t in self._tokens}
        texts.update({str(v): i for i, v in enumerate(self.column.categories)})
        numbers = self._codes_by_number()
        unknown, null = self._unknown_code, self._null_code

        def code(cell: Any) -> int:
            if type(cell) is str:
                return texts.get(cell, unknown)
            if issubclass(type(cell), str):
                return texts.get(str.__str__(cell), unknown)
            number = number_of(cell)
            if number is not None:
                return numbers.get(number, unknown)
            return null if is_null(cell) else unknown

        return np.fromiter(map(code, cells), dtype=np.int64, count=len(cells))

    def decode_codes(self, codes: np.ndarray) -> Any:
        """The inverse of :meth:`codes`.

        Parameters
        ----------
        codes : ndarray of int, shape (n,)
            Clipped to 0 .. n_codes - 1.

        Returns
        -------
        native column of n cells
            Of the encoder's dtype.
        """
        clipped = np.clip(np.asarray(codes, dtype=np.int64), 0, self.n_codes - 1)
        return build_categories(self.dtype, self.values, clipped)

    def _encode(self, column: Any, dtype: ColumnDtype) -> np.ndarray:
        if self.n_codes == 1:
            return np.empty((len(column), 0))
        return one_hot(self._codes(column, dtype), self.n_codes)

    def decode(self, features: np.ndarray) -> Any:  # noqa: D102
        if self.n_codes == 1:
            return self.decode_codes(np.zeros(len(features), dtype=np.int64))
        return self.decode_codes(largest(features))


def is_null(cell: Any) -> bool:
    """Whether a cell that holds no number is a null of some library, or NaN."""
    # Other nulls are single objects, but NaN and numpy's NaT come in many copies.
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return True
    kind = type(cell)
    if kind is np.datetime64 or kind is np.timedelta64:
        return bool(np.isnat(cell))
    return issubclass(kind, float | np.floating)  # a float that number_of could not read is NaN


def _native_values(
    column: Categorical | Boolean, dtype: ColumnDtype, name: Hashable
) -> tuple[Any, ...]:
    """The declared values as the dtype writes them, or an error that names the first misfit."""
    result = []
    for value in column.categories:
        native = _native_value(value, dtype)
        if native is None:
            raise InputError(
                f"column {name!r}: the declared value {value!r} does not fit the dtype "
                f"{dtype.label}; declare values of that dtype, or convert the column."
            )
        result.append(native)
    if len(set(result)) < len(result):
        raise InputError(f"column {name!r}: two declared values are equal in {dtype.label}.")
    return tuple(result)


def _native_value(value: Any, dtype: ColumnDtype) -> Any:
    if dtype.family == "object":
        return value
    if dtype.native is None:
        # Its cells are compared as floats (read_levels).
        return value if isinstance(value, str) or _is_float(value) else None
    if dtype.family in ("text", "category"):
        text = str(value)
        levels = dtype.declared_levels
        return text if levels is None or text in levels else None
    number = canonical_number(value) if isinstance(value, str) else value
    if number is None or not dtype.limits[0] <= number <= dtype.limits[1]:
        return None
    if dtype.family == "float":
        return float(number)
    return int(number) if number == int(number) else None


def _is_float(value: float) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False
