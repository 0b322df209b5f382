"""The last layer of every generator: raw numbers in, encoded rows out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skdpgen.layout import EncodedLayout

__all__ = ["OutputHead"]

# Overhang of the stretched sigmoid at either end. A column that often sits exactly on a bound
# (capital-gain is 0 for nine rows in ten) reaches it at a finite raw value.
_STRETCH = 0.05


class _ProjectedClip(torch.autograd.Function):
    """Clip to [0, 1], with the gradient of projected gradient descent.

    A plain clip has gradient 0 outside, so a column that leaves the interval for all rows
    could never come back. Here a gradient that points back inside passes.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return values.clamp(0.0, 1.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (values,), (gradient,) = ctx.saved_tensors, gradients
        leads_out = ((values <= 0) & (gradient > 0)) | ((values >= 1) & (gradient < 0))
        return gradient.masked_fill(leads_out, 0.0)


class OutputHead(nn.Module):
    """Map raw generator outputs to encoded rows.

    Numeric positions pass a stretched sigmoid that is clipped to [0, 1], so that both ends are
    reached exactly and can carry a positive share of the rows. Each one-hot group passes a
    softmax. The head has no weights.

    Parameters
    ----------
    layout : EncodedLayout
        Where the numeric positions and the one-hot groups stand.

    Examples
    --------
    >>> import torch
    >>> head = OutputHead(EncodedLayout(width=3, numeric=(0,), groups=((1, 3),)))
    >>> head(torch.tensor([[-9.0, 0.0, 0.0], [9.0, 0.0, 0.0]]))
    tensor([[0.0000, 0.5000, 0.5000],
            [1.0000, 0.5000, 0.5000]])
    """

    numeric: Tensor
    categorical: Tensor
    padded: Tensor
    membership: Tensor
    gather: Tensor

    def __init__(self, layout: EncodedLayout) -> None:
        super().__init__()
        self.width = layout.width
        widths = layout.group_widths
        group_of = np.repeat(np.arange(len(widths)), widths)
        starts = np.cumsum((0, *widths))[:-1]
        # Members of each group as positions among the one-hot columns; short groups are padded
        # with their own first member, which changes no maximum.
        offsets = np.arange(max(widths, default=0))[None, :]
        padded = starts[:, None] + np.where(offsets < np.array(widths)[:, None], offsets, 0)
        # `gather` puts [numerics, one-hot columns] back into layout order.
        gather = np.argsort((*layout.numeric, *layout.categorical))
        for name, values in (
            ("numeric", np.array(layout.numeric, dtype=np.int64)),
            ("categorical", np.array(layout.categorical, dtype=np.int64)),
            ("padded", padded.astype(np.int64)),
            ("membership", np.eye(len(widths), dtype=np.float32)[group_of]),
            ("gather", gather),
        ):
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    def forward(self, raw: Tensor) -> Tensor:
        """Encode raw outputs.

        Parameters
        ----------
        raw : Tensor of shape (n_rows, width)
            Any finite numbers.

        Returns
        -------
        Tensor of shape (n_rows, width)
            Numerics in [0, 1]; each group non-negative with sum 1.
        """
        numbers = torch.sigmoid(raw.index_select(1, self.numeric))
        numbers = _ProjectedClip.apply(numbers * (1 + 2 * _STRETCH) - _STRETCH)
        if not len(self.categorical):
            return numbers.index_select(1, self.gather)
        # All softmaxes at once. Sums over groups are products with the membership matrix: many
        # times faster than one softmax per group, and exact in the same way on every device.
        logits = raw.index_select(1, self.categorical)
        shifted = logits - self._boxed(logits.detach()).amax(dim=2) @ self.membership.T
        weights = torch.exp(shifted)
        softmaxes = weights / (weights @ self.membership @ self.membership.T)
        return torch.cat([numbers, softmaxes], dim=1).index_select(1, self.gather)

    def harden(self, rows: Tensor, rng: torch.Generator) -> Tensor:
        """Draw one category from each softmax; leave numerics as they are.

        Sampling rather than taking the most likely category keeps the class-wise marginals
        that were trained: the categorical block of the embedding is linear in the one-hot
        rows, so the mean over drawn categories equals the mean over softmaxes.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, width)
            Output of :meth:`forward`.
        rng : torch.Generator
            Source of the draws, on the device of ``rows``.

        Returns
        -------
        Tensor of shape (n_rows, width)
            The same numerics and exact one-hot groups.
        """
        if not len(self.categorical):
            return rows
        softmaxes = rows.index_select(1, self.categorical)
        # The category with the earliest of independent exponential arrivals of rate p wins
        # with probability p. One whose weight is 0 never does.
        arrivals = torch.empty_like(softmaxes).exponential_(generator=rng).clamp_(min=1e-30)
        first = self._boxed(softmaxes / arrivals).argmax(dim=2)
        winners = self.padded.gather(1, first.T).T
        drawn = torch.zeros_like(softmaxes).scatter_(1, winners, 1.0)
        numbers = rows.index_select(1, self.numeric)
        return torch.cat([numbers, drawn], dim=1).index_select(1, self.gather)

    def _boxed(self, columns: Tensor) -> Tensor:
        """Shape one-hot columns as (n_rows, n_groups, widest group)."""
        return columns.index_select(1, self.padded.ravel()).view(len(columns), *self.padded.shape)
