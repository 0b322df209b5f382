"""The differentiable side of the feature map: generated rows to random features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from skdpgen.layout import EncodedLayout

__all__ = ["MixedEmbedding"]


class _CosineSine(torch.autograd.Function):
    """Cosines and sines of phases, side by side; one pass each, reused by the backward pass.

    Plain autograd computes every cosine and sine twice, which is most of the time of a step.
    """

    @staticmethod
    def forward(ctx: Any, phase: Tensor) -> Tensor:
        waves = torch.cat([phase.cos(), phase.sin()], dim=1)
        ctx.save_for_backward(waves)
        return waves

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (waves,), (gradient,) = ctx.saved_tensors, gradients
        n = waves.shape[1] // 2
        return gradient[:, n:] * waves[:, :n] - gradient[:, :n] * waves[:, n:]


class MixedEmbedding(nn.Module):
    """Random Fourier features of the numbers and scaled one-hot columns, as a torch module.

    Parameters
    ----------
    layout : EncodedLayout
        Layout of encoded rows.
    frequencies : ndarray of int64, shape (F, p)
        Frequencies in ``2**-frequency_bits`` cycles per unit.
    frequency_bits : int
        Resolution of the frequencies.
    fourier_scale : float
        Amplitude of each: one over the root of the number of frequencies of the release.
    """

    def __init__(
        self,
        layout: EncodedLayout,
        frequencies: npt.NDArray[np.int64],
        frequency_bits: int,
        *,
        fourier_scale: float,
    ) -> None:
        super().__init__()
        angular = 2 * math.pi * np.array(frequencies, dtype=np.float64).T / 2**frequency_bits
        buffers = {
            "angular": torch.as_tensor(angular, dtype=torch.float32),
            "numeric": torch.as_tensor(layout.numeric, dtype=torch.int64),
            "categorical": torch.as_tensor(layout.categorical, dtype=torch.int64),
        }
        for name, value in buffers.items():
            self.register_buffer(name, value, persistent=False)
        self.fourier_scale = fourier_scale
        self.category_scale = 1 / math.sqrt(max(1, len(layout.categorical)))

    def forward(self, rows: Tensor) -> Tensor:
        """Embed encoded rows.

        Parameters
        ----------
        rows : Tensor of shape (n, layout.width)
            Numbers in [0, 1], one-hot groups or their probabilities.

        Returns
        -------
        Tensor of shape (n, 2 F + d)
            Cosines, sines, scaled one-hot columns: the coordinates of the release.
        """
        waves: Tensor = _CosineSine.apply(
            rows[:, self.get_buffer("numeric")] @ self.get_buffer("angular")
        )
        categories = rows[:, self.get_buffer("categorical")] * self.category_scale
        return torch.cat([waves * self.fourier_scale, categories], dim=1)
