"""Distance of generated rows to the noisy histograms of their slices, as a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from skdpgen.divergences.histograms import draw_from_histograms, histogram_f_divergence
from skdpgen.divergences.sliced import (
    Divergence,
    sliced_f_divergence,
    sliced_mmd,
    sliced_wasserstein,
)
from skdpgen.exceptions import InputError
from skdpgen.generators.heads import OutputHead

__all__ = [
    "Distance",
    "NoisyRowsLoss",
    "SlicedLoss",
    "check_distance",
    "distance",
    "project_to_simplex",
]

#: What compares slices: an f-divergence, Wasserstein or the kernel distance.
Distance: TypeAlias = Divergence | Literal["sliced_wasserstein", "mmd"]

# Bandwidth of the kernel in standard deviations of a slice within the class. Batches estimate
# better with a wide one; cells, which are compared as they are, at a fine and at a coarse scale.
_BANDWIDTH = 2.0
_CELLS_BANDWIDTHS = (0.25, 1.0)
# Slices compared in one step; a pass over all of them takes several.
_SLICES_A_STEP = 16
_OTHERS = ("sliced_wasserstein", "mmd")


def check_distance(divergence: object) -> Distance:
    """Return ``divergence`` if it is one.

    Raises
    ------
    InputError
        Otherwise.
    """
    if isinstance(divergence, str) and divergence in (*get_args(Divergence), *_OTHERS):
        return divergence  # type: ignore[return-value]
    raise InputError(
        f"divergence must be one of {', '.join((*get_args(Divergence), *_OTHERS))}, "
        f"got {divergence!r}."
    )


@dataclass
class SlicedLoss:
    """Mean distance over random slices and the classes, between generated rows and a release.

    A step compares 16 slices. An f-divergence is that of the histograms themselves and the rows'
    projections, both smoothed by a kernel, at two scales, at least a cell wide. For the others as
    many values are drawn from each histogram as there are generated rows of a class, spread evenly
    within their cells.

    Parameters
    ----------
    head : OutputHead
        Of the generator: it draws categories.
    project : Module
        Maps rows and a list of slices to their sums, in cells: shape (n_rows, n_chosen).
    histograms : ndarray of shape (n_classes, m, B)
        Distribution of each slice within each class.
    class_weights : ndarray of shape (n_classes,)
        Weights of the classes.
    divergence : str
        See ``Distance``.
    device : torch.device
        Where training runs.
    seed : int
        Seed of the slices of each step and of the draws.
    """

    head: OutputHead
    project: torch.nn.Module
    histograms: NDArray[np.float64]
    class_weights: NDArray[np.float64]
    divergence: Distance
    device: torch.device
    seed: int

    def __post_init__(self) -> None:
        n_cells = self.histograms.shape[2]
        self._rng = torch.Generator().manual_seed(self.seed)
        self._category_rng = torch.Generator(self.device).manual_seed(self.seed)
        self._shares = torch.as_tensor(self.histograms, dtype=torch.float32)
        self._edges = torch.arange(n_cells + 1, dtype=torch.float32)
        centers = np.arange(n_cells) + 0.5
        means = self.histograms @ centers
        variances = np.maximum(self.histograms @ centers**2 - means**2, 0)
        # Never less than a cell: what is finer isn't known.
        bandwidths = (_BANDWIDTH,) if self.divergence in _OTHERS else _CELLS_BANDWIDTHS
        scales = np.array(bandwidths)[:, None, None]
        widths = np.maximum(scales * np.sqrt(variances), 1.0)
        self._widths = torch.as_tensor(widths, dtype=torch.float32)
        self._weights = torch.as_tensor(self.class_weights, dtype=torch.float32)

    def __call__(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The loss of one step; rows of the classes one after the other, as many of each."""
        n_classes = len(self._shares)
        per_class = len(rows) // n_classes
        chosen = torch.randperm(self._shares.shape[1], generator=self._rng)[:_SLICES_A_STEP]
        rows = _drawn(self.head, rows, self._category_rng)
        # Every pair of class and slice is a slice of the distance.
        fake = self.project(rows, chosen.to(self.device))
        fake = fake.reshape(n_classes, per_class, -1).transpose(1, 2).flatten(0, 1)
        shares = self._shares[:, chosen].flatten(0, 1)
        widths = self._widths[:, :, chosen].flatten(1, 2).to(self.device)
        weights = self._weights.repeat_interleave(len(chosen)).to(self.device)
        if self.divergence == "sliced_wasserstein" or self.divergence == "mmd":
            edges = self._edges.expand(len(shares), -1)
            real = draw_from_histograms(shares, edges, per_class, self._rng).to(self.device)
            return distance(real[..., None], fake[..., None], self.divergence, widths[0], weights)
        n_scales = len(widths)
        return histogram_f_divergence(
            shares.to(self.device).repeat(n_scales, 1),
            fake.repeat(n_scales, 1),
            divergence=self.divergence,
            bandwidth=widths.flatten(),
            weights=weights.repeat(n_scales),
        )


