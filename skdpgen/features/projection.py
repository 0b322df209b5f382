"""The differentiable side of slices: generated rows to their sums, in cells."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from skdpgen.features.slices import SliceFeatureMap

__all__ = ["SliceProjection"]


class SliceProjection(nn.Module):
    """Sums of straight slices of encoded rows, as a torch module.

    A number adds a linear function of its value, a one-hot group the mean of its categories'
    numbers under its probabilities, and a number that may be missing its own where it is present.
    For rows of a table these are the sums that the release cuts into cells, up to the width of an
    atom.

    Parameters
    ----------
    features : SliceFeatureMap
        Straight slices.

    Raises
    ------
    ValueError
        If the slices are wrapped: a sum that goes around is no projection.
    """

    def __init__(self, features: SliceFeatureMap) -> None:
        super().__init__()
        if features.wrapped:
            raise ValueError("wrapped slices have no projection.")
        atoms = features.atoms
        nullable = [
            j for j, c in enumerate(atoms.columns) if c.position is not None and c.group is not None
        ]
        # One more coordinate for each number that may be missing: its value times "present".
        product = {j: atoms.width + i for i, j in enumerate(nullable)}
        weights = np.zeros((features.n_slices, atoms.width + len(nullable)))
        bias = np.zeros(features.n_slices)
        for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
            for j, table in zip(subset, tables, strict=True):
                column, cells = atoms.columns[j], features.in_cells(table)
                if column.position is None:
                    assert column.group is not None
                    weights[s, slice(*column.group)] = cells
                    continue
                centers = column.centers
                span = max(float(centers[-1] - centers[0]), 1e-300)
                slope = (cells[len(centers) - 1] - cells[0]) / span
                start = cells[0] - slope * centers[0]
                if column.group is None:
                    weights[s, column.position] = slope
                    bias[s] += start
                else:
                    weights[s, product[j]] = slope
                    weights[s, slice(*column.group)] = start, cells[-1]
        buffers = {
            "weights": torch.as_tensor(weights, dtype=torch.float32),
            "bias": torch.as_tensor(bias, dtype=torch.float32),
            "numbers": torch.tensor(
                [atoms.columns[j].position for j in nullable], dtype=torch.int64
            ),
            "present": torch.tensor(
                [(atoms.columns[j].group or (0, 0))[0] for j in nullable], dtype=torch.int64
            ),
        }
        for name, value in buffers.items():
            self.register_buffer(name, value, persistent=False)

    def forward(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Sums of some slices.

        Parameters
        ----------
        rows : Tensor of shape (n, width)
            Numbers in [0, 1], one-hot groups or their probabilities.
        chosen : Tensor of int64, shape (n_chosen,)
            Which slices.

        Returns
        -------
        Tensor of shape (n, n_chosen)
            In cells: a whole number is the edge between two.
        """
        products = rows[:, self.get_buffer("numbers")] * rows[:, self.get_buffer("present")]
        weights = self.get_buffer("weights")[chosen]
        return torch.cat([rows, products], dim=1) @ weights.mT + self.get_buffer("bias")[chosen]
