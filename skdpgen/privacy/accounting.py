"""Exact accounting of Gaussian releases.

A Gaussian release is described by one number, ``mu = sensitivity / noise_stddev`` (the inverse
of the noise multiplier). Its privacy profile is known in closed form, and a sequence of Gaussian
releases, also one chosen adaptively, is exactly as private as one release whose squared ``mu`` is
the sum (Dong, Roth, Su, arXiv 1905.02383, Cor. 3.3; adaptively chosen ``mu``: arXiv 2210.17520).
autodp calibrates; the closed formula here has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real

from scipy.special import erfcx, ndtr

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy._autodp import exact_gaussian_noise_multiplier

__all__ = [
    "MINIMUM_DELTA",
    "check_epsilon_delta",
    "compose_extra_delta",
    "compose_gaussian",
    "composed_delta",
    "composed_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "noise_multiplier",
]

# Relative slack that the closed formula keeps from the target delta. It covers the rounding
# error of ``gaussian_delta`` (below 1e-9 in the accepted range, see the tests) and the term
# eta < 1e-27 by which the discrete Gaussian differs from the rounded one (noise.py).
_SLACK = 1e-8
_TINY_MU = 3e-5
_EPSILON_RANGE = (1e-6, 500.0)
#: Smaller ones underflow.
MINIMUM_DELTA = 1e-200


def check_epsilon_delta(epsilon: float, delta: float) -> tuple[float, float]:
    """Validate a privacy target and return it as two floats.

    Parameters
    ----------
    epsilon : float
        In [1e-6, 500]. Outside, either no noise level is useful or the guarantee is empty.
    delta : float
        In (0, 1); values below 1e-200 are refused because they underflow.

    Raises
    ------
    PrivacyParameterError
        If one is not a number or outside its range.

    Examples
    --------
    >>> check_epsilon_delta(1, 1e-5)
    (1.0, 1e-05)
    >>> check_epsilon_delta(0, 1e-5)
    Traceback (most recent call last):
    ...
    skdpgen.exceptions.PrivacyParameterError: epsilon must be a number in [1e-06, 500], got 0.
    """
    low, high = _EPSILON_RANGE
    if not _is_number(epsilon) or not low <= epsilon <= high:
        raise PrivacyParameterError(
            f"epsilon must be a number in [{low:g}, {high:g}], got {epsilon!r}."
        )
    return float(epsilon), _checked_delta(delta)


def _checked_delta(delta: float) -> float:
    if not _is_number(delta) or not MINIMUM_DELTA <= delta < 1:
        raise PrivacyParameterError(
            f"delta must be a number in (0, 1) and at least {MINIMUM_DELTA:g}, got {delta!r}."
        )
    return float(delta)


def _is_number(value: object) -> bool:
    # NaN fails the range check that follows; bool is an int that nobody means as a budget.
    return isinstance(value, Real) and not isinstance(value, bool)


def gaussian_delta(epsilon: float, mu: float) -> float:
    r"""Smallest delta for which a Gaussian release with parameter ``mu`` is (epsilon, delta)-DP.

    .. math:: \delta(\epsilon) = \Phi(\mu/2 - \epsilon/\mu)
              - e^{\epsilon} \Phi(-\mu/2 - \epsilon/\mu)

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        Sensitivity divided by noise standard deviation, at least 0; ``inf`` means no noise.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Balle and Wang, arXiv 1805.06530, Theorem 8. Both terms share the factor
    ``exp(-a**2 / 2) / 2`` with ``a = mu/2 - epsilon/mu``, because ``b**2 = a**2 + 2 epsilon`` for
    ``b = -mu/2 - epsilon/mu``. Factored out with the scaled complementary error function neither
    ``e**epsilon`` overflows nor the difference underflows. For tiny ``mu`` the two erfcx agree in
    almost all digits; their difference is then the derivative at the midpoint times the distance,
    up to a relative ``mu**2 / 12``.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1 / 3.7306317), 10)
    1e-05
    """
    if mu == 0:
        return 0.0
    if mu == math.inf:
        return 1.0
    a = mu / 2 - epsilon / mu
    b = -mu / 2 - epsilon / mu
    common = math.exp(-a * a / 2) / 2
    if mu < _TINY_MU:
        x = epsilon / mu / math.sqrt(2)
        slope = 2 / math.sqrt(math.pi) - 2 * x * float(erfcx(x))
        value = common * slope * mu / math.sqrt(2)
    elif a < 0:
        value = common * float(erfcx(-a / math.sqrt(2)) - erfcx(-b / math.sqrt(2)))
    else:
        value = float(ndtr(a)) - common * float(erfcx(-b / math.sqrt(2)))
    return min(max(value, 0.0), 1.0)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon for which a Gaussian release with parameter ``mu`` is (epsilon, delta)-DP.

    The inverse of :func:`gaussian_delta`, found by bisection and returned from the safe (upper)
    side, within a relative 1e-12.

    Parameters
    ----------
    delta : float
        In (0, 1).
    mu : float
        At least 0; ``inf`` gives ``inf``.

    Returns
    -------
    float
        Smallest epsilon, at least 0.

    Raises
    ------
    PrivacyParameterError
        If delta is outside its range (see :func:`check_epsilon_delta`).

    Examples
    --------
    >>> round(gaussian_epsilon(1e-5, 1 / 3.7306317), 6)
    1.0
    >>> gaussian_epsilon(1e-5, 0.0)
    0.0
    """
    return composed_epsilon(delta, mu, 0.0)


