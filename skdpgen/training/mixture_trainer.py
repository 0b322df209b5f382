"""Fitting mixtures of products to a release of interaction features: the loop, without rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from skdpgen.exceptions import InputError
from skdpgen.training.denoising import piecewise_constant
from skdpgen.training.mixture_objective import FrequencyGroup, interaction_loss, one_way_loss
from skdpgen.training.progress import Progress
from skdpgen.training.trainer import resolve_device

__all__ = ["FittedMixture", "MixtureSettings", "MixtureTarget", "fit_mixture"]

# Columns of fewer ordered codes have no coarse part: there is little to share between neighbors.
_FEWEST_ORDERED = 24
# Knots of the two coarse parts of an ordered column's logits, and the scale of its own part.
_COARSE_KNOTS = (4, 16)
_FINE_SCALE = 0.2
# Probabilities start from the noisy one-way tables; categories below so many standard deviations
# share what they hold together, for taken one by one half of the absent ones would start above
# zero. Neighboring bins share what they hold where the noise hides a difference.
_POOLED_BELOW = 2.0
_SMALLEST_START = 1e-6


@dataclass(frozen=True)
class MixtureSettings:
    """Everything that decides a fit beside the release; none of it costs privacy.

    Parameters
    ----------
    n_components : int, default=400
        Components in all.
    n_mixtures : int, default=4
        Independent mixtures that share the components evenly and are averaged: what one of them
        invents beyond the released features, the others don't.
    n_steps : int, default=1500
        Most gradient steps, along a cosine.
    learning_rate : float, default=0.03
        Learning rate of Adam.
    batch_size : int, default=250
        Frequencies a step.
    spread : float, default=0.2
        Standard deviation of the initial logits around those of the one-way tables. Small: the
        components start alike, and differ only where the release asks for it.
    floor_ratio : float, default=1.0
        Training stops when the loss of one pass over the frequencies is below this multiple of
        what the noise alone would leave.
    device : str, default="auto"
        A torch device, or ``"auto"``.
    seed : int, default=0
        Seed of the initial logits and the order of the groups.

    Raises
    ------
    InputError
        If a value is out of range.
    """

    n_components: int = 400
    n_mixtures: int = 4
    n_steps: int = 1500
    learning_rate: float = 0.03
    batch_size: int = 250
    spread: float = 0.2
    floor_ratio: float = 1.0
    device: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_components", "n_mixtures", "n_steps", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.n_components < self.n_mixtures:
            raise InputError(
                f"n_components must be at least n_mixtures = {self.n_mixtures}; "
                f"got {self.n_components}."
            )
        for name in ("learning_rate", "spread", "floor_ratio"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0) or (name == "learning_rate" and not value):
                raise InputError(f"{name} must be finite and positive; got {value}.")


@dataclass(frozen=True)
class MixtureTarget:
    """What a release says, on the scale of probabilities.

    Parameters
    ----------
    groups : list of FrequencyGroup
        Released features; see :func:`skdpgen.training.mixture_objective.frequency_groups`.
    n_codes : tuple of int
        Number of codes of each column.
    n_ordered : tuple of int
        Number of leading codes of each column that are in order (bins); 0 for categories.
    one_way : ndarray of shape (n_classes, sum(n_codes)) or None
        Released joint shares of class and code, column after column.
    proportions : ndarray of shape (n_classes,)
        Positive class proportions with sum 1.
    feature_stddev, one_way_stddev : float
        Standard deviation of the noise on each coordinate of the groups and of ``one_way``.
    class_weights : ndarray of shape (n_classes,)
        Weight of each class in the loss.
    one_way_weight : float
        Weight of the one-way loss beside the mean over the frequencies: that of the release, in
        which all coordinates have the same noise.
    """

    groups: list[FrequencyGroup]
    n_codes: tuple[int, ...]
    n_ordered: tuple[int, ...]
    one_way: NDArray[np.float64] | None
    proportions: NDArray[np.float64]
    feature_stddev: float
    one_way_stddev: float
    class_weights: NDArray[np.float64]
    one_way_weight: float

    @property
    def noise_floor(self) -> float:
        """Loss that the noise leaves in expectation at the true distribution."""
        floor = 2 * self.feature_stddev**2
        if self.one_way is not None:
            floor += self.one_way_weight * sum(self.n_codes) * self.one_way_stddev**2
        return float(self.class_weights.sum() * floor)


@dataclass(frozen=True)
class FittedMixture:
    """What a fit gives.

    Parameters
    ----------
    probabilities : tuple of ndarray of float32, shape (E * K, n_codes)
        Per column, the distribution of its code in each component of each mixture.
    shares : ndarray of float64, shape (E, n_classes, K)
        Joint probability of class and component of each mixture.
    loss_curve : ndarray of shape (n_steps,)
        Mean loss over the mixtures, a step.
    status : {"floor", "finished", "stopped", "diverged"}
        Why training ended; ``"stopped"``: a listener asked for it.
    """

    probabilities: tuple[NDArray[np.float32], ...]
    shares: NDArray[np.float64]
    loss_curve: NDArray[np.float64]
    status: Literal["floor", "finished", "stopped", "diverged"]


def fit_mixture(target: MixtureTarget, settings: MixtureSettings) -> FittedMixture:
    """Minimize the squared distance to the release over mixtures of products.

    Adam on logits, over a fixed partition of the frequencies, in random order within each pass.
    The one-way tables take part in every step.

    Parameters
    ----------
    target : MixtureTarget
        The released features.
    settings : MixtureSettings
        Size, steps, learning rate, device, seed.

    Returns
    -------
    FittedMixture

    Raises
    ------
    InputError
        If the device isn't there.

    Notes
    -----
    The logits of a column with many ordered codes are a fine part and two coarse ones, piecewise
    linear over 4 and 16 knots. Adam moves all coordinates at the same rate, so neighboring bins
    move together unless the release tells them apart: noise on single bins is what a fit without
    the coarse parts learns first.
    """
    device = resolve_device(settings.device)
    model = _Logits(target, settings, device)
    one_way = None
    if target.one_way is not None:
        one_way = torch.as_tensor(target.one_way, dtype=torch.float32, device=device)
    weights = torch.as_tensor(target.class_weights, dtype=torch.float32, device=device)
    one_way_weights = weights * target.one_way_weight
    optimizer = Adam(model.parameters)
    order = np.random.default_rng(settings.seed)
    n_groups = len(target.groups)
    stop_at = settings.floor_ratio * target.noise_floor
    losses: list[float] = []
    status: Literal["floor", "finished", "stopped", "diverged"] = "finished"
    queue = np.arange(0)
    progress = Progress(settings.n_steps)
    with torch.no_grad():
        for step in range(settings.n_steps):
            if step % n_groups == 0:
                if losses and np.mean(losses[-n_groups:]) <= stop_at:
                    status = "floor"
                    break
                queue = order.permutation(n_groups)
            group = target.groups[queue[step % n_groups]]
            atoms, shares = model.forward()
            gradient, share_gradient = torch.zeros_like(atoms), torch.zeros_like(shares)
            loss = interaction_loss(
                group,
                model.split(atoms),
                shares,
                weights,
                model.split(gradient),
                share_gradient,
            )
            if one_way is not None:
                loss += one_way_loss(
                    atoms, one_way, shares, one_way_weights, gradient, share_gradient
                )
            losses.append(float(loss.mean()))
            stop = progress.step(losses[-1])
            if not math.isfinite(losses[-1]):
                status = "diverged"
                losses.pop()
                break
            model.backward(atoms, shares, gradient, share_gradient)
            rate = (1 + math.cos(math.pi * step / settings.n_steps)) / 2
            optimizer.step(settings.learning_rate * rate)
            if stop:
                status = "stopped"
                break
        atoms, shares = model.forward()
    progress.end()
    return FittedMixture(
        probabilities=tuple(column.T.cpu().numpy().copy() for column in model.split(atoms)),
        shares=shares.double().cpu().numpy(),
        loss_curve=np.array(losses, dtype=np.float64),
        status=status,
    )


class Adam:
    """Adam (Kingma and Ba, arXiv 1412.6980) with betas 0.9 and 0.99, on tensors with a ``grad``.

    The same as :class:`torch.optim.Adam`, whose first use imports torch's compiler: two seconds,
    a quarter of a fit.

    Parameters
    ----------
    parameters : sequence of Tensor
        Changed in place.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = parameters
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]
        self.n_steps = 0

    def step(self, learning_rate: float) -> None:
        """Move against the gradients."""
        beta, gamma = 0.9, 0.99
        self.n_steps += 1
        # The squares are small at first; here the rate makes up for it, one pass less a step.
        correction = math.sqrt(1 - gamma**self.n_steps)
        rate = learning_rate * correction / (1 - beta**self.n_steps)
        for value, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            gradient = value.grad
            assert gradient is not None
            mean.lerp_(gradient, 1 - beta)
            square.mul_(gamma).addcmul_(gradient, gradient, value=1 - gamma)
            # Gradients of unlikely atoms are tiny: so is what keeps the denominator from 0.
            value.addcdiv_(mean, square.sqrt().add_(1e-12 * correction), value=-rate)


