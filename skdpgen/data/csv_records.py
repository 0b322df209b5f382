"""Records of a CSV file as texts: a reader that no cell can make fail or speak.

Private rows come this way. What a parser says of a line that it doesn't like (its number, its
length, a piece of it) is an output that no epsilon covers, so nothing is said: a short record gets
missing cells, a long one loses its last, and bytes that are no UTF-8 become U+FFFD. Only the first
record, the names of the columns, is public and checked.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..exceptions import InputError
from .cells import parse_number

__all__ = ["CsvFile"]

_DELIMITERS = ",;\t|"
_LONGEST_NAME = 200
_LARGEST_FIELD = 2**31 - 1


class CsvFile:
    r"""A CSV file, plain or compressed by gzip, whose first record names the columns.

    Parameters
    ----------
    path : path-like
        The file: UTF-8, cells separated by the one of comma, semicolon, tab and bar that is most
        frequent among the names. Quoted cells may hold separators and line ends. Empty lines are
        no records.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    delimiter : str
        What separates cells.

    Raises
    ------
    OSError
        If the file can't be opened.
    InputError
        If it is empty, a name is missing or doubled, or the first record can't be a list of names.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "women.csv")
    >>> _ = Path(path).write_text('age,note\n33,"a, b"\n51\n', encoding="utf-8")
    >>> file = CsvFile(path)
    >>> file.names, list(file.records())
    (('age', 'note'), [['33', 'a, b'], ['51', '']])
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self._open() as stream:
            first = stream.readline()
            self.delimiter = max(_DELIMITERS, key=first.count)
        with self._open() as stream:
            names = next(self._reader(stream), [])
        self._check(names)
        self.names = tuple(names)

    def records(self) -> Iterator[list[str]]:
        """Yield the cells of each record, as many as there are names."""
        width = len(self.names)
        with self._open() as stream:
            reader = self._reader(stream)
            next(reader)
            for record in reader:
                if len(record) == width:
                    yield record
                elif record:
                    yield (record + [""] * width)[:width]

    @contextlib.contextmanager
    def _open(self) -> Iterator[IO[str]]:
        open_file: Any = gzip.open if self.path.suffix == ".gz" else open
        try:
            # A mark at the beginning belongs to no name, and bytes that are no text raise nothing.
            with (
                open_file(self.path, "rb") as raw,
                io.TextIOWrapper(raw, "utf-8-sig", "replace", newline="") as stream,
            ):
                yield stream
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InputError(f"{self.path.name} is no gzip file, or not a whole one.") from None

    def _reader(self, stream: IO[str]) -> Iterator[list[str]]:
        # A limit of the process: a longer cell would raise, and say so.
        csv.field_size_limit(_LARGEST_FIELD)
        return csv.reader(stream, delimiter=self.delimiter)

    def _check(self, names: list[str]) -> None:
        # Names that are numbers may be a row, of a file without names: then it isn't quoted.
        quotable = not any(parse_number(name) is not None for name in names)
        where = f"the first line of {self.path.name}"
        if not names:
            raise InputError(f"{where} is empty: it must name the columns.")
        # Without the text: it may be rows, taken for names because of one quote too many.
        if any(len(n) > _LONGEST_NAME or not n.isprintable() or "\ufffd" in n for n in names):
            raise InputError(
                f"{where} isn't a list of column names: expected UTF-8, one separator (comma, "
                f"semicolon, tab or bar) throughout, and no open quote."
            )
        for position, name in enumerate(names, start=1):
            if not name.strip():
                raise InputError(
                    f"{where}: column {position} has no name. Name it, or write the file without "
                    f"the row numbers (pandas: index=False)."
                )
            if name in names[: position - 1]:
                shown = repr(name) if quotable else f"{position} as column {names.index(name) + 1}"
                raise InputError(
                    f"{where} names column {shown} twice; rename one of them. It must hold the "
                    f"names of the columns."
                )
