"""Tables in files: CSV (also compressed by gzip), Parquet, Arrow.

Names and dtypes of a file are public, its cells may be private. So a CSV file is read as texts,
which a schema converts, and a file that says its dtypes keeps exactly these: nowhere does a cell
decide a dtype, an error or a warning.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from ..exceptions import InputError
from .arrays import utf8_texts
from .atomic import replaced
from .csv_records import CsvFile
from .datetime_columns import Datetime
from .frames import MappedTable
from .schema import Schema
from .text_cells import column_of_texts

__all__ = ["FORMATS", "read_structure", "read_table", "scan_table", "write_table"]

FORMATS = (".csv", ".csv.gz", ".parquet", ".feather", ".arrow")
"""Endings of file names that are understood."""


def read_table(
    path: str | os.PathLike[str],
    schema: Schema | None = None,
    *,
    columns: Iterable[str] | None = None,
) -> pd.DataFrame:
    r"""Read a table from a file, whole.

    Parameters
    ----------
    path : path-like
        A file of one of :data:`FORMATS`; what it is follows from its name.
    schema : Schema, default=None
        Gives the columns of a CSV file their dtypes; columns that it doesn't know, all without a
        schema, are texts. Files that say their dtypes keep them.
    columns : iterable of str, default=None
        Columns to read, in the order of the file; None reads all.

    Returns
    -------
    pandas.DataFrame of shape (n, k)
        With nullable dtypes: of pandas from CSV files, of pyarrow from others.

    Raises
    ------
    OSError
        If the file can't be read.
    InputError
        If its name has another ending, its structure is broken, or a column isn't there; the
        message never depends on cells.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "women.csv")
    >>> _ = Path(path).write_text("age,affair\n33,no\n,yes\n", encoding="utf-8")
    >>> read_table(path, Schema({"age": {"kind": "numeric", "bounds": [17, 90], "dtype": "int"}}))
        age affair
    0    33     no
    1  <NA>    yes
    >>> folder.cleanup()
    """
    return _TableFile(path, schema, columns).all_rows()


def read_structure(
    path: str | os.PathLike[str],
    schema: Schema | None = None,
    *,
    columns: Iterable[str] | None = None,
) -> pd.DataFrame:
    """Read names and dtypes of a table in a file, and no row.

    Parameters
    ----------
    path, schema, columns
        See :func:`read_table`.

    Returns
    -------
    pandas.DataFrame of shape (0, k)
        As :func:`read_table` would return it, without rows.
    """
    return _TableFile(path, schema, columns).structure


def scan_table(
    path: str | os.PathLike[str],
    schema: Schema | None = None,
    *,
    columns: Iterable[str] | None = None,
    rows: Callable[[int], np.ndarray] | None = None,
) -> MappedTable:
    """A table in a file whose cells are read when a synthesizer asks for them.

    Which is after its ledger was charged. Before, rows are only counted.

    Parameters
    ----------
    path, schema, columns
        See :func:`read_table`.
    rows : callable, default=None
        Takes the number of rows and returns which of them the table has, as positions in ascending
        order; None keeps all.

    Returns
    -------
    MappedTable
        Takes the place of a frame in ``fit``.
    """
    file = _TableFile(path, schema, columns)
    n = file.count()
    positions = np.arange(n) if rows is None else rows(n)
    return MappedTable(positions[:, np.newaxis], file.rows_at, file.structure)


def write_table(table: Any, path: str | os.PathLike[str], schema: Schema | None = None) -> None:
    """Write a table to a file, which appears whole or not at all.

    Parameters
    ----------
    table : pandas.DataFrame
        The rows. Its index isn't written.
    path : path-like
        A file of one of :data:`FORMATS`; it is replaced if it exists.
    schema : Schema, default=None
        Has the formats in which times are written to a CSV file; ISO 8601 without.

    Raises
    ------
    OSError
        If the file can't be written.
    InputError
        If its name has another ending.
    """
    path = Path(path)
    ending = _ending(path)
    table = table.reset_index(drop=True)
    with replaced(path) as part:
        if ending == ".parquet":
            _pyarrow()
            table.to_parquet(part, index=False)
        elif ending in (".feather", ".arrow"):
            _pyarrow()
            table.to_feather(part)
        else:
            texts = _with_formats(table, schema) if schema is not None else table
            with _text_file(part, ending) as stream:
                texts.to_csv(stream, index=False, lineterminator="\n")


class _TableFile:
    """What all ways to read a file share."""

    def __init__(
        self, path: str | os.PathLike[str], schema: Schema | None, columns: Iterable[str] | None
    ) -> None:
        self._path = Path(path)
        self._schema = schema
        self._records: Iterator[list[str]] = iter(())
        self._next = 0
        self._arrow: pd.DataFrame | None = None
        self._csv: CsvFile | None = None
        names: Sequence[str]
        if _ending(self._path) in (".csv", ".csv.gz"):
            self._csv = CsvFile(self._path)
            names = self._csv.names
        else:
            self._arrow_structure = _arrow_table(self._path, rows=False)
            names = list(self._arrow_structure.columns)
        wanted = list(names if columns is None else columns)
        absent = [name for name in wanted if name not in names]
        if absent:
            raise InputError(f"{self._path.name} has no column {absent[0]!r}.")
        self._width = len(names)
        self._kept = [(i, name) for i, name in enumerate(names) if name in wanted]
        self.structure = self._frame([]) if self._csv else self._selected(self._arrow_structure)

    def count(self) -> int:
        """Number of rows."""
        if self._csv is None:
            return len(self._arrow_rows())
        return sum(1 for _ in self._csv.records())

    def all_rows(self) -> pd.DataFrame:
        """The whole table."""
        if self._csv is None:
            return self._selected(self._arrow_rows())
        return self._frame(list(self._csv.records()))

    def rows_at(self, positions: np.ndarray) -> pd.DataFrame:
        """Rows by ascending positions, shape (n, 1): the next ones of a file that is read once."""
        if self._csv is None:
            return self._selected(self._arrow_rows().iloc[positions[:, 0]])
        found: list[list[str]] = []
        for position in positions[:, 0].tolist():
            if position < self._next or self._next == 0:
                self._records, self._next = self._csv.records(), 0
            found += islice(self._records, position - self._next, position - self._next + 1)
            self._next = position + 1
        if len(found) < len(positions):
            raise InputError(f"{self._path.name} was changed while it was read.")
        return self._frame(found)

    def _frame(self, records: list[list[str]]) -> pd.DataFrame:
        cells = list(zip(*records, strict=True)) or [()] * self._width
        typed = [column_of_texts(cells[i], self._column(name)) for i, name in self._kept]
        frame = pd.DataFrame(dict(enumerate(typed)), index=pd.RangeIndex(len(records)))
        frame.columns = pd.Index([name for _, name in self._kept])
        return frame

    def _column(self, name: str) -> Any:
        schema = self._schema
        return None if schema is None else schema.columns.get(name, schema.default)

    def _selected(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.iloc[:, [i for i, _ in self._kept]].reset_index(drop=True)

    def _arrow_rows(self) -> pd.DataFrame:
        if self._arrow is None:
            self._arrow = _arrow_table(self._path, rows=True)
        return self._arrow


def _ending(path: Path) -> str:
    name = path.name.lower()
    found = next((ending for ending in FORMATS if name.endswith(ending)), None)
    if found is None:
        raise InputError(
            f"{path.name}: the kind of file must show in its name, which has to end in one of "
            f"{', '.join(FORMATS)}."
        )
    return found


def _pyarrow() -> Any:
    try:
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet and Arrow files need pyarrow: pip install 'skdpgen[arrow]', or use CSV."
        ) from None
    return pyarrow


def _arrow_table(path: Path, *, rows: bool) -> pd.DataFrame:
    """A Parquet or Arrow file, in the dtypes that it states; categories as what they stand for."""
    arrow = _pyarrow()
    try:
        parquet = _ending(path) == ".parquet"
        if rows:
            table = (arrow.parquet if parquet else arrow.feather).read_table(path)
        elif parquet:
            table = arrow.parquet.read_schema(path).empty_table()
        else:
            table = arrow.ipc.open_file(path).schema.empty_table()
        plain = [_plain_field(arrow, field) for field in table.schema]
        table = table.cast(arrow.schema(plain)).replace_schema_metadata(None)
        _check_distinct(path, table.column_names)
        for i, field in enumerate(plain):
            if arrow.types.is_string(field.type):
                table = table.set_column(i, field, _utf8(arrow, table.column(i)))
        return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    except (OSError, InputError):
        raise
    except Exception:
        # From None: what pyarrow says may quote cells.
        raise InputError(f"{path.name} is damaged, or not the kind that its name says.") from None


def _plain_field(arrow: Any, field: Any) -> Any:
    kind = field.type
    if arrow.types.is_dictionary(kind):  # its list of categories was read off the rows
        kind = kind.value_type
    if arrow.types.is_large_string(kind) or arrow.types.is_string_view(kind):
        kind = arrow.string()
    return arrow.field(field.name, kind)


def _utf8(arrow: Any, column: Any) -> Any:
    """Texts as they are, unless bytes that are no UTF-8 would raise later, and be quoted then."""
    try:
        column.validate(full=True)
    except arrow.ArrowInvalid:
        return arrow.array(utf8_texts(column), arrow.string())
    return column


def _check_distinct(path: Path, names: Sequence[str]) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InputError(f"{path.name} names column {name!r} twice; rename one of them.")


@contextlib.contextmanager
def _text_file(path: Path, ending: str) -> Iterator[IO[str]]:
    with contextlib.ExitStack() as stack:
        stream: Any = stack.enter_context(open(path, "xb"))
        if ending == ".csv.gz":
            # Neither name nor time: equal tables make equal files.
            stream = stack.enter_context(gzip.GzipFile("", "wb", fileobj=stream, mtime=0))
        yield stack.enter_context(io.TextIOWrapper(stream, encoding="utf-8", newline=""))


def _with_formats(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    texts = {
        str(name): table[name].dt.strftime(column.format)
        for name, column in schema.columns.items()
        if isinstance(name, str)
        and isinstance(column, Datetime)
        and column.format is not None
        and name in table.columns
        and table[name].dtype.kind == "M"
    }
    return table.assign(**texts) if texts else table