class _Logits:
    """Parameters of the mixtures, and the way from logits to probabilities and back."""

    def __init__(
        self, target: MixtureTarget, settings: MixtureSettings, device: torch.device
    ) -> None:
        n_mixtures = settings.n_mixtures
        n_components = settings.n_components // n_mixtures
        n_classes = len(target.proportions)
        width = n_mixtures * n_components
        rng = torch.Generator().manual_seed(settings.seed)
        ends = np.cumsum(target.n_codes).tolist()
        self.slices = [slice(b - n, b) for n, b in zip(target.n_codes, ends, strict=True)]
        start = torch.randn(ends[-1], width, generator=rng) * settings.spread
        start += torch.as_tensor(_starting_logits(target), dtype=torch.float32)[:, None]
        share = torch.randn(n_mixtures, n_classes, n_components, generator=rng) * 0.5
        share += torch.as_tensor(np.log(target.proportions), dtype=torch.float32)[:, None]
        self.start = start.to(device)
        self.fine = torch.zeros_like(self.start)
        self.label = share.to(device)
        #: Per column with a coarse part: its rows, and the basis of shape (rows, knots).
        self.bases: list[tuple[slice, Tensor]] = []
        self.scale = torch.ones(ends[-1], 1, device=device)
        for rows, ordered in zip(self.slices, target.n_ordered, strict=True):
            if ordered >= _FEWEST_ORDERED:
                part = slice(rows.start, rows.start + ordered)
                basis = torch.as_tensor(coarse_basis(ordered), dtype=torch.float32, device=device)
                self.bases.append((part, basis))
                self.scale[part] = _FINE_SCALE
        self.coarse = [torch.zeros(basis.shape[1], width, device=device) for _, basis in self.bases]
        self.parameters = [self.fine, self.label, *self.coarse]
        self.atoms = torch.empty_like(self.start)

    def split(self, stacked: Tensor) -> list[Tensor]:
        return [stacked[rows] for rows in self.slices]

    def forward(self) -> tuple[Tensor, Tensor]:
        torch.addcmul(self.start, self.fine, self.scale, out=self.atoms)
        for (rows, basis), knots in zip(self.bases, self.coarse, strict=True):
            self.atoms[rows].addmm_(basis, knots)
        for rows in self.slices:
            torch.softmax(self.atoms[rows], dim=0, out=self.atoms[rows])
        shares = torch.softmax(self.label.flatten(1), dim=1).view_as(self.label)
        return self.atoms, shares

    def backward(
        self, atoms: Tensor, shares: Tensor, gradient: Tensor, share_gradient: Tensor
    ) -> None:
        """Turn gradients of probabilities into gradients of the parameters."""
        gradient *= atoms
        for rows in self.slices:
            gradient[rows].addcmul_(atoms[rows], gradient[rows].sum(dim=0), value=-1)
        for (rows, basis), knots in zip(self.bases, self.coarse, strict=True):
            knots.grad = basis.mT @ gradient[rows]
        self.fine.grad = gradient.mul_(self.scale)
        share_gradient *= shares
        total = share_gradient.sum(dim=(1, 2), keepdim=True)
        self.label.grad = share_gradient.addcmul_(shares, total, value=-1)


