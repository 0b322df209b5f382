"""Frames of pandas, polars and numpy: their public structure, their columns, their rows.

A template is what may be remembered of a private frame: names, dtypes and backend. Rows, the
index and the category lists of pandas are not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ..exceptions import InputError
from .dtypes import Backend, ColumnDtype, backend_of, describe_dtype

__all__ = [
    "FrameTemplate",
    "MappedTable",
    "SeriesTemplate",
    "as_series",
    "as_table",
    "column_at",
    "iter_chunks",
    "n_rows",
]


@dataclass(frozen=True)
class MappedTable:
    """A table under a row-wise function that is applied when its rows are asked for.

    Parameters
    ----------
    source : DataFrame or ndarray of shape (n, k)
        The rows.
    function : callable
        Makes n rows of n rows.
    structure : DataFrame or ndarray of shape (0, m)
        What the function makes of no rows: the names and dtypes.
    """

    source: Any
    function: Callable[[Any], Any]
    structure: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the source, columns of the structure."""
        return n_rows(self.source), self.structure.shape[1]


def as_table(table: Any) -> Any:
    """Return a table as a pandas frame, a polars frame or a two-dimensional numpy array.

    Parameters
    ----------
    table : DataFrame, ndarray, or sequence of rows
        Frames and arrays are not copied. A sequence of rows becomes an array of objects:
        numpy would choose its dtype by looking at the cells, and dtypes are public.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or ndarray of shape (n, k)
        The same cells. A :class:`MappedTable` stays one: its rows aren't read yet.

    Raises
    ------
    InputError
        If it is sparse, lazy, not two-dimensional, or of a library that is not known here.

    Examples
    --------
    >>> as_table([[1, "a"], [2, "b"]]).dtype
    dtype('O')
    """
    if isinstance(table, MappedTable):
        return table
    table = nw.to_native(table, pass_through=True)
    if nw.dependencies.is_pandas_dataframe(table) or nw.dependencies.is_polars_dataframe(table):
        return table
    if nw.dependencies.is_polars_lazyframe(table):
        raise InputError("a lazy frame has no rows yet; call .collect() first.")
    if hasattr(table, "toarray") and hasattr(table, "nnz"):
        raise InputError("sparse input is not supported; convert it by .toarray().")
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        return _rows_to_array(table)
    if not hasattr(table, "__array__") or hasattr(table, "__dataframe__"):
        raise InputError(
            f"{type(table).__name__} is not supported; pass a pandas or polars DataFrame or a "
            "numpy array."
        )
    array = np.asarray(table)
    if array.ndim != 2:
        raise InputError(
            f"expected a 2D array, got an array of {array.ndim} dimension(s). Reshape your data "
            "by array.reshape(-1, 1) if it is one column."
        )
    return array


def _rows_to_array(rows: Sequence[Any]) -> np.ndarray:
    if any(not isinstance(row, Sequence | np.ndarray) or isinstance(row, str) for row in rows):
        raise InputError("expected a 2D table, got a flat sequence. Reshape your data.")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise InputError("all rows must have the same number of cells.")
    width = widths.pop() if widths else 0
    return _object_array([cell for row in rows for cell in row]).reshape(len(rows), width)


def _object_array(cells: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):  # in one go, numpy would unpack cells that are lists
        array[i] = cell
    return array


