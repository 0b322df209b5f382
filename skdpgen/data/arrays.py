"""Reading native columns into numpy arrays, and building native columns from them.

A native column is a pandas or polars Series, a pandas extension array or a one-dimensional numpy
array. Reading never fails and never warns because of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .cells import number_of
from .dtypes import ColumnDtype

__all__ = [
    "build_categories",
    "build_numbers",
    "build_ticks",
    "build_values",
    "read_cells",
    "read_levels",
    "read_numbers",
    "read_ticks",
    "utf8_texts",
    "with_none",
]


def read_numbers(column: Any, dtype: ColumnDtype) -> tuple[np.ndarray, np.ndarray]:
    """Read a column of the family ``int``, ``float`` or ``bool``.

    Parameters
    ----------
    column : native column of n cells
        The cells.
    dtype : ColumnDtype
        Its dtype.

    Returns
    -------
    values : ndarray of shape (n,)
        Integers, floats or booleans; anything at nulls.
    nulls : ndarray of bool, shape (n,)
        Where a cell is null or NaN.
    """
    if dtype.backend == "polars":
        fill = {"bool": False, "float": float("nan")}.get(dtype.family, 0)
        values = column.fill_null(fill).to_numpy()
        nulls = column.is_null().to_numpy()
    elif dtype.is_plain:
        values = np.asarray(column)
        nulls = np.zeros(values.shape, dtype=bool)
    else:
        wide, fill = _wide_dtype(dtype)
        values = column.to_numpy(dtype=wide, na_value=fill)
        nulls = np.asarray(column.isna(), dtype=bool)
    # NaN and null are two things in some dtypes; both are a missing number.
    return values, np.isnan(values) if dtype.family == "float" else nulls


def _wide_dtype(dtype: ColumnDtype) -> tuple[type, Any]:
    if dtype.family == "float":
        return np.float64, np.nan
    if dtype.family == "bool":
        return np.bool_, False
    return (np.int64 if dtype.limits[0] < 0 else np.uint64), 0


def read_cells(column: Any, dtype: ColumnDtype) -> list[Any]:
    """Read a column of the family ``text`` or ``object``, or a polars category, as Python objects.

    Parameters
    ----------
    column : native column of n cells
        The cells.
    dtype : ColumnDtype
        Its dtype.

    Returns
    -------
    list of length n
        Texts come as ``str``; nulls as whatever the library uses.
    """
    if dtype.backend == "polars":
        return (column.cast(str) if dtype.family == "category" else column).to_list()
    try:
        cells: list[Any] = np.asarray(column, dtype=object).tolist()
        return cells
    except Exception:
        # Texts in Arrow's memory, such as those of a Parquet file, are bytes that nobody checked.
        return utf8_texts(getattr(column, "array", column).__arrow_array__())


def utf8_texts(array: Any) -> list[str | None]:
    r"""Read texts of pyarrow whose bytes needn't be UTF-8: what isn't becomes U+FFFD.

    Parameters
    ----------
    array : pyarrow.Array or ChunkedArray of n texts

    Returns
    -------
    list of length n

    Examples
    --------
    >>> import pyarrow
    >>> utf8_texts(pyarrow.array([b"Zurich", b"Z\xfcrich", None]).view(pyarrow.string()))
    ['Zurich', 'Z\ufffdrich', None]
    """
    import pyarrow as pa

    cells = array.cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]


def read_levels(column: Any) -> tuple[np.ndarray, list[Any]]:
    """Read a pandas ``category`` column.

    Parameters
    ----------
    column : Series or Categorical of n cells
        The cells.

    Returns
    -------
    positions : ndarray of int, shape (n,)
        Position of each cell in ``levels``, -1 where it is missing.
    levels : list
        The category list, which is private. Numbers are floats: pandas chose a dtype for the list
        by looking at all rows, and a single 0.5 or 1j among them would turn the integers of all
        others into floats or complex numbers. What the nearest float is depends on the row alone.
    """
    array = getattr(column, "array", column)
    levels = np.asarray(array.categories, dtype=object).tolist()
    return np.asarray(array.codes, dtype=np.int64), [_as_float(level) for level in levels]


def _as_float(level: Any) -> Any:
    """The nearest float of a number in a category list; anything else as it is."""
    kind = type(level)
    if issubclass(kind, str):
        return level
    if issubclass(kind, complex):
        real, imaginary = complex.real.__get__(level), complex.imag.__get__(level)
        number = real if imaginary == 0 else None
    else:
        number = number_of(level)
    try:
        return level if number is None else float(number)
    except OverflowError:
        return level  # larger than every value that can be declared


def read_ticks(column: Any, dtype: ColumnDtype) -> tuple[np.ndarray, np.ndarray]:
    """Read a column of the family ``datetime``.

    Parameters
    ----------
    column : native column of n cells
        The cells.
    dtype : ColumnDtype
        Its dtype.

    Returns
    -------
    ticks : ndarray of int64, shape (n,)
        Units of the dtype since 1970-01-01 (UTC if it has a zone); anything at nulls.
    nulls : ndarray of bool, shape (n,)
        Where a cell is null.
    """
    if dtype.backend == "polars":
        nulls = column.is_null().to_numpy()
        return column.to_physical().fill_null(0).to_numpy().astype(np.int64), nulls
    if dtype.is_arrow:
        import pyarrow as pa

        array = pa.array(getattr(column, "array", column))
        nulls = np.asarray(array.is_null())
        integers = array.cast(pa.int32() if dtype.unit == "D" else pa.int64())
        return np.asarray(integers.fill_null(0)).astype(np.int64), nulls
    if dtype.zone is None:
        times = np.asarray(column)
    else:
        times = column.to_numpy(dtype=f"datetime64[{dtype.unit}]")
    return times.astype(np.int64), np.isnat(times)


def build_numbers(dtype: ColumnDtype, values: np.ndarray, nulls: np.ndarray | None) -> Any:
    """Build a column of numbers.

    Parameters
    ----------
    dtype : ColumnDtype
        Of the families ``int``, ``float``, ``bool``, ``text`` or ``object``.
    values : ndarray of shape (n,)
        64-bit integers or floats that the dtype can hold.
    nulls : ndarray of bool, shape (n,), or None
        Where to put a null instead.

    Returns
    -------
    native column of n cells
        Of exactly this dtype. Texts are what ``str`` makes of the numbers.
    """
    if dtype.family in ("text", "object"):
        cells = values.tolist()
        if dtype.family == "text":
            cells = [str(v) for v in cells]
        return build_values(dtype, with_none(cells, nulls))
    if dtype.family == "bool":
        values = values.astype(bool)
    if dtype.backend == "polars":
        return _polars_nulls(_polars_series(values, dtype), nulls)
    if dtype.is_arrow:
        import pyarrow as pa

        array = pa.array(values, mask=nulls).cast(dtype.native.pyarrow_dtype)
        return pd.arrays.ArrowExtensionArray(array)
    if dtype.is_plain:
        result = values.astype(dtype.native)
        if nulls is not None:
            result[nulls] = np.nan
        return result
    masked = pd.array(values.astype(dtype.native.numpy_dtype), dtype=dtype.native)
    if nulls is not None:
        masked[nulls] = pd.NA
    return masked


def build_ticks(dtype: ColumnDtype, ticks: np.ndarray, nulls: np.ndarray | None) -> Any:
    """Build a column of the family ``datetime``.

    Parameters
    ----------
    dtype : ColumnDtype
        Its dtype.
    ticks : ndarray of int64, shape (n,)
        Units of the dtype since 1970-01-01 (UTC if it has a zone).
    nulls : ndarray of bool, shape (n,), or None
        Where to put a null instead.

    Returns
    -------
    native column of n cells
        Of exactly this dtype.
    """
    if dtype.backend == "polars":
        return _polars_nulls(_polars_series(ticks, dtype), nulls)
    if dtype.is_arrow:
        import pyarrow as pa

        array = pa.array(ticks.astype(np.int32) if dtype.unit == "D" else ticks, mask=nulls)
        return pd.arrays.ArrowExtensionArray(array.cast(dtype.native.pyarrow_dtype))
    times = ticks.astype(f"datetime64[{dtype.unit}]")
    if nulls is not None:
        times[nulls] = np.datetime64("NaT")
    if dtype.zone is None:
        return times
    return pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(dtype.zone).array


def build_values(dtype: ColumnDtype, cells: Sequence[Any]) -> Any:
    """Build a column of the family ``text`` or ``object``, or a polars category.

    Parameters
    ----------
    dtype : ColumnDtype
        Its dtype.
    cells : sequence of length n
        What it shall hold; None becomes the null of the dtype.

    Returns
    -------
    native column of n cells
        Of exactly this dtype.
    """
    if dtype.backend == "polars":
        return _polars_series(list(cells), dtype)
    if dtype.is_arrow:
        import pyarrow as pa

        return pd.arrays.ArrowExtensionArray(pa.array(cells, type=dtype.native.pyarrow_dtype))
    if dtype.family == "text":
        if dtype.backend == "numpy":
            return np.array(cells, dtype=np.str_)
        return pd.array(list(cells), dtype=dtype.native)
    result = np.empty(len(cells), dtype=object)
    result[:] = [np.nan if c is None else c for c in cells]
    return result


def build_categories(dtype: ColumnDtype, values: Sequence[Any], codes: np.ndarray) -> Any:
    """Build a column of declared values.

    Parameters
    ----------
    dtype : ColumnDtype
        Of any family but ``datetime``.
    values : sequence of length k
        The declared values, as the dtype writes them.
    codes : ndarray of int, shape (n,)
        Position of each cell in ``values``; k is a null.

    Returns
    -------
    native column of n cells
        Of exactly this dtype. A pandas category gets ``values`` as levels, in their order.
    """
    if dtype.native is None:
        positions = np.where(codes == len(values), -1, codes)
        return pd.Categorical.from_codes(
            positions, categories=pd.Index(list(values)), ordered=dtype.ordered
        )
    # One cell of each value and a null where the dtype has one, then copies of them.
    palette: Any
    if dtype.family in ("int", "float", "bool"):
        padded = [*values, values[0]] if dtype.nullable else list(values)
        array: np.ndarray = np.array(padded, dtype=_wide_dtype(dtype)[0])
        nulls = np.arange(len(padded)) == len(values)
        palette = build_numbers(dtype, array, nulls if dtype.nullable else None)
    else:
        palette = build_values(dtype, [*values, None] if dtype.nullable else values)
    return palette[codes] if dtype.backend == "polars" else palette.take(codes)


def with_none(cells: list[Any], nulls: np.ndarray | None) -> list[Any]:
    """The cells with None wherever ``nulls``, if given, says so."""
    if nulls is None:
        return cells
    return [None if null else c for c, null in zip(cells, nulls.tolist(), strict=True)]


def _polars_series(values: Any, dtype: ColumnDtype) -> Any:
    import polars as pl

    if isinstance(values, np.ndarray):
        return pl.Series(values).cast(dtype.native)
    return pl.Series(values, dtype=dtype.native)


def _polars_nulls(series: Any, nulls: np.ndarray | None) -> Any:
    return series if nulls is None else series.scatter(np.flatnonzero(nulls), None)
