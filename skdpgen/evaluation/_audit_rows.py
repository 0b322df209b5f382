"""The audit of noisy projected rows: every released row is a run of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, nct, normaltest

from ..privacy.accounting import gaussian_epsilon
from ..privacy.slicing_accounting import slicing_epsilon
from ._audit_bounds import APART, critical_t, noncentrality_lower
from ._shadows import Shadows, rows_at

if TYPE_CHECKING:
    from ..privacy.slicing_release import SlicingRelease
    from .audit import EpsilonAudit

__all__ = ["audit_rows"]

# Of each table: directions are drawn once a release, and their length is estimated too.
_RELEASES = 20
# Of a table, over all releases.
_MOST_ROWS = 50_000


def audit_rows(shadows: Shadows, n_runs: int, confidence: float) -> EpsilonAudit:
    """Audit a synthesizer of noisy projected rows by tables of equal rows.

    A table of n equal rows gives n noisy projections of one row v, and they needn't be told apart.
    Along the difference of two rows, projected by the published directions U, their means differ by
    ``|v U|``: the slope of a regression on half of it, one table up and one down, over the residual
    spread is noncentral t.

    Parameters
    ----------
    shadows : Shadows
        Of a SlicedRowsSynthesizer.
    n_runs : int
        Sets the number of rows: as many as tell as much as so many runs two standard deviations
        apart, up to a limit.
    confidence : float

    Returns
    -------
    EpsilonAudit
    """
    from .audit import EpsilonAudit

    params = shadows.params
    epsilon, delta = params["epsilon"], params["delta"]
    pair = shadows.opposite_rows()
    first, second = map(shadows.projected_row, pair)
    change, middle = first - second, (first + second) / 2
    made: SlicingRelease = shadows.without_noise(pair[0])
    m, d = made.layout.n_directions, made.layout.dimension
    claimed = made.noise_scale
    apart = math.sqrt(m / d) / claimed
    n_rows = math.ceil(min(_MOST_ROWS, n_runs * (APART / apart) ** 2) / _RELEASES)
    steps, values, squared = [], [], []
    for _ in range(_RELEASES):
        for sign, row in zip((0.5, -0.5), pair, strict=True):
            release: SlicingRelease = shadows.release(rows_at(row, [0] * n_rows))
            directions = release.direction_matrix()
            along = change @ directions
            length = float(np.linalg.norm(along))
            rows = release.projections().reshape(n_rows, m) - middle @ directions
            values.append(rows @ along / length)
            steps.append(np.full(n_rows, sign * length))
            squared.append(length * length)
    x, z = np.concatenate(steps), np.concatenate(values)
    # Half of what may go wrong for the noise, half for the length of the directions.
    alpha = (1 - confidence) / 2
    per_step, root, df = _slope_bound(x, z, alpha)
    frame = made.direction_kind == "frame"
    reached = math.sqrt(np.mean(squared) * d / m)
    if not frame:
        # Squared lengths are a chi-square; a Gaussian pair of this diameter has such ones.
        reached = math.sqrt(d * np.sum(squared) / chi2.isf(alpha, m * len(squared)))
    ratio = max(per_step * reached, 1e-9)
    if frame:
        lower = gaussian_epsilon(delta, ratio * math.sqrt(m / d))
    else:
        lower = slicing_epsilon(delta, 1 / ratio, n_directions=m, dimension=d)
    needed = root / (claimed * min(1.0, reached))
    return EpsilonAudit(
        epsilon=epsilon,
        delta=delta,
        adjacency="replace-one",
        epsilon_lower=lower,
        epsilon_lower_counting=math.nan,
        confidence=confidence,
        power=float(nct.sf(critical_t(needed, df, alpha), df, 2 * root / claimed)),
        tightness=float(np.linalg.norm(change)),
        normality=float(normaltest(z - (x @ z) / (x @ x) * x).pvalue),
        n_runs=n_rows * _RELEASES,
        group=1,
        changed=shadows.changed,
        shadow=shadows.spent(),
        reads="Read made-up rows only: nothing private.",
    )


def _slope_bound(
    x: npt.NDArray[np.float64], z: npt.NDArray[np.float64], alpha: float
) -> tuple[float, float, int]:
    """Lower bound on slope over noise of a regression through the origin, root of x^2, df."""
    root, df = float(np.linalg.norm(x)), len(x) - 1
    slope = float(x @ z) / root**2
    spread = math.sqrt(float(np.square(z - slope * x).sum()) / df)
    t = slope * root / spread if spread else math.inf
    return noncentrality_lower(t, df, alpha) / root, root, df
