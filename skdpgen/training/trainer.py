"""Training a generator on a release: the loop, with exact seeds and no access to rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skdpgen.divergences.mmd import Objective, class_weights, embedding_loss, noise_floor
from skdpgen.exceptions import InputError
from skdpgen.generators.base import Generator
from skdpgen.training.progress import Progress

__all__ = ["TrainingResult", "TrainingSettings", "descend", "resolve_device", "train"]


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that decides a training run beside release and generator.

    All of it is post-processing: none of these settings costs privacy.

    Parameters
    ----------
    n_steps : int, default=2000
        Gradient steps, at least 1.
    batch_size : int, default=256
        Generated rows per step. Split evenly over the classes and rounded up so that each
        class has at least two.
    learning_rate : float, default=3e-3
        Largest learning rate of Adam, reached after a twentieth of the steps; a cosine then takes
        it to 0.
    objective : {"joint", "reweighted"}, default="joint"
        Weight of the classes, see :func:`skdpgen.divergences.mmd.class_weights`.
    device : str, default="auto"
        A torch device, or ``"auto"``: a CUDA device if there is one, else the CPU.
    seed : int, default=0
        Seed of the noise that the generator is fed. Same seed, same weights, to the last bit,
        on one device with one number of threads.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    >>> TrainingSettings(n_steps=0)
    Traceback (most recent call last):
        ...
    skdpgen.exceptions.InputError: n_steps must be at least 1; got 0.
    """

    n_steps: int = 2000
    batch_size: int = 256
    learning_rate: float = 3e-3
    objective: Objective = "joint"
    device: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_steps", "batch_size"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} must be at least 1; got {getattr(self, name)!r}.")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(
                f"learning_rate must be positive and finite; got {self.learning_rate!r}."
            )
        if self.objective not in ("joint", "reweighted"):
            raise InputError(f"objective must be 'joint' or 'reweighted'; got {self.objective!r}.")


@dataclass(frozen=True)
class TrainingResult:
    """A trained generator and how training went.

    Parameters
    ----------
    generator : Generator
        On the CPU and in evaluation mode, wherever it was trained.
    loss_curve : ndarray of float, shape (n_steps_done,)
        Unbiased estimates of the squared distance to the release, one per step.
    noise_floor : float
        What privacy noise contributes to each of them in expectation.
    status : {"finished", "stopped", "diverged"}
        ``"stopped"``: a listener asked for it. ``"diverged"``: loss or gradient stopped being
        finite; the generator has the weights before that step and the curve ends there.
    """

    generator: Generator
    loss_curve: NDArray[np.float64]
    noise_floor: float
    status: Literal["finished", "stopped", "diverged"]

    @property
    def debiased_loss_curve(self) -> NDArray[np.float64]:
        """Loss curve less the noise floor: an estimate of the squared MMD to the rows."""
        return self.loss_curve - self.noise_floor


