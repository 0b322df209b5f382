"""The release: everything that leaves the privacy core, and all that training ever sees."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError, ReleaseError
from skdpgen.privacy.accounting import (
    check_epsilon_delta,
    compose_gaussian,
    composed_delta,
    composed_epsilon,
)
from skdpgen.privacy.archive import read_archive, write_archive
from skdpgen.privacy.entries import MAXIMUM_ROWS_PER_UNIT, Adjacency, LedgerEntry, Unit
from skdpgen.privacy.noise import check_stddev
from skdpgen.privacy.shares import earlier_spend, selection_beside
from skdpgen.privacy.spec import EmbeddingSpec
from skdpgen.privacy.statements import guarantee

__all__ = ["Release", "frozen"]

_FORMAT = "skdpgen-release"
# A release that needs earlier ones must not be read by versions that don't know of them.
_VERSION, _VERSION_WITH_EARLIER = 1, 2
_PUBLIC = "public/"


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy mean embedding with the record of how it was made. Immutable and publishable.

    It holds no row, nothing derived from rows but the noisy integers, and under add-remove not
    the number of rows.

    Parameters
    ----------
    spec : EmbeddingSpec
        Shape and bounds of a row's contribution.
    epsilon, delta : float
        The guarantee, for one unit of privacy under ``adjacency``; of this release and the
        ``earlier`` ones together.
    adjacency : {"replace-one", "add-remove"}
        The neighbouring relation.
    unit : {"row", "unit"}
        What is protected: one row, or all rows of one unit (a patient, say).
    rows_per_unit : int
        Rows that a unit of privacy contributes at most.
    rows_bounded : bool
        Whether rows beyond ``rows_per_unit`` were left out by unit.
    n_rows : int or None
        Number of rows of the table, public under replace-one. None under add-remove and where
        rows were bounded by unit: there it is private.
    sensitivity_squared : int
        In squared lattice steps, for the unit of privacy.
    noise_stddev : float
        Standard deviation of the ideal Gaussian noise, in lattice steps.
    noise : {"discrete gaussian", "insecure"}
        How the noise was drawn; "insecure" releases are not private.
    noisy_sums : ndarray of int64, shape (n_classes, width)
        Sum of row embeddings per class plus noise, in lattice steps.
    noisy_counts : ndarray of int64, shape (n_classes,) or (0,)
        Weighted class counts plus noise, in lattice steps; empty if the count weight is 0.
    public_json : str
        Public facts as JSON text: feature map, schema. See :attr:`public`.
    public_arrays : mapping of str to ndarray
        Public arrays, such as the frequencies.
    earlier : tuple of LedgerEntry
        Releases from the same rows that this one needs, such as the bounds and categories of its
        schema where they were learned. If a private selection is among them, this is the run that
        it published, and its noise is that of a run.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> points, schema = make_gaussian_grid(500, random_state=0)
    >>> synth = DPMERFSynthesizer(
    ...     1.0, 1e-5, schema=schema, n_steps=2, features=InteractionFeatures(20, n_bins=8)
    ... ).fit(points)
    >>> release = synth.release_
    >>> print(release.statement())
    (1, 1e-05)-differentially private for replacing one row (replace-one adjacency).
    >>> 0.999 < release.verify() <= 1.0
    True
    """

    spec: EmbeddingSpec
    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: Unit
    rows_per_unit: int
    rows_bounded: bool
    n_rows: int | None
    sensitivity_squared: int
    noise_stddev: float
    noise: str
    noisy_sums: npt.NDArray[np.int64] = field(repr=False)
    noisy_counts: npt.NDArray[np.int64] = field(repr=False)
    public_json: str = field(repr=False)
    public_arrays: Mapping[str, npt.NDArray[Any]] = field(repr=False)
    earlier: tuple[LedgerEntry, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        arrays = {name: frozen(array) for name, array in self.public_arrays.items()}
        object.__setattr__(self, "public_arrays", MappingProxyType(arrays))
        object.__setattr__(self, "noisy_sums", frozen(self.noisy_sums))
        object.__setattr__(self, "noisy_counts", frozen(self.noisy_counts))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, which freezes the arrays again.
        values = [getattr(self, f.name) for f in fields(self)]
        return Release, tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    # -- the guarantee --------------------------------------------------------------------------

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

        It says so if bounds or values of the schema were learned by a release that isn't among the
        ``earlier`` ones: what that cost is neither in here nor in :meth:`verify`.

        Returns
        -------
        str
            The statement.
        """
        if not self.private:
            return "NOT PRIVATE: made with insecure noise, for tests and benchmarks only."
        change = "replacing" if self.adjacency == "replace-one" else "adding or removing"
        unit = "one row"
        if self.unit == "unit":
            kept = "kept" if self.rows_bounded else "promised"
            unit = f"all rows of one unit (at most {self.rows_per_unit} rows a unit, {kept})"
        change = f"{change} {unit} ({self.adjacency} adjacency)"
        return guarantee(self.epsilon, self.delta, change, self.public, self.earlier)

    @property
    def spends(self) -> tuple[LedgerEntry, ...]:
        """What it takes to make it, as a ledger adds it up: the earlier releases and its own noise.

        If it is the published run of a private selection, the entry of that covers all runs, this
        one included. ``epsilon`` of the last entry is that of all together.
        """
        if any(entry.repetitions is not None for entry in self.earlier):
            return self.earlier
        own = LedgerEntry(
            "mean embedding",
            self.sensitivity_squared,
            self.noise_stddev,
            self.adjacency,
            self.unit,
            self.rows_per_unit,
            self.epsilon if self.private else math.inf,
            self.delta,
            self.private,
        )
        return (*self.earlier, own)

    def verify(self) -> float:
        """Recompute epsilon from what the release recorded about itself.

        Sensitivity from the spec, the unit and the adjacency; epsilon at ``delta`` from
        sensitivity and noise by the exact formula.

        Returns
        -------
        float
            The recomputed epsilon, at most :attr:`epsilon`; ``inf`` for insecure noise.

        Raises
        ------
        ReleaseError
            If the record contradicts itself or promises more than the noise gives.
        """
        self._check_fields()
        sensitivity_squared = self.spec.sensitivity_squared(self.adjacency) * self.rows_per_unit**2
        if self.sensitivity_squared != sensitivity_squared:
            raise ReleaseError("the recorded sensitivity isn't the one of the recorded spec.")
        n_counts = self.spec.n_classes if self.spec.count_steps else 0
        shapes = self.noisy_sums.shape, self.noisy_counts.shape
        if shapes != ((self.spec.n_classes, self.spec.width), (n_counts,)):
            raise ReleaseError("the noisy arrays don't have the shape that the spec gives.")
        if {self.noisy_sums.dtype, self.noisy_counts.dtype} != {np.dtype(np.int64)}:
            raise ReleaseError("the noisy arrays aren't integers.")
        if (self.unit == "row") != (self.rows_per_unit == 1 and not self.rows_bounded):
            raise ReleaseError("the recorded unit of privacy contradicts the recorded bounds.")
        if (self.n_rows is None) != (self.adjacency == "add-remove" or self.rows_bounded):
            raise ReleaseError("the number of rows is recorded where it is private, or missing.")
        earlier_mu, extra_delta, selection = self._earlier_spend()
        if not self.private:
            return math.inf
        mu = math.sqrt(sensitivity_squared) / self.noise_stddev
        if selection is not None:
            run_mu, epsilon = selection
            if not (mu <= run_mu and epsilon <= self.epsilon):
                raise ReleaseError("the recorded noise is too small for the recorded guarantee.")
            return epsilon
        mu = compose_gaussian([mu, earlier_mu])
        if not composed_delta(self.epsilon, mu, extra_delta) <= self.delta:
            raise ReleaseError("the recorded noise is too small for the recorded guarantee.")
        return min(composed_epsilon(self.delta, mu, extra_delta), self.epsilon)

    def _earlier_spend(self) -> tuple[float, float, tuple[float, float] | None]:
        """``mu`` and ``extra_delta`` of the earlier releases, which must fit this one.

        Or, if it was selected, ``mu`` of each run and epsilon of all of it.
        """
        facts = self.earlier, self.adjacency, self.unit
        try:
            selection = selection_beside(*facts, self.delta)
            spend = earlier_spend(*facts) if selection is None else (math.inf, 0.0)
        except PrivacyParameterError as error:
            raise ReleaseError(f"the recorded earlier releases don't fit: {error}") from None
        limits = {(e.rows_per_unit, e.private) for e in self.earlier}
        if not limits <= {(self.rows_per_unit, self.private)}:
            raise ReleaseError("the recorded earlier releases don't fit: other unit or noise.")
        return *spend, selection

    def _check_fields(self) -> None:
        """Types and ranges, which a file can get wrong: NaN, say, passes most comparisons."""
        try:
            check_epsilon_delta(self.epsilon, self.delta)
            check_stddev(self.noise_stddev)
        except (PrivacyParameterError, TypeError) as error:
            raise ReleaseError(f"a recorded number is out of range: {error}") from None
        if not (
            self.adjacency in ("replace-one", "add-remove")
            and self.unit in ("row", "unit")
            and self.noise in ("discrete gaussian", "insecure")
            and isinstance(self.rows_bounded, bool)
            and type(self.rows_per_unit) is int
            and 1 <= self.rows_per_unit <= MAXIMUM_ROWS_PER_UNIT
            and (self.n_rows is None or (type(self.n_rows) is int and self.n_rows >= 0))
        ):
            raise ReleaseError("a recorded field has a value that no release has.")

    # -- free views: post-processing of the noisy integers ----------------------------------------

    @property
    def row_count(self) -> float:
        """Number of rows where it is public, else the noisy total; at least 1."""
        if self.n_rows is not None:
            return max(1.0, float(self.n_rows))
        return max(1.0, float(self.noisy_counts.sum()) / self.spec.count_steps)

    def mean_embedding(self) -> npt.NDArray[np.float64]:
        """Estimate of ``mean_i phi(x_i) (x) y_i``, shape (n_classes, width).

        Returns
        -------
        ndarray of shape (n_classes, width)
            The estimate.
        """
        return self.noisy_sums / (2.0**self.spec.lattice_bits * self.row_count)

    def class_proportions(self) -> npt.NDArray[np.float64]:
        """Estimated class proportions, positive, summing to 1; shape (n_classes,).

        Counts below one row, which noise can produce, are raised to one row. Even where the count
        weight is 0 and no counts were released.

        Returns
        -------
        ndarray of shape (n_classes,)
            The proportions.
        """
        if self.spec.count_steps == 0:
            return np.full(self.spec.n_classes, 1 / self.spec.n_classes)
        counts = np.maximum(1.0, self.noisy_counts / self.spec.count_steps)
        return np.asarray(counts / counts.sum())

    @property
    def coordinate_stddev(self) -> float:
        """Noise standard deviation of one coordinate of :meth:`mean_embedding`."""
        return self.noise_stddev / (2.0**self.spec.lattice_bits * self.row_count)

    # -- storage ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file: a zip of ``header.json`` and one ``.npy`` an array.

        No pickle is involved, nothing but the fields of the release is written, time stamps are
        constant, and the file appears whole or not at all.

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
            "version": _VERSION_WITH_EARLIER if self.earlier else _VERSION,
            "spec": {f.name: getattr(self.spec, f.name) for f in fields(self.spec)},
            "public": self.public,
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
        }
        if self.earlier:
            header["earlier"] = [_entry_to_json(entry) for entry in self.earlier]
        return header, self._arrays()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release written by :meth:`save`, and verify it.

        Parameters
        ----------
        path : str or path-like
            A file written by :meth:`save`.

        Returns
        -------
        Release
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
    ) -> Release:
        """The release that :meth:`to_archive` made this of, verified; raises like :meth:`load`.

        Parameters
        ----------
        header : mapping
            As :meth:`to_archive` gives it.
        arrays : mapping of str to ndarray
            The same.

        Returns
        -------
        Release
            The release.
        """
        arrays = dict(arrays)
        version = _VERSION_WITH_EARLIER if header.get("earlier") else _VERSION
        if header.get("format") != _FORMAT or header.get("version") != version:
            raise ReleaseError(
                f"not a release of version {version}: written by another version of skdpgen, or "
                f"by another program."
            )
        try:
            release = cls(
                spec=EmbeddingSpec(**header["spec"]),
                public_json=json.dumps(header["public"], allow_nan=False),
                noisy_sums=arrays.pop("noisy_sums"),
                noisy_counts=arrays.pop("noisy_counts"),
                public_arrays={name.removeprefix(_PUBLIC): a for name, a in arrays.items()},
                earlier=tuple(map(_entry_from_json, header.get("earlier", ()))),
                **{name: header[name] for name in _PLAIN_FIELDS},
            )
            if release._arrays().keys() != {"noisy_sums", "noisy_counts", *arrays}:
                raise ReleaseError("the file holds arrays that no release has.")
            release.verify()
        except ReleaseError:
            raise
        except Exception as error:
            raise ReleaseError(f"the file is damaged or not a release: {error}") from None
        return release

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        public = {f"{_PUBLIC}{name}": array for name, array in self.public_arrays.items()}
        return {"noisy_sums": self.noisy_sums, "noisy_counts": self.noisy_counts, **public}


_PLAIN_FIELDS = (
    "epsilon",
    "delta",
    "adjacency",
    "unit",
    "rows_per_unit",
    "rows_bounded",
    "n_rows",
    "sensitivity_squared",
    "noise_stddev",
    "noise",
)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy an array into memory that nobody can make writeable again.

    Raises
    ------
    ReleaseError
        If it holds Python objects: those can't be stored without pickle.
    """
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise ReleaseError("an array of Python objects can't be part of a release.")
    # The memory belongs to an immutable bytes object, so setflags(write=True) is refused too.
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def _entry_to_json(entry: LedgerEntry) -> dict[str, Any]:
    # JSON has no infinity, which is the epsilon of insecure noise.
    return {**asdict(entry), "epsilon": None if entry.epsilon == math.inf else entry.epsilon}


def _entry_from_json(values: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        **{**values, "epsilon": math.inf if values["epsilon"] is None else values["epsilon"]}
    )
