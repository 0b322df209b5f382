"""Random Fourier features as exact integer functions of one row.

Floating-point matrix products are not functions of a row: a BLAS changes its order of summation
with the row's position and the size of the block, so one changed record could move the features of
its neighbours. Here inputs and frequencies are integers on public grids, and every partial sum of
their product is an integer below 2^53, which float64 represents exactly in any order. The phase is
reduced modulo one turn in int64, and cosine and sine are read from an integer table truncated
toward zero, so that the norm of a row never exceeds its bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["GRID_BITS", "IntegerFourier", "quantize_frequencies", "to_grid"]

#: Inputs in [0, 1] are rounded to multiples of 2^-20.
GRID_BITS = 20
_TABLE_BITS = 16
_MAX_FREQUENCY_BITS = 22
_EXACT = 2**53


def to_grid(z: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Round numbers to the input grid; total on all floats.

    Parameters
    ----------
    z : ndarray of float, any shape
        Nominally in [0, 1]. Values outside are clipped; NaN becomes the middle, 0.5.

    Returns
    -------
    ndarray of int64, same shape
        In 0 .. 2^20.
    """
    clipped = np.clip(np.where(np.isnan(z), 0.5, z).astype(np.float64), 0.0, 1.0)
    grid: npt.NDArray[np.int64] = np.rint(clipped * 2**GRID_BITS).astype(np.int64)
    return grid


def quantize_frequencies(
    cycles: npt.NDArray[np.floating],
) -> tuple[npt.NDArray[np.int64], int]:
    """Round frequencies to the finest grid on which all phases are exact.

    Parameters
    ----------
    cycles : ndarray of float, shape (F, p)
        Frequencies in cycles per unit of the scaled input, finite.

    Returns
    -------
    frequencies : ndarray of int64, shape (F, p)
        ``rint(cycles * 2**bits)``.
    bits : int
        At most 22, and small enough that every phase fits into 2^53 grid steps.

    Raises
    ------
    ValueError
        If a frequency is so large that less than 2^-8 cycles of resolution would be left.
    """
    cycles = np.asarray(cycles, dtype=np.float64)
    for bits in range(_MAX_FREQUENCY_BITS, 7, -1):
        frequencies = np.rint(cycles * 2**bits)
        if _largest_phase(frequencies) < _EXACT:
            return frequencies.astype(np.int64), bits
    raise ValueError("the frequencies are too large for exact phases: choose a larger bandwidth.")


def _largest_phase(frequencies: npt.NDArray[np.float64]) -> float:
    """An upper bound on the absolute phase in grid steps, over all inputs and all sub-sums."""
    # Integer sums below 2^53 are exact in float64, so a bound that passes is a true bound.
    largest: float = np.abs(frequencies).sum(axis=1).max(initial=0.0)
    return float(largest) * 2.0**GRID_BITS


@dataclass(frozen=True)
class IntegerFourier:
    """Cosine-sine features of a row as integers, with squared norm at most ``2**(2 * bits)``.

    Parameters
    ----------
    frequencies : ndarray of int64, shape (F, p)
        See :func:`quantize_frequencies`.
    frequency_bits : int
        Resolution of the frequencies.
    lattice_bits : int
        One in lattice steps is ``2**lattice_bits``.

    Raises
    ------
    ValueError
        If the frequencies aren't an int64 matrix, their resolution is out of range, or a phase
        might not be exact.
    """

    frequencies: npt.NDArray[np.int64]
    frequency_bits: int
    lattice_bits: int
    _weights: npt.NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _table: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.frequencies.dtype != np.int64 or self.frequencies.ndim != 2:
            raise ValueError("the frequencies must be an int64 matrix.")
        if not 0 <= self.frequency_bits <= _MAX_FREQUENCY_BITS:
            raise ValueError("the resolution of the frequencies is out of range.")
        weights = self.frequencies.astype(np.float64)
        if _largest_phase(weights) >= _EXACT:
            raise ValueError("the frequencies are too large for exact phases.")
        object.__setattr__(self, "_weights", weights.T)
        object.__setattr__(self, "_table", trig_table(self.amplitude))

    @property
    def amplitude(self) -> int:
        """Largest integer A with ``F * A**2 <= 2**(2 * lattice_bits)``."""
        return math.isqrt(2 ** (2 * self.lattice_bits) // max(1, len(self.frequencies)))

    def __call__(self, grid: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Features of rows on the input grid.

        Parameters
        ----------
        grid : ndarray of int64, shape (n, p)
            Output of :func:`to_grid`.

        Returns
        -------
        ndarray of int64, shape (n, 2 F)
            All cosines, then all sines.
        """
        turn = self.frequency_bits + GRID_BITS
        shift = turn - _TABLE_BITS
        index = (grid.astype(np.float64) @ self._weights).astype(np.int64)
        # Shifting rounds down: half a table step is added first. Masking reduces to one turn.
        index += 1 << (shift - 1)
        index >>= shift
        index &= (1 << _TABLE_BITS) - 1
        n_frequencies = len(self.frequencies)
        features = np.empty((len(grid), 2 * n_frequencies), dtype=np.int64)
        # mode="clip" only skips numpy's bounds check, which the mask has made redundant.
        np.take(self._table[0], index, out=features[:, :n_frequencies], mode="clip")
        np.take(self._table[1], index, out=features[:, n_frequencies:], mode="clip")
        return features


def trig_table(amplitude: int) -> npt.NDArray[np.int64]:
    """``amplitude * (cos, sin)`` of one turn, truncated toward zero.

    Parameters
    ----------
    amplitude : int
        At least 0, below 2^31.

    Returns
    -------
    ndarray of int64, shape (2, 2**16)
        Every column has squared norm at most ``amplitude**2``, exactly.
    """
    angle = 2 * math.pi * np.arange(2**_TABLE_BITS) / 2**_TABLE_BITS
    waves = amplitude * np.stack([np.cos(angle), np.sin(angle)])
    table: npt.NDArray[np.int64] = np.trunc(waves).astype(np.int64)
    # Where a cosine was rounded up before truncation the sum of squares may exceed the bound by
    # a unit: one step toward zero in the larger entry mends it. The bound is checked in integers.
    over = np.flatnonzero((table**2).sum(axis=0) > amplitude**2)
    rows = np.abs(table[:, over]).argmax(axis=0)
    table[rows, over] -= np.sign(table[rows, over])
    return table
