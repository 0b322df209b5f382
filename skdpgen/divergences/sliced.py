"""Distances of two samples along slices: f-divergences, Wasserstein and MMD.

All functions take projected batches ``real`` of shape (..., b, k) and ``fake`` of shape
(..., m, k), where the leading axes count slices and k (mostly 1) is the dimension of a slice.
They run on any device in float32 or float64; gradients reach ``fake`` alone.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from skdpgen.exceptions import InputError

__all__ = [
    "Divergence",
    "density_ratio",
    "f_generator",
    "mean_over_slices",
    "rational_quadratic",
    "sliced_f_divergence",
    "sliced_mmd",
    "sliced_wasserstein",
]

Divergence: TypeAlias = Literal["hellinger", "kl", "reverse_kl", "js", "pearson", "tv"]

# A batch of about a hundred rows can't tell a ratio below this from 0.
_FLOOR = 0.01


def rational_quadratic(x: Tensor, y: Tensor, bandwidth: float | Tensor) -> Tensor:
    """Rational quadratic kernel 1 / (1 + ||x - y||^2 / (2 h^2)) of all pairs of rows.

    Rows several bandwidths away still have a gradient: the tails fall like 1 / distance^2.

    Parameters
    ----------
    x, y : Tensor of shape (..., n, k) and (..., m, k)
        Rows, with equal leading axes.
    bandwidth : float or Tensor of shape (...)
        Positive bandwidth h, one for all slices or one per slice. float32 computes with one
        between 1e-15 and 1e15, lest h^2 leave its range.

    Returns
    -------
    Tensor of shape (..., n, m)
        Values in [0, 1], 1 where the rows are equal.

    Examples
    --------
    >>> rational_quadratic(torch.tensor([[0.0]]), torch.tensor([[0.0], [2.0]]), 1.0)
    tensor([[1.0000, 0.3333]])
    """
    h = torch.as_tensor(bandwidth, dtype=x.dtype, device=x.device).detach()
    if h.ndim and h.shape != x.shape[:-2]:
        raise InputError("bandwidth must be one number, or have one entry per slice.")
    if not bool(((h > 0) & h.isfinite()).all()):
        raise InputError("bandwidth must be positive and finite.")
    # h^2, 1 / h^2 and the gradients, of order 1 / h, have to stay in range.
    info = torch.finfo(x.dtype)
    scale = 2 * h.clamp(info.tiny**0.4, info.max**0.4).square()[..., None, None]
    # Differences of the rows themselves: |x|^2 + |y|^2 - 2xy would cancel in float32.
    steps = x[..., :, None, :] - y[..., None, :, :]
    squares = steps.squeeze(-1).square() if steps.shape[-1] == 1 else steps.square().sum(dim=-1)
    # Squares that overflow give 0, with gradient 0.
    return scale / (scale + squares)


def density_ratio(
    real: Tensor, fake: Tensor, *, bandwidth: float | Tensor, ridge: float = 0.01
) -> Tensor:
    """Estimate p_fake / p_real at the real rows of each slice by kernel mean matching.

    r = max(0, (K_rr + ridge b I)^-1 K_rf 1 b / m) are the weights with which the real rows match
    the mean embedding of the fake ones. The factor b / m brings them to 1 where the distributions
    agree, whatever the batch sizes; the ridge shrinks them by some percent, more at the edges.

    Parameters
    ----------
    real : Tensor of shape (..., b, k)
        Released distribution; constant, so no gradient flows through the solve.
    fake : Tensor of shape (..., m, k)
        Rows of the generator; gradients reach them through K_rf.
    bandwidth : float or Tensor of shape (...)
        Bandwidth of :func:`rational_quadratic`.
    ridge : float, default=0.01
        Regularisation in units of b: the condition number is at most 1 + 1 / ridge. At least
        100 units of rounding of the dtype (1.2e-5 in float32), or the factor could break down.
        A small ridge that doesn't grow with b fits the batch and loses modes.

    Returns
    -------
    Tensor of shape (..., b)
        Ratios, at least 0. Their mean is about 1, but not normalised.

    Notes
    -----
    At the real rows, so that a mode without fake rows has ratio 0 and costs f(0). Where the
    solution is negative, the clip lets no gradient through. After arXiv 2410.19941.

    Examples
    --------
    >>> real = torch.tensor([[0.0], [1.0]]).repeat(50, 1)
    >>> fake = torch.tensor([[0.0], [1.0], [1.0], [1.0]])
    >>> density_ratio(real, fake, bandwidth=0.1)[:2].round(decimals=2)
    tensor([0.4900, 1.4700])
    """
    real = _constant(real, fake)
    if not 100 * torch.finfo(real.dtype).eps <= ridge < math.inf:
        raise InputError(f"ridge is outside its range; got {ridge!r}. The default is 0.01.")
    b, m = real.shape[-2], fake.shape[-2]
    gram = rational_quadratic(real, real, bandwidth)
    gram.diagonal(dim1=-2, dim2=-1).add_(ridge * b)
    # K_rf is averaged before the solve, which so has one right-hand side per slice.
    embedding = rational_quadratic(real, fake, bandwidth).sum(dim=-1, keepdim=True) * (b / m)
    ratio = torch.cholesky_solve(embedding, torch.linalg.cholesky(gram))
    return ratio.squeeze(-1).clamp(min=0)


def f_generator(ratio: Tensor, divergence: Divergence = "hellinger") -> Tensor:
    """Generator f of the divergence E_real f(r), r = p_fake / p_real, with f(1) = f'(1) = 0.

    Kernel mean matching does not normalise r; f'(1) = 0 keeps r = 1 the minimum all the same.

    ============ =========================================== ============================
    divergence   f(r)                                        E_real f(p_fake / p_real)
    ============ =========================================== ============================
    hellinger    (sqrt r - 1)^2 / 2                          squared Hellinger distance
    kl           r log r - r + 1                             KL(fake || real)
    reverse_kl   r - 1 - log r                               KL(real || fake)
    js           (r log r - (1 + r) log((1 + r) / 2)) / 2    Jensen-Shannon, in nats
    pearson      (r - 1)^2                                   chi^2(fake || real)
    tv           abs(r - 1) / 2                              total variation
    ============ =========================================== ============================

    Parameters
    ----------
    ratio : Tensor
        Ratios r, at least 0.
    divergence : {"hellinger", "kl", "reverse_kl", "js", "pearson", "tv"}
        The divergence.

    Returns
    -------
    Tensor of the shape of ``ratio``
        f(r) >= 0 up to rounding. The first four have an infinite slope at 0; below r = 0.01 they
        follow their tangent, convex and with a finite gradient: f(0) is 0.45, 0.99, 4.6, 0.342.

    Notes
    -----
    Fake mass where p_real is 0 is not seen: of disjoint distributions E_real f(r) is f(0), not
    the divergence, f(0) plus the slope of f at infinity.

    Examples
    --------
    >>> f_generator(torch.tensor([0.0, 1.0, 4.0]), "hellinger")
    tensor([0.4500, 0.0000, 0.5000])
    """
    if divergence == "pearson":
        return (ratio - 1).square()
    if divergence == "tv":
        return (ratio - 1).abs() / 2
    r = ratio.clamp(min=_FLOOR)
    if divergence == "hellinger":
        value, slope = (r.sqrt() - 1).square() / 2, (1 - _FLOOR**-0.5) / 2
    elif divergence == "kl":
        value, slope = r * r.log() - r + 1, math.log(_FLOOR)
    elif divergence == "reverse_kl":
        value, slope = r - 1 - r.log(), 1 - 1 / _FLOOR
    elif divergence == "js":
        value = (r * r.log() - (1 + r) * ((1 + r) / 2).log()) / 2
        slope = math.log(2 * _FLOOR / (1 + _FLOOR)) / 2
    else:
        raise InputError(f"divergence must be one of {get_args(Divergence)}; got {divergence!r}.")
    return value + slope * (ratio - r)


def sliced_f_divergence(
    real: Tensor,
    fake: Tensor,
    *,
    divergence: Divergence = "hellinger",
    bandwidth: float | Tensor,
    ridge: float = 0.01,
    weights: Tensor | None = None,
) -> Tensor:
    """Smoothed-sliced f-divergence: the mean of f(r) over the real rows and over the slices.

    Parameters
    ----------
    real, fake
        See :func:`density_ratio`.
    divergence : {"hellinger", "kl", "reverse_kl", "js", "pearson", "tv"}
        See :func:`f_generator`.
    bandwidth, ridge
        See :func:`density_ratio`.
    weights : Tensor of shape (...), optional
        Non-negative weights of the slices, for a weighted mean.

    Returns
    -------
    Tensor of shape ()
        The divergence. Ridge and bandwidth bias it towards 0, and equal batches off 0: 2e-4 for
        Hellinger, where two batches of 128 rows of one distribution are at 7e-3.

    Examples
    --------
    >>> real = torch.linspace(-1, 1, 100).reshape(1, 100, 1)
    >>> [round(float(sliced_f_divergence(real, real + t, bandwidth=1.0)), 2) for t in (0, 1, 50)]
    [0.0, 0.23, 0.44]
    """
    values = f_generator(density_ratio(real, fake, bandwidth=bandwidth, ridge=ridge), divergence)
    return mean_over_slices(values.mean(dim=-1), weights)


def sliced_mmd(
    real: Tensor,
    fake: Tensor,
    *,
    bandwidth: float | Tensor,
    unbiased: bool = True,
    weights: Tensor | None = None,
) -> Tensor:
    """Mean over slices of the squared MMD with the rational quadratic kernel.

    Parameters
    ----------
    real, fake, bandwidth
        See :func:`sliced_f_divergence`.
    unbiased : bool, default=True
        Leave out the pairs of a row with itself. The estimate can then be negative, and each
        batch needs two rows. False gives the plain estimate, which is 0 for equal batches.
    weights
        See :func:`sliced_f_divergence`.

    Returns
    -------
    Tensor of shape ()
        The squared MMD, at most 2.

    Examples
    --------
    >>> real = torch.tensor([[0.0], [1.0]])
    >>> sliced_mmd(real, real + 1, bandwidth=1.0, unbiased=False)
    tensor(0.3333)
    """
    real = _constant(real, fake)
    means = []
    for rows in (real, fake):
        n, own = rows.shape[-2], int(unbiased)  # a row's kernel with itself is 1
        if n <= own:
            raise InputError("The unbiased MMD needs at least two rows per batch.")
        kernel = rational_quadratic(rows, rows, bandwidth)
        means.append((kernel.sum(dim=(-2, -1)) - own * n) / (n * (n - own)))
    cross = rational_quadratic(real, fake, bandwidth).mean(dim=(-2, -1))
    return mean_over_slices(means[0] + means[1] - 2 * cross, weights)


def sliced_wasserstein(
    real: Tensor, fake: Tensor, *, p: Literal[1, 2] = 1, weights: Tensor | None = None
) -> Tensor:
    """Mean over slices of W_p^p, the one-dimensional Wasserstein distance to the power p.

    No root for p = 2: its slope is infinite at equality. For the distance to histograms, not to
    draws from them, take as ``real`` their :func:`histogram_quantiles` at levels (i + 1/2) / b.

    Parameters
    ----------
    real, fake : Tensor of shape (..., b, 1)
        Batches of equal size.
    p : {1, 2}, default=1
        Order.
    weights : Tensor of shape (...), optional
        Non-negative weights of the slices, for a weighted mean.

    Returns
    -------
    Tensor of shape ()
        The mean of W_p^p.

    Examples
    --------
    >>> sliced_wasserstein(torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [2.0]]), p=2)
    tensor(4.)
    """
    real = _constant(real, fake)
    if real.shape != fake.shape or real.shape[-1] != 1:
        raise InputError("sliced_wasserstein needs batches of equal shape (..., b, 1).")
    if p not in (1, 2):
        raise InputError(f"p must be 1 or 2; got {p!r}.")
    # Sorting couples the batches optimally in one dimension, for every p >= 1.
    steps = (real.sort(dim=-2).values - fake.sort(dim=-2).values).abs().squeeze(-1)
    return mean_over_slices((steps if p == 1 else steps.square()).mean(dim=-1), weights)


def _constant(real: Tensor, fake: Tensor) -> Tensor:
    """Check a pair of batches and cut ``real`` off the graph."""
    if real.dtype not in (torch.float32, torch.float64) or fake.dtype != real.dtype:
        raise InputError("Both batches must be float32, or both float64.")
    if real.ndim < 2 or fake.ndim < 2 or 0 in (*real.shape, *fake.shape):
        raise InputError("Batches must have shape (..., b, k), with at least one of each.")
    if real.shape[:-2] != fake.shape[:-2] or real.shape[-1] != fake.shape[-1]:
        raise InputError("Both batches must have the same slices of the same dimension.")
    return real.detach()


def mean_over_slices(values: Tensor, weights: Tensor | None) -> Tensor:
    """Plain or weighted mean of one value per slice.

    Parameters
    ----------
    values : Tensor of shape (...)
        One value per slice.
    weights : Tensor of shape (...) or None
        Non-negative weights.
    """
    if weights is None:
        return values.mean()
    if weights.shape != values.shape:
        raise InputError("weights must have one entry per slice.")
    total = weights.sum()
    if not bool((weights >= 0).all() & (total > 0) & total.isfinite()):
        raise InputError("weights must be non-negative, finite and not all 0.")
    return (weights * values).sum() / total