def resolve_device(device: str) -> torch.device:
    """Turn ``"auto"`` or the name of a device into a device that is there.

    Parameters
    ----------
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:0"``, ...

    Returns
    -------
    torch.device
        The device.

    Raises
    ------
    InputError
        If torch doesn't know the device or can't use it here.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(f"device {device!r} can't be used here: {error}") from error
    return resolved


def train(
    generator: Generator,
    embed: Callable[[Tensor], Tensor],
    target: NDArray[np.floating],
    proportions: NDArray[np.floating],
    noise_stddev: float,
    settings: TrainingSettings,
    *,
    n_features: int | None = None,
) -> TrainingResult:
    """Fit a generator to a released mean embedding.

    Minimizes sum_c w_c ||T_c - p_c m_c||^2 over the weights of the generator with Adam, where
    m_c is the mean embedding of its rows of class c (DP-MERF, arXiv 2002.11603, section 4).
    Each batch holds the same number of rows of every class, so no noise comes from drawing
    labels.

    Parameters
    ----------
    generator : Generator
        Where to start. It is copied, not changed.
    embed : callable
        Maps encoded rows, a float32 tensor of shape (n_rows, width) on the training device, to
        features of shape (n_rows, n_features), differentiably.
    target : ndarray of shape (n_classes, n_features)
        Released joint embedding T.
    proportions : ndarray of shape (n_classes,)
        Positive class proportions p_c with sum 1.
    noise_stddev : float
        Standard deviation of the privacy noise on each coordinate of ``target``.
    settings : TrainingSettings
        Steps, batch, learning rate, objective, device and seed.
    n_features : int, default=None
        Features of the whole release, where ``target`` is a part of it: rare classes then weigh
        what they weigh for the whole. None: the target is all there is.

    Returns
    -------
    TrainingResult
        The trained copy and its loss curve.

    Raises
    ------
    InputError
        If the device isn't there.

    Notes
    -----
    The global random state of torch is neither read nor changed: a generator with dropout
    draws from a state seeded by ``settings.seed``.
    """
    device = resolve_device(settings.device)
    goal = torch.as_tensor(target, dtype=torch.float32).to(device)
    shares = torch.as_tensor(proportions, dtype=torch.float32).to(device)
    noise_energy = (n_features or goal.shape[1]) * noise_stddev**2
    weights = class_weights(shares, settings.objective, noise_energy)

    def loss(rows: Tensor, labels: Tensor) -> Tensor:
        return embedding_loss(goal, embed(rows), labels, shares, weights)

    return descend(generator, loss, noise_floor(goal.shape[1], noise_stddev, weights), settings)


def descend(
    generator: Generator,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    floor: float,
    settings: TrainingSettings,
) -> TrainingResult:
    """Minimize a loss of generated rows over the weights of a generator, with Adam.

    Parameters
    ----------
    generator : Generator
        Where to start. It is copied, not changed.
    loss_of : callable
        Maps encoded rows, shape (n_rows, width), and their one-hot labels, both on the training
        device, to a scalar, differentiably. Labels are the same in every step: as many rows of
        each class, one class after the other.
    floor : float
        What privacy noise contributes to the loss in expectation.
    settings : TrainingSettings
        Steps, batch, learning rate, device and seed.

    Returns
    -------
    TrainingResult
    """
    device = resolve_device(settings.device)
    model = copy.deepcopy(generator).to(device).train()
    labels = _stratified_labels(settings.batch_size, model.n_classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _rate_of(settings.n_steps))
    # Noise is drawn on the CPU so that it doesn't depend on the device.
    noise_rng = torch.Generator().manual_seed(settings.seed)
    losses: list[float] = []
    status: Literal["finished", "stopped", "diverged"] = "finished"
    progress = Progress(settings.n_steps)
    with torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(settings.seed)
        for _ in range(settings.n_steps):
            noise = torch.randn(
                len(labels), model.noise_dim, generator=noise_rng, dtype=torch.float32
            )
            loss = loss_of(model(noise.to(device), labels), labels)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            losses.append(loss.item())
            stop = progress.step(losses[-1])
            # Checked before the weights move: those kept always gave a finite loss.
            if not (math.isfinite(losses[-1]) and _gradient_is_finite(model)):
                status = "diverged"
                losses.pop()
                break
            optimizer.step()
            schedule.step()
            if stop:
                status = "stopped"
                break
    progress.end()
    return TrainingResult(
        generator=model.cpu().eval(),
        loss_curve=np.array(losses, dtype=np.float64),
        noise_floor=floor,
        status=status,
    )


def _rate_of(n_steps: int) -> Callable[[int], float]:
    """Factor on the learning rate at a step: a linear warm-up, then a cosine down to 0.

    Without the warm-up Adam's first steps, all of full size, can throw every hidden unit to the
    flat side of its ReLU, and the generator then ignores its noise for good.
    """
    warm_up = max(1, n_steps // 20)

    def rate(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        return (1 + math.cos(math.pi * (step - warm_up) / max(1, n_steps - warm_up))) / 2

    return rate


def _stratified_labels(batch_size: int, n_classes: int) -> Tensor:
    """One-hot labels of a batch, the same number of rows for every class."""
    per_class = max(2, -(-batch_size // n_classes))
    return torch.eye(n_classes).repeat_interleave(per_class, dim=0)


def _gradient_is_finite(model: nn.Module) -> bool:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return bool(torch.isfinite(nn.utils.get_total_norm(gradients)))