def coarse_basis(n_ordered: int, knots: Sequence[int] = _COARSE_KNOTS) -> NDArray[np.float64]:
    """Piecewise linear functions over so many ordered codes, one a knot.

    Parameters
    ----------
    n_ordered : int
        Number of codes.
    knots : sequence of int
        Number of intervals of each part; it has one knot more.

    Returns
    -------
    ndarray of shape (n_ordered, sum(knots) + len(knots))
        Each part sums to 1 in every row.
    """
    parts = []
    for n in knots:
        x = np.linspace(0, n, n_ordered)
        parts.append(np.clip(1 - np.abs(x[:, None] - np.arange(n + 1)), 0, None))
    return np.concatenate(parts, axis=1)


def _starting_logits(target: MixtureTarget) -> NDArray[np.float64]:
    """Logarithms of the noisy one-way shares, where they stand out of the noise."""
    if target.one_way is None:
        return np.zeros(sum(target.n_codes))
    shares = target.one_way.sum(axis=0)
    stddev = target.one_way_stddev * math.sqrt(len(target.proportions))
    columns = np.split(shares, np.cumsum(target.n_codes)[:-1])
    for column, ordered in zip(columns, target.n_ordered, strict=True):
        n_pieced = ordered if ordered >= _FEWEST_ORDERED else 0
        column[:n_pieced] = piecewise_constant(column[:n_pieced], stddev)
        rest = column[n_pieced:]
        low = rest < _POOLED_BELOW * stddev
        if low.any():
            rest[low] = max(rest[low].sum(), 0.0) / low.sum()
    return np.log(np.maximum(shares, _SMALLEST_START))