def as_series(column: Any) -> Any:
    """Return a column as a pandas Series, a polars Series or a one-dimensional numpy array.

    Parameters
    ----------
    column : Series, array of shape (n,) or (n, 1), or sequence
        A sequence becomes an array of objects, as in :func:`as_table`. An extension array of
        pandas becomes a Series and keeps its dtype: numpy would choose one by looking at the
        cells, and one null makes floats of integers.

    Returns
    -------
    pandas.Series, polars.Series or ndarray of shape (n,)
        The same cells.

    Raises
    ------
    InputError
        If it has more than one column, or is an array of pyarrow.

    Examples
    --------
    >>> as_series(["yes", "no"])
    array(['yes', 'no'], dtype=object)
    """
    column = nw.to_native(column, pass_through=True)
    if nw.dependencies.is_pandas_series(column) or nw.dependencies.is_polars_series(column):
        return column
    origin = type(column).__module__.partition(".")[0]
    if origin == "pyarrow":
        raise InputError("arrays of pyarrow are not supported; convert them to a Series.")
    if origin == "pandas" and not isinstance(column, pd.DataFrame):
        return pd.Series(column)
    if nw.dependencies.is_into_dataframe(column) and not isinstance(column, np.ndarray):
        column = as_table(column)
        if len(column.columns) == 1:
            return column_at(column, 0)
    elif isinstance(column, Sequence) and not isinstance(column, str | bytes):
        return _object_array(column)
    elif hasattr(column, "__array__"):
        array = np.asarray(column)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 1:
            return array
    raise InputError("expected one column: a Series, a 1D array or a list.")


def n_rows(table: Any) -> int:
    """Number of rows of a frame or array. Private under add-remove adjacency."""
    return int(table.shape[0])


def column_at(table: Any, position: int) -> Any:
    """The column at a position, as the table's native column, without a copy where possible."""
    if isinstance(table, np.ndarray):
        return table[:, position]
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, position]  # by position: names may be anything, 0 and "0" and None
    return table[:, position]


def iter_chunks(table: Any, size: int) -> Iterator[Any]:
    """Yield a table in chunks of consecutive rows, without copying the whole.

    Parameters
    ----------
    table : DataFrame, ndarray
        Of n rows.
    size : int
        Rows of a chunk; the last one may be shorter.

    Yields
    ------
    DataFrame or ndarray
        Of the same type; nothing for an empty table.

    Examples
    --------
    >>> [len(chunk) for chunk in iter_chunks(np.zeros((5, 2)), 2)]
    [2, 2, 1]
    """
    if isinstance(size, bool) or size < 1:
        raise InputError("the size of a chunk must be at least 1.")
    table = as_table(table)
    if isinstance(table, MappedTable):
        yield from map(table.function, iter_chunks(table.source, size))
        return
    for start in range(0, n_rows(table), size):
        if isinstance(table, pd.DataFrame):
            yield table.iloc[start : start + size]
        else:
            yield table[start : start + size]


