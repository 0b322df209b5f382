"""Two worlds, one with a record and one without it, and what an attacker makes of either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from ..data.frames import n_rows
from ..exceptions import InputError
from ..privacy.slicing_release import SlicingRelease
from ._columns import features, table
from ._nearest import GowerRows, distances
from ._shadows import Shadows, joined, rows_at, vector

__all__ = ["Attack", "Targets", "World"]

Attack: TypeAlias = Literal["release", "synthetic"]

# Rows that are fitted on, the target among them. Others add the same to both sums; of noisy rows
# they are so many more among which the target hides.
_MOST_ROWS, _MOST_NOISY_ROWS = 1000, 20


@dataclass(frozen=True)
class Targets:
    """Records to attack, what stands in their place, and which rows stay."""

    positions: list[int]
    others: list[Any]
    kept: npt.NDArray[np.int64]

    @classmethod
    def choose(
        cls, shadows: Shadows, rows: Any, targets: int | Sequence[int], rng: np.random.Generator
    ) -> Targets:
        n = n_rows(rows)
        if n < 2:
            raise InputError("membership inference needs a table of at least two rows.")
        given = [] if isinstance(targets, int) else [int(position) for position in targets]
        count = targets if isinstance(targets, int) else len(given)
        if not 1 <= count <= n or not all(0 <= position < n for position in given):
            raise InputError(
                "targets must be a number of rows of the table, or their positions from 0 on."
            )
        shuffled = rng.permutation(n)
        kept = np.union1d(shuffled[:_MOST_ROWS], np.array(given, dtype=np.int64))
        columns = features(shadows.schema)
        seen = GowerRows.encode(table(rows_at(rows, kept), list(columns), "private"), columns)
        apart = distances(seen, seen)
        farthest = kept[apart.argmax(axis=1)]
        np.fill_diagonal(apart, np.inf)
        order = np.argsort(-apart.min(axis=1), kind="stable")[:count]
        if given:
            order = np.searchsorted(kept, given)
        positions = [int(kept[i]) for i in order]
        others = [rows_at(rows, [int(farthest[i])]) for i in order]
        if "adjacency" not in shadows.params:
            kept = np.union1d(shuffled[:_MOST_NOISY_ROWS], positions)
        return cls(positions, others, kept)

    def within(self, position: int, attack: Attack) -> int:
        """Position of a target among the rows that are fitted on."""
        return int(np.searchsorted(self.kept, position)) if attack == "release" else position


@dataclass(frozen=True)
class World:
    """The table with a target and the one without it."""

    shadows: Shadows
    here: Any
    gone: Any
    record: Any
    other: Any

    @classmethod
    def of(cls, shadows: Shadows, rows: Any, position: int, other: Any) -> World:
        rest = rows_at(rows, np.delete(np.arange(n_rows(rows)), position))
        replaced = shadows.params.get("adjacency", "replace-one") == "replace-one"
        record = rows_at(rows, [position])
        # Where the row stands tells nothing: sums have no order, and noisy rows are shuffled.
        return cls(
            shadows,
            here=joined(rest, record),
            gone=joined(rest, other) if replaced else rest,
            record=record,
            other=other,
        )

    def release_score(self) -> Callable[[Any], float]:
        """The log-likelihood ratio of a release, or what has the same order."""
        shadows = self.shadows
        first, second = (shadows.without_noise(rows) for rows in (self.here, self.gone))
        if not isinstance(first, SlicingRelease):
            direction = vector(first) - vector(second)
            return lambda rows: float(vector(shadows.release(rows)) @ direction)
        encoded = [shadows.projected_row(row) for row in (self.record, self.other)]

        def likelihood_ratio(rows: Any) -> float:
            release: SlicingRelease = shadows.release(rows)
            noisy = release.projections().reshape(release.n_rows, -1)
            means = [row @ release.direction_matrix() for row in encoded]
            logs = [(noisy @ mean - mean @ mean / 2) / release.noise_scale**2 for mean in means]
            return float(logsumexp(logs[0]) - logsumexp(logs[1]))

        return likelihood_ratio

    def synthetic_score(self) -> Callable[[Any], float]:
        """How close the closest synthetic row is to the record."""
        columns = features(self.shadows.schema)

        def encoded(rows: Any) -> GowerRows:
            return GowerRows.encode(table(rows, list(columns), "synthetic"), columns)

        record = encoded(self.record)
        return lambda rows: -float(distances(record, encoded(self.shadows.synthetic(rows))).min())
