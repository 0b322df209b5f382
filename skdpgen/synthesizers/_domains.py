"""Learning what a schema lacks, with a share of the budget, before the release proper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.data.frames import SeriesTemplate, iter_chunks, n_rows
from skdpgen.data.learning import OpenColumns
from skdpgen.data.preprocessing import template_of
from skdpgen.data.schema import Schema
from skdpgen.privacy.domain_batches import DomainBatch, KeyColumn
from skdpgen.synthesizers._table import rows_of, target_of

__all__ = ["domain_batches", "find_open_columns", "public_default"]

# Rows that are counted at once: bounds what texts take beside the table.
_CHUNK_ROWS = 2**17


def find_open_columns(X: Any, y: Any, schema: Schema | None) -> OpenColumns:
    """The columns of a table, and of ``y``, without a public domain; no cell is read.

    Parameters
    ----------
    X : DataFrame or ndarray
        The table.
    y : native column or None
        The target, where it isn't a column of ``X``.
    schema : Schema or None
        What is declared.
    """
    template = template_of(X, schema or Schema({}))
    target = None
    if y is not None:
        series = SeriesTemplate.from_series(y)
        target = target_of(schema or Schema({}), series, template), series.dtype
    return OpenColumns.find(template.dtypes, schema, target)


def public_default(columns: OpenColumns) -> Schema:
    """The schema that comes of nothing learned: what any table may end with."""
    return columns.declared([()] * len(columns.n_bins), [()] * columns.n_key_columns)


def domain_batches(
    columns: OpenColumns, X: Any, y: Any, keep: npt.NDArray[np.bool_] | None
) -> Iterator[DomainBatch]:
    """The rows as bins and keys of their open columns, chunk by chunk.

    Parameters
    ----------
    columns : OpenColumns
        Of this table.
    X, y : table, and native column or None
        The rows.
    keep : ndarray of bool, shape (n,), or None
        Rows that may contribute.

    Yields
    ------
    DomainBatch
    """
    start = 0
    for chunk in iter_chunks(X, _CHUNK_ROWS):
        stop = start + n_rows(chunk)
        bins, keys = columns.read(chunk, None if y is None else rows_of(y, start, stop))
        yield DomainBatch(
            bins=bins,
            keys=tuple(KeyColumn(codes, found) for codes, found in keys),
            keep=None if keep is None else keep[start:stop],
        )
        start = stop
