"""Which columns of a table have no public domain, and how a learned one completes the schema.

That a column is open follows from names, dtypes and the schema. Its cells become bins of public
grids, or keys, each a function of that cell alone; what of them is released is for a mechanism to
decide, and what was released becomes bounds and values here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from .columns import Categorical, Column, Value
from .datetime_columns import Datetime
from .dtypes import ColumnDtype
from .encoder_base import check_family
from .frames import column_at
from .grids import NumberGrid, TimeGrid
from .inference import open_column
from .keys import KeyReader
from .numeric_columns import Numeric
from .schema import Schema

__all__ = ["OpenColumns"]

_Reader: TypeAlias = NumberGrid | TimeGrid | KeyReader


@dataclass(frozen=True)
class OpenColumns:
    """The columns of a table whose bounds or values nobody has declared.

    Parameters
    ----------
    schema : Schema
        What is declared; open columns have no bounds or no values yet.
    readers : mapping of name to NumberGrid, TimeGrid or KeyReader
        What reads the cells of each open column.
    positions : mapping of name to int or None
        Where in the table each of them is; None for one that is given apart.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.data import FrameTemplate
    >>> frame = pd.DataFrame({"age": [33.0, 51.0], "smoker": [True, False], "town": ["A", "B"]})
    >>> columns = OpenColumns.find(FrameTemplate.from_frame(frame).dtypes, None)
    >>> list(columns.readers)
    ['age', 'town']
    >>> bins, keys = columns.read(frame)
    >>> columns.declared([()], [("A", "B")]).columns["town"].categories
    ('A', 'B', 'other')
    """

    schema: Schema
    readers: Mapping[Hashable, _Reader]
    positions: Mapping[Hashable, int | None]

    @classmethod
    def find(
        cls,
        dtypes: Mapping[Hashable, ColumnDtype],
        schema: Schema | None,
        target: tuple[Hashable, ColumnDtype] | None = None,
    ) -> OpenColumns:
        """Find the open columns of a table; no cell is read.

        Parameters
        ----------
        dtypes : mapping of name to ColumnDtype
            The structure of the table.
        schema : Schema or None
            What is declared. None leaves open what dtypes don't declare. Whether cells are missing
            is open in every open column that doesn't say so.
        target : (name, ColumnDtype), optional
            A target that isn't a column of the table.

        Raises
        ------
        InputError
            If a dtype can't hold the kind of an open column.
        """
        positions: dict[Hashable, int | None] = {name: i for i, name in enumerate(dtypes)}
        dtypes = dict(dtypes)
        if target is not None:
            dtypes[target[0]] = target[1]
            positions[target[0]] = None
        if schema is None:
            apart = None if target is None else target[0]
            columns = {n: open_column(d, is_target=positions[n] is None) for n, d in dtypes.items()}
            schema = Schema(columns, target=apart)
        elif schema.default is not None and schema.default.undeclared:
            named = schema.columns
            schema = schema.with_columns({n: schema.default for n in dtypes if n not in named})
        readers: dict[Hashable, _Reader] = {}
        for name, dtype in dtypes.items():
            column = schema.columns.get(name)
            if column is None or column.undeclared is None:
                continue
            check_family(column, dtype, name)
            if dtype.declared_levels is not None:
                schema = schema.with_columns({name: {"values": dtype.declared_levels}})
            else:
                readers[name] = _reader(column, dtype)
        return cls(schema, readers, {name: positions[name] for name in readers})

    @property
    def n_bins(self) -> tuple[int, ...]:
        """Number of bins of each open column of numbers or times."""
        grids = [r for r in self.readers.values() if not isinstance(r, KeyReader)]
        return tuple(grid.n_bins for grid in grids)

    @property
    def n_key_columns(self) -> int:
        """Number of open columns of categories."""
        return len(self.readers) - len(self.n_bins)

    def read(
        self, table: Any, apart: Any = None
    ) -> tuple[np.ndarray, list[tuple[np.ndarray, tuple[Any, ...]]]]:
        """Bins and keys of some rows.

        Parameters
        ----------
        table : DataFrame or ndarray of n rows
        apart : native column of n cells, optional
            The target that isn't a column of the table.

        Returns
        -------
        bins : ndarray of int64, shape (n, len(n_bins))
            See :meth:`NumberGrid.bins`. A row depends on the same row of the table only.
        keys : list of (codes, keys)
            See :meth:`KeyReader.keys`; one for each open column of categories.
        """
        bins, keys = [], []
        for name, reader in self.readers.items():
            position = self.positions[name]
            column = apart if position is None else column_at(table, position)
            if isinstance(reader, KeyReader):
                keys.append(reader.keys(column))
            else:
                bins.append(reader.bins(column))
        stacked = np.stack(bins, axis=1) if bins else np.empty((len(table), 0), dtype=np.int64)
        return stacked, keys

    def declared(
        self, bins: Sequence[Sequence[int]], keys: Sequence[Sequence[Value | None]]
    ) -> Schema:
        """The schema with bounds and values that were released.

        Parameters
        ----------
        bins : sequence of sequence of int
            Occupied bins of each open column of numbers or times; empty ones give public ranges.
        keys : sequence of sequence
            Keys of each open column of categories; empty ones give "other" only.

        Returns
        -------
        Schema
            In which no column is open; learned ones have the entry ``"learned": true``, and those
            that another release had learned before ``"learned": "before"``.
        """
        all_bins, all_keys = iter(bins), iter(keys)
        changes: dict[Hashable, Column] = {
            name: replace(column, metadata={**column.metadata, "learned": "before"})
            for name, column in self.schema.columns.items()
            if column.metadata.get("learned")
        }
        for name, reader in self.readers.items():
            column: Column
            if isinstance(reader, KeyReader):
                column = reader.declared(list(next(all_keys)), name == self.schema.target)
            else:
                column = _bounded(reader, list(next(all_bins)))
            changes[name] = replace(column, metadata={**column.metadata, "learned": True})
        return self.schema.with_columns(changes)


def _reader(column: Column, dtype: ColumnDtype) -> _Reader:
    # What is declared to be missing needs no counting.
    count_missing = dtype.nullable and not getattr(column, "missing", False)
    if isinstance(column, Numeric):
        return NumberGrid(column, dtype, count_missing)
    if isinstance(column, Datetime):
        return TimeGrid(column, dtype, count_missing)
    assert isinstance(column, Categorical)
    return KeyReader(column, dtype, count_missing)


def _bounded(grid: NumberGrid | TimeGrid, bins: list[int]) -> Column:
    missing = grid.column.missing
    if grid.count_missing and bins and bins[-1] == grid.n_bins - 1:
        bins, missing = bins[:-1], True
    # Numbers get numbers and times get times: each grid has the column that it bounds.
    bounds: Any = grid.bounds(bins)
    return replace(grid.column, bounds=bounds, missing=missing)
