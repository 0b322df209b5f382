"""Rows as integers, and what they add up to: structure checked, bounds enforced, sums exact.

A row comes in one of two forms: with its signed block written out (:class:`RowBatch`), or as one
code a column (:class:`CodeBatch`), from which public tables make the signed block
(:class:`skdpgen.privacy.codes.CodeFourier`). Nothing here trusts the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.spec import EmbeddingSpec

__all__ = ["CodeBatch", "RowBatch", "check_structure", "code_sums", "row_sums"]

_Integers = npt.NDArray[np.int64]

# Codes looked at once: bounds the memory, and the number of rows below what float64 sums exactly.
_CHUNK = 2**23


@dataclass(frozen=True)
class RowBatch:
    """Some rows, as integers. Rows that break a bound contribute nothing.

    Parameters
    ----------
    signed : ndarray of int64, shape (n, n_signed)
        Signed block of each row.
    codes : ndarray of int64, shape (n, n_groups)
        Category index of each row in each one-hot group.
    labels : ndarray of int64, shape (n,)
        Class index of each row; all 0 without labels.
    keep : ndarray of bool, shape (n,), or None
        Rows that may contribute (see :func:`skdpgen.privacy.units.bounded_rows`).
    """

    signed: _Integers
    codes: _Integers
    labels: _Integers
    keep: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class CodeBatch:
    """Some rows, as one code a column. A row with a code out of range contributes nothing.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, n_columns)
        Code of each row in each column; also its category in each one-hot group.
    labels : ndarray of int64, shape (n,)
        Class index of each row; all 0 without labels.
    keep : ndarray of bool, shape (n,), or None
        Rows that may contribute (see :func:`skdpgen.privacy.units.bounded_rows`).
    """

    codes: _Integers
    labels: _Integers
    keep: npt.NDArray[np.bool_] | None = None


def check_structure(
    batch: RowBatch | CodeBatch, spec: EmbeddingSpec, features: CodeFourier | None, bounded: bool
) -> None:
    """Refuse a batch that hasn't the form, the shapes and the dtypes that were declared.

    Parameters
    ----------
    batch : RowBatch or CodeBatch
        The rows.
    spec : EmbeddingSpec
        What a row may contribute.
    features : CodeFourier or None
        Public tables that make signed blocks of codes; None for rows that bring theirs.
    bounded : bool
        Whether batches must say which rows may contribute.

    Raises
    ------
    PrivacyParameterError
        If anything differs; the message holds no value of a row.
    """
    if type(batch) is not (RowBatch if features is None else CodeBatch):
        raise PrivacyParameterError(
            "the mechanism takes a CodeBatch if it was built with features, else a RowBatch."
        )
    if (batch.keep is not None) != bounded:
        raise PrivacyParameterError("batches must have keep under rows_bounded, and only there.")
    arrays = [batch.codes, batch.labels]
    if isinstance(batch, RowBatch):
        arrays.append(batch.signed)
    # Subclasses compute differently: a masked array skips rows, a matrix has no vectors.
    if any(type(a) is not np.ndarray or a.dtype != np.int64 for a in arrays):
        raise PrivacyParameterError("a batch must hold plain int64 arrays only.")
    if batch.keep is not None and (
        type(batch.keep) is not np.ndarray or batch.keep.dtype != np.bool_
    ):
        raise PrivacyParameterError("keep must be a plain array of bool.")
    # Every shape, since a wrong one would broadcast: a label column (n, 1) against a norm
    # check (n,), or one True in keep for all rows.
    n = batch.labels.size
    n_codes = len(spec.group_widths) if features is None else len(features.n_codes)
    expected = (n, n_codes), (n,), (n, spec.n_signed), (n,)
    keep = batch.labels if batch.keep is None else batch.keep
    shapes = [a.shape for a in arrays]
    if tuple(shapes) != expected[: len(shapes)] or keep.shape != (n,):
        raise PrivacyParameterError("a batch doesn't have the shape that the spec gives.")


def row_sums(batch: RowBatch, spec: EmbeddingSpec) -> tuple[_Integers, _Integers]:
    """Exact sums of a batch of rows with written-out signed blocks.

    Parameters
    ----------
    batch : RowBatch
        Of checked structure.
    spec : EmbeddingSpec
        The bounds.

    Returns
    -------
    sums : ndarray of int64, shape (n_classes, width)
    counts : ndarray of int64, shape (n_classes,)
        Numbers of rows that contribute, times the count weight.
    """
    labels = _enforced_labels(batch, spec)
    bounded = within_norm(batch.signed, spec)
    sums = np.zeros((spec.n_classes, spec.width), dtype=np.int64)
    for y in range(spec.n_classes):
        sums[y, : spec.n_signed] = batch.signed[(labels == y) & bounded].sum(axis=0)
    _add_groups(sums, batch.codes, labels, spec)
    return sums, _counts(labels, spec)


def code_sums(
    batch: CodeBatch, spec: EmbeddingSpec, features: CodeFourier
) -> tuple[_Integers, _Integers]:
    """Exact sums of a batch of rows in codes.

    Parameters
    ----------
    batch : CodeBatch
        Of checked structure.
    spec : EmbeddingSpec
        The bounds.
    features : CodeFourier
        Public tables of the signed block; they accept the spec
        (:meth:`~skdpgen.privacy.codes.CodeFourier.check`).

    Returns
    -------
    sums : ndarray of int64, shape (n_classes, width)
    counts : ndarray of int64, shape (n_classes,)
        Numbers of rows that contribute, times the count weight.
    """
    labels = _enforced_labels(batch, spec)
    sizes = np.array(features.n_codes, dtype=np.int64)
    sums = np.zeros((spec.n_classes, spec.width), dtype=np.int64)
    counts = np.zeros(spec.n_classes, dtype=np.int64)
    step = max(1, _CHUNK // len(sizes))
    for start in range(0, len(labels), step):
        # A copy: what is checked here is what is counted, whatever the caller's array becomes.
        codes, part = batch.codes[start : start + step].copy(), labels[start : start + step]
        # A code out of range in one column takes the row out of everything: tables are looked up
        # by position, and a row that contributes nothing is a neighbor case of its own.
        inside = ((codes >= 0) & (codes < sizes)).all(axis=1) & (part >= 0)
        codes, part = codes[inside], part[inside]
        columns = codes.T.astype(np.uint16, order="C")
        sums[:, : spec.n_signed] += features.sums(columns, part, spec)
        _add_groups(sums, codes, part, spec)
        counts += _counts(part, spec)
    return sums, counts


def _add_groups(sums: _Integers, codes: _Integers, labels: _Integers, spec: EmbeddingSpec) -> None:
    """Weighted occurrences of each category of each group; a code out of range has none."""
    position = spec.n_signed
    for group, width in enumerate(spec.group_widths):
        column = codes[:, group]
        valid = (labels >= 0) & (column >= 0) & (column < width)
        cells = labels[valid] * width + column[valid]
        occurrences = np.bincount(cells, minlength=spec.n_classes * width)
        block = spec.category_steps * occurrences.reshape(spec.n_classes, width)
        sums[:, position : position + width] += block
        position += width


def _counts(labels: _Integers, spec: EmbeddingSpec) -> _Integers:
    occurrences = np.bincount(labels[labels >= 0], minlength=spec.n_classes)
    return np.asarray(spec.count_steps * occurrences, dtype=np.int64)


def _enforced_labels(batch: RowBatch | CodeBatch, spec: EmbeddingSpec) -> _Integers:
    """Label of each row, -1 for a row that contributes nothing.

    That is a row with a label out of range and a row beyond its unit's limit.
    """
    valid = (batch.labels >= 0) & (batch.labels < spec.n_classes)
    if batch.keep is not None:
        valid &= batch.keep
    return np.where(valid, batch.labels, -1)


def within_norm(signed: _Integers, spec: EmbeddingSpec) -> npt.NDArray[np.bool_]:
    """Which rows of a signed block keep their norm bound, decided in integers.

    Where every entry is at most 2^bits in size, the sum of squares is at most
    ``n_signed * 2^(2 bits) < 2^63`` and can't overflow; where an entry is larger, the row is out
    whatever the overflown sum says.
    """
    limit = 2**spec.lattice_bits
    small = (signed.max(axis=1, initial=0) <= limit) & (signed.min(axis=1, initial=0) >= -limit)
    squared_norm = np.einsum("ij,ij->i", signed, signed)
    within: npt.NDArray[np.bool_] = small & (squared_norm <= spec.signed_bound)
    return within
