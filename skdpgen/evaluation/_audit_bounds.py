"""Confidence bounds of an audit: how far apart two releases are, by exact distributions."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri
from scipy.stats import chi2, nct

__all__ = ["APART", "clopper_pearson", "counting_mu", "critical_t", "noncentrality_lower"]

#: Standard deviations between two tables that an audit aims at: enough to see halved noise in a few
#: runs, and for counts to say something.
APART = 2.0
# Standard deviations between which a root is looked for: tails of 1e-15.
_REACH = 10.0
# Beyond it, as where there is no noise at all, scipy's noncentral t fails.
_LARGE_T = 1000.0


def noncentrality_lower(t: float, df: float, alpha: float) -> float:
    """Lower confidence bound on the noncentrality of a t statistic with normal errors.

    Exact: it is too large with probability ``alpha``.

    Parameters
    ----------
    t, df : float
        The statistic, which may be infinite, and its degrees of freedom.
    alpha : float
        In (0, 1).

    Returns
    -------
    float
        The noncentrality under which a statistic of at least ``t`` has the probability ``alpha``.
    """
    if t > _LARGE_T:
        # Only the spread is uncertain there; the normal error below is a safe allowance.
        return t * math.sqrt(chi2.ppf(alpha, df) / df) - _REACH
    spread = math.sqrt(1 + t * t / (2 * df))
    low, high = t - _REACH * spread, t + _REACH * spread
    return float(brentq(lambda d: nct.sf(t, df, d) - alpha, low, high))


def critical_t(noncentrality: float, df: float, alpha: float) -> float:
    """The value that a noncentral t variable exceeds with probability alpha."""
    spread = math.sqrt(1 + noncentrality**2 / (2 * df))
    low, high = noncentrality - _REACH * spread, noncentrality + 2 * _REACH * spread
    return float(brentq(lambda t: nct.sf(t, df, noncentrality) - alpha, low, high))


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """One-sided lower and upper confidence bound on a probability, each wrong with at most alpha.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 1000, 0.05)
    >>> low, round(high, 4)
    (0.0, 0.003)
    """
    low = betaincinv(successes, trials - successes + 1, alpha) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1 - alpha) if successes < trials else 1.0
    return float(low), float(high)


def counting_mu(hits: int, false_hits: int, trials: int, alpha: float) -> float:
    """Lower bound on mu from counts alone, whatever the noise looks like.

    A mu-GDP mechanism lets no test of size a have a power above ``Phi(Phi^-1(a) + mu)`` (Dong,
    Roth, Su, arXiv 1905.02383, Def. 2.6). Each of the two rates gets half of ``alpha``.

    Parameters
    ----------
    hits, false_hits : int
        How often the event was seen on the one table, and on the other.
    trials : int
        Runs on each.
    alpha : float
        Probability of a bound that is too large.

    Returns
    -------
    float
        At least 0.
    """
    power, _ = clopper_pearson(hits, trials, alpha / 2)
    _, size = clopper_pearson(false_hits, trials, alpha / 2)
    if power <= 0 or size >= 1:
        return 0.0
    return max(0.0, float(ndtri(power) - ndtri(size)))