def composed_delta(epsilon: float, mu: float, extra_delta: float) -> float:
    r"""Smallest delta for Gaussian releases that fail to be Gaussian with some probability.

    .. math:: \delta(\epsilon) = \delta_2 + (1 - \delta_2) \, \delta_G(\epsilon; \mu)

    Parameters
    ----------
    epsilon, mu : float
        As in :func:`gaussian_delta`.
    extra_delta : float
        In [0, 1): for neighboring tables D and D', M(D) and M(D') are mixtures: with probability
        1 - extra_delta outcomes of a Gaussian pair, with probability extra_delta of anything. For a
        threshold of learned categories, the probability that one that a single row brought passes.

    Returns
    -------
    float
        In [0, 1]. With ``extra_delta=0`` it is :func:`gaussian_delta`, exactly.

    Notes
    -----
    The hockey-stick divergence is jointly convex, so that of two mixtures is at most the mixture of
    divergences, and the second is at most 1. A mechanism that reveals the table with probability
    extra_delta attains it. Several releases, also adaptive ones, add up as in
    :func:`compose_gaussian` and :func:`compose_extra_delta` if both totals are bounded in advance
    (the proof is in ``privacy/README.md``).

    Examples
    --------
    >>> round(composed_delta(1.0, 1 / 3.7306317, 1e-6), 9)
    1.1e-05
    """
    return extra_delta + (1 - extra_delta) * gaussian_delta(epsilon, mu)


def composed_epsilon(delta: float, mu: float, extra_delta: float) -> float:
    """Inverse of :func:`composed_delta` in epsilon: see :func:`gaussian_epsilon`.

    ``inf`` where ``extra_delta`` alone uses up ``delta``.

    Parameters
    ----------
    delta : float
        In (0, 1).
    mu : float
        Gaussian parameter, at least 0.
    extra_delta : float
        Probability of an event that noise doesn't cover, in [0, 1).

    Returns
    -------
    float
        Smallest epsilon, from the safe side.

    Examples
    --------
    >>> round(composed_epsilon(1.1e-5, 1 / 3.7306317, 1e-6), 4)
    1.0
    >>> composed_epsilon(1e-6, 0.1, 2e-6)
    inf
    """
    delta = _checked_delta(delta)
    if composed_delta(0.0, mu, extra_delta) <= delta:
        return 0.0
    if mu == math.inf or extra_delta >= delta:
        return math.inf
    low, high = 0.0, 1.0
    while composed_delta(high, mu, extra_delta) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if composed_delta(middle, mu, extra_delta) > delta:
            low = middle
        else:
            high = middle
    return high


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Noise standard deviation per unit of L2 sensitivity that gives (epsilon, delta)-DP.

    autodp's exact Gaussian proposes; bisection from there finds the smallest multiplier for which
    the closed formula of :func:`gaussian_delta` confirms ``delta`` with a relative slack of 1e-8.
    At small deltas the proposal may be far off on either side.

    Parameters
    ----------
    epsilon, delta : float
        See :func:`check_epsilon_delta`.

    Returns
    -------
    float
        ``noise_stddev / sensitivity``: on the safe side, within a relative 1e-6 of the optimum.

    Examples
    --------
    >>> round(noise_multiplier(1.0, 1e-5), 4)
    3.7306
    """
    epsilon, delta = check_epsilon_delta(epsilon, delta)
    high = exact_gaussian_noise_multiplier(epsilon, delta)
    growth = 1e-7
    while not _confirmed(high, epsilon, delta):
        high *= 1 + growth
        growth *= 2
    low = high
    while _confirmed(low, epsilon, delta):
        low, high = low / (1 + growth), low
        growth *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _confirmed(middle, epsilon, delta):
            high = middle
        else:
            low = middle
    return high


def _confirmed(multiplier: float, epsilon: float, delta: float) -> bool:
    return gaussian_delta(epsilon, 1 / multiplier) * (1 + _SLACK) <= delta


def compose_gaussian(mus: Iterable[float]) -> float:
    """Parameter ``mu`` of the composition of Gaussian releases: the root of the sum of squares.

    Exact, not a bound, also when later releases are chosen after seeing earlier ones.

    Parameters
    ----------
    mus : iterable of float
        Parameters of the releases, at least 0 each.

    Returns
    -------
    float
        Parameter of all of them together.

    Examples
    --------
    >>> compose_gaussian([3.0, 4.0])
    5.0
    """
    return math.hypot(*mus)


def compose_extra_delta(extra_deltas: Iterable[float]) -> float:
    """Probability that at least one of several releases isn't Gaussian: one minus the product.

    Examples
    --------
    >>> compose_extra_delta([0.5, 0.5, 0.0])
    0.75
    """
    return 0.0 - math.expm1(math.fsum(math.log1p(-extra_delta) for extra_delta in extra_deltas))
