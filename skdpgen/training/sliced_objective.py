"""Distance of generated rows to the noisy histograms of their slices, as a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from skdpgen.divergences.histograms import draw_from_histograms
from skdpgen.divergences.sliced import (
    Divergence,
    sliced_f_divergence,
    sliced_mmd,
    sliced_wasserstein,
)
from skdpgen.exceptions import InputError

__all__ = ["Distance", "SlicedLoss", "check_distance", "project_to_simplex"]

#: What compares slices: an f-divergence, Wasserstein or the kernel distance.
Distance: TypeAlias = Divergence | Literal["sliced_wasserstein", "mmd"]

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
    if divergence in (*get_args(Divergence), *_OTHERS):
        return divergence  # type: ignore[return-value]
    raise InputError(
        f"divergence must be one of {', '.join((*get_args(Divergence), *_OTHERS))}, "
        f"got {divergence!r}."
    )


@dataclass
class SlicedLoss:
    """Mean distance over random slices and the classes, between generated rows and a release.

    A step draws values from the histograms of 16 slices, as many as there are generated rows of a
    class, and compares them to the rows' projections. Values are spread evenly within their cells:
    the smoothing of a smoothed-sliced divergence comes from the kernel, at least as wide as a cell.

    Parameters
    ----------
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

    project: torch.nn.Module
    histograms: NDArray[np.float64]
    class_weights: NDArray[np.float64]
    divergence: Distance
    device: torch.device
    seed: int

    def __post_init__(self) -> None:
        n_cells = self.histograms.shape[2]
        self._rng = torch.Generator().manual_seed(self.seed)
        self._shares = torch.as_tensor(self.histograms, dtype=torch.float32)
        self._edges = torch.arange(n_cells + 1, dtype=torch.float32)
        centers = np.arange(n_cells) + 0.5
        means = self.histograms @ centers
        variances = np.maximum(self.histograms @ centers**2 - means**2, 0)
        # A standard deviation of the slice within the class, and never less than a cell.
        widths = np.maximum(np.sqrt(variances), 1.0)
        self._widths = torch.as_tensor(widths, dtype=torch.float32)
        self._weights = torch.as_tensor(self.class_weights, dtype=torch.float32)

    def __call__(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The loss of one step; rows of the classes one after the other, as many of each."""
        n_classes = len(self._shares)
        per_class = len(rows) // n_classes
        chosen = torch.randperm(self._shares.shape[1], generator=self._rng)[:_SLICES_A_STEP]
        # (classes, slices, rows, 1): every pair of class and slice is a slice of the distance.
        fake = self.project(rows, chosen.to(self.device))
        fake = fake.reshape(n_classes, per_class, -1).transpose(1, 2)[..., None]
        shares = self._shares[:, chosen].flatten(0, 1)
        edges = self._edges.expand(len(shares), -1)
        real = draw_from_histograms(shares, edges, per_class, self._rng)
        real = real.view(n_classes, -1, per_class, 1).to(self.device)
        widths = self._widths[:, chosen]
        weights = self._weights[:, None].expand_as(widths).to(self.device)
        widths = widths.to(self.device)
        if self.divergence == "sliced_wasserstein":
            # In units of the slice's width, so that wide slices don't outweigh narrow ones.
            scale = widths[..., None, None]
            return sliced_wasserstein(real / scale, fake / scale, p=1, weights=weights)
        if self.divergence == "mmd":
            return sliced_mmd(real, fake, bandwidth=widths, weights=weights)
        return sliced_f_divergence(
            real, fake, divergence=self.divergence, bandwidth=widths, weights=weights
        )


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
