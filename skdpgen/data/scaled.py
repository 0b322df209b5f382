"""Encoding of numbers, ranks and other one-dimensional columns as one number in [0, 1]."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..exceptions import InputError, SchemaError
from .arrays import build_numbers, read_cells, read_numbers
from .categories import CategoryEncoder
from .cells import number_of
from .columns import Categorical, Column
from .dtypes import ColumnDtype
from .encoder_base import MISSING, ColumnEncoder, largest, one_hot
from .numeric_columns import Numeric, check_whole
from .scaling import (
    offsets_of_floats,
    offsets_of_integers,
    offsets_of_numbers,
    offsets_to_unit,
    reals_to_unit,
    unit_to_offsets,
    unit_to_reals,
)

__all__ = ["NumberEncoder", "RankEncoder", "RealEncoder", "ScaledEncoder", "WholeEncoder"]


class ScaledEncoder(ColumnEncoder):
    """Base of the encoders that give one number in [0, 1].

    A nullable column has a one-hot group (present, missing) beside it; where a cell is missing,
    its number is that of the middle of the bounds. A column whose bounds are equal has no
    number.

    Parameters
    ----------
    column : Column
        What is publicly known.
    dtype : ColumnDtype
        The dtype that decoded columns have.
    name : hashable
        Name of the column, for messages.
    """

    is_constant: bool
    """Whether only one value is possible."""
    middle: float
    """Encoding of the middle of the bounds."""
    span: int = 0
    """Number of steps from the smallest value to the largest; 0 where values are continuous."""
    allowed: tuple[Any, Any]
    """Least and most that the dtype can hold: in steps, or as values where they are continuous."""

    def __init__(self, column: Column, dtype: ColumnDtype, name: Hashable) -> None:
        super().__init__(column, dtype, name)
        self._set_range()
        start = 0 if self.is_constant else 1
        self.numeric = () if self.is_constant else (0,)
        self.suffixes = ("",) * start
        if self.nullable:
            self.groups = ((start, start + 2),)
            self.suffixes += ("_<present>", f"_{MISSING}")

    @abstractmethod
    def _set_range(self) -> None:
        """Set ``is_constant``, ``middle`` and what reading and writing needs."""

    @abstractmethod
    def _read(self, column: Any, dtype: ColumnDtype) -> tuple[np.ndarray, np.ndarray]:
        """Numbers in [0, 1] (anything where missing) and where cells are missing, both (n,)."""

    @abstractmethod
    def _write(self, z: np.ndarray, nulls: np.ndarray | None) -> Any:
        """Native column of numbers in [0, 1], with nulls where asked for."""

    def _encode(self, column: Any, dtype: ColumnDtype) -> np.ndarray:
        z, nulls = self._read(column, dtype)
        parts = []
        if not self.is_constant:
            parts.append(np.where(nulls, self.middle, z)[:, np.newaxis])
        if self.nullable:
            parts.append(one_hot(nulls.astype(np.int64), 2))
        return np.hstack(parts) if parts else np.empty((len(column), 0))

    def decode(self, features: np.ndarray) -> Any:  # noqa: D102
        z = np.zeros(len(features)) if self.is_constant else self.sanitized(features[:, 0])
        nulls = largest(features[:, -2:]) == 1 if self.nullable else None
        with np.errstate(all="ignore"):
            return self._write(z, nulls)

    def sanitized(self, z: np.ndarray) -> np.ndarray:
        """Numbers in [0, 1] from any: clipped, and the middle for NaN."""
        return np.clip(np.where(np.isnan(z), self.middle, z), 0.0, 1.0)


class NumberEncoder(ScaledEncoder):
    """Base of the encoders of :class:`~skdpgen.data.numeric_columns.Numeric` columns.

    They work on arrays of any shape, so that a block of equal columns is encoded at once.
    """

    column: Numeric

    @property
    def _token_numbers(self) -> list[int | float]:
        tokens = self.column.missing if isinstance(self.column.missing, tuple) else ()
        return [n for n in map(number_of, tokens) if n is not None]

    @abstractmethod
    def _to_unit(self, values: np.ndarray) -> np.ndarray:
        """Scale an array of integers or floats."""

    @abstractmethod
    def _to_values(self, z: np.ndarray) -> np.ndarray:
        """Unscale to 64-bit integers or floats that the dtype can hold."""

    @abstractmethod
    def _cells_to_unit(self, numbers: list[int | float | None]) -> np.ndarray:
        """Scale Python numbers of any size; anything for None."""

    def _read(self, column: Any, dtype: ColumnDtype) -> tuple[np.ndarray, np.ndarray]:
        tokens = self._token_numbers
        if dtype.family in ("text", "object"):
            known = set(tokens)
            numbers = [number_of(c) for c in read_cells(column, dtype)]
            numbers = [None if n in known else n for n in numbers]
            nulls = np.fromiter((n is None for n in numbers), dtype=bool, count=len(numbers))
            return self._cells_to_unit(numbers), nulls
        values, nulls = read_numbers(column, dtype)
        for token in tokens:
            nulls = nulls | (values == token)
        return self._to_unit(values), nulls

    def _write(self, z: np.ndarray, nulls: np.ndarray | None) -> Any:
        return build_numbers(self.dtype, self._to_values(z), nulls)

    def encode_block(self, values: np.ndarray) -> np.ndarray:
        """Encode several columns of this specification at once, where nothing can be missing.

        Parameters
        ----------
        values : ndarray of shape (n, k)
            Integers, floats or booleans.

        Returns
        -------
        ndarray of float64, shape (n, k)
            Column by column the same as :meth:`encode`.
        """
        with np.errstate(all="ignore"):
            z = self._to_unit(values)
            nulls = np.isnan(values) if values.dtype.kind == "f" else None
            for token in self._token_numbers:
                nulls = (values == token) if nulls is None else nulls | (values == token)
        return z if nulls is None else np.where(nulls, self.middle, z)

    def decode_block(self, features: np.ndarray) -> np.ndarray:
        """Decode several columns of this specification at once, where nothing can be missing.

        Parameters
        ----------
        features : ndarray of shape (n, k)
            Any real numbers.

        Returns
        -------
        ndarray of shape (n, k)
            Of the numpy dtype of the columns.
        """
        with np.errstate(all="ignore"):
            return build_numbers(self.dtype, self._to_values(self.sanitized(features)), None)


class WholeEncoder(NumberEncoder):
    """Encoder of whole numbers: rounded half to even, clipped, exact for all 64-bit integers.

    Raises
    ------
    InputError
        If the dtype can hold no whole number within the bounds.
    SchemaError
        If bounds declared for floats are too wide for a column of integers.
    """

    def _set_range(self) -> None:
        assert self.column.bounds is not None
        lower, upper = self.column.bounds
        self.lower, self.upper = math.ceil(lower), math.floor(upper)
        self.span = self.upper - self.lower
        if self.column.dtype == "float":
            try:
                check_whole(self.lower, self.upper, self.column.scale)
            except SchemaError as error:
                raise SchemaError(f"column {self.name!r}: {error}") from None
        # What comes out must fit the dtype too, and a schema may be wider than uint8.
        least, most = 0, self.span
        if self.dtype.family in ("int", "float", "bool"):
            least = max(0, self.dtype.limits[0] - self.lower)
            most = min(self.span, self.dtype.limits[1] - self.lower)
        if least > most:
            raise InputError(
                f"column {self.name!r}: no whole number within the declared bounds fits the "
                f"dtype {self.dtype.label}."
            )
        self.allowed = (least, most)
        self._log = self.column.scale == "log1p"
        self.is_constant = self.span == 0
        self.middle = float(self._scale(np.array([self.span // 2]))[0])

    def _scale(self, offsets: np.ndarray) -> np.ndarray:
        if self.is_constant:
            return np.zeros(offsets.shape)
        return offsets_to_unit(offsets, self.span, self._log)

    def _to_unit(self, values: np.ndarray) -> np.ndarray:
        read = offsets_of_floats if values.dtype.kind == "f" else offsets_of_integers
        return self._scale(read(values, self.lower, self.upper))

    def _cells_to_unit(self, numbers: list[int | float | None]) -> np.ndarray:
        return self._scale(offsets_of_numbers(numbers, self.lower, self.upper, fill=0))

    def _to_values(self, z: np.ndarray) -> np.ndarray:
        if self.is_constant:
            offsets = np.zeros(z.shape, dtype=np.uint64)
        else:
            offsets = np.clip(unit_to_offsets(z, self.span, self._log), *self.allowed)
        values = offsets + np.uint64(self.lower % 2**64)  # modulo 2**64
        signed = self.lower < 0 or self.upper < 2**63
        return values.view(np.int64) if signed else values


class RealEncoder(NumberEncoder):
    """Encoder of real numbers; see :func:`~skdpgen.data.scaling.unit_to_reals` for exactness."""

    def _set_range(self) -> None:
        assert self.column.bounds is not None
        self.lower, self.upper = map(float, self.column.bounds)
        self._log = self.column.scale == "log1p"
        self.is_constant = self.lower == self.upper
        middle = np.array([self.lower + (self.upper - self.lower) / 2])
        self.middle = 0.0 if self.is_constant else float(self._to_unit(middle)[0])
        limits = self.dtype.limits if self.dtype.family == "float" else (-math.inf, math.inf)
        self.allowed = (max(self.lower, limits[0]), min(self.upper, limits[1]))
        if self.allowed[0] > self.allowed[1]:
            raise InputError(
                f"column {self.name!r}: the bounds are beyond the dtype {self.dtype.label}."
            )
        self._within = self._ends()

    def _ends(self) -> tuple[float, float]:
        """Least and most that comes out: with decimals not 0.124, but 0.13."""
        least, most = self.allowed
        if self.column.decimals is None:
            return least, most
        step = 10.0**-self.column.decimals
        low, high = self._rounded(np.array([least, most], dtype=np.float64)).tolist()
        inside = [low + step if low < least else low, high - step if high > most else high]
        low, high = self._rounded(np.array(inside)).tolist()
        # Between close bounds there may be no such number.
        return (least, most) if low > high else (max(low, least), min(high, most))

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        if self.column.decimals is None:
            return values
        with np.errstate(over="ignore"):
            rounded = np.round(values, self.column.decimals)
        # So large that numpy's product with a power of ten is infinite: there are no decimals.
        # And zero has no sign.
        return np.where(np.isfinite(rounded), rounded, values) + 0.0

    def _to_unit(self, values: np.ndarray) -> np.ndarray:
        if self.is_constant:
            return np.zeros(values.shape)
        return reals_to_unit(values, self.lower, self.upper, self._log)

    def _cells_to_unit(self, numbers: list[int | float | None]) -> np.ndarray:
        def real(number: int | float | None) -> float:
            if number is None:
                return math.nan
            try:
                return float(number)
            except OverflowError:
                return math.inf if number > 0 else -math.inf

        return self._to_unit(np.array([real(n) for n in numbers], dtype=np.float64))

    def _to_values(self, z: np.ndarray) -> np.ndarray:
        if self.is_constant:
            return np.full(z.shape, self.lower)
        values = unit_to_reals(z, self.lower, self.upper, self._log)
        return np.clip(self._rounded(values), *self._within)


class RankEncoder(ScaledEncoder):
    """Encoder of an ordinal column by rank, evenly spaced in [0, 1]."""

    column: Categorical

    def _set_range(self) -> None:
        self._categories = CategoryEncoder(self.column, self.dtype, self.name)
        self.span = len(self._categories.values) - 1
        self.allowed = (0, self.span)
        self.is_constant = self.span == 0
        self.middle = 0.0 if self.is_constant else (self.span // 2) / self.span

    def _read(self, column: Any, dtype: ColumnDtype) -> tuple[np.ndarray, np.ndarray]:
        codes = self._categories.codes(column)
        return codes / max(self.span, 1), codes > self.span

    def _write(self, z: np.ndarray, nulls: np.ndarray | None) -> Any:
        codes = np.rint(z * self.span).astype(np.int64)
        if nulls is not None:
            codes = np.where(nulls, self.span + 1, codes)
        return self._categories.decode_codes(codes)
