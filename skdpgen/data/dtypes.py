"""What a column's dtype can hold, decided from the dtype alone.

Narwhals has dtypes of its own, but it finds the dtype of a pandas ``object`` column by looking
at its cells, and whether a column holds one odd cell is private. So native dtypes are described
here instead. What a native dtype remembers of the rows is left out of the description: the
category list of a pandas ``category`` dtype and the length in numpy's ``<U12``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..exceptions import InputError

__all__ = ["ColumnDtype", "describe_dtype", "backend_of"]

Backend = Literal["numpy", "pandas", "polars"]

_NUMPY_UNITS = {"D", "h", "m", "s", "ms", "us", "ns"}
_REFUSED = {
    "c": "complex numbers (Complex data not supported)",
    "m": "time differences; convert them to numbers of a stated unit",
    "S": "bytes; decode them to text",
    "V": "records or raw bytes",
    "T": "numpy's variable-width strings; convert them to object",
}


@dataclass(frozen=True)
class ColumnDtype:
    """The public description of a column's dtype.

    Parameters
    ----------
    backend : {"pandas", "polars", "numpy"}
        Where the column comes from.
    family : {"bool", "int", "float", "text", "category", "datetime", "object"}
        The kind of values that it can hold.
    native : object
        The dtype itself, for building columns of it; None for a pandas ``category``, whose
        dtype holds a list that was read off the rows.
    nullable : bool
        Whether it can hold a missing value. numpy integers, booleans and texts cannot.
    limits : (int, int)
        Smallest and largest finite number, for the families ``int``, ``bool`` and ``float``.
    unit : str or None
        Resolution, for the family ``datetime``: "D" (a date), "h", "m", "s", "ms", "us", "ns".
    zone : tzinfo or None
        Time zone, for the family ``datetime``.
    ordered : bool
        The flag of a pandas ``category``.

    Examples
    --------
    >>> describe_dtype(np.dtype("uint8"), "pandas").limits
    (0, 255)
    >>> describe_dtype(pd.CategoricalDtype(["Anne's only value"]), "pandas").native is None
    True
    """

    backend: Backend
    family: Literal["bool", "int", "float", "text", "category", "datetime", "object"]
    native: Any
    nullable: bool
    limits: tuple[int, int] = (0, 0)
    unit: str | None = None
    zone: tzinfo | None = None
    ordered: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether columns of it are numpy arrays of numbers, so that blocks can be read at once."""
        numbers = self.family in ("int", "float", "bool")
        return numbers and self.backend != "polars" and isinstance(self.native, np.dtype)

    @property
    def label(self) -> str:
        """The dtype's name, without anything that was read off the rows.

        Examples
        --------
        >>> describe_dtype(np.dtype("<U12"), "numpy").label
        'str'
        """
        if self.native is None:
            return "category"
        return "str" if self.family == "text" and self.backend == "numpy" else str(self.native)

    @property
    def declared_levels(self) -> tuple[str, ...] | None:
        """The categories of a polars Enum, which are part of its dtype; None for all others."""
        if self.backend != "polars" or self.family != "category":
            return None
        import polars as pl

        return tuple(self.native.categories) if self.native == pl.Enum else None

    @property
    def is_arrow(self) -> bool:
        """Whether it is a pandas dtype backed by pyarrow (other than ``str`` and ``string``)."""
        return isinstance(self.native, pd.ArrowDtype)


def backend_of(column: Any) -> Backend:
    """The library that a series or array belongs to, without importing polars.

    Parameters
    ----------
    column : pandas or polars Series, pandas or numpy array
        Anything else counts as numpy.

    Examples
    --------
    >>> backend_of(pd.Series([1]))
    'pandas'
    """
    root = type(column).__module__.partition(".")[0]
    return "pandas" if root == "pandas" else "polars" if root == "polars" else "numpy"


def describe_dtype(native: Any, backend: Backend, column: Any = "column") -> ColumnDtype:
    """Describe a native dtype.

    Parameters
    ----------
    native : numpy, pandas or polars dtype
        The dtype of a column.
    backend : {"pandas", "polars", "numpy"}
        Where it comes from: a numpy dtype can be a pandas column's.
    column : hashable
        Name of the column, for the error message.

    Returns
    -------
    ColumnDtype
        Its description.

    Raises
    ------
    InputError
        If values of this dtype cannot be synthesized: complex, sparse, nested, decimal, time
        differences, bytes, periods, intervals.
    """
    if backend == "polars":
        found = _describe_polars(native)
    elif isinstance(native, np.dtype):
        found = _describe_numpy(native, backend)
    else:
        found = _describe_pandas(native)
    if isinstance(found, str):
        raise InputError(f"column {column!r} has a dtype that is not supported: {found}.")
    return found


def _float_limits(dtype: Any) -> tuple[int, int]:
    largest = int(np.finfo(dtype).max)
    return -largest, largest


