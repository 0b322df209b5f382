"""Privacy noise: the exact discrete Gaussian of OpenDP. The one place that imports opendp.

Why a discrete Gaussian of variance s^2 + 4 is as private as a Gaussian of variance s^2
-----------------------------------------------------------------------------------------
Let ``q`` be an integer vector, and let the ideal mechanism release ``q + N(0, s^2 I)``, all in
lattice steps. Post-process the ideal release coordinate by coordinate: draw a discrete Gaussian of
variance 4 centred at the ideal value. The probability of the integer ``z`` is then, with ``f_v``
the density of N(0, v) and ``c(y) = sum_j f_4(j - y)`` the normaliser,

    integral f_{s^2}(y - q) f_4(z - y) / c(y) dy.

By Poisson summation ``c(y) = 1 + 2 sum_k exp(-8 pi^2 k^2) cos(2 pi k y)``, k >= 1, lies within
1.04e-34 of 1, so the integral is ``f_{s^2 + 4}(z - q)`` up to that relative error; and ``q`` being
an integer, the normaliser of the discrete Gaussian of variance ``s^2 + 4`` around ``q`` is the same
for every ``q`` and just as close to 1. Hence the discrete Gaussian used here is a post-processing
of the ideal Gaussian up to a factor ``e^(+-eta)`` an atom with ``eta <= 2.1e-34 * D`` in ``D``
coordinates: where the ideal is (epsilon, delta)-DP this is (epsilon + 2 eta, e^eta delta)-DP. For
10^7 coordinates eta is below 1e-26, which the slack of ``accounting.noise_multiplier`` covers many
times over. It also composes as the ideal does, because post-processing commutes with composition.

The noise never depends on a seed: OpenDP draws from OpenSSL's generator, which the operating
system's entropy seeds, again after a fork. The exception is :func:`insecure_noise`, an explicit
context for tests and for "epsilon = infinity" curves; it marks what it touches as not private.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError

__all__ = [
    "MAXIMUM_STDDEV",
    "MINIMUM_STDDEV",
    "NoiseSource",
    "add_gaussian_noise",
    "check_stddev",
    "current_source",
    "insecure_noise",
]

#: Smallest ideal noise standard deviation in lattice steps: the lattice is chosen this fine.
MINIMUM_STDDEV = 2.0**10
#: Largest one, far below the end of int64, where OpenDP's sampler would saturate.
MAXIMUM_STDDEV = 2.0**52
_MAXIMUM_VALUE = 2**61


@dataclass(frozen=True)
class NoiseSource:
    """Where noise comes from: the operating system (``rng`` is None), or a seeded generator."""

    rng: np.random.Generator | None = None
    scale: float = 1.0

    @property
    def secure(self) -> bool:
        """Whether noise from this source protects anything."""
        return self.rng is None


_SECURE = NoiseSource()
_source: ContextVar[NoiseSource] = ContextVar("skdpgen_noise_source", default=_SECURE)


def current_source() -> NoiseSource:
    """The noise source in force: secure, unless the caller is inside :func:`insecure_noise`."""
    return _source.get()


@contextmanager
def insecure_noise(seed: int | None = None, *, scale: float = 1.0) -> Iterator[None]:
    """Replace privacy noise by seeded, NOT PRIVATE noise inside a ``with`` block.

    For tests that need a fixed noise and for benchmark rows "without noise". Releases made inside
    carry ``noise="insecure"``, and every statement about them says "not private". The block holds
    for the current thread and context only.

    Parameters
    ----------
    seed : int or None
        Seed of the noise.
    scale : float, default=1.0
        Factor on the calibrated noise standard deviation, at least 0; 0 switches the noise off.

    Yields
    ------
    None
        Nothing; the noise is another one while the block lasts.

    Raises
    ------
    PrivacyParameterError
        If ``scale`` is negative or not finite.

    Examples
    --------
    >>> with insecure_noise(seed=0):
    ...     current_source().secure
    False
    >>> current_source().secure
    True
    """
    if not 0 <= scale < math.inf:
        raise PrivacyParameterError("scale must be a finite number of at least 0.")
    token = _source.set(NoiseSource(np.random.default_rng(seed), float(scale)))
    try:
        yield
    finally:
        _source.reset(token)


def check_stddev(stddev: float) -> None:
    """Refuse an ideal noise standard deviation that the lattice can't carry.

    Parameters
    ----------
    stddev : float
        In lattice steps.

    Raises
    ------
    PrivacyParameterError
        If it is outside [2^10, 2^52].
    """
    if not MINIMUM_STDDEV <= stddev <= MAXIMUM_STDDEV:
        raise PrivacyParameterError(
            "the noise must be at least 2^10 and at most 2^52 lattice steps wide: epsilon, delta "
            "and rows_per_unit ask for noise that is too narrow or too wide for any use."
        )


def add_gaussian_noise(
    values: npt.NDArray[np.int64], stddev: float, sensitivity_squared: int, source: NoiseSource
) -> npt.NDArray[np.int64]:
    """Add discrete Gaussian noise to an integer vector.

    Parameters
    ----------
    values : ndarray of int64, shape (D,)
        Exact sums, in lattice steps.
    stddev : float
        Standard deviation s of the ideal Gaussian in lattice steps, in [2^10, 2^52]. The discrete
        noise has variance s^2 + 4 (see the module's docstring).
    sensitivity_squared : int
        Squared L2 sensitivity of ``values`` in lattice steps, positive. Checked against the
        sampler's own privacy map before anything is drawn.
    source : NoiseSource
        Taken once per release with :func:`current_source`, before rows are read, so that what the
        release says about its noise and the noise itself can't come apart.

    Returns
    -------
    ndarray of int64, shape (D,)
        The noisy vector.

    Raises
    ------
    PrivacyParameterError
        If ``stddev`` or ``sensitivity_squared`` is out of range, or ``values`` is not a vector of
        int64.
    """
    if values.dtype != np.int64 or values.ndim != 1:
        raise PrivacyParameterError("noise is added to one-dimensional int64 arrays only.")
    check_stddev(stddev)
    if not 0 < sensitivity_squared < 2**120:
        raise PrivacyParameterError("the squared sensitivity must be a positive integer.")
    # Out of reach: a row adds at most 2^30 steps to a coordinate (spec.py), so it takes 2^31 rows.
    # An error would depend on data, while clipping is 1-Lipschitz in every coordinate and leaves
    # the sensitivity as it is.
    values = np.clip(values, -_MAXIMUM_VALUE, _MAXIMUM_VALUE)
    if source.rng is not None:
        noise = source.rng.normal(0.0, stddev * source.scale, values.shape)
        return values + np.rint(noise).astype(np.int64)
    return _discrete_gaussian(values, stddev, sensitivity_squared)


def _discrete_gaussian(
    values: npt.NDArray[np.int64], stddev: float, sensitivity_squared: int
) -> npt.NDArray[np.int64]:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    # Every float operation below is rounded up, so that the scale is never too small.
    scale = math.nextafter(math.sqrt(math.nextafter(stddev * stddev + 4, math.inf)), math.inf)
    measurement = make_gaussian(
        vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale
    )
    sensitivity = math.nextafter(math.sqrt(sensitivity_squared), math.inf)
    # A scale of 0 would return the data as they are; the map of the object that samples shows
    # that it is the one that was asked for.
    rho = sensitivity_squared / (2 * stddev * stddev)
    mapped: float = measurement.map(sensitivity)  # type: ignore[no-untyped-call]
    if not mapped <= rho * (1 + 1e-12):
        raise PrivacyParameterError(
            "the noise sampler's privacy map disagrees with the calibration; nothing was drawn."
        )
    return np.array(measurement(values), dtype=np.int64)
