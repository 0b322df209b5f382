"""Closed formulas against 40-digit arithmetic, autodp and dp_accounting."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy._autodp import exact_gaussian_noise_multiplier
from skdpgen.privacy.accounting import (
    check_epsilon_delta,
    compose_extra_delta,
    compose_gaussian,
    composed_delta,
    composed_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    noise_multiplier,
)

EPSILONS = [1e-6, 1e-4, 1e-3, 0.01, 0.2, 1.0, 5.0, 50.0, 500.0]
DELTAS = [0.999, 0.1, 1e-5, 1e-9, 1e-12, 1e-30, 1e-100, 1e-200]
TARGETS = [(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]


def exact_delta(epsilon, mu):
    """Balle and Wang's Theorem 8, term by term, with digits to spare for the cancellation."""
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def phi(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def exact_multiplier(epsilon, delta, near):
    """The smallest noise multiplier, bisected in 40 digits around ``near``."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(near) * (1 - mpmath.mpf(10) ** -5), mpmath.mpf(near)
        assert exact_delta(epsilon, 1 / low) > delta
        for _ in range(40):
            middle = (low + high) / 2
            if exact_delta(epsilon, 1 / middle) > delta:
                low = middle
            else:
                high = middle
        return high


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(e, m) for e in [0.0, *EPSILONS] for m in [1e-7, 2.9e-5, 3.1e-5, 1e-3, 0.1, 1.0, 4.0, 40.0]],
)
def test_gaussian_delta_has_nine_correct_digits(epsilon, mu):
    exact = exact_delta(epsilon, mu)
    if exact < 1e-250:  # below the range of delta, where doubles end
        assert gaussian_delta(epsilon, mu) < 1e-200
    else:
        assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9, abs=0)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_noise_multiplier_is_safe_and_minimal(epsilon, delta):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        multiplier = noise_multiplier(epsilon, delta)
    # Safe in exact arithmetic ...
    assert exact_delta(epsilon, 1 / mpmath.mpf(multiplier)) <= delta
    # ... within a relative 1e-6 of the smallest one ...
    assert multiplier <= exact_multiplier(epsilon, delta, multiplier) * (1 + 1e-6)
    # ... and with the slack that is there for the discrete noise.
    assert gaussian_delta(epsilon, 1 / multiplier) * (1 + 1e-8) <= delta


def test_known_values():
    assert noise_multiplier(1.0, 1e-5) == pytest.approx(3.7306, abs=5e-5)
    assert noise_multiplier(0.2, 1e-5) == pytest.approx(16.304, abs=5e-4)
    assert gaussian_epsilon(1e-5, 1 / 3.73063163) == pytest.approx(1.0, abs=1e-8)


def test_the_textbook_formula_is_another_one():
    # sqrt(2 log(1.25 / delta)) / epsilon: too little noise at large epsilon (its proof needs
    # epsilon < 1), 30 % too much at 1.
    def textbook(epsilon):
        return math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon

    assert textbook(1.0) > 1.29 * noise_multiplier(1.0, 1e-5)
    assert textbook(5.0) > 1.08 * noise_multiplier(5.0, 1e-5)
    assert textbook(50.0) < 0.7 * noise_multiplier(50.0, 1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-30), (0.2, 1e-12), (1.0, 1e-100)])
def test_where_autodp_is_unsafe_the_formula_overrules_it(epsilon, delta):
    proposal = exact_gaussian_noise_multiplier(epsilon, delta)
    assert exact_delta(epsilon, 1 / proposal) > delta
    assert noise_multiplier(epsilon, delta) > proposal


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-12), (500.0, 1e-12), (1e-6, 1e-12)])
def test_where_autodp_is_wasteful_the_formula_overrules_it(epsilon, delta):
    assert noise_multiplier(epsilon, delta) < 0.95 * exact_gaussian_noise_multiplier(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-5), (1.0, 1e-5), (5.0, 1e-6), (1.0, 1e-9)])
def test_dp_accounting_agrees_with_the_calibration(epsilon, delta):
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    multiplier = noise_multiplier(epsilon, delta)
    guarantee = DifferentialPrivacyParameters(epsilon, delta)
    theirs = GaussianPrivacyLoss.from_privacy_guarantee(guarantee).standard_deviation
    assert multiplier == pytest.approx(theirs, rel=1e-6)
    mine = GaussianPrivacyLoss(multiplier).get_delta_for_epsilon(epsilon)
    assert mine == pytest.approx(delta, rel=1e-6)


def test_composition_agrees_with_autodp():
    from autodp import mechanism_zoo, transformer_zoo

    gaussians = [mechanism_zoo.ExactGaussianMechanism(sigma) for sigma in (2.0, 3.0, 7.0)]
    composed = transformer_zoo.ComposeGaussian()(gaussians, [1, 2, 5])
    mu = compose_gaussian([1 / 2] + [1 / 3] * 2 + [1 / 7] * 5)
    for delta in (1e-3, 1e-5, 1e-7):
        assert gaussian_epsilon(delta, mu) == pytest.approx(composed.get_approxDP(delta), rel=1e-6)


def test_composition_agrees_with_dp_accounting():
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    composed = from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    composed = composed.compose(from_gaussian_mechanism(3.0, value_discretization_interval=1e-3))
    mu = compose_gaussian([1 / 2, 1 / 3])
    # Their discretization is pessimistic, by a grid step at most.
    theirs = composed.get_epsilon_for_delta(1e-5)
    assert theirs - 2e-3 <= gaussian_epsilon(1e-5, mu) <= theirs + 1e-9


def test_compose_gaussian():
    assert compose_gaussian([]) == 0.0
    assert compose_gaussian([3.0, 4.0]) == 5.0
    assert compose_gaussian([0.5, math.inf]) == math.inf
    assert compose_gaussian([3e200, 4e200]) == pytest.approx(5e200)  # squares would overflow
    # A million tiny spends don't get lost in rounding.
    assert compose_gaussian([1e-3] * 1_000_000) == pytest.approx(1.0, rel=1e-14)


def test_gaussian_delta_at_the_ends():
    assert gaussian_delta(1.0, 0.0) == 0.0
    assert gaussian_delta(1.0, math.inf) == 1.0
    assert gaussian_delta(0.0, 1e6) == 1.0
    # At epsilon 0 it is the total variation distance, 2 Phi(mu / 2) - 1.
    assert gaussian_delta(0.0, 2.0) == pytest.approx(math.erf(1 / math.sqrt(2)), rel=1e-14)


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-100])
@pytest.mark.parametrize("mu", [1e-6, 0.03, 0.3, 3.0, 300.0])
def test_gaussian_epsilon_inverts_from_the_safe_side(delta, mu):
    epsilon = gaussian_epsilon(delta, mu)
    assert gaussian_delta(epsilon, mu) <= delta
    if epsilon > 0:
        assert gaussian_delta(epsilon * (1 - 1e-9), mu) > delta


def test_gaussian_epsilon_at_the_ends():
    assert gaussian_epsilon(1e-5, 0.0) == 0.0
    assert gaussian_epsilon(1e-5, math.inf) == math.inf
    assert gaussian_epsilon(1e-5, 1e200) == math.inf
    assert gaussian_epsilon(0.9, 1.0) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan, 1e-201, None, "0.1"])
def test_gaussian_epsilon_refuses_other_deltas(delta):
    # At delta = 0 a Gaussian has no finite epsilon; what underflows must not look like one.
    with pytest.raises(PrivacyParameterError, match="delta must be a number"):
        gaussian_epsilon(delta, 1.0)


@pytest.mark.parametrize(
    "epsilon",
    [
        *(0, -1, 9e-7, 501, 10**400, math.nan, math.inf, -math.inf, Decimal("NaN")),
        *(None, "1", True, np.True_, 1j, [1.0], np.array([1.0]), np.array([1.0, 2.0])),
    ],
)
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(PrivacyParameterError, match=r"epsilon must be a number in \[1e-06, 500\]"):
        check_epsilon_delta(epsilon, 1e-5)
    with pytest.raises(PrivacyParameterError, match="epsilon"):
        noise_multiplier(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0, 1, 1.5, -1e-5, 1e-201, math.nan, math.inf, None, "x", False])
def test_delta_out_of_range(delta):
    with pytest.raises(PrivacyParameterError, match=r"delta must be a number in \(0, 1\)"):
        check_epsilon_delta(1.0, delta)
    with pytest.raises(PrivacyParameterError, match="delta"):
        noise_multiplier(1.0, delta)


@pytest.mark.parametrize("epsilon", [1, 1.0, np.float32(1), np.int64(1), Fraction(1)])
def test_numbers_of_all_kinds_become_floats(epsilon):
    pair = check_epsilon_delta(epsilon, np.float64(1e-5))
    assert pair == (1.0, 1e-5)
    assert [type(x) for x in pair] == [float, float]


# -- releases that may fail to be Gaussian -------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("mu", [0.0, 1e-6, 0.3, 3.0, math.inf])
def test_without_an_extra_delta_it_is_the_gaussian(epsilon, mu):
    assert composed_delta(epsilon, mu, 0.0) == gaussian_delta(epsilon, mu)
    for delta in (1e-9, 1e-5, 0.3):
        assert composed_epsilon(delta, mu, 0.0) == gaussian_epsilon(delta, mu)


def test_the_extra_delta_against_a_mechanism_that_attains_it():
    """Gaussian on a grid beside a coin that shows the table: the divergence, summed up."""
    mu, extra, epsilon = 0.7, 0.01, 0.5
    x = np.linspace(-12, 12, 200_001)
    p, q = np.exp(-((x - mu) ** 2) / 2), np.exp(-(x**2) / 2)
    p, q = (1 - extra) * p / p.sum(), (1 - extra) * q / q.sum()
    divergence = np.maximum(p - math.exp(epsilon) * q, 0).sum() + extra
    assert composed_delta(epsilon, mu, extra) == pytest.approx(divergence, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("extra", [1e-12, 1e-6, 0.01, 0.5])
def test_the_extra_delta_is_within_the_looser_formula(epsilon, extra):
    # delta_G(epsilon + log(1 - extra)) + extra is above, and not by much.
    mu = 0.25
    looser = gaussian_delta(max(epsilon + math.log1p(-extra), 0.0), mu) + extra
    assert composed_delta(epsilon, mu, extra) <= looser
    if extra < 1e-3:
        assert composed_delta(epsilon, mu, extra) == pytest.approx(looser, rel=1e-3)


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.999999, 1 - 1e-15])
@pytest.mark.parametrize("mu", [1e-6, 0.3, 300.0])
def test_composed_epsilon_inverts_from_the_safe_side(delta, share, mu):
    extra = share * delta
    epsilon = composed_epsilon(delta, mu, extra)
    assert composed_delta(epsilon, mu, extra) <= delta
    if epsilon > 0:
        assert composed_delta(epsilon * (1 - 1e-9), mu, extra) > delta


def test_composed_epsilon_at_the_ends():
    assert composed_epsilon(1e-5, 0.0, 1e-5) == 0.0
    assert composed_epsilon(1e-5, 1e-3, 1e-5) == math.inf
    assert composed_epsilon(1e-5, 0.0, 1.1e-5) == math.inf
    assert composed_epsilon(1e-5, math.inf, 1e-6) == math.inf
    with pytest.raises(PrivacyParameterError, match="delta must be a number"):
        composed_epsilon(0.0, 1.0, 0.0)


def test_compose_extra_delta():
    assert compose_extra_delta([]) == 0.0
    assert math.copysign(1, compose_extra_delta([])) == 1
    assert compose_extra_delta([0.1, 0.2]) == pytest.approx(0.28, rel=1e-15)
    # Tiny ones don't get lost beside 1, and don't turn negative.
    assert compose_extra_delta([1e-30] * 1000) == pytest.approx(1e-27, rel=1e-12)