@dataclass(frozen=True)
class FrameTemplate:
    """Names, dtypes and backend of a frame, and nothing of its rows.

    Parameters
    ----------
    backend : {"pandas", "polars", "numpy"}
        What kind of frame it is.
    dtypes : dict of name to ColumnDtype
        In the order of the columns. Columns of an array are called ``x0``, ``x1``, ...
    axis_names : tuple
        Names of the levels of a pandas column axis.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [17, 90]})
    >>> template = FrameTemplate.from_frame(frame)
    >>> template.build({"age": np.array([50], dtype="int64")}, n=1)
       age
    0   50
    """

    backend: Backend
    dtypes: Mapping[Hashable, ColumnDtype]
    axis_names: tuple[Hashable, ...] = (None,)

    @classmethod
    def from_frame(cls, table: Any) -> FrameTemplate:
        """Read the structure of a frame or array.

        Parameters
        ----------
        table : pandas.DataFrame, polars.DataFrame or ndarray of shape (n, k)
            Only names and dtypes are looked at.

        Returns
        -------
        FrameTemplate
            Its structure.

        Raises
        ------
        InputError
            If two columns have the same name, or if a dtype is not supported.
        """
        table = as_table(table)
        if isinstance(table, MappedTable):
            table = table.structure
        if isinstance(table, np.ndarray):
            found = describe_dtype(table.dtype, "numpy", "x0")
            return cls("numpy", {f"x{i}": found for i in range(table.shape[1])})
        names = list(table.columns)
        _check_names(names)
        backend = backend_of(table)
        dtypes = {
            name: describe_dtype(native, backend, name)
            for name, native in zip(names, table.dtypes, strict=True)
        }
        if isinstance(table, pd.DataFrame):
            return cls("pandas", dtypes, tuple(table.columns.names))
        return cls("polars", dtypes)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Column names, in order."""
        return tuple(self.dtypes)

    def select(self, names: Sequence[Hashable]) -> FrameTemplate:
        """The template with these columns only, in the order of the frame.

        Parameters
        ----------
        names : sequence of hashable
            Which columns to keep; each must be there.

        Returns
        -------
        FrameTemplate
            Of the same library.
        """
        unknown = [name for name in names if name not in self.dtypes]
        if unknown:
            raise InputError(f"the frame has no column {unknown[0]!r}.")
        kept = {name: dtype for name, dtype in self.dtypes.items() if name in set(names)}
        return FrameTemplate(self.backend, kept, self.axis_names)

    def build(self, columns: Mapping[Hashable, Any], n: int) -> Any:
        """Put native columns together to a frame.

        Parameters
        ----------
        columns : mapping of name to native column
            One column of n cells for every name of the template, of its dtype.
        n : int
            Number of rows, for a frame without columns.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or ndarray of shape (n, k)
            In the order of the template. A pandas frame has a plain ``RangeIndex``.
        """
        parts = [columns[name] for name in self.names]
        if self.backend == "polars":
            import polars as pl

            return pl.DataFrame(dict(zip(map(str, self.names), parts, strict=True)))
        if self.backend == "numpy":
            if not parts:
                return np.empty((n, 0))
            return np.stack([np.asarray(p) for p in parts], axis=1)
        typed = [_as_pandas(p, d) for p, d in zip(parts, self.dtypes.values(), strict=True)]
        frame = pd.DataFrame(dict(enumerate(typed)), index=pd.RangeIndex(n))
        names: list[Any] = list(self.names)
        if len(self.axis_names) > 1:
            frame.columns = pd.MultiIndex.from_tuples(names, names=self.axis_names)
        else:
            frame.columns = pd.Index(names, name=self.axis_names[0], tupleize_cols=False)
        return frame


def _as_pandas(column: Any, dtype: ColumnDtype) -> Any:
    # From an array of objects pandas would guess another dtype, by looking at the cells.
    return pd.Series(column, dtype=object) if dtype.family == "object" else column


def _check_names(names: Sequence[Hashable]) -> None:
    seen: set[Hashable] = set()
    for name in names:
        if name in seen:
            raise InputError(f"duplicate column name {name!r}; rename one of them.")
        seen.add(name)


@dataclass(frozen=True)
class SeriesTemplate:
    """Name and dtype of a single column, such as ``y``, and nothing of its rows.

    Parameters
    ----------
    dtype : ColumnDtype
        Its dtype.
    name : hashable, optional
        Its name; arrays have none.

    Examples
    --------
    >>> template = SeriesTemplate.from_series(pd.Series([0, 1], name="label"))
    >>> template.build(np.array([1, 1, 0])).name
    'label'
    """

    dtype: ColumnDtype
    name: Hashable = None

    @classmethod
    def from_series(cls, column: Any) -> SeriesTemplate:
        """Read the structure of a Series or one-dimensional array.

        Parameters
        ----------
        column : pandas.Series, polars.Series or ndarray of shape (n,)
            Only its name and dtype are looked at.

        Returns
        -------
        SeriesTemplate
            Its structure.

        Raises
        ------
        InputError
            If its dtype is not supported.
        """
        column = as_series(column)
        name = getattr(column, "name", None)
        shown = "y" if name is None else name
        return cls(describe_dtype(column.dtype, backend_of(column), shown), name)

    def build(self, column: Any) -> Any:
        """Turn a native column into the kind of Series that the template was made from.

        Parameters
        ----------
        column : native column of n cells
            Of the template's dtype.

        Returns
        -------
        pandas.Series, polars.Series or ndarray of shape (n,)
            With the template's name.
        """
        if self.dtype.backend == "pandas":
            return pd.Series(_as_pandas(column, self.dtype), name=self.name)
        return column.alias(self.name) if self.dtype.backend == "polars" else column
