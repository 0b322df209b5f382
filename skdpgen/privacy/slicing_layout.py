r"""The public geometry of noisy projected rows: shapes, weights, resolutions, and their bounds.

A row is one block a column: a number in [0, w] or a one-hot block, so that two rows are never
farther apart than one. Everything is an integer: one is 2^16 steps in an encoded row,
``2**direction_bits`` in a direction and ``2**value_bits`` in a released value. The proof that the
numbers below suffice is in section 7 of ``README.md`` in this folder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.entries import LedgerEntry

__all__ = ["ROW_BITS", "DirectionKind", "SlicingLayout", "largest_stretch"]

DirectionKind = Literal["gaussian", "frame"]

ROW_BITS = 16
_MAXIMUM_DIRECTION_BITS = 40
_MINIMUM_VALUE_BITS = 10
_LARGEST = 2**20  # coordinates of a row, and directions
_LARGEST_FRAME = 2**11  # the check of a frame needs all inner products of its rows
_EXACT = 2**53  # integers below are exact in float64, in any order of summation
# A direction is cut off at 40 standard deviations: 2 exp(-800) a coordinate.
_CUTOFF = 40
# That the rounding of U moves a row by more than `value_step` says: exp(-500), 1e-17 of the
# smallest delta there is.
_TAIL = 500.0


@dataclass(frozen=True)
class SlicingLayout:
    """Shapes, weights and resolutions: all that is fixed before a row is read.

    Parameters
    ----------
    n_numeric : int
        Numeric columns, each a block of one coordinate.
    group_widths : tuple of int
        Number of categories of each one-hot block.
    n_slices, slice_dim : int
        Number of slices, and directions of each.
    kind : {"gaussian", "frame"}
        Independent Gaussian directions, or stacked random orthogonal matrices.

    Raises
    ------
    PrivacyParameterError
        If a number is out of range or the directions don't make up a frame.
    """

    n_numeric: int
    group_widths: tuple[int, ...]
    n_slices: int
    slice_dim: int
    kind: DirectionKind = "gaussian"

    def __post_init__(self) -> None:
        if not (
            type(self.group_widths) is tuple
            and _is_integer(self.n_numeric, 0)
            and all(_is_integer(width, 1) for width in self.group_widths)
            and 1 <= self.n_blocks <= ROW_BITS**4
            and self.dimension <= _LARGEST
        ):
            raise PrivacyParameterError(
                "n_numeric and group_widths (a tuple) must be integers that make 1 to 65536 "
                "blocks and at most 2^20 coordinates."
            )
        if not (
            _is_integer(self.n_slices, 1)
            and _is_integer(self.slice_dim, 1)
            and self.n_directions <= _LARGEST
        ):
            raise PrivacyParameterError(
                "n_slices and slice_dim must be positive integers with a product of at most 2^20."
            )
        if self.kind not in get_args(DirectionKind):
            raise PrivacyParameterError("directions must be 'gaussian' or 'frame'.")
        if self.kind == "frame" and (
            self.n_directions % self.dimension or self.dimension > _LARGEST_FRAME
        ):
            raise PrivacyParameterError(
                f"a frame is made of orthogonal matrices: n_slices * slice_dim must be a multiple "
                f"of the dimension of an encoded row, here {self.dimension}, and that at most 2048."
            )

    # -- an encoded row ---------------------------------------------------------------------------

    @property
    def n_blocks(self) -> int:
        """Columns: every one is a block."""
        return self.n_numeric + len(self.group_widths)

    @property
    def dimension(self) -> int:
        """Coordinates of an encoded row."""
        return self.n_numeric + sum(self.group_widths)

    @property
    def n_directions(self) -> int:
        """Released values per row."""
        return self.n_slices * self.slice_dim

    @property
    def block_weight(self) -> int:
        """Largest change w of one block; ``n_blocks * w**2 <= 2**32``, the squared diameter."""
        return math.isqrt(4**ROW_BITS // self.n_blocks)

    @property
    def category_weight(self) -> int:
        """Entry of a one-hot block: twice its square is at most ``block_weight**2``."""
        return math.isqrt(self.block_weight**2 // 2)

    def column_weights(self) -> npt.NDArray[np.float64]:
        """Weight of each coordinate, shape (dimension,).

        Numbers in [0, 1] and one-hot indicators, times this, are an encoded row.
        """
        weights = np.full(self.dimension, float(self.category_weight))
        weights[: self.n_numeric] = self.block_weight
        return np.asarray(weights / 2**ROW_BITS)

    # -- directions -------------------------------------------------------------------------------

    @property
    def direction_bits(self) -> int:
        """As many as keep every partial sum of a projection below 2^53."""
        if self.kind == "frame":  # ... and every inner product of two rows of the frame below 2^52
            return (51 - (self.n_directions // self.dimension).bit_length()) // 2
        bits = _MAXIMUM_DIRECTION_BITS
        while self._gaussian_limit(bits) * self.n_blocks * self.block_weight >= _EXACT:
            bits -= 1
        return bits

    @property
    def direction_stddev(self) -> int:
        """Of the ideal Gaussian directions, in steps: a little less than one / sqrt(dimension).

        The step below the root pays for the rounding of the sampler's own scale.
        """
        return self._gaussian_stddev(self.direction_bits)

    @property
    def direction_limit(self) -> int:
        """Largest entry of a direction in steps."""
        if self.kind == "frame":
            return 1 << self.direction_bits
        return self._gaussian_limit(self.direction_bits)

    def _gaussian_stddev(self, bits: int) -> int:
        return math.isqrt(4**bits // self.dimension) - 1

    def _gaussian_limit(self, bits: int) -> int:
        return _CUTOFF * (self._gaussian_stddev(bits) + 1)

    @property
    def longest_squared(self) -> float:
        """Squared length that no coordinate's entries of Gaussian directions reach.

        A chi-square with m degrees is below m + 2 sqrt(m T) + 2 T but for a probability of
        exp(-T), T = 500 (Laurent and Massart). A record beyond it was made up.
        """
        m = self.n_directions
        return (m + 2 * math.sqrt(m * _TAIL) + 2 * _TAIL) * (self.direction_stddev + 1.0) ** 2

    @property
    def frame_bound(self) -> int:
        """Bound on the squared largest singular value of a frame, in squared steps.

        Rounding an orthogonal matrix to integers costs the second term; the drawn frame is held
        against the bound (:func:`largest_stretch`) before anything is charged.
        """
        one, copies = 1 << self.direction_bits, self.n_directions // self.dimension
        return copies * one * (one + 2 * self.dimension)

    # -- released values --------------------------------------------------------------------------

    def check_value_bits(self, value_bits: int) -> None:
        """Refuse a resolution that no release has.

        Parameters
        ----------
        value_bits : int
            At least 10; projections, in finer steps, are rounded to it.

        Raises
        ------
        PrivacyParameterError
            If it is out of range.
        """
        if not _MINIMUM_VALUE_BITS <= value_bits <= self.largest_value_bits:
            raise PrivacyParameterError("the resolution of the values is out of range.")

    @property
    def largest_value_bits(self) -> int:
        """One bit of a projection is always rounded away, so that values are below 2^52."""
        return ROW_BITS + self.direction_bits - 1

    def fitting_value_bits(self, noise_scale: float) -> int:
        """Resolution at which noise of this scale is 2^24 steps wide, where there is one."""
        bits = math.ceil(24 - math.log2(noise_scale))
        return min(max(bits, _MINIMUM_VALUE_BITS), self.largest_value_bits)

    def value_step(self, value_bits: int) -> float:
        """What rounding adds to the change of a row, per root of the number of directions.

        One step for the rounding of the values; the rest for the rounding of Gaussian directions.
        """
        if self.kind == "frame":
            return 1.0
        spread = 1 + math.sqrt(2 * _TAIL / self.n_directions)
        # The last factor covers the roundings of this very formula.
        return (1 + 2.0 ** (1 + value_bits - self.direction_bits) * spread) * (1 + 2.0**-40)

    def sensitivity_squared(self, value_bits: int) -> int:
        """Squared diameter of a row (Gaussian directions) or sensitivity (frame), in steps."""
        if self.kind == "gaussian":
            return int(4**value_bits)
        # Every term is rounded up: the stretched diameter, and one step a value for rounding.
        shift = 2 * (ROW_BITS + self.direction_bits - value_bits)
        stretched = math.isqrt((self.frame_bound * 4**ROW_BITS >> shift) + 1) + 1
        rounding = math.isqrt(self.n_directions) + 1
        return (stretched + rounding) ** 2

    def entry(
        self, value_bits: int, noise_stddev: float, epsilon: float, delta: float, private: bool
    ) -> LedgerEntry:
        """What a release with these numbers spends.

        Parameters
        ----------
        value_bits : int
            One is ``2**value_bits`` steps in a released value.
        noise_stddev : float
            In steps.
        epsilon, delta : float
            The guarantee.
        private : bool
            Whether the noise is secure.

        Returns
        -------
        LedgerEntry
        """
        gaussian = self.kind == "gaussian"
        return LedgerEntry(
            mechanism="slicing" if gaussian else "slicing by frames",
            sensitivity_squared=self.sensitivity_squared(value_bits),
            noise_stddev=noise_stddev,
            adjacency="replace-one",
            unit="row",
            rows_per_unit=1,
            epsilon=epsilon if private else math.inf,
            delta=delta,
            private=private,
            n_directions=self.n_directions if gaussian else 0,
            dimension=self.dimension if gaussian else 0,
            value_step=self.value_step(value_bits) if gaussian else 0.0,
        )


def largest_stretch(directions: npt.NDArray[np.int64]) -> int:
    """Bound on the squared largest singular value of an integer matrix, exactly.

    The largest absolute row sum of ``U U^T`` bounds its largest eigenvalue.

    Parameters
    ----------
    directions : ndarray of int64, shape (dimension, n_directions)
        Entries below 2^26, where squares are exact in float64.

    Returns
    -------
    int
        In squared steps; 2^52 or more if an inner product might not be exact.
    """
    matrix = directions.astype(np.float64)
    norms = np.einsum("ij,ij->i", matrix, matrix)
    # Partial sums of inner products stay below the largest squared norm, so below 2^53.
    if norms.max() >= _EXACT / 2:
        return _EXACT
    return int(np.abs(matrix @ matrix.T).astype(np.int64).sum(axis=1).max())


def _is_integer(value: object, low: int) -> bool:
    return type(value) is int and value >= low
