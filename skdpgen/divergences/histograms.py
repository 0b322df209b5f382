"""Histograms of slices: their divergence from rows, their quantiles, draws from them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d

from skdpgen.divergences.sliced import (
    Divergence,
    f_generator,
    mean_over_slices,
    rational_quadratic,
)
from skdpgen.exceptions import InputError

__all__ = ["draw_from_histograms", "histogram_f_divergence", "histogram_quantiles"]


def histogram_f_divergence(
    probabilities: Tensor,
    fake: Tensor,
    *,
    divergence: Divergence = "hellinger",
    bandwidth: Tensor,
    weights: Tensor | None = None,
) -> Tensor:
    """Smoothed f-divergence of rows from histograms, both known on the centers of the cells.

    Both are smoothed by the kernel: p_j = sum_i h_i k(c_j, c_i) and q_j = mean_i k(c_j, y_i), and
    the divergence of a slice is sum_j p_j f(q_j / p_j) / sum_j p_j. Nothing is drawn from the
    histograms, and no ratio is estimated.

    Parameters
    ----------
    probabilities : Tensor of shape (n_slices, n_bins)
        Released masses of the cells: non-negative, each row with sum 1.
    fake : Tensor of shape (n_slices, m)
        Rows of the generator in units of cells: cell j is [j, j + 1). Gradients reach them.
    divergence : {"hellinger", "kl", "reverse_kl", "js", "pearson", "tv"}
        See :func:`~skdpgen.divergences.f_generator`.
    bandwidth : Tensor of shape (n_slices,)
        Bandwidth of :func:`~skdpgen.divergences.rational_quadratic`, in cells.
    weights : Tensor of shape (n_slices,), optional
        Non-negative weights of the slices, for a weighted mean.

    Returns
    -------
    Tensor of shape ()
        The divergence, at least 0.

    Notes
    -----
    The tails of the kernel make every p_j positive, so a row counts also where the histogram is
    empty. The ratio of :func:`~skdpgen.divergences.density_ratio` at released rows can't see it.

    Examples
    --------
    >>> histogram, width = torch.tensor([[0.5, 0.5, 0.0, 0.0]]), torch.tensor([1.0])
    >>> near, far = torch.tensor([[0.5, 1.5]]), torch.tensor([[2.5, 3.5]])
    >>> [round(float(histogram_f_divergence(histogram, y, bandwidth=width)), 3)
    ...  for y in (near, far)]
    [0.0, 0.085]
    """
    n_slices, n_bins = probabilities.shape
    # Distances of centers depend on the difference of their positions alone: a convolution, which
    # spares the matrix of all pairs of cells.
    lags = torch.arange(1 - n_bins, n_bins, dtype=fake.dtype, device=fake.device)
    kernel = rational_quadratic(
        torch.zeros(n_slices, 1, 1, dtype=fake.dtype, device=fake.device),
        lags.expand(n_slices, -1)[..., None],
        bandwidth,
    )
    p = conv1d(probabilities[None], kernel, padding=n_bins - 1, groups=n_slices)[0]
    centers = (lags[n_bins - 1 :] + 0.5).expand(n_slices, -1)[..., None]
    q = rational_quadratic(centers, fake[..., None], bandwidth).mean(dim=-1)
    values = (p * f_generator(q / p, divergence)).sum(dim=-1) / p.sum(dim=-1)
    return mean_over_slices(values, weights)


def histogram_quantiles(probabilities: Tensor, edges: Tensor, levels: Tensor) -> Tensor:
    """Quantiles of piecewise uniform distributions, one per slice.

    Parameters
    ----------
    probabilities : Tensor of shape (n_slices, n_bins)
        Non-negative masses of the bins; each row is divided by its positive sum.
    edges : Tensor of shape (n_slices, n_bins + 1)
        Edges of the bins, non-decreasing. A bin of width 0 is an atom.
    levels : Tensor of shape (n_levels,) or (n_slices, n_levels)
        Levels in [0, 1]; 0 and 1 give the ends of the support.

    Returns
    -------
    Tensor of shape (n_slices, n_levels)
        Quantiles. Append an axis, ``quantiles[..., None]``, for
        :func:`~skdpgen.divergences.sliced_wasserstein`.

    Examples
    --------
    >>> p, edges = torch.tensor([[0.5, 0.0, 0.5]]), torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    >>> histogram_quantiles(p, edges, torch.tensor([0.0, 0.25, 0.75, 1.0]))
    tensor([[0.0000, 0.5000, 2.5000, 3.0000]])
    """
    n_slices, n_bins = probabilities.shape if probabilities.ndim == 2 else (-1, -1)
    if n_bins < 1 or edges.shape != (n_slices, n_bins + 1):
        raise InputError("Histograms need (n_slices, n_bins) probabilities and n_bins + 1 edges.")
    total = probabilities.sum(dim=-1)
    if not bool((probabilities >= 0).all() & (total > 0).all() & total.isfinite().all()):
        raise InputError("Probabilities must be non-negative, with a positive sum in each slice.")
    if not bool((edges.diff(dim=-1) >= 0).all()):
        raise InputError("Edges must not decrease.")
    upper = probabilities.cumsum(dim=-1)
    upper = upper / upper[..., -1:]  # the last is 1 exactly, so level 1 stays inside
    # The first bin to reach a level has mass, unless the level is 0 and leading bins are empty.
    levels = levels.to(upper).expand(n_slices, -1).clamp(0, 1).contiguous()
    bins = torch.searchsorted(upper, levels.clamp(min=torch.finfo(upper.dtype).tiny))
    lower = torch.cat([torch.zeros_like(upper[..., :1]), upper], dim=-1)
    start, end = lower.gather(-1, bins), upper.gather(-1, bins)
    share = ((levels - start) / (end - start)).clamp(0, 1)
    left, right = edges.gather(-1, bins), edges.gather(-1, bins + 1)
    return torch.lerp(left, right, share.to(left))


def draw_from_histograms(
    probabilities: Tensor,
    edges: Tensor,
    n: int,
    generator: torch.Generator,
    *,
    systematic: bool = True,
) -> Tensor:
    """Draw n values per slice from piecewise uniform histograms.

    Parameters
    ----------
    probabilities, edges
        See :func:`histogram_quantiles`.
    n : int
        Number of values per slice, at least 1.
    generator : torch.Generator
        Source of randomness.
    systematic : bool, default=True
        Take the quantiles at levels (i + U) / n, with one uniform U per slice, in random order.
        Each value has the right distribution, and each bin gets n p values rounded up or down:
        batches vary much less than by independent draws, which are what False gives.

    Returns
    -------
    Tensor of shape (n_slices, n)
        The values.

    Examples
    --------
    >>> p, edges = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    >>> draws = draw_from_histograms(p, edges, 8, torch.Generator().manual_seed(0))
    >>> draws.floor().int().sort().values
    tensor([[0, 0, 0, 0, 1, 1, 2, 2]], dtype=torch.int32)
    """
    if n < 1:
        raise InputError(f"n must be at least 1; got {n!r}.")
    device, dtype, n_slices = generator.device, probabilities.dtype, probabilities.shape[0]
    levels = torch.rand(n_slices, n, generator=generator, device=device, dtype=dtype)
    if systematic:
        # The order of independent uniforms is a uniform permutation, and independent of U.
        start = torch.rand(n_slices, 1, generator=generator, device=device, dtype=dtype)
        levels = (levels.argsort(dim=-1) + start) / n
    return histogram_quantiles(probabilities, edges, levels.to(probabilities.device))
