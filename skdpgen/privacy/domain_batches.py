"""Rows as bins and keys, and how many there are of each: structure checked, counts exact.

One row adds one to at most one bin of each binned column, and one to at most one key of each key
column. Nothing here trusts the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError

__all__ = ["DomainBatch", "Key", "KeyColumn", "count_rows", "key_order"]

# Longer texts are no keys, and larger numbers neither.
_LONGEST_KEY = 400
_LARGEST_NUMBER = 2**64

Key: TypeAlias = str | int | float | None
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class KeyColumn:
    """The cells of one key column.

    Parameters
    ----------
    codes : ndarray of int64, shape (n,)
        Position of each row's key in ``keys``; a row with a code out of range has no key.
    keys : tuple
        Texts, whole numbers and other finite numbers, and None for a missing cell. Everything else,
        and texts of more than 400 characters, is no key. Equal keys are one key.
    """

    codes: _Integers
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class DomainBatch:
    """Some rows: a bin for each binned column, a key for each key column.

    Parameters
    ----------
    bins : ndarray of int64, shape (n, n_binned_columns)
        A row with a bin out of range adds nothing to that column.
    keys : tuple of KeyColumn
        One for each key column.
    keep : ndarray of bool, shape (n,), or None
        Rows that may contribute (see :func:`skdpgen.privacy.units.bounded_rows`).
    """

    bins: _Integers
    keys: tuple[KeyColumn, ...]
    keep: npt.NDArray[np.bool_] | None = None


def count_rows(
    batches: Iterable[DomainBatch], n_bins: tuple[int, ...], n_key_columns: int, bounded: bool
) -> tuple[list[_Integers], list[dict[Key, int]]]:
    """Count rows, exactly.

    Parameters
    ----------
    batches : iterable of DomainBatch
        In any order and any chunking.
    n_bins : tuple of int
        Number of bins of each binned column.
    n_key_columns : int
        Number of key columns.
    bounded : bool
        Whether batches must say which rows may contribute.

    Returns
    -------
    bins : list of ndarray of int64
        Rows in each bin of each binned column.
    keys : list of dict
        Rows with each key that is there, of each key column; in an order that follows the rows.

    Raises
    ------
    PrivacyParameterError
        If a batch has another form; the message holds no value of a row.
    """
    bins = [np.zeros(n, dtype=np.int64) for n in n_bins]
    keys: list[dict[Key, int]] = [{} for _ in range(n_key_columns)]
    for batch in batches:
        _check_structure(batch, n_bins, n_key_columns, bounded)
        kept = slice(None) if batch.keep is None else batch.keep
        for j, counts in enumerate(bins):
            counts += _tally(batch.bins[kept, j], len(counts))
        for column, found in zip(batch.keys, keys, strict=True):
            tally = _tally(column.codes[kept], len(column.keys)).tolist()
            for key, count in zip(column.keys, tally, strict=True):
                # A list of categories may name some that no row has: they aren't there.
                if count and _is_key(key):
                    # 2.0 and 2 are one key; which of them comes out must not depend on order.
                    whole = int(key) if type(key) is float and key.is_integer() else key
                    found[whole] = found.get(whole, 0) + count
    return bins, keys


def _check_structure(
    batch: DomainBatch, n_bins: tuple[int, ...], n_key_columns: int, bounded: bool
) -> None:
    """Refuse a batch of another form; the message holds no value of a row."""
    if type(batch) is not DomainBatch or type(batch.keys) is not tuple:
        raise PrivacyParameterError("the mechanism takes DomainBatch only.")
    if (batch.keep is not None) != bounded:
        raise PrivacyParameterError("batches must have keep under rows_bounded, and only there.")
    columns = batch.keys
    if any(type(c) is not KeyColumn or type(c.keys) is not tuple for c in columns):
        raise PrivacyParameterError("the key columns of a batch must be KeyColumns.")
    integers = [batch.bins, *(column.codes for column in columns)]
    if any(type(a) is not np.ndarray or a.dtype != np.int64 for a in integers):
        raise PrivacyParameterError("a batch must hold plain int64 arrays only.")
    if batch.keep is not None and (
        type(batch.keep) is not np.ndarray or batch.keep.dtype != np.bool_
    ):
        raise PrivacyParameterError("keep must be a plain array of bool.")
    n = len(batch.bins)
    shapes = [(n, len(n_bins)), *((n,) for _ in range(n_key_columns))]
    keep = np.zeros(n) if batch.keep is None else batch.keep
    if [a.shape for a in integers] != shapes or keep.shape != (n,):
        raise PrivacyParameterError("a batch doesn't have the shape that the columns give.")


def _tally(codes: _Integers, n: int) -> _Integers:
    """How often each of 0 .. n - 1 occurs."""
    inside = codes[(codes >= 0) & (codes < n)]
    return np.bincount(inside, minlength=n).astype(np.int64)


def _is_key(key: object) -> bool:
    """Whether something may be counted; only classes whose methods are known are asked."""
    kind = type(key)
    if kind is str:
        assert isinstance(key, str)
        return len(key) <= _LONGEST_KEY and _is_encodable(key)
    if kind is int:
        assert isinstance(key, int)
        return abs(key) < _LARGEST_NUMBER
    if kind is float:
        assert isinstance(key, float)
        return abs(key) < _LARGEST_NUMBER  # neither NaN nor infinite
    return key is None


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no file can hold
        return False
    return True


def key_order(key: Key) -> tuple[int, float | str]:
    """Sorts keys: numbers, then texts, then None."""
    if key is None:
        return 2, 0
    return (1, key) if isinstance(key, str) else (0, key)
