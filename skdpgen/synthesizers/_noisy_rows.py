"""Training a network on noisy projected rows: plan it before rows are read, run it after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpgen.atoms import largest
from skdpgen.exceptions import InputError
from skdpgen.generators.base import Generator
from skdpgen.layout import EncodedLayout
from skdpgen.privacy.lattice import to_grid
from skdpgen.privacy.slicing import SlicingBatch
from skdpgen.privacy.slicing_release import SlicingRelease
from skdpgen.synthesizers._sliced import plan_network
from skdpgen.synthesizers._table import TableCodec
from skdpgen.training.sliced_objective import Distance, NoisyRowsLoss, check_distance
from skdpgen.training.trainer import TrainingResult, TrainingSettings, descend, resolve_device

__all__ = ["RowsPlan", "plan_rows", "row_batches"]


@dataclass(frozen=True)
class RowsPlan:
    """All that is decided before training: built first, so that bad settings cost no budget.

    Parameters
    ----------
    generator : Generator
        With its initial weights.
    settings : TrainingSettings
        Steps, batch, learning rate, device, seed.
    divergence : str
        What compares slices.
    layout : EncodedLayout
        Layout of encoded rows.
    sampling_seed : int
        Seed of the synthesizer's stream of samples.
    """

    generator: Generator
    settings: TrainingSettings
    divergence: Distance
    layout: EncodedLayout
    sampling_seed: int

    def train(self, release: SlicingRelease) -> TrainingResult:
        """Run the plan on a release of noisy projected rows.

        There are no private rows in this signature: by construction it is post-processing.
        """
        device = resolve_device(self.settings.device)
        matrix = release.column_weights()[:, None] * release.direction_matrix()
        # The mechanism knows numbers first, then groups; encoded rows have an order of their own.
        order = [*self.layout.numeric, *self.layout.categorical]
        directions = np.empty_like(matrix)
        directions[order] = matrix
        loss = NoisyRowsLoss(
            head=self.generator.head.to(device),
            directions=directions.reshape(-1, release.n_slices, release.slice_dim),
            projections=release.projections(),
            # Benchmarks without noise say so by being insecure.
            noise_stddev=release.noise_scale if release.private else 0.0,
            divergence=self.divergence,
            device=device,
            seed=self.settings.seed,
        )
        return descend(self.generator, loss, 0.0, self.settings)


def plan_rows(divergence: Any, slice_dim: Any, layout: EncodedLayout, **training: Any) -> RowsPlan:
    """Check everything that training needs beside a release; see :func:`plan_training`.

    Raises
    ------
    InputError
        If a setting is out of range, or the generator can't be trained.
    """
    distance = check_distance(divergence)
    if distance == "sliced_wasserstein" and slice_dim != 1:
        raise InputError("divergence='sliced_wasserstein' needs slices of dimension 1.")
    no_mixture = "noisy rows train a network: leave generator at 'auto'."
    plan = plan_network(no_mixture, layout, 1, **training)
    return RowsPlan(plan.generator, plan.settings, distance, layout, plan.sampling_seed)


def row_batches(codec: TableCodec, X: Any) -> Iterator[SlicingBatch]:
    """Encoded rows as the slicing mechanism takes them."""
    layout = codec.layout
    for rows, _ in codec.encode(X, None):
        codes = np.empty((len(rows), len(layout.groups)), dtype=np.int64)
        for group, (start, stop) in enumerate(layout.groups):
            codes[:, group] = largest(rows[:, start:stop])
        yield SlicingBatch(to_grid(rows[:, list(layout.numeric)]), codes)
