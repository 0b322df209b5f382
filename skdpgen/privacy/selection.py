"""Private selection: run a private algorithm a random number of times, publish the best run.

Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy", arXiv 2110.03620,
Theorem 2. The number of runs K is random and secret; every run has its own noise, and is private
*together with its score*. Then the best run costs a little more than one run, however many settings
there are to choose from: nobody learns what else was tried. The argument is in ``README.md``, under
"Private selection".
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta, noise_multiplier
from skdpgen.privacy.renyi import RENYI_ORDERS, renyi_conversion

__all__ = [
    "Repetitions",
    "repeat_and_select",
    "selection_epsilon",
    "selection_noise_multiplier",
    "selection_renyi",
]

T = TypeVar("T")

# Relative slack in delta that calibration keeps; half of it covers what formulas leave out.
_SLACK = 1e-8
# Smallest gamma: the sampler takes some 1 / gamma steps.
_MINIMUM_GAMMA = 1e-4


@dataclass(frozen=True)
class Repetitions:
    r"""How often a private algorithm is run: a truncated negative binomial number K >= 1.

    .. math:: P[K = k] \propto (1 - \gamma)^k \prod_{l=1}^{k-1} \frac{l + \eta}{l + 1}

    Parameters
    ----------
    shape : float
        The paper's eta, in (-1, 1]: 0 is the logarithmic distribution, 1 the geometric one. The
        smaller, the cheaper in privacy at equal mean, and the longer the tail of K.
    gamma : float
        In [1e-4, 1).

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> round(Repetitions(1.0, 0.2).mean, 12)
    5.0
    """

    shape: float
    gamma: float

    def __post_init__(self) -> None:
        if not -1 < self.shape <= 1:
            raise PrivacyParameterError(f"eta must be a number in (-1, 1], got {self.shape!r}.")
        if not _MINIMUM_GAMMA <= self.gamma < 1:
            raise PrivacyParameterError("gamma must be a number in [1e-4, 1).")

    @classmethod
    def with_mean(cls, mean: float, shape: float) -> Repetitions:
        """The distribution with a given expected number of runs.

        Parameters
        ----------
        mean : float
            E[K], above 1.
        shape : float
            See the class.

        Raises
        ------
        PrivacyParameterError
            If a parameter is out of range, or the mean is too large for the shape.

        Examples
        --------
        >>> round(Repetitions.with_mean(5, shape=0.0).gamma, 4)
        0.0699
        """
        least = cls(shape, _MINIMUM_GAMMA)
        if not 1.001 <= mean <= least.mean:
            raise PrivacyParameterError(
                f"the expected number of tries must be in [1.001, {least.mean:.4g}] for eta = "
                f"{shape:g}, got {mean!r}."
            )
        low, high = 0.0, -math.log(_MINIMUM_GAMMA)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if _mean(shape, middle) > mean else (middle, high)
        # The smaller end of log(1 / gamma), and never below the least gamma by a rounding error.
        return cls(shape, max(_MINIMUM_GAMMA, math.exp(-low)))

    @property
    def mean(self) -> float:
        """Expected number of runs, E[K]."""
        return _mean(self.shape, -math.log(self.gamma))

    def draw(self) -> int:
        """Draw K from the operating system's entropy, exactly from this distribution.

        Rejection, in integers: propose a geometric number k, which has weights ``(1 - gamma)^k``,
        and accept it with probability ``prod (l + eta) / (l + 1)`` over l = 1 .. k - 1.

        Returns
        -------
        int
            K, at least 1.
        """
        gamma, gammas = self.gamma.as_integer_ratio()
        shape, shapes = float(self.shape).as_integer_ratio()
        k = 1
        while secrets.randbelow(gammas) >= gamma:
            if secrets.randbelow(shapes * (k + 1)) < shapes * k + shape:
                k += 1
            else:  # rejected: start again
                k = 1
        return k


def _mean(shape: float, log_inverse_gamma: float) -> float:
    """E[K]: eta (1 - gamma) / (gamma (1 - gamma^eta)), or its limit for eta = 0."""
    t = log_inverse_gamma
    return math.expm1(t) * (shape / -math.expm1(-shape * t) if shape else 1 / t)


def repeat_and_select(run: Callable[[], tuple[float, T]], repetitions: Repetitions) -> T:
    """Run an algorithm K times and return what the best run returned, and nothing else.

    Parameters
    ----------
    run : callable
        Takes nothing; returns a score, the lower the better, and a result. Runs must be independent
        and alike: each draws its setting and its noise from the operating system's entropy, and
        none knows of the others. The pair must be private.
    repetitions : Repetitions
        Distribution of K.

    Returns
    -------
    object
        The result of the run with the lowest score. A score that is no number counts as the
        highest one.
    """
    best_score, best = math.inf, None
    for _ in range(repetitions.draw()):
        score, result = run()
        # The first of equal scores: runs are alike, so that is a random one of them, and the order
        # of outcomes that the theorem needs is total.
        if best is None or score < best_score:
            best_score, best = (score if score == score else math.inf), (result,)
    assert best is not None  # K is at least 1
    return best[0]


def selection_renyi(order: float, mu: float, repetitions: Repetitions) -> float:
    r"""Renyi divergence of the best of K runs, each a Gaussian release with parameter ``mu``.

    .. math:: \varepsilon'(\lambda) = \varepsilon(\lambda)
              + (1 + \eta)\Bigl(1 - \frac{1}{\hat\lambda}\Bigr) \varepsilon(\hat\lambda)
              + \frac{(1 + \eta) \log(1/\gamma)}{\hat\lambda} + \frac{\log E[K]}{\lambda - 1}

    with :math:`\varepsilon(\lambda) = \lambda \mu^2 / 2`, at the best
    :math:`\hat\lambda = \max(1, \sqrt{2 \log(1/\gamma)} / \mu)`. Renyi divergences grow with the
    order, so below the order at which the formula is least, that least value holds.

    Parameters
    ----------
    order : float
        Above 1.
    mu : float
        Sensitivity over noise standard deviation of one run; above 0.
    repetitions : Repetitions
        Distribution of the number of runs.

    Examples
    --------
    >>> round(selection_renyi(10.0, 0.2, Repetitions.with_mean(5, shape=0.0)), 4)
    0.8202
    """
    root = math.sqrt(-2 * math.log(repetitions.gamma))
    other = mu * root - mu * mu / 2 if root > mu else root * root / 2
    log_mean = math.log(repetitions.mean)
    order = max(order, 1 + math.sqrt(2 * log_mean) / mu)
    return order * mu * mu / 2 + (1 + repetitions.shape) * other + log_mean / (order - 1)


def selection_epsilon(
    delta: float, mu: float, repetitions: Repetitions, *, gaussian_mu: float = 0.0
) -> float:
    """Epsilon at ``delta`` of a selection, together with Gaussian releases that were planned.

    Parameters
    ----------
    delta : float
        In (0, 1).
    mu : float
        Of one run; above 0.
    repetitions : Repetitions
        Distribution of the number of runs.
    gaussian_mu : float, default=0.0
        Of the Gaussian releases beside it, which the runs may look at (the yardstick).

    Examples
    --------
    >>> law = Repetitions.with_mean(5, shape=0.0)
    >>> round(selection_epsilon(1e-5, 0.2, law, gaussian_mu=0.1), 4)
    1.4215
    """
    _, delta = check_epsilon_delta(1.0, delta)
    return _least_epsilon(delta, mu, repetitions, gaussian_mu)


def _least_epsilon(delta: float, mu: float, repetitions: Repetitions, gaussian_mu: float) -> float:
    totals = (
        order * gaussian_mu**2 / 2
        + selection_renyi(order, mu, repetitions)
        + renyi_conversion(order, delta)
        for order in RENYI_ORDERS
    )
    return max(0.0, min(totals))


def selection_noise_multiplier(
    epsilon: float, delta: float, repetitions: Repetitions, *, gaussian_mu: float = 0.0
) -> float:
    """Noise multiplier of each run for which the whole selection is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of the best run and the Gaussian releases together; see
        :func:`~skdpgen.privacy.accounting.check_epsilon_delta`.
    repetitions : Repetitions
        Distribution of the number of runs.
    gaussian_mu : float, default=0.0
        See :func:`selection_epsilon`.

    Returns
    -------
    float
        On the safe side, within a relative 1e-9 of the optimum over the orders of
        :mod:`~skdpgen.privacy.renyi`. Never below that of a single release.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, or the Gaussian releases leave nothing for the runs.

    Examples
    --------
    >>> law = Repetitions.with_mean(5, shape=0.0)
    >>> round(selection_noise_multiplier(1.0, 1e-5, law), 3)
    6.496
    """
    epsilon, delta = check_epsilon_delta(epsilon, delta)
    # A little less than the target: the ledger solves the same sum for delta, with its own slack.
    tight, less = delta * (1 - 2 * _SLACK), epsilon * (1 - 1e-12)

    def holds(multiplier: float) -> bool:
        return less >= _least_epsilon(tight, 1 / multiplier, repetitions, gaussian_mu)

    low = high = noise_multiplier(epsilon, delta)
    while not holds(high):
        low, high = high, 2 * high
        if high > 1e9:
            raise PrivacyParameterError(
                "the yardstick uses up epsilon and delta: lower its share of the budget, or raise "
                "epsilon or delta."
            )
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
