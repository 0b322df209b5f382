"""What one row may contribute to a mean embedding, and the exact sensitivity that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import index

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.entries import Adjacency, check_adjacency

__all__ = ["EmbeddingSpec"]


@dataclass(frozen=True)
class EmbeddingSpec:
    """What one row may contribute to a mean embedding: shape, weights and their exact bounds.

    Parameters
    ----------
    n_signed : int
        Width of the signed block (twice the number of frequencies); 0 for none.
    group_widths : tuple of int
        Widths of the one-hot groups, each at least 2; empty for none.
    n_classes : int
        Number of classes; 1 without labels.
    count_weight : float
        Weight w of the class-count coordinate, in [0, 16]; 0 releases no counts.
    block_share : float or None, default=None
        Share of a row's squared norm, 1 in all, that the one-hot groups get, in [0, 1]; the signed
        block gets the rest. None is the sum kernel of the DP-MERF paper: a signed block of norm 1
        beside one-hot columns of weight ``1 / sqrt(d)``, d their number.
    n_harmonics : int, default=1
        Larger than 1 says that the signed block is made of families of h waves, with phases t, 2 t,
        ... h t and squared amplitudes falling linearly: two rows can't be opposite then. Only a
        mechanism that makes the waves itself accepts it
        (:class:`~skdpgen.privacy.codes.CodeFourier`). At most 64.

    Raises
    ------
    PrivacyParameterError
        If a value is of the wrong type, out of range, or a row would contribute nothing.

    Notes
    -----
    One is ``2**lattice_bits`` lattice steps, as many as let a row's squared norm fit into int64,
    and at most 2^26: a row then adds at most ``16 * 2**26 = 2**30`` steps to a coordinate, and
    int64 sums are exact for any table of fewer than 2^33 rows.

    Examples
    --------
    >>> spec = EmbeddingSpec(n_signed=200, group_widths=(3, 2), n_classes=2, count_weight=0.2)
    >>> spec.width, spec.lattice_bits
    (205, 26)
    >>> one = 4**spec.lattice_bits
    >>> round(spec.sensitivity_squared("add-remove") / one, 2)
    1.44
    """

    n_signed: int
    group_widths: tuple[int, ...]
    n_classes: int
    count_weight: float
    block_share: float | None = None
    n_harmonics: int = 1

    def __post_init__(self) -> None:
        try:
            # Immutable integers: nobody can widen a group after the sensitivity was read.
            object.__setattr__(self, "n_signed", index(self.n_signed))
            object.__setattr__(self, "group_widths", tuple(map(index, self.group_widths)))
            object.__setattr__(self, "n_classes", index(self.n_classes))
            object.__setattr__(self, "n_harmonics", index(self.n_harmonics))
            object.__setattr__(self, "count_weight", float(self.count_weight))
            if self.block_share is not None:
                object.__setattr__(self, "block_share", float(self.block_share))
        except (TypeError, ValueError, OverflowError):
            raise PrivacyParameterError(
                "n_signed, group_widths, n_classes and n_harmonics must be integers, count_weight "
                "and block_share numbers."
            ) from None
        if not 0 <= self.n_signed <= 2**24:
            raise PrivacyParameterError("the signed block must have at most 2^24 coordinates.")
        if any(width < 2 for width in self.group_widths):
            raise PrivacyParameterError("a one-hot group needs at least two categories.")
        if self.width == 0:
            raise PrivacyParameterError("there is nothing to release: no features are declared.")
        if self.n_classes < 1:
            raise PrivacyParameterError("there must be at least one class.")
        if not 0 <= self.count_weight <= 16:
            raise PrivacyParameterError("count_weight must be a number in [0, 16].")
        if self.block_share is not None and not 0 <= self.block_share <= 1:
            raise PrivacyParameterError("block_share must be a number in [0, 1].")
        family = 1 if self.n_harmonics == 1 else 2 * self.n_harmonics
        if not 1 <= self.n_harmonics <= 64 or self.n_signed % family:
            raise PrivacyParameterError(
                "n_harmonics must be in 1 .. 64, and the signed block whole families of so many "
                "cosines and sines."
            )

    @property
    def width(self) -> int:
        """Width D of the embedding: signed block, then one column a category."""
        return self.n_signed + sum(self.group_widths)

    @property
    def lattice_bits(self) -> int:
        """Binary digits of the lattice, at most 26: ``n_signed * 2**(2 * bits)`` is below 2^63."""
        bits: int = (62 - self.n_signed.bit_length()) // 2
        return min(26, bits)

    @property
    def _share(self) -> tuple[int, int]:
        """Largest squared norms of the signed block and of the one-hot groups, rounded down."""
        one = 1 << (2 * self.lattice_bits)
        if self.block_share is None:
            d = sum(self.group_widths)
            return one, len(self.group_widths) * one // d if d else 0
        # A float is a fraction: no rounding can add a step to the two shares.
        numerator, denominator = self.block_share.as_integer_ratio()
        groups = numerator * one // denominator
        return one - groups, groups

    @property
    def signed_bound(self) -> int:
        """Largest squared norm S of a row's signed block, in squared lattice steps."""
        return self._share[0] if self.n_signed else 0

    @property
    def signed_distance(self) -> int:
        """Largest squared distance of two rows' signed blocks, in squared lattice steps.

        ``4 S`` for blocks that may be opposite. With h > 1 harmonics ``2 S (1 + 1/h)``, by the
        Fejer kernel, and what truncating the waves to integers may add. Proof in this folder's
        README.
        """
        if self.n_harmonics == 1:
            return 4 * self.signed_bound
        waves = -(-2 * self.signed_bound * (self.n_harmonics + 1) // self.n_harmonics)
        # An entry is at most two steps from its wave, so a difference of two entries at most four:
        # |v - v'| <= |u - u'| + 4 sqrt(n_signed), squared and rounded up.
        truncation = 16 * self.n_signed
        fejer = waves + truncation + math.isqrt(4 * waves * truncation) + 1
        return min(fejer, 4 * self.signed_bound)

    @property
    def category_steps(self) -> int:
        """Weight of one category in lattice steps, rounded down.

        ``1 / sqrt(d)``, d the number of one-hot columns, in the sum kernel of the DP-MERF paper
        (arXiv 2002.11603, sec. 4.3); ``sqrt(block_share / q)`` with q groups else.
        """
        return math.isqrt(self._share[1] // len(self.group_widths)) if self.group_widths else 0

    @property
    def categorical_bound(self) -> int:
        """Squared norm B of a row's one-hot block, in squared lattice steps."""
        return len(self.group_widths) * self.category_steps**2

    @property
    def count_steps(self) -> int:
        """The count weight in lattice steps."""
        return round(self.count_weight * (1 << self.lattice_bits))

    def sensitivity_squared(self, adjacency: Adjacency) -> int:
        """Squared L2 sensitivity of the sums and counts for one row, in squared lattice steps.

        Parameters
        ----------
        adjacency : {"replace-one", "add-remove"}

        Returns
        -------
        int
            With S, B the bounds of the two blocks, W the count weight and D the
            :attr:`signed_distance`: ``S + B + W^2`` for add-remove; for replace-one the largest of
            ``D + 2 B`` (same label), ``2 (S + B + W^2)`` (another label, with two classes or more)
            and ``S + B + W^2`` (against a row that contributes nothing). Proof in this folder's
            README.
        """
        row = self.signed_bound + self.categorical_bound + self.count_steps**2
        if check_adjacency(adjacency) == "add-remove":
            return row
        same_label = self.signed_distance + 2 * self.categorical_bound
        return max(same_label, 2 * row if self.n_classes > 1 else row)

    @property
    def free_count_weight(self) -> float:
        """Largest count weight that adds nothing to the sensitivity under replace-one.

        ``sqrt(D / 2 - S)``, in units of one: then a row with another label moves the release no
        further than a row with the same one. 1 in the paper's sum kernel, 0 without a signed block.
        (With a single class a larger one would be free too.)
        """
        free = self.signed_distance // 2 - self.signed_bound
        return math.isqrt(free) / (1 << self.lattice_bits)
