"""Interaction features of integer codes, summed by joint histograms: exact, in any order.

A frequency looks at a few columns. Each of their codes has a phase in a public table, and the
feature is the cosine and the sine of the sum of a row's phases. It depends on the row's codes in
these columns only, so the sum over rows is a joint histogram of the codes times a table: integers
times integers.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.lattice import trig_table
from skdpgen.privacy.release import frozen
from skdpgen.privacy.spec import EmbeddingSpec

__all__ = ["CodeFourier"]

T = TypeVar("T")

_Integers = npt.NDArray[np.int64]
_Phases = npt.NDArray[np.uint16]
_MAX_COLUMNS = 4
_MAX_CODES = 2**16
# Joint domains up to this many times the number of rows are counted in an array of their size;
# larger ones, mostly empty, by sorting.
_DENSE = 4
# Table entries looked up at once: few enough for a core's cache, whatever the sizes of subset and
# batch are. With many waves or classes these would be so few joint codes that adding up the sums
# of blocks took longer than the blocks: then more, up to a limit.
_BLOCK, _MOST_BLOCK = 2**16, 2**20
_FEW_CODES = 512


@dataclass(frozen=True, eq=False)
class CodeFourier:
    """Cosine-sine features of small subsets of columns. Public, fixed before a row is read.

    Parameters
    ----------
    n_codes : sequence of int
        Number of codes of each column, in 1 .. 2^16.
    subsets : sequence of sequences of int
        Columns of each subset: 1 to 4 different ones.
    phases : sequence of sequences of ndarray of uint16
        Per subset and column, the phases of shape (n_codes, m) in 2^-16 turns, where m is the
        number of families of waves of the subset, at least 1.
    n_harmonics : int, default=1
        Waves h of a family: phases t, 2 t, ... h t, squared amplitudes in the ratios h : ... : 1.

    Raises
    ------
    ValueError
        If a column doesn't exist, or a table hasn't the shape or the dtype above.

    Notes
    -----
    Wave k of a family has a norm of at most ``amplitudes[k - 1]`` steps
    (:func:`~skdpgen.privacy.lattice.trig_table`), and all M families together a squared norm of at
    most ``M * sum(A**2 for A in amplitudes) <= signed_bound``, whatever the phases are. That more
    harmonics bring two rows closer to each other is :attr:`EmbeddingSpec.signed_distance`.
    """

    n_codes: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]
    phases: tuple[tuple[_Phases, ...], ...]
    n_harmonics: int = 1

    def __post_init__(self) -> None:
        # Copies that nobody can write to: what was checked is what will be used.
        object.__setattr__(self, "n_codes", tuple(map(index, self.n_codes)))
        object.__setattr__(self, "subsets", tuple(tuple(map(index, s)) for s in self.subsets))
        object.__setattr__(self, "phases", tuple(map(_frozen_tables, self.phases)))
        object.__setattr__(self, "n_harmonics", index(self.n_harmonics))
        if any(not 1 <= n <= _MAX_CODES for n in self.n_codes):
            raise ValueError("a column must have 1 to 2^16 codes.")
        if not 1 <= self.n_harmonics <= 64:
            raise ValueError("n_harmonics must be in 1 .. 64.")
        if not self.subsets or len(self.phases) != len(self.subsets):
            raise ValueError("there must be one tuple of phase tables a subset, and a subset.")
        for columns, tables in zip(self.subsets, self.phases, strict=True):
            if not 1 <= len(columns) <= _MAX_COLUMNS or len(set(columns)) < len(columns):
                raise ValueError("a subset must have 1 to 4 different columns.")
            if min(columns) < 0 or max(columns) >= len(self.n_codes):
                raise ValueError("a subset names a column that doesn't exist.")
            m = tables[0].shape[1] if tables else 0
            if not m or [t.shape for t in tables] != [(self.n_codes[c], m) for c in columns]:
                raise ValueError("a phase table must have shape (n_codes, m), m at least 1.")

    @property
    def n_families(self) -> int:
        """Number of families M."""
        return sum(int(tables[0].shape[1]) for tables in self.phases)

    @property
    def n_frequencies(self) -> int:
        """Number of waves F, ``n_harmonics`` a family."""
        return self.n_harmonics * self.n_families

    def amplitudes(self, signed_bound: int) -> tuple[int, ...]:
        """Integer amplitude of each wave of a family, rounded down.

        The squares are ``2 (h + 1 - k) / (h (h + 1))``, k = 1 .. h, of a family's share of the
        bound; these fractions sum to 1.

        Parameters
        ----------
        signed_bound : int
            Largest squared norm of a row's waves, in squared steps.

        Returns
        -------
        tuple of int, length n_harmonics
            Amplitudes, largest first.
        """
        h = self.n_harmonics
        parts = self.n_families * h * (h + 1)
        return tuple(math.isqrt(2 * signed_bound * (h + 1 - k) // parts) for k in range(1, h + 1))

    def check(self, spec: EmbeddingSpec) -> None:
        """Refuse a spec that these features can't serve, before there are rows.

        Parameters
        ----------
        spec : EmbeddingSpec
            What the mechanism was built for.

        Raises
        ------
        PrivacyParameterError
            If the spec has another number of frequencies or one-hot groups other than the columns,
            if nothing of a feature would be left on its lattice, or if a joint code of label and
            subset doesn't fit into int64.
        """
        if spec.n_signed != 2 * self.n_frequencies or spec.n_harmonics != self.n_harmonics:
            raise PrivacyParameterError(
                "features and spec differ in the number of frequencies or harmonics."
            )
        if spec.group_widths not in ((), self.n_codes):
            raise PrivacyParameterError(
                "the one-hot groups of the spec must be the columns of the features, or none."
            )
        if not min(self.amplitudes(spec.signed_bound)):
            raise PrivacyParameterError("block_share leaves nothing for the features.")
        domains = (math.prod(self.n_codes[c] for c in columns) for columns in self.subsets)
        if max(domains) * spec.n_classes >= 2**63:
            raise PrivacyParameterError("a subset and the classes have too many joint codes.")

    def sums(
        self, columns: npt.NDArray[np.uint16], labels: _Integers, spec: EmbeddingSpec
    ) -> _Integers:
        """Sum of the features over the rows of each class.

        Parameters
        ----------
        columns : ndarray of uint16, shape (n_columns, n)
            Codes in range, of at most 2^26 rows.
        labels : ndarray of int64, shape (n,)
            In ``0 .. n_classes - 1``.
        spec : EmbeddingSpec
            One that :meth:`check` accepts.

        Returns
        -------
        ndarray of int64, shape (n_classes, 2 F)
            All cosines, then all sines, in the order of the subsets; within a subset its families
            at their phases, then at twice their phases, and so on.

        Notes
        -----
        A table entry is at most 2^26, so every partial sum of the product of histogram and table
        is an integer of at most 2^52: exact in float64, in any order, on any number of threads.
        """
        # Made anew each time, which takes milliseconds. A cache would tell later for which
        # amplitudes there were sums: which candidates a private selection has tried.
        pairs = [_pairs(amplitude) for amplitude in self.amplitudes(spec.signed_bound)]

        def subset_sums(s: int) -> npt.NDArray[np.float64]:
            sizes = [self.n_codes[c] for c in self.subsets[s]]
            keys, occurrences = _joint_histogram(
                [columns[c] for c in self.subsets[s]], sizes, labels, spec.n_classes
            )
            return _weighted_pairs(keys, occurrences, sizes, self.phases[s], pairs, spec.n_classes)

        parts = _on_threads(subset_sums, len(self.subsets))
        sums = np.concatenate(parts, axis=1).transpose(0, 2, 1)
        return sums.reshape(spec.n_classes, spec.n_signed).astype(np.int64)


def _frozen_tables(tables: Sequence[_Phases]) -> tuple[_Phases, ...]:
    copies = []
    for table in tables:
        if type(table) is not np.ndarray or table.dtype != np.uint16 or table.ndim != 2:
            raise ValueError("phases must be plain matrices of uint16.")
        copies.append(frozen(table))
    return tuple(copies)


def _on_threads(work: Callable[[int], T], n: int) -> list[T]:
    """``[work(0), ..., work(n - 1)]``.

    Not by a pool of :mod:`concurrent.futures`: the process counts those, and unnamed threads, and
    writes the number into the names of later ones. It would tell how many sums there were.
    """
    n_threads = min(4, os.cpu_count() or 1, n)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def work_through(start: int) -> None:
        try:
            for i in range(start, n, n_threads):
                results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work_through, args=(start,), name="skdpgen sums")
        for start in range(1, n_threads)
    ]
    for thread in threads:
        thread.start()
    work_through(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors.pop()
    return [results[i] for i in range(n)]


def _pairs(amplitude: int) -> npt.NDArray[np.complex128]:
    """Cosine and sine of each phase, looked up as one number; nothing is computed with it."""
    table = trig_table(amplitude).T.astype(np.float64, order="C")
    pairs: npt.NDArray[np.complex128] = table.view(np.complex128)[:, 0]
    return pairs


def _joint_histogram(
    columns: Sequence[npt.NDArray[np.uint16]],
    sizes: Sequence[int],
    labels: _Integers,
    n_classes: int,
) -> tuple[_Integers, _Integers]:
    """Which joint codes occur, ``joint * n_classes + label`` in ascending order, and how often."""
    keys = columns[0].astype(np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        keys *= size
        keys += column
    keys *= n_classes
    keys += labels
    domain = math.prod(sizes) * n_classes
    if domain > _DENSE * len(keys):
        return np.unique(keys, return_counts=True)
    histogram = np.bincount(keys, minlength=domain)
    occupied = np.flatnonzero(histogram)
    return occupied, histogram[occupied]


def _codes_at_once(width: int) -> int:
    """How many joint codes are looked up at once, with so many waves or classes each."""
    return max(1, _BLOCK // width, min(_FEW_CODES, _MOST_BLOCK // width))


def _weighted_pairs(
    keys: _Integers,
    occurrences: _Integers,
    sizes: Sequence[int],
    phases: Sequence[_Phases],
    pairs: Sequence[npt.NDArray[np.complex128]],
    n_classes: int,
) -> npt.NDArray[np.float64]:
    """Sums of one subset's features from its histogram, shape (n_classes, h m, 2)."""
    m = phases[0].shape[1]
    sums = np.zeros((len(pairs), n_classes, 2 * m))
    step = _codes_at_once(max(m, n_classes))
    for start in range(0, len(keys), step):
        # A joint code whose classes come to lie in two blocks is looked up twice; sums don't mind.
        # numpy's divmod takes twice as long as a division and a product.
        block = keys[start : start + step]
        joint = block // n_classes
        label = block - joint * n_classes
        first = np.r_[True, joint[1:] != joint[:-1]]
        cells = joint[first]
        weights = np.zeros((n_classes, len(cells)))
        weights[label, np.cumsum(first) - 1] = occurrences[start : start + step]
        # uint16 wraps around, which is what phases do.
        turn = np.zeros((len(cells), m), dtype=np.uint16)
        for size, table in zip(reversed(sizes), reversed(phases), strict=True):
            rest = cells // size
            turn += table[cells - rest * size]
            cells = rest
        multiple = np.zeros_like(turn)
        for k, waves in enumerate(pairs):
            multiple += turn
            sums[k] += weights @ waves[multiple].view(np.float64)
    return sums.transpose(1, 0, 2).reshape(n_classes, len(pairs) * m, 2)
