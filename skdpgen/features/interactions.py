"""Interaction features: random frequencies that look at two or three columns each.

A dense kernel over a hundred columns sees little of any of them. Here each frequency looks at a
small subset of columns: the kernel is the mean over subsets of products of kernels of one column,
Gaussian for numbers and the indicator for categories, and its mean embedding fixes the joint
distribution of every subset. Of higher orders it knows nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skdpgen.atoms import AtomLayout
from skdpgen.exceptions import PrivacyParameterError
from skdpgen.features.subsets import choose_subsets
from skdpgen.privacy.batches import CodeBatch
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.spec import EmbeddingSpec

if TYPE_CHECKING:
    from skdpgen.privacy.release import Release

__all__ = ["InteractionFeatureMap"]


@dataclass(frozen=True, eq=False)
class InteractionFeatureMap:
    r"""Cosine-sine features of column subsets, with one-way tables beside them.

    .. math:: \phi_f(x) = \exp\Bigl(i \sum_{j \in S_f} \theta_{fj}[c_j(x)]\Bigr)

    with :math:`c_j(x)` the code of column j. For a category the phases :math:`\theta_{fj}` are
    independent and uniform; for the bins of a number they are :math:`2 \pi \omega_{fj}` times the
    bin's rank in [0, 1).

    Parameters
    ----------
    atoms : AtomLayout
        The codes of each column.
    n_bins : int
        Most bins of a number that the atoms were made with.
    block_share : float
        Share of a row's squared norm that goes to the one-way tables, in [0, 1).
    subsets : tuple of tuple of int
        Columns of each subset.
    phases : tuple of tuples of ndarray of uint16
        Per subset and column, phases of shape (n_codes, m) in 2^-16 turns, one column a family.
    n_harmonics : int, default=1
        Waves of a family, at 1, 2, ... times its phases.
    """

    atoms: AtomLayout
    n_bins: int
    block_share: float
    subsets: tuple[tuple[int, ...], ...]
    phases: tuple[tuple[npt.NDArray[np.uint16], ...], ...]
    n_harmonics: int = 1
    fourier: CodeFourier = field(init=False, repr=False)

    def __post_init__(self) -> None:
        fourier = CodeFourier(self.atoms.n_codes, self.subsets, self.phases, self.n_harmonics)
        object.__setattr__(self, "fourier", fourier)
        # The copies: what travels with a release is what made it.
        object.__setattr__(self, "phases", fourier.phases)

    @classmethod
    def draw(
        cls,
        atoms: AtomLayout,
        *,
        n_bins: int,
        orders: Sequence[int],
        n_frequencies: int,
        max_cycles: float,
        block_share: float,
        max_subsets: int,
        n_harmonics: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> InteractionFeatureMap:
        """Draw subsets and frequencies from public facts.

        Parameters
        ----------
        atoms : AtomLayout
            The codes of each column; at least one column.
        n_bins : int
            Most bins of a number that they were made with.
        orders : sequence of int
            Numbers of columns a frequency looks at, 1 to 4; each gets the same number of
            frequencies, spread over its subsets in proportion to the product of their columns'
            bits (log2 of their numbers of codes). Orders that the table hasn't enough columns for
            become the largest one that it has.
        n_frequencies : int
            Number of frequencies F, rounded down to whole families of harmonics.
        max_cycles : float
            Largest scale of a number's frequencies, in cycles over its range. Scales of the last
            wave of a family are log-uniform up to this, or half the number of bins if that is
            less: a finer wave can't be told from a coarser one there. The smallest first wave
            has half a cycle.
        block_share : float
            Share of the squared norm of the one-way tables, in [0, 1).
        max_subsets : int
            Subsets an order; all of them if there are no more, else a random choice with the same
            weights.
        n_harmonics : int, default=1
            Waves of a family, in 1 .. 64. More than one brings rows closer to each other, which
            lowers the sensitivity under replace-one.
        random_state : int, RandomState or None
            Public randomness: frequencies need not be secret.

        Raises
        ------
        PrivacyParameterError
            If a parameter is out of range, or there is no column with two codes.
        """
        from sklearn.utils import check_random_state

        _check(orders, n_frequencies, max_cycles, block_share, max_subsets, n_harmonics)
        n_columns = len(atoms.columns)
        if not n_columns:
            raise PrivacyParameterError(
                "there is nothing to release: every column of the schema has a single value."
            )
        rng = check_random_state(random_state)
        n_families = n_frequencies // n_harmonics
        top = max_cycles / n_harmonics
        subsets: list[tuple[int, ...]] = []
        phases: list[tuple[npt.NDArray[np.uint16], ...]] = []
        possible = sorted({min(order, n_columns) for order in orders})
        for position, order in enumerate(possible):
            share = n_families // len(possible) + (position < n_families % len(possible))
            chosen, weights = choose_subsets(atoms.n_codes, order, min(max_subsets, share), rng)
            stops = np.rint(np.cumsum(weights) / weights.sum() * share).astype(int)
            for subset, size in zip(chosen, np.diff(stops, prepend=0).tolist(), strict=True):
                if size:
                    subsets.append(subset)
                    tables = (_phases(atoms, j, size, top, n_harmonics, rng) for j in subset)
                    phases.append(tuple(tables))
        return cls(
            atoms, n_bins, float(block_share), tuple(subsets), tuple(phases), int(n_harmonics)
        )

    @property
    def n_frequencies(self) -> int:
        """Number of frequencies F."""
        return self.fourier.n_frequencies

    @property
    def n_parts(self) -> int:
        """Parts of a release that can be left out of training: families of waves."""
        return self.fourier.n_families

    def coordinates(self, parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Coordinates of the release that belong to some families: cosines, then sines.

        Parameters
        ----------
        parts : ndarray of int64
            Which families.

        Returns
        -------
        ndarray of int64, shape (2 * number of their frequencies,)
            Places among the signed coordinates.
        """
        families = np.arange(self.n_parts)
        sizes = [tables[0].shape[1] for tables in self.phases]
        by_subset = np.split(families, np.cumsum(sizes)[:-1])
        family_of = np.concatenate([np.tile(own, self.n_harmonics) for own in by_subset])
        waves = np.flatnonzero(np.isin(family_of, parts))
        return np.concatenate([waves, self.n_frequencies + waves])

    def part(self, parts: npt.NDArray[np.int64]) -> InteractionFeatureMap:
        """The map that has some families only; its waves have the :meth:`coordinates` of these.

        Parameters
        ----------
        parts : ndarray of int64
            Which families to keep.

        Returns
        -------
        InteractionFeatureMap
            The smaller map.
        """
        subsets, phases, first = [], [], 0
        for subset, tables in zip(self.subsets, self.phases, strict=True):
            size = tables[0].shape[1]
            kept = np.isin(np.arange(first, first + size), parts)
            first += size
            if kept.any():
                subsets.append(subset)
                phases.append(tuple(np.ascontiguousarray(table[:, kept]) for table in tables))
        return replace(self, subsets=tuple(subsets), phases=tuple(phases))

    def waves(self) -> tuple[tuple[npt.NDArray[np.uint16], ...], ...]:
        """Phases of all waves, in the order of the released features.

        Returns
        -------
        tuple of tuples of ndarray of uint16
            Per subset and column, shape (n_codes, n_harmonics * m).
        """
        multiples = np.arange(1, self.n_harmonics + 1, dtype=np.uint16)[:, None]
        return tuple(
            tuple(
                # uint16 wraps around, which is what phases do.
                (table[:, None, :] * multiples).reshape(len(table), -1)
                for table in tables
            )
            for tables in self.phases
        )

    @property
    def width(self) -> int:
        """Number of real coordinates: cosines, sines, then the one-way tables."""
        return 2 * self.n_frequencies + (sum(self.atoms.n_codes) if self.block_share else 0)

    def spec(self, n_classes: int, count_weight: float) -> EmbeddingSpec:
        """What one row contributes, for the mechanism.

        Parameters
        ----------
        n_classes : int
            Number of classes, 1 without a label.
        count_weight : float
            Weight of the class counts.

        Returns
        -------
        EmbeddingSpec
            Sizes, shares and weights.
        """
        return EmbeddingSpec(
            n_signed=2 * self.n_frequencies,
            group_widths=self.atoms.n_codes if self.block_share else (),
            n_classes=n_classes,
            count_weight=count_weight,
            block_share=self.block_share,
            n_harmonics=self.n_harmonics,
        )

    def batches(
        self,
        encoded: npt.NDArray[np.floating],
        labels: npt.NDArray[np.int64],
        keep: npt.NDArray[np.bool_] | None,
    ) -> Iterator[CodeBatch]:
        """Encoded rows as the mechanism takes them: their codes.

        Parameters
        ----------
        encoded : ndarray of shape (n, width)
            Encoded rows.
        labels : ndarray of int64, shape (n,)
            Class indices.
        keep : ndarray of bool, shape (n,), or None
            Rows that count; None keeps all.

        Yields
        ------
        CodeBatch
            What the mechanism adds up.
        """
        yield CodeBatch(self.atoms.encode(encoded), labels, keep)

    # -- travelling with a release ----------------------------------------------------------------

    def to_public(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """JSON-ready facts and arrays from which :meth:`from_release` makes the map again.

        Returns
        -------
        facts : dict
            Plain values.
        arrays : dict of str to ndarray
            What JSON is too large for.
        """
        facts: dict[str, Any] = {
            "kind": "interactions",
            "atoms": self.atoms.to_dict(),
            "n_bins": self.n_bins,
            "block_share": self.block_share,
            "n_harmonics": self.n_harmonics,
        }
        flat = [table.ravel() for tables in self.phases for table in tables]
        lengths = [
            [len(s), tables[0].shape[1]]
            for s, tables in zip(self.subsets, self.phases, strict=True)
        ]
        arrays: dict[str, npt.NDArray[Any]] = {
            "subset_shapes": np.array(lengths, dtype=np.int64),
            "subset_columns": np.array([j for s in self.subsets for j in s], dtype=np.int64),
            "phases": np.concatenate(flat),
        }
        return facts, arrays

    @classmethod
    def from_release(cls, release: Release) -> InteractionFeatureMap:
        """The feature map that a release was made with.

        Parameters
        ----------
        release : Release
            A release of a table, with its public facts.

        Returns
        -------
        InteractionFeatureMap
            The map.
        """
        facts = release.public["feature_map"]
        atoms = AtomLayout.from_dict(facts["atoms"])
        arrays = release.public_arrays
        columns = iter(arrays["subset_columns"].tolist())
        flat, position = arrays["phases"], 0
        subsets, phases = [], []
        for order, size in arrays["subset_shapes"].tolist():
            subsets.append(tuple(itertools.islice(columns, order)))
            tables = []
            for j in subsets[-1]:
                stop = position + atoms.n_codes[j] * size
                tables.append(flat[position:stop].reshape(atoms.n_codes[j], size))
                position = stop
            phases.append(tuple(tables))
        return cls(
            atoms,
            int(facts["n_bins"]),
            float(facts["block_share"]),
            tuple(subsets),
            tuple(phases),
            # Releases from before there were families name none.
            int(facts.get("n_harmonics", 1)),
        )


def _check(
    orders: Sequence[int],
    n_frequencies: int,
    max_cycles: float,
    block_share: float,
    max_subsets: int,
    n_harmonics: int,
) -> None:
    listed: list[Any] = list(orders) if isinstance(orders, (tuple, list)) else []
    if not listed or any(not _is(Integral, o) or not 1 <= o <= 4 for o in listed):
        raise PrivacyParameterError(f"orders must be a list of numbers 1 to 4, got {orders!r}.")
    if not _is(Integral, n_harmonics) or not 1 <= n_harmonics <= 64:
        raise PrivacyParameterError(
            f"n_harmonics must be an integer in 1 .. 64, got {n_harmonics!r}."
        )
    if not _is(Integral, n_frequencies) or n_frequencies < len(listed) * n_harmonics:
        raise PrivacyParameterError(
            f"n_frequencies must be an integer, at least the number of orders times that of "
            f"harmonics, got {n_frequencies!r}."
        )
    if not _is(Real, max_cycles) or not 0.5 <= max_cycles < math.inf:
        raise PrivacyParameterError(
            f"max_cycles must be a number, at least 0.5, got {max_cycles!r}."
        )
    if not _is(Real, block_share) or not 0 <= block_share < 1:
        raise PrivacyParameterError(f"block_share must be a number in [0, 1), got {block_share!r}.")
    if not _is(Integral, max_subsets) or max_subsets < 1:
        raise PrivacyParameterError(
            f"max_subsets must be an integer, at least 1, got {max_subsets!r}."
        )


def _is(kind: type, value: object) -> bool:
    """Whether a value is a number of this kind; booleans aren't."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _phases(
    atoms: AtomLayout,
    column: int,
    size: int,
    max_cycles: float,
    n_harmonics: int,
    rng: np.random.RandomState,
) -> npt.NDArray[np.uint16]:
    """Random phases of one column, shape (n_codes, size), in 2^-16 turns."""
    n_codes, n_ordered = atoms.n_codes[column], atoms.n_ordered[column]
    turns = rng.uniform(size=(n_codes, size))
    if n_ordered:
        top = max(0.5, min(max_cycles, n_ordered / (2 * n_harmonics)))
        scale = np.exp(rng.uniform(math.log(0.5), math.log(top), size))
        turns[:n_ordered] = np.outer(
            np.arange(n_ordered) / n_ordered, scale * rng.normal(size=size)
        )
    return np.rint(turns * 2**16).astype(np.int64).astype(np.uint16)
