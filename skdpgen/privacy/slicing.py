r"""The slicing mechanism: ``M(X) = (U, X U + V)``, one noisy projection per row.

The mechanism of arXiv 2410.19941, in integers. ``U`` is drawn afresh,
independently of the rows, and published. Neighboring tables share the number of rows and differ in
one row, by at most one (:mod:`~skdpgen.privacy.slicing_release`); the accounting is exact
(:mod:`~skdpgen.privacy.slicing_accounting`).

What discreteness costs
-----------------------
A Gaussian direction is drawn as a discrete Gaussian, which is an ideal one plus ``xi``: an ideal
entry, rounded at random with variance 4 (the theorem of :mod:`~skdpgen.privacy.noise`). Given the
ideal matrix the entries of ``xi`` are independent and sub-Gaussian with variance 4, so that for a
change ``v`` of a row ``|v xi|^2 / (4 |v|^2)`` has the exponential moments of a chi-square with m'
degrees: it exceeds ``(sqrt(m') + sqrt(2 t))^2`` with probability at most ``e^-t`` (Laurent and
Massart). At t = 500 that disappears in the slack of the accounting, like the cut-off at 40 standard
deviations. Rounding projected values to the lattice moves a difference by one step a value. Both
together are ``sqrt(m')`` times the layout's ``value_step``, by which the accounting enlarges every
shift. Renyi curves need no such argument: a discrete Gaussian, cut off or not, has at most the
exponential moments of the Gaussian of its own variance.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta, noise_multiplier
from skdpgen.privacy.lattice import GRID_BITS
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import NoiseSource, add_gaussian_noise, check_stddev, current_source
from skdpgen.privacy.release import frozen
from skdpgen.privacy.slicing_accounting import slicing_noise_stddev
from skdpgen.privacy.slicing_layout import (
    ROW_BITS,
    DirectionKind,
    SlicingLayout,
    largest_stretch,
)
from skdpgen.privacy.slicing_release import SlicingRelease

__all__ = ["SlicingBatch", "SlicingMechanism"]

_Integers = npt.NDArray[np.int64]

# Values looked at once: bounds the memory of encoding, projecting and sampling.
_CHUNK = 2**18


@dataclass(frozen=True)
class SlicingBatch:
    """Some rows, as integers. What breaks a bound is clipped or contributes nothing.

    Parameters
    ----------
    numbers : ndarray of int64, shape (n, n_numeric)
        Numeric columns on the grid of :func:`skdpgen.privacy.lattice.to_grid`, 0 .. 2^20.
    codes : ndarray of int64, shape (n, n_groups)
        Category index of each row in each one-hot block.
    """

    numbers: _Integers
    codes: _Integers


@dataclass(frozen=True)
class SlicingMechanism:
    """Releases random directions and the noisy projection of every row onto them.

    Replace-one adjacency only: one released row per record says how many there are. Released
    rows are shuffled, and nothing else about a row is released: a label has to be a block.

    Parameters
    ----------
    n_numeric : int
        Numeric columns.
    group_widths : tuple of int
        Number of categories of each one-hot block.
    n_slices, slice_dim : int
        Number of slices, and directions of each.
    epsilon, delta : float
        The guarantee for replacing one row.
    directions : {"gaussian", "frame"}, default="gaussian"
        Independent Gaussian directions with the exact accounting of their mean; or stacked random
        orthogonal matrices, a plain Gaussian mechanism, for which ``n_slices * slice_dim`` must
        be a multiple of the number of coordinates of an encoded row.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, or the noise would be narrower than 2^10 or wider than
        2^52 lattice steps.

    Notes
    -----
    Proof and threat model: ``README.md`` in this folder, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.privacy import PrivacyLedger
    >>> mechanism = SlicingMechanism(1, (3,), n_slices=4, slice_dim=2, epsilon=5.0, delta=1e-5)
    >>> rows = SlicingBatch(np.array([[0], [2**20]]), np.array([[0], [2]]))
    >>> release = mechanism.release([rows], PrivacyLedger(epsilon=5.0, delta=1e-5))
    >>> release.projections().shape, release.direction_matrix().shape
    ((2, 4, 2), (4, 8))
    """

    n_numeric: int
    group_widths: tuple[int, ...]
    n_slices: int
    slice_dim: int
    epsilon: float
    delta: float
    directions: DirectionKind = "gaussian"
    layout: SlicingLayout = field(init=False, repr=False)
    value_bits: int = field(init=False, repr=False)
    noise_stddev: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        epsilon, delta = check_epsilon_delta(self.epsilon, self.delta)
        layout = SlicingLayout(
            self.n_numeric, self.group_widths, self.n_slices, self.slice_dim, self.directions
        )
        # Calibrated here, so that a target that can't be met fails before a row is read.
        if layout.kind == "gaussian":
            facts = {"n_directions": layout.n_directions, "dimension": layout.dimension}
            ideal = slicing_noise_stddev(epsilon, delta, **facts)
            value_bits = layout.fitting_value_bits(ideal)
            stddev = slicing_noise_stddev(
                epsilon,
                delta,
                **facts,
                diameter=2.0**value_bits,
                value_step=layout.value_step(value_bits),
            )
        else:
            multiplier = noise_multiplier(epsilon, delta)
            ideal = multiplier * math.sqrt(layout.n_directions / layout.dimension)
            value_bits = layout.fitting_value_bits(ideal)
            stddev = multiplier * math.isqrt(layout.sensitivity_squared(value_bits))
        stddev = math.nextafter(stddev, math.inf)
        check_stddev(stddev)
        values = {"epsilon": epsilon, "delta": delta, "layout": layout}
        for name, value in (values | {"value_bits": value_bits, "noise_stddev": stddev}).items():
            object.__setattr__(self, name, value)

    def release(
        self,
        batches: Iterable[SlicingBatch],
        ledger: PrivacyLedger,
        *,
        public: Mapping[str, Any] | None = None,
        public_arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> SlicingRelease:
        """Draw directions, charge the ledger, project the rows exactly, shuffle, add noise.

        Parameters
        ----------
        batches : iterable of SlicingBatch
            The private rows, in any order and any chunking. Consumed only after the charge went
            through.
        ledger : PrivacyLedger
            Charged before the first batch is asked for.
        public, public_arrays : mapping, optional
            Public facts that the release should carry: encoding, schema. They must not depend on
            rows. JSON-ready, and arrays without Python objects.

        Returns
        -------
        SlicingRelease

        Raises
        ------
        BudgetExceededError
            If the ledger refuses; no row was read then.
        PrivacyParameterError
            If a batch hasn't the form, shapes and dtypes of the mechanism. The charge stands, for
            rows were read, but nothing about them is released.
        ReleaseError, TypeError, ValueError
            If a public fact can't be stored; nothing was charged or read then.
        """
        source, layout, stddev = current_source(), self.layout, self.noise_stddev
        public_json = json.dumps(dict(public or {}), allow_nan=False)
        arrays = {name: frozen(array) for name, array in (public_arrays or {}).items()}
        # Before the rows and without them: what is drawn can't depend on a row, and a caller who
        # fails while reading never sees these directions.
        directions = frozen(_draw(layout, source))
        entry = layout.entry(self.value_bits, stddev, self.epsilon, self.delta, source.secure)
        ledger.charge(entry)
        rows = self._project(batches, directions)
        rows = rows[_permutation(len(rows), source)]
        noisy = _with_noise(rows.ravel(), stddev, entry.sensitivity_squared, source)
        return SlicingRelease(
            n_numeric=layout.n_numeric,
            group_widths=layout.group_widths,
            n_slices=layout.n_slices,
            slice_dim=layout.slice_dim,
            direction_kind=layout.kind,
            epsilon=self.epsilon,
            delta=self.delta,
            noise_stddev=stddev,
            value_bits=self.value_bits,
            direction_bits=layout.direction_bits,
            noise="discrete gaussian" if source.secure else "insecure",
            directions=directions,
            noisy_rows=noisy.reshape(rows.shape),
            public_json=public_json,
            public_arrays=arrays,
        )

    def _project(self, batches: Iterable[SlicingBatch], directions: _Integers) -> _Integers:
        """Projected rows on the lattice of the values, shape (n, n_directions)."""
        layout = self.layout
        matrix = directions.astype(np.float64)
        shift = ROW_BITS + layout.direction_bits - self.value_bits
        parts = [np.zeros((0, layout.n_directions), dtype=np.int64)]
        step = max(1, _CHUNK // max(matrix.shape))
        for batch in batches:
            _check_structure(batch, layout)
            for start in range(0, len(batch.codes), step):
                rows = encoded(batch, slice(start, start + step), layout)
                # Every partial sum is an integer below 2^53: exact, in whatever order BLAS adds.
                values = (rows.astype(np.float64) @ matrix).astype(np.int64)
                # Shifting rounds down: half a step is added first.
                parts.append((values + (1 << (shift - 1))) >> shift)
        return np.concatenate(parts)


def encoded(batch: SlicingBatch, rows: slice, layout: SlicingLayout) -> _Integers:
    """Rows as integers of which no two are farther apart than 2^16, whatever the batch holds.

    Parameters
    ----------
    batch : SlicingBatch
        Of checked structure.
    rows : slice
        Which rows.
    layout : SlicingLayout
        The blocks and their weights.

    Returns
    -------
    ndarray of int64, shape (n, dimension)
    """
    numbers = np.clip(batch.numbers[rows], 0, 2**GRID_BITS)
    # A copy: what is checked here is what is looked up, whatever the caller's array becomes.
    codes = batch.codes[rows].copy()
    out = np.zeros((len(codes), layout.dimension), dtype=np.int64)
    out[:, : layout.n_numeric] = numbers * layout.block_weight >> GRID_BITS
    position = layout.n_numeric
    for group, width in enumerate(layout.group_widths):
        column = codes[:, group]
        inside = np.flatnonzero((column >= 0) & (column < width))
        out[inside, position + column[inside]] = layout.category_weight
        position += width
    return out


def _check_structure(batch: SlicingBatch, layout: SlicingLayout) -> None:
    """Refuse a batch of another form; the message holds no value of a row."""
    if type(batch) is not SlicingBatch:
        raise PrivacyParameterError("the slicing mechanism takes a SlicingBatch.")
    # Subclasses compute differently: a masked array skips rows, a matrix has no vectors.
    arrays = batch.numbers, batch.codes
    if any(type(a) is not np.ndarray or a.dtype != np.int64 or a.ndim != 2 for a in arrays):
        raise PrivacyParameterError("a batch must hold plain int64 matrices only.")
    n, expected = len(batch.codes), (layout.n_numeric, len(layout.group_widths))
    if (batch.numbers.shape, batch.codes.shape) != ((n, expected[0]), (n, expected[1])):
        raise PrivacyParameterError("a batch doesn't have the shape that the layout gives.")


def _draw(layout: SlicingLayout, source: NoiseSource) -> _Integers:
    """Fresh directions in steps, shape (dimension, n_directions)."""
    # Insecure noise may be switched off; directions may not.
    source = NoiseSource(source.rng)
    d, m = layout.dimension, layout.n_directions
    if layout.kind == "gaussian":
        entries = _with_noise(np.zeros(d * m, np.int64), layout.direction_stddev, 1, source)
        limit = layout.direction_limit
        return np.clip(entries, -limit, limit).reshape(d, m)
    matrices = []
    for _ in range(m // d):
        entries = _with_noise(np.zeros(d * d, np.int64), 2.0**30, 1, source)
        q, r = np.linalg.qr(entries.reshape(d, d).astype(np.float64))
        # With these signs the distribution is the uniform one (Haar's), whatever LAPACK prefers.
        matrices.append(q * np.where(np.diag(r) < 0, -1.0, 1.0))
    limit = layout.direction_limit
    steps = np.rint(np.concatenate(matrices, axis=1) * limit).astype(np.int64)
    frame: _Integers = np.clip(steps, -limit, limit)
    if largest_stretch(frame) > layout.frame_bound:
        raise RuntimeError("orthogonal matrices came out inexact; nothing was charged or read.")
    return frame


def _with_noise(
    values: _Integers, stddev: float, sensitivity_squared: int, source: NoiseSource
) -> _Integers:
    out = np.empty_like(values)
    for start in range(0, len(values), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = add_gaussian_noise(values[part], stddev, sensitivity_squared, source)
    return out


def _permutation(n: int, source: NoiseSource) -> npt.NDArray[np.intp]:
    """A random order, from the operating system's entropy unless the noise is insecure too."""
    if source.rng is not None:
        return source.rng.permutation(n)
    return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")
