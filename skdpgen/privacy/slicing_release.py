"""The release of noisy projected rows: what comes out, how it is checked and stored."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError, ReleaseError
from skdpgen.privacy.accounting import check_epsilon_delta, gaussian_delta, gaussian_epsilon
from skdpgen.privacy.archive import read_archive, write_archive
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.noise import check_stddev
from skdpgen.privacy.release import frozen
from skdpgen.privacy.slicing_accounting import slicing_delta, slicing_epsilon
from skdpgen.privacy.slicing_layout import DirectionKind, SlicingLayout, largest_stretch
from skdpgen.privacy.statements import guarantee

__all__ = ["SlicingRelease"]

_FORMAT = "skdpgen-slicing-release"
_VERSION = 1
_PUBLIC = "public/"


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
        """The guarantee in one sentence, adjacency and unit of privacy named.

        It says so if bounds or values of the schema were learned by an earlier release, whose cost
        is neither in here nor in :meth:`verify`.

        Returns
        -------
        str
            The statement.
        """
        if not self.private:
            return "NOT PRIVATE: made with insecure noise, for tests and benchmarks only."
        change = "replacing one row (replace-one adjacency)"
        return guarantee(self.epsilon, self.delta, change, self.public)

    @property
    def spends(self) -> tuple[LedgerEntry, ...]:
        """What it takes to make it, as a ledger adds it up."""
        facts = self.noise_stddev, self.epsilon, self.delta, self.private
        return (self.layout.entry(self.value_bits, *facts),)

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
        lengths = np.square(self.directions.astype(np.float64)).sum(axis=1)
        if layout.kind == "gaussian" and lengths.max() > layout.longest_squared:
            raise ReleaseError("the directions are longer than any that are drawn.")
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
        """One class: a label is a column among others.

        Returns
        -------
        ndarray of shape (1,)
            A one.
        """
        return np.ones(1)

    def projections(self) -> npt.NDArray[np.float64]:
        """Noisy projections, one being the diameter; shape (n_rows, n_slices, slice_dim).

        Returns
        -------
        ndarray of shape (n_rows, n_slices, slice_dim)
            The projections.
        """
        shape = self.n_rows, self.n_slices, self.slice_dim
        return self.noisy_rows.reshape(shape) / 2.0**self.value_bits

    def direction_matrix(self) -> npt.NDArray[np.float64]:
        """Directions, so that encoded rows times this plus noise are the projections.

        Returns
        -------
        ndarray of shape (dimension, n_slices * slice_dim)
            The directions.
        """
        return self.directions / 2.0**self.direction_bits

    def column_weights(self) -> npt.NDArray[np.float64]:
        """Weight of each coordinate of an encoded row, shape (dimension,).

        Numbers in [0, 1] and one-hot indicators, times this, are what the directions project.

        Returns
        -------
        ndarray of shape (dimension,)
            The weights.
        """
        return self.layout.column_weights()

    @property
    def noise_scale(self) -> float:
        """Noise standard deviation of one coordinate of :meth:`projections`."""
        return self.noise_stddev / 2.0**self.value_bits

    # -- storage ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file without pickle, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to; an existing file is replaced.
        """
        write_archive(path, *self.to_archive())

    def to_archive(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What :meth:`save` writes: a header of JSON types, and arrays by name.

        Returns
        -------
        header : dict
            Values that JSON can hold.
        arrays : dict of str to ndarray
            Arrays by name.
        """
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "public": self.public,
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
        }
        return header, self._arrays()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SlicingRelease:
        """Read a release written by :meth:`save`, and verify it.

        Parameters
        ----------
        path : str or path-like
            A file written by :meth:`save`.

        Returns
        -------
        SlicingRelease
            The release.

        Raises
        ------
        ReleaseError
            If the file isn't a release, is damaged, is of a newer version, or doesn't verify.
        """
        return cls.from_archive(*read_archive(path))

    @classmethod
    def from_archive(
        cls, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> SlicingRelease:
        """The release that :meth:`to_archive` made this of, verified; raises like :meth:`load`.

        Parameters
        ----------
        header : mapping
            As :meth:`to_archive` gives it.
        arrays : mapping of str to ndarray
            The same.

        Returns
        -------
        SlicingRelease
            The release.
        """
        arrays = dict(arrays)
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
