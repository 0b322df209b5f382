"""Slices: one-dimensional views of a row, cut into cells.

A slice adds up one number a column and says in which of B cells the sum lies. The number is looked
up in a public table by the column's code, so a slice is an exact function of a row, and a release
of slices is a set of histograms. Slices are *straight* (a projection of the encoded row, cells
along its exact public range) or *wrapped* (whole cells a column, added modulo B).

A wrapped slice forgets where it started, and gains this: the discrete Fourier transform of its
histogram at k cycles is the mean of ``exp(2 pi i k / B sum_j t_j[x_j])``, a product over its
columns. A mixture of products therefore has it exactly, as it has an interaction feature; a
histogram of B cells is a family of B / 2 harmonics with equal weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from skdpgen.atoms import AtomLayout
from skdpgen.exceptions import PrivacyParameterError
from skdpgen.features.subsets import choose_subsets
from skdpgen.privacy.batches import RowBatch
from skdpgen.privacy.release import frozen
from skdpgen.privacy.spec import EmbeddingSpec

if TYPE_CHECKING:
    from skdpgen.privacy.release import Release

__all__ = ["Directions", "SliceFeatureMap"]

Directions: TypeAlias = Literal["sparse", "dense", "frame", "wrapped"]
_DIRECTIONS = get_args(Directions)

# Table entries are in 2^-16 of the range of a slice, or of a turn.
_RANGE_BITS = 16
_MAX_CELLS = 2**10
# Cells of rows worked on at once: bounds the memory of the data pass.
_CHUNK = 2**22
# Most columns of a sparse slice; each number of columns from two on gets as many slices.
_SPARSE_ORDERS = (2, 3)
# Scales of a wrapped number, in cycles over its range.
_CYCLES = (0.25, 2.0)


@dataclass(frozen=True, eq=False)
class SliceFeatureMap:
    """Histograms of slices, crossed with the label.

    Parameters
    ----------
    atoms : AtomLayout
        The codes of each column.
    n_bins : int
        Most bins of a number that the atoms were made with.
    n_cells : int
        Cells B of a slice, a power of two.
    directions : {"sparse", "dense", "frame", "wrapped"}
        How the slices were drawn, see :meth:`draw`.
    subsets : tuple of tuple of int
        Columns that each slice looks at.
    tables : tuple of tuples of ndarray of uint16
        Per slice and column, what each code adds, shape (n_codes,), in 2^-16 of the range or of a
        turn.

    Raises
    ------
    ValueError
        If a table doesn't fit its column, or the sum of a straight slice can leave its range.
    """

    atoms: AtomLayout
    n_bins: int
    n_cells: int
    directions: Directions
    subsets: tuple[tuple[int, ...], ...]
    tables: tuple[tuple[npt.NDArray[np.uint16], ...], ...]

    def __post_init__(self) -> None:
        tables = tuple(tuple(frozen(table) for table in slice_) for slice_ in self.tables)
        object.__setattr__(self, "tables", tables)
        if self.directions not in _DIRECTIONS:
            raise ValueError("directions must be one of those that can be drawn.")
        if min(j for columns in self.subsets for j in columns) < 0:
            raise ValueError("a slice names a column that doesn't exist.")
        for columns, slice_ in zip(self.subsets, tables, strict=True):
            sizes = [(self.atoms.n_codes[j],) for j in columns]
            if [t.shape for t in slice_] != sizes or any(t.dtype != np.uint16 for t in slice_):
                raise ValueError("a slice needs a table of uint16 for each of its columns.")
            if not self.wrapped and sum(int(t.max()) for t in slice_) >= 2**_RANGE_BITS:
                raise ValueError("the sum of a straight slice must stay in its range.")

    @classmethod
    def draw(
        cls,
        atoms: AtomLayout,
        *,
        n_bins: int,
        directions: Directions,
        n_slices: int,
        n_cells: int,
        random_state: int | np.random.RandomState | None = None,
    ) -> SliceFeatureMap:
        """Draw slices from public facts.

        Parameters
        ----------
        atoms : AtomLayout
            The codes of each column.
        n_bins : int
            Most bins of a number that the atoms were made with.
        directions : {"sparse", "dense", "frame", "wrapped"}
            "sparse": two or three columns a slice, those with more codes more often; a number has
            a random sign, a category a random place for each of its values, and every column the
            same part of the range. "dense": all columns, Gaussian weights. "frame": the same, with
            orthogonal directions as long as there are enough dimensions. "wrapped": like sparse,
            but whole cells, modulo their number.
        n_slices : int
            Number of slices.
        n_cells : int
            Cells of each, a power of two in 4 .. 1024.
        random_state : int, RandomState or None
            Public randomness: directions of histograms need not be secret.

        Raises
        ------
        PrivacyParameterError
            If a parameter is out of range, or there is no column with two codes.
        """
        from sklearn.utils import check_random_state

        _check(directions, n_slices, n_cells)
        if not atoms.columns:
            raise PrivacyParameterError(
                "there is nothing to release: every column of the schema has a single value."
            )
        rng = check_random_state(random_state)
        if directions in ("sparse", "wrapped"):
            subsets = _sparse_subsets(atoms, n_slices, rng)
        else:
            subsets = [tuple(range(len(atoms.columns)))] * n_slices
        if directions == "wrapped":
            tables = [tuple(_turns(atoms, j, n_cells, rng) for j in s) for s in subsets]
        elif directions == "sparse":
            tables = [_straight([_shape(atoms, j, rng) for j in s]) for s in subsets]
        else:
            weights = _dense_weights(sum(_dimensions(atoms)), n_slices, directions, rng)
            tables = [_straight(_weighted(atoms, row)) for row in weights]
        return cls(atoms, n_bins, n_cells, directions, tuple(subsets), tuple(tables))

    @property
    def wrapped(self) -> bool:
        """Whether cells are added modulo their number."""
        return self.directions == "wrapped"

    @property
    def n_slices(self) -> int:
        """Number of slices m."""
        return len(self.subsets)

    @property
    def width(self) -> int:
        """Number of cells of all slices."""
        return self.n_slices * self.n_cells

    @property
    def n_parts(self) -> int:
        """Parts of a release that can be left out of training: slices."""
        return self.n_slices

    def part(self, parts: npt.NDArray[np.int64]) -> SliceFeatureMap:
        """The map that has some of the slices only, in ascending order."""
        kept = np.sort(parts).tolist()
        return replace(
            self,
            subsets=tuple(self.subsets[s] for s in kept),
            tables=tuple(self.tables[s] for s in kept),
        )

    def spec(self, n_classes: int, count_weight: float) -> EmbeddingSpec:
        """What one row contributes: one cell of each slice, of weight ``1 / sqrt(m)``."""
        return EmbeddingSpec(
            n_signed=0,
            group_widths=(self.n_cells,) * self.n_slices,
            n_classes=n_classes,
            count_weight=count_weight,
            block_share=1.0,
        )

    def cells(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Cell of each row in each slice.

        Parameters
        ----------
        codes : ndarray of int64, shape (n, n_columns)
            Codes in range.

        Returns
        -------
        ndarray of int64, shape (n, m)
            In ``0 .. B - 1``.
        """
        columns = codes.T.copy()
        cells = np.empty((len(codes), self.n_slices), dtype=np.int64)
        shift = _RANGE_BITS - (self.n_cells.bit_length() - 1)
        for s, (subset, slice_) in enumerate(zip(self.subsets, self.tables, strict=True)):
            # uint16 wraps around, which is what wrapped slices do; straight ones stay in range.
            total = np.zeros(len(codes), dtype=np.uint16)
            for j, table in zip(subset, slice_, strict=True):
                total += table[columns[j]]
            cells[:, s] = total >> shift
        return cells

    def batches(
        self,
        encoded: npt.NDArray[np.floating],
        labels: npt.NDArray[np.int64],
        keep: npt.NDArray[np.bool_] | None,
    ) -> Iterator[RowBatch]:
        """Encoded rows as the mechanism takes them, in chunks of bounded memory."""
        size = max(1, _CHUNK // self.n_slices)
        for start in range(0, len(encoded), size):
            part = slice(start, start + size)
            cells = self.cells(self.atoms.encode(encoded[part]))
            none = np.empty((len(cells), 0), dtype=np.int64)
            yield RowBatch(none, cells, labels[part], None if keep is None else keep[part])

    def in_cells(self, table: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
        """Entries of a table in units of a cell."""
        return table * (self.n_cells / 2**_RANGE_BITS)

    def histograms(self, release: Release) -> npt.NDArray[np.float64]:
        """Noisy joint shares of class and cell, shape (n_classes, m, B)."""
        weight = release.spec.category_steps / 2.0**release.spec.lattice_bits
        shares = release.mean_embedding() / weight
        return shares.reshape(len(shares), self.n_slices, self.n_cells)

    def stddev(self, release: Release) -> float:
        """Noise standard deviation of each entry of :meth:`histograms`."""
        weight = release.spec.category_steps / 2.0**release.spec.lattice_bits
        return release.coordinate_stddev / weight

    # -- travelling with a release ----------------------------------------------------------------

    def to_public(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """JSON-ready facts and arrays from which :meth:`from_release` makes the map again."""
        facts: dict[str, Any] = {
            "kind": "slices",
            "atoms": self.atoms.to_dict(),
            "n_bins": self.n_bins,
            "n_cells": self.n_cells,
            "directions": self.directions,
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            "slice_orders": np.array([len(s) for s in self.subsets], dtype=np.int64),
            "slice_columns": np.array([j for s in self.subsets for j in s], dtype=np.int64),
            "slice_tables": np.concatenate([table for slice_ in self.tables for table in slice_]),
        }
        return facts, arrays

    @classmethod
    def from_release(cls, release: Release) -> SliceFeatureMap:
        """The feature map that a release was made with."""
        facts, arrays = release.public["feature_map"], release.public_arrays
        atoms = AtomLayout.from_dict(facts["atoms"])
        stops = np.cumsum(arrays["slice_orders"])[:-1]
        subsets = [tuple(s.tolist()) for s in np.split(arrays["slice_columns"], stops)]
        sizes = [atoms.n_codes[j] for subset in subsets for j in subset]
        flat = iter(np.split(arrays["slice_tables"], np.cumsum(sizes)[:-1]))
        tables = tuple(tuple(next(flat) for _ in subset) for subset in subsets)
        return cls(
            atoms,
            int(facts["n_bins"]),
            int(facts["n_cells"]),
            facts["directions"],
            tuple(subsets),
            tables,
        )


def _check(directions: Any, n_slices: Any, n_cells: Any) -> None:
    if not isinstance(directions, str) or directions not in _DIRECTIONS:
        raise PrivacyParameterError(
            f"directions must be 'sparse', 'dense', 'frame' or 'wrapped', got {directions!r}."
        )
    for name, value, most in (("n_slices", n_slices, 2**16), ("n_cells", n_cells, _MAX_CELLS)):
        integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not integer or not 1 <= value <= most:
            raise PrivacyParameterError(f"{name} must be an integer in 1 .. {most}, got {value!r}.")
    if n_cells < 4 or n_cells & (n_cells - 1):
        raise PrivacyParameterError(f"n_cells must be a power of two, at least 4, got {n_cells}.")


def _sparse_subsets(
    atoms: AtomLayout, n_slices: int, rng: np.random.RandomState
) -> list[tuple[int, ...]]:
    """Columns of sparse slices: as many of two columns as of three, wide columns more often."""
    orders = sorted({min(order, len(atoms.columns)) for order in _SPARSE_ORDERS})
    subsets: list[tuple[int, ...]] = []
    for position, order in enumerate(orders):
        share = n_slices // len(orders) + (position < n_slices % len(orders))
        if not share:
            continue
        chosen, weights = choose_subsets(atoms.n_codes, order, share, rng)
        stops = np.rint(np.cumsum(weights) / weights.sum() * share).astype(int)
        for subset, size in zip(chosen, np.diff(stops, prepend=0).tolist(), strict=True):
            subsets.extend([subset] * size)
    return subsets


def _shape(atoms: AtomLayout, column: int, rng: np.random.RandomState) -> npt.NDArray[np.float64]:
    """Where each code of a column lies on a straight slice, in units of the column's part."""
    places = rng.uniform(size=atoms.n_codes[column])
    centers = atoms.columns[column].centers
    places[: len(centers)] = centers if rng.uniform() < 0.5 else 1 - centers
    return places


def _dense_weights(
    dimension: int, n_slices: int, directions: Directions, rng: np.random.RandomState
) -> npt.NDArray[np.float64]:
    """Directions: Gaussian, or orthogonal in blocks."""
    if directions == "dense":
        return rng.normal(size=(n_slices, dimension))
    blocks = [
        np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
        for _ in range(-(-n_slices // dimension))
    ]
    return np.concatenate(blocks)[:n_slices]


def _dimensions(atoms: AtomLayout) -> list[int]:
    """Coordinates of each column: one a category, one a number, one a "missing"."""
    return [
        n - ordered + (ordered > 0)
        for n, ordered in zip(atoms.n_codes, atoms.n_ordered, strict=True)
    ]


def _weighted(atoms: AtomLayout, weights: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    """What each code adds along a dense direction: a number its weight times its value."""
    places = []
    for column, own in enumerate(np.split(weights, np.cumsum(_dimensions(atoms))[:-1])):
        centers = atoms.columns[column].centers
        number = own[:1] * centers if len(centers) else own[:1]
        places.append(np.concatenate([number, own[1:]]))
    return places


def _straight(places: Sequence[npt.NDArray[np.float64]]) -> tuple[npt.NDArray[np.uint16], ...]:
    """Tables of a straight slice: from the first cell to the last, less a step a column."""
    lows = [float(p.min()) for p in places]
    span = sum(float(p.max()) - low for p, low in zip(places, lows, strict=True))
    # Rounded down column by column, so that sums stay below 2^16.
    scale = (2**_RANGE_BITS - 1) / max(span, 1e-300)
    return tuple(
        np.floor((p - low) * scale).astype(np.uint16) for p, low in zip(places, lows, strict=True)
    )


def _turns(
    atoms: AtomLayout, column: int, n_cells: int, rng: np.random.RandomState
) -> npt.NDArray[np.uint16]:
    """Whole cells of a wrapped slice: a number winds around, a category jumps."""
    n_codes, n_ordered = atoms.n_codes[column], atoms.n_ordered[column]
    turns = rng.uniform(size=n_codes)
    if n_ordered:
        low, high = np.log(_CYCLES)
        cycles = np.exp(rng.uniform(low, high)) * rng.normal()
        turns[:n_ordered] = np.arange(n_ordered) / n_ordered * cycles + rng.uniform()
    cells = np.floor(turns * n_cells).astype(np.int64) % n_cells
    return (cells << (_RANGE_BITS - (n_cells.bit_length() - 1))).astype(np.uint16)
