"""The discrete Gaussian: its privacy by exact enumeration, its sampler by statistics."""

import asyncio
import contextvars
import math
import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import opendp.measurements
import pytest
from scipy import stats

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import gaussian_delta
from skdpgen.privacy.noise import (
    MAXIMUM_STDDEV,
    MINIMUM_STDDEV,
    NoiseSource,
    _discrete_gaussian,
    add_gaussian_noise,
    check_stddev,
    current_source,
    insecure_noise,
)

SECURE = NoiseSource()

# -- privacy, by exact enumeration ----------------------------------------------------------------


def discrete_gaussian(variance, radius):
    """Atoms of the discrete Gaussian of a variance on -radius .. radius."""
    z = np.arange(-radius, radius + 1)
    weights = np.exp(-(z**2) / (2 * variance))
    return weights / weights.sum()


def exact_delta(variance, shift, epsilon):
    """Exact delta of the discrete Gaussian around 0 against the one around an integer vector."""
    radius = math.ceil(12 * math.sqrt(variance)) + max(shift)
    p = q = np.ones(())
    for step in shift:
        atoms = discrete_gaussian(variance, radius)
        p = np.multiply.outer(p, np.pad(atoms, (0, step)))
        q = np.multiply.outer(q, np.pad(atoms, (step, 0)))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


CASES = [
    (s, shift, epsilon)
    for s in (1.0, 1.7, 2.0, 3.7306, 5.0, 8.0, 16.3, 40.0)
    for shift in ((1,), (2,), (5,), (1, 1), (2, 1), (3, 4))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
]


@pytest.mark.parametrize(("s", "shift", "epsilon"), CASES)
def test_discrete_noise_is_as_private_as_the_ideal(s, shift, epsilon):
    ideal = gaussian_delta(epsilon, math.hypot(*shift) / s)
    # 1e-13 is what adding up thousands of atoms in double precision costs.
    assert exact_delta(s**2 + 4, shift, epsilon) <= ideal * (1 + 1e-9) + 1e-13


def test_without_the_four_it_is_not():
    # At equal variance the discrete Gaussian is less private than the ideal one: by 3.5 % of delta
    # where 3.7 steps should give (1, 1e-5). The same check as above tells the two apart.
    assert exact_delta(3.7306**2, (1,), 1.0) > 1.03 * gaussian_delta(1.0, 1 / 3.7306)
    exceeded = {
        (s, shift)
        for s, shift, epsilon in CASES
        if exact_delta(s**2, shift, epsilon)
        > gaussian_delta(epsilon, math.hypot(*shift) / s) * (1 + 1e-9) + 1e-13
    }
    assert len(exceeded) >= 40  # of 48: it isn't about one lucky epsilon


def test_the_theorem_step_by_step():
    # Rounding the ideal Gaussian by a discrete Gaussian of variance 4 IS the discrete Gaussian of
    # variance s^2 + 4: the integral of the docstring by the trapezoid rule, which converges faster
    # than any power for such integrands, against the atoms.
    s, z = 3.0, np.arange(-25, 26)
    y = np.arange(-60, 60, 1 / 64)
    rounding = np.exp(-((z[:, None] - y[None]) ** 2) / 8)
    normalizer = np.exp(-((np.arange(-100, 101)[:, None] - y[None]) ** 2) / 8).sum(axis=0)
    assert np.abs(normalizer / math.sqrt(8 * math.pi) - 1).max() < 1e-13
    density = np.exp(-(y**2) / (2 * s**2)) / (s * math.sqrt(2 * math.pi))
    composed = (density * rounding / normalizer).sum(axis=1) / 64
    atoms = discrete_gaussian(s**2 + 4, 25 + 100)[100:-100]
    assert np.allclose(composed, atoms, rtol=1e-11, atol=0)


# -- the sampler ----------------------------------------------------------------------------------


def halve_the_noise(monkeypatch):
    """Make the sampler lie: the privacy map it was asked for, but half the noise."""
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain, metric, scale):
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 2)

        def __call__(self, values):
            return self.sample(values)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", Liar)


def variance_is_right(noise, variance):
    """Two-sided chi-square test of a known variance, false-alarm rate 1e-9.

    For wide noise (s >= 2^10) the sum of squares over the variance is chi-square distributed up to
    terms of order s^-2.
    """
    tail = stats.chi2(len(noise)).ppf([5e-10, 1 - 5e-10])
    total = float((noise.astype(float) ** 2).sum() / variance)
    return bool(tail[0] < total < tail[1])


