r"""Exact accounting of the slicing mechanism.

It releases ``(U, X U + V)``: a ``dimension x n_directions`` matrix ``U`` of independent
N(0, 1/dimension) entries, drawn afresh, and the projected rows plus N(0, s^2) noise. Neighbouring
tables differ in one row, by at most ``diameter``. With m directions and d dimensions

.. math:: \delta(\epsilon) = E_{W \sim \chi^2_{m}} \delta_G(\epsilon; \Delta \sqrt{W / d} / s),

:math:`\delta_G` the profile of a Gaussian release. This is the profile itself, not a bound. ``U``
doesn't depend on the rows, so its density factors out of ``(p - e^eps q)_+``: the hockey-stick
divergence is the mean over ``U`` of the one given ``U``. Given ``U``, tables that differ by v in a
row give two Gaussians at distance ``|v U|``: a Gaussian profile, the same in both directions. By
rotation invariance ``|v U|^2`` is ``|v|^2 W / d`` for every v. The profile grows with ``|v|``: a
pair at the diameter dominates all others, and attains it.

A Gaussian release beside it adds an independent shift given ``U``: squares add inside the mean. Two
slicing releases of equal scale are one with all their directions. Both need noise that is fixed
before ``U`` is seen. Values rounded to a step h shift by up to ``sqrt(m) h`` more: an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NotRequired, TypedDict, Unpack

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import _TINY_MU, _is_number, check_epsilon_delta, gaussian_delta

__all__ = [
    "frame_sensitivity",
    "proposition_3_noise_stddev",
    "slicing_delta",
    "slicing_epsilon",
    "slicing_noise_stddev",
    "slicing_renyi",
    "theorem_1_noise_stddev",
]

_SLACK = 1e-8  # kept from the target delta: far above the error of the quadrature, below 1e-10
_MAX_EPSILON = 1e5  # beyond, the grid misses the step of the Gaussian profile; useless anyway
_FAR = 40.0


class _Slicing(TypedDict):  # everything but the noise
    n_directions: int
    dimension: int
    diameter: NotRequired[float]
    gaussian_mu: NotRequired[float]
    value_step: NotRequired[float]


@dataclass(frozen=True)
class _Checked:
    n_directions: int
    dimension: int
    diameter: float = 1.0
    gaussian_mu: float = 0.0
    value_step: float = 0.0

    def __post_init__(self) -> None:
        _check_number("n_directions", self.n_directions, 1, 1e9)
        _check_number("dimension", self.dimension, 1, 1e9)
        if self.n_directions % 1 or self.dimension % 1:
            raise PrivacyParameterError("n_directions and dimension must be integers.")
        _check_number("diameter", self.diameter, 1e-100, 1e100)
        _check_number("gaussian_mu", self.gaussian_mu, 0, math.inf)
        _check_number("value_step", self.value_step, 0, 1e100)

    @property
    def scale(self) -> float:  # root mean square of the shift, before rounding
        return self.diameter * math.sqrt(self.n_directions / self.dimension)

    def log_integrand(self, u: np.ndarray, epsilon: float, noise_stddev: float) -> np.ndarray:
        rounding = math.sqrt(self.n_directions) * self.value_step  # and W = n_directions * exp(u)
        with np.errstate(over="ignore"):  # inf is right when the noise vanishes
            mu = (self.scale * np.exp(u / 2) + rounding) / noise_stddev
        half = self.n_directions / 2
        log_density = _log_chi2_peak(half) + half * (u - np.expm1(u))
        log_delta = _log_gaussian_delta(epsilon, np.hypot(mu, self.gaussian_mu))
        return np.asarray(log_density + log_delta)

    def delta(self, epsilon: float, noise_stddev: float) -> float:
        # By the trapezoid rule in u, which converges exponentially: the integrand is analytic and
        # decays on both sides of one peak (the log profile is concave in W). The peak may be far in
        # the tail of the chi-square and much narrower than it: zoom in.
        # Left of low the density is below e**-50 of its peak and the profile only falls; right of
        # high (Laurent and Massart) the chi-square has less than e**-800.
        c, d = 100.0 / self.n_directions, 800.0 / self.n_directions
        low, high = -(c + math.sqrt(c * c + 8 * c)) / 2, math.log1p(2 * math.sqrt(d) + 2 * d)
        for size in (65, 65, 65, 65, 2049):
            grid = np.linspace(low, high, size)
            log_values = self.log_integrand(grid, epsilon, noise_stddev)
            peak = log_values.max()
            inside = np.flatnonzero(log_values >= peak - 45)  # below, lost in rounding
            low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, size - 1)]
        total = np.exp(log_values - peak).sum() * (grid[1] - grid[0])
        return min(float(total * np.exp(peak)), 1.0)

    def confirms(self, epsilon: float, delta: float, noise_stddev: float) -> bool:
        return self.delta(epsilon, noise_stddev) * (1 + _SLACK) <= delta


def _check_number(name: str, value: float, low: float, high: float) -> None:
    if not _is_number(value) or not low <= value <= high:
        raise PrivacyParameterError(f"{name} must be in [{low:g}, {high:g}], got {value!r}.")


def _log_chi2_peak(half: float) -> float:
    # Log density of u at 0; Stirling's series, where a difference of large numbers loses digits.
    if half < 32:
        return half * math.log(half) - half - float(gammaln(half))
    series = 1 / (12 * half) - 1 / (360 * half**3) + 1 / (1260 * half**5)
    return math.log(half / (2 * math.pi)) / 2 - series


def _log_gaussian_delta(epsilon: float, mu: np.ndarray) -> np.ndarray:
    # The cases of accounting.gaussian_delta; far out, where the erfcx agree in all digits and just
    # the place of the peak matters, erfcx(x) = 1 / (x sqrt(pi)).
    mu = np.clip(mu, 1e-140, 1e140)  # squares stay finite
    a, middle = mu / 2 - epsilon / mu, epsilon / mu / math.sqrt(2)
    x, y = -a / math.sqrt(2), (mu / 2 + epsilon / mu) / math.sqrt(2)
    slope = (2 / math.sqrt(math.pi) - 2 * middle * erfcx(middle)) * mu / math.sqrt(2)
    tail = np.where(mu < _TINY_MU, slope, erfcx(np.maximum(x, 0.0)) - erfcx(y))
    far = mu / math.sqrt(2 * math.pi) / np.maximum(x, _FAR) / np.maximum(y, _FAR)
    upper = ndtr(a) - np.exp(-a * a / 2) / 2 * erfcx(y)
    inner = (a < 0) | (mu < _TINY_MU)
    values = np.where(inner, np.where(x > _FAR, far, tail), upper)
    return np.log(values) - np.where(inner, a * a / 2 + math.log(2), 0.0)


def slicing_delta(epsilon: float, noise_stddev: float, **slicing: Unpack[_Slicing]) -> float:
    """Smallest delta for which the slicing mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        In [0, 1e5].
    noise_stddev : float
        Of every released value; 0 means no noise.
    n_directions : int
        Released values per row, over all slices.
    dimension : int
        Coordinates of an encoded row.
    diameter : float, default=1.0
        Largest distance of two encoded rows.
    gaussian_mu : float, default=0.0
        Sensitivity / noise_stddev of the Gaussian releases beside it, fixed before ``U`` is seen.
    value_step : float, default=0.0
        Values are rounded to multiples of it before the noise; 0 means not at all.

    Returns
    -------
    float
        In [0, 1], with a relative error below 1e-10.

    Examples
    --------
    >>> round(slicing_delta(1.0, 3.949, n_directions=50, dimension=50), 7)
    1e-05
    """
    checked = _Checked(**slicing)
    _check_number("epsilon", epsilon, 0, _MAX_EPSILON)
    _check_number("noise_stddev", noise_stddev, 0, 1e100)
    return checked.delta(float(epsilon), float(noise_stddev)) if noise_stddev else 1.0


def slicing_epsilon(delta: float, noise_stddev: float, **slicing: Unpack[_Slicing]) -> float:
    """Inverse of :func:`slicing_delta` from the safe (upper) side, ``inf`` if above 1e5.

    Examples
    --------
    >>> round(slicing_epsilon(1e-5, 3.949, n_directions=50, dimension=50), 3)
    1.0
    """
    checked, (_, delta) = _Checked(**slicing), check_epsilon_delta(1.0, delta)
    _check_number("noise_stddev", noise_stddev, 0, 1e100)
    if noise_stddev == 0 or not checked.confirms(_MAX_EPSILON, delta, noise_stddev):
        return math.inf
    if checked.confirms(0.0, delta, noise_stddev):
        return 0.0
    return _smallest(lambda e: checked.confirms(e, delta, noise_stddev), 1.0)


def slicing_noise_stddev(epsilon: float, delta: float, **slicing: Unpack[_Slicing]) -> float:
    """Smallest noise that keeps the target, on the safe side; needs room beside ``gaussian_mu``.

    Examples
    --------
    >>> round(slicing_noise_stddev(1.0, 1e-5, n_directions=50, dimension=50), 3)
    3.949
    """
    checked, (epsilon, delta) = _Checked(**slicing), check_epsilon_delta(epsilon, delta)
    # Twice the slack, so that some finite noise is sure to be confirmed.
    if gaussian_delta(epsilon, checked.gaussian_mu) * (1 + 2 * _SLACK) > delta:
        raise PrivacyParameterError(f"gaussian_mu alone exceeds {epsilon=:g}, {delta=:g}.")
    return _smallest(lambda s: checked.confirms(epsilon, delta, s), checked.scale)


def _smallest(holds: Callable[[float], bool], start: float) -> float:
    low = high = start
    while not holds(high):
        low, high = high, 2 * high
    while holds(low):
        low, high = low / 2, low
    while high - low > 1e-9 * high:
        middle = math.sqrt(low * high)  # what is returned does hold
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def slicing_renyi(alpha: float, noise_stddev: float, **slicing: Unpack[_Slicing]) -> float:
    r"""Renyi divergence of order ``alpha >= 1`` of the slicing mechanism, in either direction.

    .. math:: R(\alpha) = \frac{\alpha \mu_0^2}{2} - \frac{m}{2 (\alpha - 1)}
              \log \Bigl(1 - \frac{\alpha (\alpha - 1) \Delta^2}{d s^2}\Bigr)

    ``inf`` where the logarithm has no value. Exact without rounding; with it an upper bound by
    ``(A + B)^2 <= (1 + r) (A^2 + B^2 / r)`` at ``r = value_step sqrt(dimension) / diameter``.

    Examples
    --------
    >>> round(slicing_renyi(2.0, 3.949, n_directions=50, dimension=50), 4)
    0.0642
    """
    checked = _Checked(**slicing)
    _check_number("alpha", alpha, 1, 1e100)
    _check_number("noise_stddev", noise_stddev, 0, 1e100)
    ratio = checked.value_step * math.sqrt(checked.dimension) / checked.diameter
    relative = checked.diameter / noise_stddev if noise_stddev else math.inf
    unit = (1 + ratio) * relative * relative / checked.dimension
    x = alpha * (alpha - 1) * unit
    if unit == math.inf or x >= 1:
        return math.inf
    growth = -math.log1p(-x) / x if x else 1.0
    return (
        alpha
        / 2
        * (
            checked.n_directions * unit * (growth + ratio)
            + checked.gaussian_mu * checked.gaussian_mu
        )
    )


def theorem_1_noise_stddev(
    epsilon: float, delta: float, *, n_directions: int, dimension: int, diameter: float = 1.0
) -> float:
    r"""Noise by the Renyi bound of arXiv 2410.19941, Theorem 1; for comparison only.

    :math:`R(\alpha) \le \alpha m \Delta^2 / (2 s^2 (d - \gamma))`, where
    :math:`\gamma = \alpha (\alpha - 1) \Delta^2 / s^2 < d`, and the least
    :math:`R(\alpha) + \log(1 / \delta) / (\alpha - 1)`. The shape is the paper's; gamma (from
    ``-log(1 - x) <= x / (1 - x)``) and the conversion are derived here, not read there.
    """
    scale = _Checked(n_directions, dimension, diameter).scale
    return _renyi_noise_stddev(epsilon, delta, scale, diameter**2 / dimension)


def proposition_3_noise_stddev(
    epsilon: float, delta: float, *, n_directions: int, diameter: float = 1.0
) -> float:
    r"""Noise by the bound for a fixed ``U`` (arXiv 2410.19941, Prop. 3); for comparison only.

    Directions of length 1, all along the change at worst: sensitivity :math:`\Delta \sqrt{m}`,
    converted as in :func:`theorem_1_noise_stddev`. Derived, not read there, too.
    """
    return _renyi_noise_stddev(epsilon, delta, _Checked(n_directions, 1, diameter).scale, 0.0)


def _renyi_noise_stddev(epsilon: float, delta: float, scale: float, unit: float) -> float:
    epsilon, delta = check_epsilon_delta(epsilon, delta)
    order = 1 + np.logspace(-4, 10, 5001)

    def holds(s: float) -> bool:
        room = np.maximum(1 - order * (order - 1) * unit / s**2, 1e-30)  # tiny: no bound
        curve = order * scale**2 / (2 * s**2 * room) - math.log(delta) / (order - 1)
        return bool(curve.min() <= epsilon)

    return _smallest(holds, scale)


def frame_sensitivity(n_directions: int, dimension: int, diameter: float = 1.0) -> float:
    """Sensitivity if ``U`` is a tight frame (stacked orthogonal matrices): a plain Gaussian.

    Examples
    --------
    >>> frame_sensitivity(200, 50)
    2.0
    """
    scale = _Checked(n_directions, dimension, diameter).scale
    if n_directions % dimension:
        raise PrivacyParameterError(f"{n_directions=} is not a multiple of {dimension=}.")
    return scale
