"""The generator for tables: a multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from skdpgen.layout import EncodedLayout

__all__ = ["MLPGenerator"]


class MLPGenerator(nn.Module):
    """A multilayer perceptron from noise and label to raw rows.

    The label also enters the last layer directly. Each class thus has its own offset per
    output, which makes the class-wise marginals easy to learn whatever the hidden layers do.

    Parameters
    ----------
    layout : EncodedLayout
        Layout of the rows to make; only its width is used.
    n_classes : int
        Number of labels, 1 for a table without a label.
    noise_dim : int, default=16
        Width of the noise.
    hidden_sizes : sequence of int, default=(256, 256)
        Widths of the hidden layers.

    Examples
    --------
    >>> layout = EncodedLayout(width=3, numeric=(0,), groups=((1, 3),))
    >>> net = MLPGenerator(layout, n_classes=2, hidden_sizes=(8,))
    >>> net(torch.zeros(5, net.noise_dim), torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        layout: EncodedLayout,
        n_classes: int,
        *,
        noise_dim: int = 16,
        hidden_sizes: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__()
        self.noise_dim = noise_dim
        widths = [noise_dim + n_classes, *hidden_sizes]
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            layers += [nn.Linear(fan_in, fan_out), nn.LayerNorm(fan_out), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(widths[-1] + n_classes, layout.width)

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Make raw rows.

        Parameters
        ----------
        noise : Tensor of shape (n_rows, noise_dim)
            Standard normal noise.
        labels : Tensor of shape (n_rows, n_classes)
            One-hot labels.

        Returns
        -------
        Tensor of shape (n_rows, layout.width)
            Raw numbers for :class:`~skdpgen.generators.heads.OutputHead`.
        """
        hidden = self.hidden(torch.cat([noise, labels], dim=1))
        raw: Tensor = self.output(torch.cat([hidden, labels], dim=1))
        return raw