def _zone(name: str | None) -> tzinfo | None:
    # pandas also understands fixed offsets ("+02:00"), which have no file in the tz database.
    return None if name is None else pd.DatetimeTZDtype("us", name).tz


def _describe_numpy(dtype: np.dtype, backend: Backend) -> ColumnDtype | str:
    kind = dtype.kind
    if kind in _REFUSED:
        return _REFUSED[kind]
    if kind == "b":
        return ColumnDtype(backend, "bool", dtype, False, limits=(0, 1))
    if kind in "iu":
        info = np.iinfo(dtype)
        return ColumnDtype(backend, "int", dtype, False, limits=(int(info.min), int(info.max)))
    if kind == "f":
        if dtype.itemsize > 8:
            return "floats of more than 64 bits; convert them to float64"
        return ColumnDtype(backend, "float", dtype, True, limits=_float_limits(dtype))
    if kind == "M":
        unit, step = np.datetime_data(dtype)
        if unit not in _NUMPY_UNITS or step != 1:
            return "datetimes of this unit; convert them to datetime64[us]"
        return ColumnDtype(backend, "datetime", dtype, True, unit=unit)
    if kind == "U":
        return ColumnDtype(backend, "text", np.dtype(np.str_), False)
    return ColumnDtype(backend, "object", dtype, True)


def _describe_pandas(dtype: Any) -> ColumnDtype | str:
    if isinstance(dtype, pd.CategoricalDtype):
        return ColumnDtype("pandas", "category", None, True, ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ColumnDtype("pandas", "datetime", dtype, True, unit=dtype.unit, zone=dtype.tz)
    if isinstance(dtype, pd.StringDtype):
        return ColumnDtype("pandas", "text", dtype, True)
    if isinstance(dtype, pd.ArrowDtype):
        return _describe_arrow(dtype)
    if isinstance(dtype, pd.SparseDtype):
        return "sparse data; convert it by .sparse.to_dense()"
    # What is left with a numpy dtype inside are the masked ones: Int64, Float32, boolean, ...
    inner = getattr(dtype, "numpy_dtype", None)
    if not isinstance(inner, np.dtype) or inner.kind not in "biuf":
        return f"{type(dtype).__name__}; convert it to numbers, texts or datetimes"
    plain = _describe_numpy(inner, "pandas")
    assert isinstance(plain, ColumnDtype)
    return ColumnDtype("pandas", plain.family, dtype, True, limits=plain.limits)


def _describe_arrow(dtype: pd.ArrowDtype) -> ColumnDtype | str:
    import pyarrow.types as kinds  # there is no ArrowDtype without pyarrow

    arrow = dtype.pyarrow_dtype
    if kinds.is_boolean(arrow):
        return ColumnDtype("pandas", "bool", dtype, True, limits=(0, 1))
    if kinds.is_integer(arrow):
        info = np.iinfo(str(arrow))
        return ColumnDtype("pandas", "int", dtype, True, limits=(int(info.min), int(info.max)))
    if kinds.is_floating(arrow):
        limits = _float_limits(arrow.to_pandas_dtype())
        return ColumnDtype("pandas", "float", dtype, True, limits=limits)
    if kinds.is_string(arrow) or kinds.is_large_string(arrow):
        return ColumnDtype("pandas", "text", dtype, True)
    if kinds.is_timestamp(arrow):
        zone = _zone(arrow.tz)
        return ColumnDtype("pandas", "datetime", dtype, True, unit=arrow.unit, zone=zone)
    if kinds.is_date32(arrow):
        return ColumnDtype("pandas", "datetime", dtype, True, unit="D")
    return f"{arrow}; convert it to numbers, texts or datetimes"


def _describe_polars(dtype: Any) -> ColumnDtype | str:
    import polars as pl

    if dtype == pl.Boolean:
        return ColumnDtype("polars", "bool", dtype, True, limits=(0, 1))
    if dtype.is_integer() and dtype not in (pl.Int128, getattr(pl, "UInt128", None)):
        info = np.iinfo(str(dtype).lower())
        return ColumnDtype("polars", "int", dtype, True, limits=(int(info.min), int(info.max)))
    if dtype in (pl.Float32, pl.Float64):
        return ColumnDtype("polars", "float", dtype, True, limits=_float_limits(str(dtype).lower()))
    if dtype == pl.String:
        return ColumnDtype("polars", "text", dtype, True)
    if dtype == pl.Categorical or dtype == pl.Enum:
        # An Enum's list is declared by the user. A Categorical's is not part of its dtype.
        return ColumnDtype("polars", "category", dtype, True)
    if dtype == pl.Datetime:
        zone = _zone(dtype.time_zone)
        return ColumnDtype("polars", "datetime", dtype, True, unit=dtype.time_unit, zone=zone)
    if dtype == pl.Date:
        return ColumnDtype("polars", "datetime", dtype, True, unit="D")
    return f"{dtype}; convert it to numbers, texts or datetimes"
