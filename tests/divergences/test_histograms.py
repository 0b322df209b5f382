"""Histograms of slices: divergences from rows, quantiles, draws."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from skdpgen.divergences.histograms import (
    draw_from_histograms,
    histogram_f_divergence,
    histogram_quantiles,
)
from skdpgen.exceptions import InputError


def _rng(seed=0):
    return torch.Generator().manual_seed(seed)


# Divergences.

P = np.array([0.5, 0.25, 0.25, 0.0, 0.0])
Q = np.array([0.25, 0.25, 0.25, 0.25, 0.0])
# Of two distributions where neither is 0, from scipy and by hand.
BOTH_P, BOTH_Q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5])
EXACT = {
    "hellinger": 1 - np.sqrt(BOTH_P * BOTH_Q).sum(),
    "kl": stats.entropy(BOTH_Q, BOTH_P),
    "reverse_kl": stats.entropy(BOTH_P, BOTH_Q),
    "js": (
        stats.entropy(BOTH_P, (BOTH_P + BOTH_Q) / 2) + stats.entropy(BOTH_Q, (BOTH_P + BOTH_Q) / 2)
    )
    / 2,
    "pearson": ((BOTH_Q - BOTH_P) ** 2 / BOTH_P).sum(),
    "tv": abs(BOTH_P - BOTH_Q).sum() / 2,
}


def _centers(shares, n):
    """n rows at the centers of their cells, with these shares exactly."""
    return torch.arange(len(shares)).repeat_interleave(torch.tensor((n * shares).astype(int))) + 0.5


@pytest.mark.parametrize("divergence", EXACT)
def test_without_smoothing_it_is_the_divergence_of_the_histograms(divergence):
    value = histogram_f_divergence(
        torch.tensor(BOTH_P)[None],
        _centers(BOTH_Q, 8).double()[None],
        divergence=divergence,
        bandwidth=torch.tensor([1e-5], dtype=torch.float64),
    )
    assert float(value) == pytest.approx(EXACT[divergence], rel=1e-6)


@pytest.mark.parametrize("divergence", EXACT)
def test_smoothing_is_a_sum_over_pairs_of_cells(divergence):
    p, rows, h = (
        np.array([[0.2, 0.0, 0.5, 0.3], [0.7, 0.1, 0.1, 0.1]]),
        [[0.1, 3.9], [2.5, 1.0]],
        1.3,
    )
    value = histogram_f_divergence(
        torch.tensor(p),
        torch.tensor(rows, dtype=torch.float64),
        divergence=divergence,
        bandwidth=torch.tensor([h, 2 * h], dtype=torch.float64),
        weights=torch.tensor([3.0, 1.0], dtype=torch.float64),
    )

    def f(r):
        return {
            "hellinger": (math.sqrt(r) - 1) ** 2 / 2,
            "kl": r * math.log(r) - r + 1,
            "reverse_kl": r - 1 - math.log(r),
            "js": (r * math.log(r) - (1 + r) * math.log((1 + r) / 2)) / 2,
            "pearson": (r - 1) ** 2,
            "tv": abs(r - 1) / 2,
        }[divergence]

    def slice_by_hand(masses, ys, width):
        k = lambda x, y: 1 / (1 + (x - y) ** 2 / (2 * width**2))  # noqa: E731
        centers = [j + 0.5 for j in range(len(masses))]
        smooth_p = [sum(m * k(c, x) for m, x in zip(masses, centers, strict=True)) for c in centers]
        smooth_q = [sum(k(c, y) for y in ys) / len(ys) for c in centers]
        terms = [a * f(b / a) for a, b in zip(smooth_p, smooth_q, strict=True)]
        return sum(terms) / sum(smooth_p)

    first, second = slice_by_hand(p[0], rows[0], h), slice_by_hand(p[1], rows[1], 2 * h)
    assert float(value) == pytest.approx((3 * first + second) / 4, rel=1e-12)


@pytest.mark.parametrize("divergence", EXACT)
def test_rows_where_the_histogram_is_empty_cost_and_are_drawn_back(divergence):
    histogram, width = torch.tensor(P)[None], torch.tensor([1.0], dtype=torch.float64)

    def value(rows):
        return histogram_f_divergence(histogram, rows, divergence=divergence, bandwidth=width)

    true = _centers(P, 8).double()[None]
    assert float(value(true)) == pytest.approx(0, abs=1e-12)
    rows = torch.cat([true[:, :-1], torch.tensor([[4.4]], dtype=torch.float64)], 1)
    assert float(value(rows)) > 1e-3
    # Some hundred steps of plain descent on that row alone bring it to the cells with mass.
    for _ in range(300):
        stray = rows[:, -1:].clone().requires_grad_()
        loss = value(torch.cat([rows[:, :-1], stray], 1))
        (gradient,) = torch.autograd.grad(loss, stray)
        rows[:, -1:] -= 0.05 * gradient.sign()
    assert 0 < float(rows[0, -1]) < 3.2
    assert float(value(_centers(Q, 8).double()[None])) > 1e-3


def test_many_cells_and_empty_histograms_stay_finite_in_float32():
    histogram = torch.zeros(2, 1024)
    histogram[:, 0] = 1.0
    rows = torch.full((2, 3), 1023.9, requires_grad=True)
    for divergence in EXACT:
        loss = histogram_f_divergence(
            histogram, rows, divergence=divergence, bandwidth=torch.ones(2)
        )
        (gradient,) = torch.autograd.grad(loss, rows)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


# Quantiles and draws.


def test_quantiles_invert_the_piecewise_linear_cdf():
    p = torch.rand(3, 8, generator=_rng(), dtype=torch.float64) * torch.tensor(
        [0, 1, 1, 0, 0, 1, 1, 0], dtype=torch.float64
    )
    edges = torch.rand(3, 9, generator=_rng(1), dtype=torch.float64).cumsum(-1)
    levels = torch.linspace(0, 1, 101, dtype=torch.float64)
    quantiles = histogram_quantiles(p, edges, levels)
    for s in range(3):
        cdf = np.concatenate([[0], (p[s] / p[s].sum()).cumsum(0)])
        np.testing.assert_allclose(np.interp(quantiles[s], edges[s], cdf), levels, atol=1e-12)
        # The ends of the support, not of the empty outer bins.
        assert quantiles[s, 0] == edges[s, 1]
        assert quantiles[s, -1] == edges[s, 7]
    assert (quantiles.diff(dim=-1) >= 0).all()
    per_slice = histogram_quantiles(p, edges, levels.expand(3, -1))
    torch.testing.assert_close(per_slice, quantiles)


def _bin_counts(draws, edges):
    return np.stack([np.histogram(x, e)[0] for x, e in zip(draws, edges, strict=True)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_systematic_draws_round_the_expected_counts(dtype):
    p = torch.rand(20, 16, generator=_rng(), dtype=dtype)
    p[:, 3] = 0
    edges = torch.rand(20, 17, generator=_rng(1), dtype=dtype).cumsum(-1)
    draws = draw_from_histograms(p, edges, 128, _rng(2))
    assert draws.shape == (20, 128)
    assert draws.dtype == dtype
    counts = _bin_counts(draws, edges)
    expected = 128 * (p / p.sum(-1, keepdim=True)).numpy()
    assert (abs(counts - expected) < 1 + 1e-4).all()
    assert (counts[:, 3] == 0).all()


@pytest.mark.parametrize("systematic", [True, False])
def test_each_place_of_a_batch_has_the_distribution_of_the_histogram(systematic):
    p = torch.tensor([0.05, 0.4, 0.0, 0.25, 0.3], dtype=torch.float64)
    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0, 2.1, 4.0], dtype=torch.float64)
    draws = draw_from_histograms(
        p.expand(4000, -1), edges.expand(4000, -1), 8, _rng(3), systematic=systematic
    )
    for place in (0, 7):  # independent between slices
        counts = np.histogram(draws[:, place], edges)[0][[0, 1, 3, 4]]
        assert stats.chisquare(counts, 4000 * p[[0, 1, 3, 4]]).pvalue > 1e-3
        inside = draws[:, place][draws[:, place] > 2.1]
        assert stats.kstest(inside, stats.uniform(2.1, 1.9).cdf).pvalue > 1e-3
    # In random order, the places of a systematic batch are as good as uncorrelated.
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 0.2


def test_independent_draws_pass_a_chi_square_test():
    p = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    edges = torch.arange(5, dtype=torch.float64)[None]
    draws = draw_from_histograms(p, edges, 20_000, _rng(4), systematic=False)
    result = stats.chisquare(_bin_counts(draws, edges)[0], 20_000 * p[0])
    assert 1e-3 < result.pvalue < 1 - 1e-3


def test_draws_are_reproducible_and_a_zero_width_bin_is_an_atom():
    p, edges = torch.tensor([[1.0, 3.0]]), torch.tensor([[0.0, 1.0, 1.0]])
    first = draw_from_histograms(p, edges, 100, _rng(5))
    assert torch.equal(first, draw_from_histograms(p, edges, 100, _rng(5)))
    assert not torch.equal(first, draw_from_histograms(p, edges, 100, _rng(6)))
    assert (first == 1).sum() == 75


# Errors.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: histogram_quantiles(x[..., 0], x[..., 0], torch.ones(1)), "n_bins"),
        (lambda x: histogram_quantiles(x[..., 0] - 9, torch.zeros(2, 5), torch.ones(1)), "Prob"),
        (lambda x: histogram_quantiles(torch.zeros(2, 4), torch.zeros(2, 5), x[0]), "Prob"),
        (lambda x: histogram_quantiles(x[..., 0], -torch.arange(10.0).view(2, 5), x[0]), "Edges"),
        (lambda x: draw_from_histograms(x[..., 0], torch.zeros(2, 5), 0, _rng()), "n must"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(torch.rand(2, 4, 1, generator=_rng()))
