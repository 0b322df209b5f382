"""What a generator is: a torch module, its output head, and seeded ways to build and sample it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skdpgen.exceptions import InputError
from skdpgen.generators.conv import ConvGenerator
from skdpgen.generators.heads import OutputHead
from skdpgen.generators.mlp import MLPGenerator
from skdpgen.layout import EncodedLayout

__all__ = ["DEFAULT_NOISE_DIM", "Generator", "GeneratorSpec", "build_generator"]

DEFAULT_NOISE_DIM = 16

#: ``"auto"``, ``"mlp"``, ``"conv"``, a module, or a callable ``(layout, n_classes) -> module``.
GeneratorSpec: TypeAlias = str | nn.Module | Callable[[EncodedLayout, int], nn.Module]

# Rows made at once while sampling: bounds the memory; has no effect on the distribution.
_SAMPLE_CHUNK = 4096


class Generator(nn.Module):
    """A backbone with its output head: noise and labels in, encoded rows out.

    Made by :func:`build_generator`; the trainer optimizes it and the synthesizer samples it.

    Parameters
    ----------
    backbone : nn.Module
        Called as ``backbone(noise, labels)`` with ``noise`` of shape (n_rows, noise_dim) and
        one-hot ``labels`` of shape (n_rows, n_classes); returns raw numbers of shape
        (n_rows, layout.width). An attribute ``noise_dim`` tells how much noise it takes;
        without one it gets 16 numbers a row.
    layout : EncodedLayout
        Layout of the rows to make.
    n_classes : int
        Number of labels, 1 for a table without a label.

    Attributes
    ----------
    noise_dim : int
        Width of the standard normal noise.
    """

    def __init__(self, backbone: nn.Module, layout: EncodedLayout, n_classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = OutputHead(layout)
        self.n_classes = n_classes
        self.noise_dim = int(getattr(backbone, "noise_dim", DEFAULT_NOISE_DIM))

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Make soft encoded rows, differentiable in the weights.

        Parameters
        ----------
        noise : Tensor of shape (n_rows, noise_dim)
            Standard normal noise.
        labels : Tensor of shape (n_rows, n_classes)
            One-hot labels.

        Returns
        -------
        Tensor of shape (n_rows, layout.width)
            Numerics in [0, 1], a softmax per one-hot group.
        """
        encoded: Tensor = self.head(self.backbone(noise, labels))
        return encoded

    @torch.no_grad()
    def sample(self, labels: NDArray[np.int64], seed: int) -> NDArray[np.float32]:
        """Draw one encoded row per label.

        Rows are independent given the labels and each has the same distribution however many
        are drawn: the module runs in evaluation mode. The global random state of torch is
        neither read nor changed.

        Parameters
        ----------
        labels : ndarray of int, shape (n_rows,)
            Class indices in ``0 .. n_classes - 1``.
        seed : int
            Seed of the draws. The same seed and labels give the same rows on one device.

        Returns
        -------
        ndarray of float32, shape (n_rows, layout.width)
            Numerics in [0, 1], exact one-hot groups.
        """
        device = next(self.parameters(), torch.empty(0)).device
        was_training = self.training
        self.eval()
        noise_rng = torch.Generator().manual_seed(seed)
        head_rng = torch.Generator(device).manual_seed(seed)
        codes = torch.as_tensor(labels, dtype=torch.int64)
        rows = np.empty((len(codes), self.head.width), dtype=np.float32)
        for start in range(0, len(codes), _SAMPLE_CHUNK):
            chunk = codes[start : start + _SAMPLE_CHUNK]
            noise = torch.randn(
                len(chunk), self.noise_dim, generator=noise_rng, dtype=torch.float32
            )
            one_hot = nn.functional.one_hot(chunk, self.n_classes).to(torch.float32)
            soft = self(noise.to(device), one_hot.to(device))
            rows[start : start + len(chunk)] = self.head.harden(soft, head_rng).cpu().numpy()
        self.train(was_training)
        return rows


def build_generator(
    generator: GeneratorSpec, layout: EncodedLayout, n_classes: int, *, seed: int
) -> Generator:
    """Build a generator with exactly seeded weights.

    Parameters
    ----------
    generator : {"auto", "mlp", "conv"}, nn.Module or callable
        ``"auto"`` is ``"conv"`` for images and ``"mlp"`` else. A module is copied and starts
        from its own weights; the original is never changed. A callable gets
        ``(layout, n_classes)`` and returns a module; :class:`MLPGenerator` and
        :class:`ConvGenerator` are such callables.
    layout : EncodedLayout
        Layout of the rows to make.
    n_classes : int
        Number of labels, at least 1.
    seed : int
        Seed of the initial weights. The global random state of torch is left as it was.

    Returns
    -------
    Generator
        In float32, on the CPU.

    Raises
    ------
    InputError
        If the name is unknown, the callable returns no module, or the module can't be called
        with noise and labels or returns another shape.

    Examples
    --------
    >>> layout = EncodedLayout(width=3, numeric=(0,), groups=((1, 3),))
    >>> made = build_generator("mlp", layout, n_classes=2, seed=0)
    >>> made.sample([0, 1, 1], seed=0).shape
    (3, 3)
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        backbone = _backbone(generator, layout, n_classes).to("cpu", torch.float32)
        built = Generator(backbone, layout, n_classes)
        _probe(built, layout.width)
    return built


def _backbone(generator: GeneratorSpec, layout: EncodedLayout, n_classes: int) -> nn.Module:
    if isinstance(generator, nn.Module):
        return copy.deepcopy(generator)
    if generator == "auto":
        generator = "mlp" if layout.image_shape is None else "conv"
    if isinstance(generator, str):
        named: dict[str, Callable[[EncodedLayout, int], nn.Module]] = {
            "mlp": MLPGenerator,
            "conv": ConvGenerator,
        }
        if generator not in named:
            raise InputError(
                f"generator must be 'auto', 'mlp', 'conv', a torch module or a callable; "
                f"got {generator!r}."
            )
        generator = named[generator]
    if not callable(generator):
        raise InputError(
            f"generator must be 'auto', 'mlp', 'conv', a torch module or a callable; "
            f"got an object of type {type(generator).__name__}."
        )
    module = generator(layout, n_classes)
    if not isinstance(module, nn.Module):
        raise InputError(
            f"the generator callable must return a torch.nn.Module; it returned "
            f"{type(module).__name__}."
        )
    return module


@torch.no_grad()
def _probe(built: Generator, width: int) -> None:
    """Call the backbone once on two rows and check what comes back."""
    built.eval()
    noise = torch.zeros(2, built.noise_dim)
    labels = torch.zeros(2, built.n_classes)
    try:
        raw = built.backbone(noise, labels)
    except Exception as error:
        raise InputError(
            f"the generator failed when called as module(noise, labels) with noise of shape "
            f"(2, {built.noise_dim}) and labels of shape (2, {built.n_classes}): {error}. "
            f"Set its attribute noise_dim if it takes another amount of noise."
        ) from error
    shape = tuple(getattr(raw, "shape", ()))
    if not isinstance(raw, Tensor) or shape != (2, width):
        raise InputError(
            f"the generator must return a tensor of shape (n_rows, {width}), one number per "
            f"encoded column; for 2 rows it returned {type(raw).__name__} of shape {shape}."
        )
    built.train()