def distribution_is_right(noise, variance):
    """Pearson's chi-square test against the exact atoms, false-alarm rate about 1e-9.

    Cells of at least 50 expected values; the tails are lumped.
    """
    radius = math.ceil(40 * math.sqrt(variance))
    atoms = discrete_gaussian(variance, radius)
    # Cut the integers into up to 60 cells of about equal mass.
    cell = np.minimum((np.cumsum(atoms) - atoms / 2) * 60, 59).astype(int)
    expected = np.bincount(cell, weights=atoms, minlength=60)
    observed = np.bincount(cell[noise + radius], minlength=60)
    used = expected > 0
    assert expected[used].min() * len(noise) > 50
    return stats.chisquare(observed[used], expected[used] * len(noise)).pvalue > 1e-9


@pytest.mark.parametrize("stddev", [MINIMUM_STDDEV, 12345.6, 2.0**33])
@pytest.mark.parametrize("halved", [False, True])
def test_the_variance_is_the_stated_one(stddev, halved, monkeypatch):
    if halved:
        halve_the_noise(monkeypatch)
    noise = add_gaussian_noise(np.zeros(8000, dtype=np.int64), stddev, 4, SECURE)
    assert variance_is_right(noise, stddev**2 + 4) == (not halved)


@pytest.mark.parametrize("s", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("halved", [False, True])
def test_the_atoms_are_the_exact_ones(s, halved, monkeypatch):
    # At scales where the lattice shows. Not reachable through add_gaussian_noise, which wants 2^10.
    if halved:
        halve_the_noise(monkeypatch)
    noise = _discrete_gaussian(np.zeros(20_000, dtype=np.int64), s, 1)
    assert distribution_is_right(noise, s**2 + 4) == (not halved)
    assert not distribution_is_right(noise, s**2 + 1)


def test_coordinates_are_independent_and_centered():
    noise = add_gaussian_noise(np.zeros(16_000, dtype=np.int64), 5000.0, 4, SECURE) / 5000.0
    # Mean and lag-one correlations of 16,000 values: six standard errors, 2e-9 each.
    limit = 6 / math.sqrt(len(noise))
    assert abs(noise.mean()) < limit
    for lag in (1, 2, 8000):
        assert abs((noise[:-lag] * noise[lag:]).mean()) < 6 / math.sqrt(len(noise) - lag)


def test_the_noise_is_added_to_the_exact_values():
    # 2^60 needs 61 bits: a detour through float64 would lose the last seven and show as rounding.
    values = np.array([2**60 + 1, -(2**60) - 1, 0, 5] * 500, dtype=np.int64)
    noise = add_gaussian_noise(values, MINIMUM_STDDEV, 4, SECURE) - values
    assert variance_is_right(noise, MINIMUM_STDDEV**2 + 4)
    assert len(set((noise[::4] % 128).tolist())) > 50


def test_noncontiguous_values():
    values = np.arange(40, dtype=np.int64) * 10**12
    noisy = add_gaussian_noise(values[::2], MINIMUM_STDDEV, 4, SECURE)
    # 32 standard deviations: never.
    assert np.abs(noisy - values[::2]).max() < 32 * MINIMUM_STDDEV


def test_values_beyond_the_lattice_saturate():
    values = np.array([2**63 - 1, -(2**63)], dtype=np.int64)
    noisy = add_gaussian_noise(values, MINIMUM_STDDEV, 4, SECURE)
    assert np.abs(noisy - [2**61, -(2**61)]).max() < 32 * MINIMUM_STDDEV


def test_noise_does_not_follow_any_seed():
    import random

    draws = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        draws.append(add_gaussian_noise(np.zeros(8, dtype=np.int64), 2.0**40, 4, SECURE))
    # Equal by chance: about 2^-320.
    assert not np.array_equal(*draws)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_draw_different_noise():
    # A generator in user space that is copied by fork would repeat itself in both children.
    add_gaussian_noise(np.zeros(2, dtype=np.int64), 2.0**40, 4, SECURE)
    context = multiprocessing.get_context("fork")
    values = np.zeros(8, dtype=np.int64)
    with context.Pool(2, maxtasksperchild=1) as pool:
        jobs = [(values, 2.0**40, 4, SECURE)] * 3
        draws = pool.starmap(add_gaussian_noise, jobs, chunksize=1)
    here = add_gaussian_noise(values, 2.0**40, 4, SECURE)
    assert len({tuple(draw.tolist()) for draw in [*draws, here]}) == 4


class Map:
    """A sampler that returns the data as they are, with a map that says something."""

    def __init__(self, rho):
        self.map = lambda sensitivity: rho

    def __call__(self, values):
        raise AssertionError("drawn in spite of the map")


@pytest.mark.parametrize("rho", [math.inf, math.nan, 4 / (2 * 2048.0**2) * 1.001])
def test_a_sampler_with_another_privacy_map_is_refused(rho, monkeypatch):
    monkeypatch.setattr(opendp.measurements, "make_gaussian", lambda *a, scale: Map(rho))
    with pytest.raises(PrivacyParameterError, match="map disagrees"):
        add_gaussian_noise(np.zeros(3, dtype=np.int64), 2048.0, 4, SECURE)


def test_a_scale_of_zero_would_be_seen_by_the_map(monkeypatch):
    # OpenDP accepts scale 0 and returns the data un-noised.
    make = opendp.measurements.make_gaussian
    monkeypatch.setattr(opendp.measurements, "make_gaussian", lambda *a, scale: make(*a, scale=0.0))
    with pytest.raises(PrivacyParameterError, match="map disagrees"):
        add_gaussian_noise(np.zeros(3, dtype=np.int64), 2048.0, 4, SECURE)


# -- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stddev", [0.0, 1023.9, MAXIMUM_STDDEV * 1.1, -5e3, math.nan, math.inf])
def test_stddev_out_of_range(stddev):
    for source in (SECURE, NoiseSource(np.random.default_rng(0))):
        with pytest.raises(PrivacyParameterError, match=r"2\^10 and at most 2\^52"):
            add_gaussian_noise(np.zeros(3, dtype=np.int64), stddev, 4, source)
    with pytest.raises(PrivacyParameterError, match=r"2\^10 and at most 2\^52"):
        check_stddev(stddev)


def test_the_ends_of_the_range_are_accepted():
    for stddev in (MINIMUM_STDDEV, MAXIMUM_STDDEV):
        check_stddev(stddev)
        assert add_gaussian_noise(np.zeros(1, dtype=np.int64), stddev, 2**100, SECURE).shape == (1,)


@pytest.mark.parametrize("sensitivity_squared", [0, -4, 2**120])
def test_sensitivity_out_of_range(sensitivity_squared):
    with pytest.raises(PrivacyParameterError, match="squared sensitivity"):
        add_gaussian_noise(np.zeros(3, dtype=np.int64), 2048.0, sensitivity_squared, SECURE)


@pytest.mark.parametrize(
    "values",
    [np.zeros(3), np.zeros((3, 1), dtype=np.int64), np.zeros(3, dtype=np.int32), np.int64([[]])],
)
def test_values_must_be_a_vector_of_int64(values):
    with pytest.raises(PrivacyParameterError, match="one-dimensional int64"):
        add_gaussian_noise(values, 2048.0, 4, SECURE)


# -- the insecure context -------------------------------------------------------------------------


def draw(n=20):
    return add_gaussian_noise(np.zeros(n, dtype=np.int64), 2048.0, 4, current_source())


def test_insecure_noise_is_seeded_and_scaled():
    with insecure_noise(seed=1):
        first = draw()
        more = draw()
    with insecure_noise(seed=1):
        assert np.array_equal(draw(), first)
    assert not np.array_equal(first, more)
    with insecure_noise(seed=1, scale=3.0):
        assert np.abs(draw() - 3 * first).max() <= 2  # rounding
    with insecure_noise(seed=2):
        assert not np.array_equal(draw(), first)
    with insecure_noise(scale=0):
        assert draw().tolist() == [0] * 20


def test_insecure_noise_has_the_calibrated_scale():
    with insecure_noise(seed=0):
        assert variance_is_right(draw(8000), 2048.0**2)


def test_insecure_noise_nests_and_ends():
    assert current_source().secure
    with insecure_noise(seed=0):
        outer = current_source()
        assert not outer.secure
        with insecure_noise(scale=0):
            assert current_source().scale == 0
        assert current_source() is outer
    assert current_source().secure


def test_insecure_noise_ends_with_an_exception():
    with pytest.raises(KeyError), insecure_noise(seed=0):
        raise KeyError
    assert current_source().secure


@pytest.mark.skipif(
    getattr(sys.flags, "thread_inherit_context", False), reason="threads inherit all contexts here"
)
def test_insecure_noise_stays_in_its_thread():
    seen = []
    with insecure_noise(seed=0):
        thread = threading.Thread(target=lambda: seen.append(current_source().secure))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(lambda: current_source().secure).result())
    assert seen == [True, True]


def test_insecure_noise_stays_in_its_context():
    async def look():
        return current_source().secure

    empty = contextvars.Context()
    with insecure_noise(seed=0):
        assert empty.run(lambda: current_source().secure)
        assert asyncio.run(look()) is False  # a task started inside is inside
    assert asyncio.run(look())


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf])
def test_bad_scales(scale):
    with (
        pytest.raises(PrivacyParameterError, match="scale must be a finite number"),
        insecure_noise(scale=scale),
    ):
        pytest.fail("unreachable")
    assert current_source().secure
