import math

import numpy as np
import pytest
from scipy.special import gammaln

from skdpgen import mmd_error_bound
from skdpgen.exceptions import InputError


def test_paper_form_is_the_closed_form():
    bound = mmd_error_bound(50, 2.0, 1000, tight=False)
    gamma_ratio = math.exp(gammaln(25.5) - gammaln(25))
    assert bound.noise == pytest.approx(4 * 50 * 2.0**2 / 1000**2)
    assert bound.cross == pytest.approx(8 * math.sqrt(2) * 2.0 / 1000 * gamma_ratio)
    assert bound.features == pytest.approx(8 * math.sqrt(2 * math.pi / 50))
    assert bound.total == pytest.approx(bound.noise + bound.cross + bound.features)


def test_tight_form_is_the_closed_form():
    bound = mmd_error_bound(50, 2.0, 1000, n_classes=3)
    assert bound.noise == pytest.approx(4 * 150 * 2.0**2 / 1000**2)
    assert bound.cross == pytest.approx(8 * 2.0 / 1000 * math.sqrt(2 / math.pi))
    assert bound.features == pytest.approx(0.4)


def test_a_million_features_do_not_overflow():
    paper = mmd_error_bound(10**6, 3.73, 60_000, tight=False)
    # Gamma((k+1)/2) / Gamma(k/2) tends to sqrt(k/2).
    assert paper.cross == pytest.approx(8 * 3.73 / 60_000 * 1000, rel=1e-5)


def test_the_cross_term_is_smaller_by_the_stated_factor():
    tight, paper = (mmd_error_bound(10_000, 1.0, 100, tight=t) for t in (True, False))
    assert paper.cross / tight.cross == pytest.approx(math.sqrt(10_000 * math.pi / 2), rel=1e-4)


def test_without_noise_only_the_features_remain():
    bound = mmd_error_bound(100, 0.0, 10)
    assert (bound.noise, bound.cross) == (0.0, 0.0)
    assert bound.total == bound.features


def test_noise_and_cross_terms_are_attained_by_monte_carlo():
    rng = np.random.default_rng(0)
    n_features, multiplier, n_rows = 40, 3.0, 500
    stddev = multiplier * 2 / n_rows
    first = rng.standard_normal(n_features)
    difference = 2 * first / np.linalg.norm(first)  # the largest that two embeddings allow
    noise = rng.normal(0, stddev, size=(200_000, n_features))
    bound = mmd_error_bound(n_features, multiplier, n_rows)
    assert (noise**2).sum(axis=1).mean() == pytest.approx(bound.noise, rel=0.01)
    assert np.abs(2 * noise @ difference).mean() == pytest.approx(bound.cross, rel=0.01)


@pytest.mark.parametrize("distance", [0.0, 0.7, 50.0])
def test_the_bound_holds_for_two_points(distance):
    # P and Q are points at `distance`; unit Gaussian kernel: MMD^2 = 2 - 2 exp(-distance^2 / 2).
    rng = np.random.default_rng(1)
    n_features, multiplier, n_rows, repeats = 20, 2.0, 200, 4000
    phases = rng.standard_normal((repeats, n_features // 2)) * distance
    scale = math.sqrt(2 / n_features)
    difference = scale * np.concatenate([np.cos(phases) - 1, np.sin(phases)], axis=1)
    truth = 2 - 2 * math.exp(-(distance**2) / 2)
    noise = rng.normal(0, 2 * multiplier / n_rows, difference.shape)
    error = np.abs(((difference + noise) ** 2).sum(axis=1) - truth).mean()
    features_error = np.abs((difference**2).sum(axis=1) - truth).mean()
    tight, paper = (mmd_error_bound(n_features, multiplier, n_rows, tight=t) for t in (True, False))
    assert error <= tight.total <= paper.total
    assert features_error <= tight.features


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 1.0, 10), "n_features"),
        ((10, -1.0, 10), "noise_multiplier"),
        ((10, math.nan, 10), "noise_multiplier"),
        ((10, math.inf, 10), "noise_multiplier"),
        ((10, 1.0, 0), "n_rows"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, name):
    with pytest.raises(InputError, match=name):
        mmd_error_bound(*arguments)
