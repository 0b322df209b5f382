r"""The release of noisy projected rows, and the public geometry that bounds them.

A row is one block a column: a number in [0, w] or a one-hot block, so that two rows are never
farther apart than one. Everything is an integer: one is 2^16 steps in an encoded row,
``2**direction_bits`` in a direction and ``2**value_bits`` in a released value. The proof that the
numbers below suffice is in section 7 of ``README.md`` in this folder.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError, ReleaseError
from skdpgen.privacy.accounting import check_epsilon_delta, gaussian_delta, gaussian_epsilon
from skdpgen.privacy.archive import read_archive, write_archive
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.noise import check_stddev
from skdpgen.privacy.release import _shortest, frozen
from skdpgen.privacy.slicing_accounting import slicing_delta, slicing_epsilon

__all__ = ["DirectionKind", "SlicingLayout", "SlicingRelease"]

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
_FORMAT = "skdpgen-slicing-release"
_VERSION = 1
_PUBLIC = "public/"


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
        return weights / 2**ROW_BITS

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
            return 2**self.direction_bits
        return self._gaussian_limit(self.direction_bits)

    def _gaussian_stddev(self, bits: int) -> int:
        return math.isqrt(4**bits // self.dimension) - 1

    def _gaussian_limit(self, bits: int) -> int:
        return _CUTOFF * (self._gaussian_stddev(bits) + 1)

    @property
    def frame_bound(self) -> int:
        """Bound on the squared largest singular value of a frame, in squared steps.

        Rounding an orthogonal matrix to integers costs the second term; the drawn frame is held
        against the bound (:func:`largest_stretch`) before anything is charged.
        """
        one, copies = 2**self.direction_bits, self.n_directions // self.dimension
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


@dataclass(frozen=True, eq=False)
class SlicingRelease:
    """Public directions and the noisy projection of every row. Immutable and publishable.

    Of the rows it holds nothing but their noisy projections, in random order.

    Parameters
    ----------
    n_numeric, group_widths, n_slices, slice_dim, direction_kind
        See :class:`SlicingLayout`.
    epsilon, delta : float
        The guarantee for replacing one row.
    noise_stddev : float
        Standard deviation of the ideal Gaussian noise, in lattice steps.
    value_bits, direction_bits : int
        One is ``2**bits`` steps in a released value, and in a direction.
    noise : {"discrete gaussian", "insecure"}
        How the noise was drawn; "insecure" releases are not private.
    directions : ndarray of int64, shape (dimension, n_slices * slice_dim)
        Drawn afresh for this release, in steps.
    noisy_rows : ndarray of int64, shape (n_rows, n_slices * slice_dim)
        Projected rows plus noise, in steps.
    public_json : str
        Public facts as JSON text: encoding, schema. See :attr:`public`.
    public_arrays : mapping of str to ndarray
        Public arrays.
    """

    n_numeric: int
    group_widths: tuple[int, ...]
    n_slices: int
    slice_dim: int
    direction_kind: DirectionKind
    epsilon: float
    delta: float
    noise_stddev: float
    value_bits: int
    direction_bits: int
    noise: str
    directions: npt.NDArray[np.int64] = field(repr=False)
    noisy_rows: npt.NDArray[np.int64] = field(repr=False)
    public_json: str = field(repr=False)
    public_arrays: Mapping[str, npt.NDArray[Any]] = field(repr=False)

    def __post_init__(self) -> None:
        arrays = {name: frozen(array) for name, array in self.public_arrays.items()}
        object.__setattr__(self, "public_arrays", MappingProxyType(arrays))
        object.__setattr__(self, "directions", frozen(self.directions))
        object.__setattr__(self, "noisy_rows", frozen(self.noisy_rows))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, which freezes the arrays again.
        values = [getattr(self, f.name) for f in fields(self)]
        values[-1] = dict(values[-1])
        return SlicingRelease, tuple(values)

    # -- the guarantee --------------------------------------------------------------------------

    @property
    def layout(self) -> SlicingLayout:
        """Shapes, weights and resolutions."""
        return SlicingLayout(
            self.n_numeric, self.group_widths, self.n_slices, self.slice_dim, self.direction_kind
        )

    @property
    def private(self) -> bool:
        """Whether the noise was drawn securely."""
        return self.noise == "discrete gaussian"

    @property
    def public(self) -> dict[str, Any]:
        """The public facts that came along: a fresh copy on each access."""
        facts: dict[str, Any] = json.loads(self.public_json)
        return facts

    def statement(self) -> str:
        """The guarantee in one sentence, adjacency and unit of privacy named."""
        if not self.private:
            return "NOT PRIVATE: made with insecure noise, for tests and benchmarks only."
        return (
            f"({_shortest(self.epsilon)}, {_shortest(self.delta)})-differentially private for "
            f"replacing one row (replace-one adjacency)."
        )

    def verify(self) -> float:
        """Recompute epsilon from what the release recorded about itself.

        Returns
        -------
        float
            The recomputed epsilon, at most :attr:`epsilon`; ``inf`` for insecure noise.

        Raises
        ------
        ReleaseError
            If the record contradicts itself or promises more than the noise gives.
        """
        layout = self._checked_layout()
        shape = layout.dimension, layout.n_directions
        if self.directions.shape != shape or self.noisy_rows.shape != (self.n_rows, shape[1]):
            raise ReleaseError("the arrays don't have the shape that the record gives.")
        if {self.directions.dtype, self.noisy_rows.dtype} != {np.dtype(np.int64)}:
            raise ReleaseError("the arrays aren't integers.")
        # Compared without abs, which the smallest int64 doesn't have.
        limit = layout.direction_limit
        if not (self.directions.min() >= -limit and self.directions.max() <= limit):
            raise ReleaseError("the directions are larger than any that are drawn.")
        if layout.kind == "frame" and largest_stretch(self.directions) > layout.frame_bound:
            raise ReleaseError("the directions don't make up a frame.")
        if not self.private:
            return math.inf
        entry = layout.entry(self.value_bits, self.noise_stddev, self.epsilon, self.delta, True)
        if layout.kind == "frame":
            reached = gaussian_delta(self.epsilon, entry.mu)
            epsilon = gaussian_epsilon(self.delta, entry.mu)
        else:
            reached = slicing_delta(self.epsilon, self.noise_stddev, **entry.slicing)
            epsilon = slicing_epsilon(self.delta, self.noise_stddev, **entry.slicing)
        # Half of the slack that calibration keeps; the rest covers what the formulas leave out.
        if not reached * (1 + 5e-9) <= self.delta:
            raise ReleaseError("the recorded noise is too small for the recorded guarantee.")
        return min(epsilon, self.epsilon)

    def _checked_layout(self) -> SlicingLayout:
        """Types and ranges, which a file can get wrong: NaN, say, passes most comparisons."""
        try:
            check_epsilon_delta(self.epsilon, self.delta)
            check_stddev(self.noise_stddev)
            layout = self.layout
            layout.check_value_bits(self.value_bits)
        except (PrivacyParameterError, TypeError) as error:
            raise ReleaseError(f"a recorded field is out of range: {error}") from None
        if not (
            type(self.value_bits) is int
            and type(self.direction_bits) is int
            and self.direction_bits == layout.direction_bits
            and self.noise in ("discrete gaussian", "insecure")
        ):
            raise ReleaseError("a recorded field has a value that no release has.")
        return layout

    # -- free views: post-processing of the noisy integers ----------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows, public under replace-one adjacency."""
        return len(self.noisy_rows)

    def class_proportions(self) -> npt.NDArray[np.float64]:
        """One class: a label is a column among others."""
        return np.ones(1)

    def projections(self) -> npt.NDArray[np.float64]:
        """Noisy projections, one being the diameter; shape (n_rows, n_slices, slice_dim)."""
        shape = self.n_rows, self.n_slices, self.slice_dim
        return self.noisy_rows.reshape(shape) / 2.0**self.value_bits

    def direction_matrix(self) -> npt.NDArray[np.float64]:
        """Directions, so that encoded rows times this plus noise are the projections."""
        return self.directions / 2.0**self.direction_bits

    def column_weights(self) -> npt.NDArray[np.float64]:
        """Weight of each coordinate of an encoded row, shape (dimension,).

        Numbers in [0, 1] and one-hot indicators, times this, are what the directions project.
        """
        return self.layout.column_weights()

    @property
    def noise_scale(self) -> float:
        """Noise standard deviation of one coordinate of :meth:`projections`."""
        return self.noise_stddev / 2.0**self.value_bits

    # -- storage ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file without pickle, whole or not at all."""
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "public": self.public,
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
        }
        write_archive(path, header, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SlicingRelease:
        """Read a release written by :meth:`save`, and verify it.

        Raises
        ------
        ReleaseError
            If the file isn't a release, is damaged, is of a newer version, or doesn't verify.
        """
        header, arrays = read_archive(path)
        if header.get("format") != _FORMAT or header.get("version") != _VERSION:
            raise ReleaseError(
                f"not a slicing release of version {_VERSION}: written by another version of "
                f"skdpgen, or by another program."
            )
        try:
            plain = {name: header[name] for name in _PLAIN_FIELDS}
            plain["group_widths"] = tuple(plain["group_widths"])
            release = cls(
                public_json=json.dumps(header["public"], allow_nan=False),
                directions=arrays.pop("directions"),
                noisy_rows=arrays.pop("noisy_rows"),
                public_arrays={name.removeprefix(_PUBLIC): a for name, a in arrays.items()},
                **plain,
            )
            if release._arrays().keys() != {"directions", "noisy_rows", *arrays}:
                raise ReleaseError("the file holds arrays that no release has.")
            release.verify()
        except ReleaseError:
            raise
        except Exception as error:
            raise ReleaseError(f"the file is damaged or not a release: {error}") from None
        return release

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        public = {f"{_PUBLIC}{name}": array for name, array in self.public_arrays.items()}
        return {"directions": self.directions, "noisy_rows": self.noisy_rows, **public}


_PLAIN_FIELDS = tuple(f.name for f in fields(SlicingRelease) if f.repr)


def _is_integer(value: object, low: int) -> bool:
    return type(value) is int and value >= low