@dataclass
class NoisyRowsLoss:
    """Mean distance over random slices between generated rows and noisy projected ones.

    Generated rows get the noise of the release before they are compared: both distributions are
    smoothed alike, as in the smoothed-sliced divergences of arXiv 2410.19941.

    Parameters
    ----------
    head : OutputHead
        Of the generator: it draws categories.
    directions : ndarray of shape (width, m, k)
        What an encoded row is multiplied with.
    projections : ndarray of shape (n, m, k)
        Noisy projected rows.
    noise_stddev : float
        Standard deviation of their noise.
    divergence : str
        See ``Distance``; "sliced_wasserstein" takes k = 1 only.
    device : torch.device
        Where training runs.
    seed : int
        Seed of rows, slices and noise of each step.
    """

    head: OutputHead
    directions: NDArray[np.float64]
    projections: NDArray[np.float64]
    noise_stddev: float
    divergence: Distance
    device: torch.device
    seed: int

    def __post_init__(self) -> None:
        self._rng = torch.Generator().manual_seed(self.seed)
        self._category_rng = torch.Generator(self.device).manual_seed(self.seed)
        self._noisy = torch.as_tensor(self.projections, dtype=torch.float32)
        self._directions = torch.as_tensor(self.directions, dtype=torch.float32, device=self.device)
        spread = self._noisy.std(dim=0).square().sum(dim=1).sqrt()
        self._widths = (_BANDWIDTH * spread).clamp(min=1e-6)

    def __call__(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The loss of one step."""
        n, m, k = self._noisy.shape
        chosen = torch.randperm(m, generator=self._rng)[:_SLICES_A_STEP]
        picked = torch.randint(n, (len(rows),), generator=self._rng)
        real = self._noisy[picked][:, chosen].transpose(0, 1).to(self.device)
        rows = _drawn(self.head, rows, self._category_rng)
        fake = torch.einsum("nw,wmk->mnk", rows, self._directions[:, chosen.to(self.device)])
        noise = torch.randn(len(chosen), len(rows), k, generator=self._rng) * self.noise_stddev
        widths = self._widths[chosen].to(self.device)
        return distance(real, fake + noise.to(self.device), self.divergence, widths, None)


def _drawn(head: OutputHead, rows: Tensor, rng: torch.Generator) -> Tensor:
    """Rows with their categories drawn, and the gradient of the probabilities (straight-through).

    Slices have to see categories as they will be: a sum of probabilities lies between the cells of
    the categories.
    """
    soft = rows.detach()
    return rows + (head.harden(soft, rng) - soft)


def distance(
    real: Tensor, fake: Tensor, divergence: Distance, widths: Tensor, weights: Tensor | None
) -> Tensor:
    """Mean distance of two batches over slices.

    Parameters
    ----------
    real, fake : Tensor of shape (..., b, k)
        Projected rows.
    divergence : str
        See ``Distance``.
    widths : Tensor of shape (...)
        Bandwidth of each slice.
    weights : Tensor of shape (...) or None
        Weight of each slice.
    """
    if divergence == "sliced_wasserstein":
        # In units of the slice's width, so that wide slices don't outweigh narrow ones.
        scale = widths[..., None, None]
        return sliced_wasserstein(real / scale, fake / scale, p=1, weights=weights)
    if divergence == "mmd":
        return sliced_mmd(real, fake, bandwidth=widths, weights=weights)
    return sliced_f_divergence(real, fake, divergence=divergence, bandwidth=widths, weights=weights)


def project_to_simplex(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest distributions, in Euclidean distance.

    Parameters
    ----------
    points : ndarray of shape (..., B)
        Any numbers: noisy shares, say.

    Returns
    -------
    ndarray of shape (..., B)
        Non-negative, with sum 1.

    Notes
    -----
    Sorting (Held, Wolfe, Crowder, Mathematical Programming 6, 1974): a threshold is taken off and
    what is negative then becomes zero.

    Examples
    --------
    >>> project_to_simplex(np.array([0.75, 0.75, -0.5]))
    array([0.5, 0.5, 0. ])
    """
    descending = -np.sort(-points, axis=-1)
    n = np.arange(1, points.shape[-1] + 1)
    thresholds = (np.cumsum(descending, axis=-1) - 1) / n
    last = (descending > thresholds).sum(axis=-1, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(thresholds, last, axis=-1), 0)
