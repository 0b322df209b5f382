"""The generator for tables: a multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from skdpgen.layout import EncodedLayout

__all__ = ["MLPGenerator"]

# The logit of a rare category has to travel far (-7 for one row in a thousand) and Adam moves a
# weight by at most the learning rate a step: the label's weights count this many times.
_LABEL_GAIN = 4.0


class MLPGenerator(nn.Module):
    """A multilayer perceptron from noise and label to raw rows.

    Numeric outputs are a function of noise and label. The logits of the categories depend on
    the label alone unless ``couple_categories`` is set: the embedding of DP-MERF for mixed
    columns (arXiv 2002.11603, section 4.3) is linear in the one-hot columns, so it knows their
    class-wise frequencies and nothing of how they depend on each other or on numbers. Among
    all tables that match the release this is the one of largest entropy; a network left free
    invents dependencies instead, which mislead any model trained on its rows.

    Parameters
    ----------
    layout : EncodedLayout
        Layout of the rows to make.
    n_classes : int
        Number of labels, 1 for a table without a label.
    noise_dim : int, default=16
        Width of the noise.
    hidden_sizes : sequence of int, default=(256, 256)
        Widths of the hidden layers, each followed by layer normalization and a ReLU. At least
        one.
    couple_categories : bool, default=False
        Let the hidden layers reach the categories too. For embeddings that see several columns
        at once.

    Examples
    --------
    >>> layout = EncodedLayout(width=3, numeric=(0,), groups=((1, 3),))
    >>> net = MLPGenerator(layout, n_classes=2, hidden_sizes=(8,))
    >>> net(torch.zeros(5, net.noise_dim), torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    reached: Tensor

    def __init__(
        self,
        layout: EncodedLayout,
        n_classes: int,
        *,
        noise_dim: int = 16,
        hidden_sizes: Sequence[int] = (256, 256),
        couple_categories: bool = False,
    ) -> None:
        super().__init__()
        self.noise_dim = noise_dim
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise((noise_dim + n_classes, *hidden_sizes)):
            layers += [nn.Linear(fan_in, fan_out), nn.LayerNorm(fan_out), nn.ReLU()]
        reached = range(layout.width) if couple_categories else layout.numeric
        self.register_buffer("reached", torch.tensor(reached, dtype=torch.int64), persistent=False)
        if len(reached):
            self.hidden = nn.Sequential(*layers)
            self.output = nn.Linear(hidden_sizes[-1], len(reached))
        self.from_label = nn.Linear(n_classes, layout.width, bias=False)
        nn.init.zeros_(self.from_label.weight)

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
        raw: Tensor = _LABEL_GAIN * self.from_label(labels)
        if not len(self.reached):
            return raw
        from_noise = self.output(self.hidden(torch.cat([noise, labels], dim=1)))
        return raw.index_add(1, self.reached, from_noise)
