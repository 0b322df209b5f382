import math

import numpy as np
import pytest
from scipy.special import gammaln, ndtr
from scipy.stats import binomtest

from skdpgen.evaluation._audit_bounds import (
    clopper_pearson,
    counting_mu,
    critical_t,
    noncentrality_lower,
)


def noncentral_t_sf(t, df, noncentrality):
    """Mean of Phi(noncentrality - t s), s the root of a chi-square over df, by quadrature."""
    reach = math.sqrt(700 / df) + 70 / df
    u = np.linspace(-reach, reach, 4001)
    constant = math.log(2) + df / 2 * math.log(df / 2) - gammaln(df / 2)
    density = np.exp(df * u - df / 2 * np.exp(2 * u) + constant)
    return float((density * ndtr(noncentrality - t * np.exp(u))).sum() * (u[1] - u[0]))


@pytest.mark.parametrize("df", [38, 598, 99_999])
@pytest.mark.parametrize("t", [-1.0, 4.0, 24.0, 300.0])
@pytest.mark.parametrize("alpha", [0.1, 5e-5, 5e-7])
def test_noncentral_t(df, t, alpha):
    lower = noncentrality_lower(t, df, alpha)
    assert noncentral_t_sf(t, df, lower) == pytest.approx(alpha, rel=1e-5)
    # One is the inverse of the other.
    assert critical_t(lower, df, alpha) == pytest.approx(t, abs=1e-6)


def test_clopper_pearson_is_that_of_scipy():
    for successes in (0, 3, 70, 100):
        low, high = clopper_pearson(successes, 100, 0.01)
        exact = binomtest(successes, 100).proportion_ci(0.98, "exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_counts_bound_mu_from_below():
    # 977 and 23 of 1000 are the rates of mu = 4 at the middle; the bounds cost a part of it.
    assert 3.3 < counting_mu(977, 23, 1000, 1e-3) < 4.0
    assert counting_mu(500, 500, 1000, 1e-3) == 0.0
    assert counting_mu(0, 0, 20, 1e-3) == counting_mu(20, 20, 20, 1e-3) == 0.0
    # Never wrong at a mechanism with mu = 1 but in a part alpha of the cases.
    rng = np.random.default_rng(0)
    hits, false = rng.binomial(200, ndtr([0.5, -0.5]), (2000, 2)).T
    wrong = sum(counting_mu(a, b, 200, 0.1) > 1 for a, b in zip(hits, false, strict=True))
    assert wrong < 200
