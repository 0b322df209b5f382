"""Was this record in the table? Membership inference by shadow fits, beside what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.frames import as_table, n_rows
from ..exceptions import InputError
from ..privacy.accounting import gaussian_delta, noise_multiplier
from ..privacy.slicing_accounting import slicing_delta
from ._audit_bounds import clopper_pearson
from ._plain import plain
from ._shadows import Shadows, rows_at
from ._worlds import Attack, Targets, World

if TYPE_CHECKING:
    from ..privacy.slicing_release import SlicingRelease

__all__ = ["MembershipResult", "membership_inference"]


@dataclass(frozen=True)
class MembershipResult:
    """How well an attacker tells whether a record was there. **Not private**.

    Made by :func:`membership_inference`.

    Attributes
    ----------
    attack : {"release", "synthetic"}
        What the attacker sees.
    advantage : float
        True positive rate less false positive rate, over all targets; 0 for guessing, 1 for
        certainty. Measured on shadow fits that had no part in choosing the thresholds.
    interval : tuple of two floats
        Confidence interval of the advantage.
    confidence : float
        Its confidence.
    bound : float
        Largest advantage that the mechanism allows any attack: its exact delta at epsilon 0.
    bound_epsilon : float
        Largest advantage that (epsilon, delta) alone allows; the looser one.
    targets : DataFrame
        One row a target: ``row`` (position in the table), ``true_positives``,
        ``false_positives`` (rates) and ``advantage``.
    n_shadows : int
        Shadow fits with each target, and as many without; half of them measure.
    changed, shadow, reads
        As in :class:`EpsilonAudit`.
    """

    attack: Attack
    advantage: float
    interval: tuple[float, float]
    confidence: float
    bound: float
    bound_epsilon: float
    targets: pd.DataFrame = field(repr=False)
    n_shadows: int
    changed: dict[str, Any] = field(repr=False)
    shadow: dict[str, Any] = field(repr=False)
    reads: str = field(repr=False)

    @property
    def violated(self) -> bool:
        """Whether the whole interval lies above what is allowed."""
        return self.interval[0] > self.bound

    def summary(self) -> str:
        """What was found, in plain sentences."""
        seen = "the release" if self.attack == "release" else "a synthetic table"
        low, high = self.interval
        found = (
            "This VIOLATES the guarantee."
            if self.violated
            else "That is consistent with the guarantee."
        )
        return (
            f"An attacker who knows every other row and sees {seen} finds out whether a record was "
            f"there with an advantage of {self.advantage:.2f} ({low:.2f} to {high:.2f}; 0 is "
            f"guessing, 1 is certainty). The guarantee allows any attacker at most "
            f"{self.bound:.2f}. {found} Other attacks may do better; the guarantee covers them."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types."""
        names = [entry.name for entry in fields(self)] + ["violated"]
        return {name: plain(getattr(self, name)) for name in names} | {"summary": self.summary()}

    def __str__(self) -> str:
        return f"{self.summary()}\n{self.targets.round(3).to_string(index=False)}\n{self.reads}"


def membership_inference(
    synthesizer: Any,
    table: Any,
    targets: int | Sequence[int] = 3,
    *,
    attack: Attack = "release",
    n_shadows: int = 100,
    confidence: float = 0.99,
    random_state: int | None = 0,
) -> MembershipResult:
    r"""Attack a synthesizer: was this record in the table or not? **Not private**.

    For every target the synthesizer is fitted many times on the table and as often on the table
    without it (under replace-one, with another record in its place). The attacker gets a score from
    each fit; half of the fits choose the threshold, the other half measure how often it is right.

    The fits are made by a detached copy with a ledger of its own: the budget of ``synthesizer`` is
    left alone. **Never publish shadow fits.**

    Parameters
    ----------
    synthesizer : DPMERFSynthesizer, SlicedFDivSynthesizer or SlicedRowsSynthesizer
        Fitted or not, with a complete schema (or a learned one).
    table : DataFrame
        The private rows, the target column included: pandas or polars, at least two rows.
    targets : int or sequence of int, default=3
        Positions of the records to attack, or how many: then those that are farthest from their
        closest other row, which are the most exposed, are chosen.
    attack : {"release", "synthetic"}, default="release"
        What the attacker sees. ``"release"``: what is published, by the likelihood ratio of the
        two tables (the projection of a release of sums on the direction in which the record moves
        it): no attack is stronger. Fits stop before training, on at most 1,000 rows (20 where each
        is released on its own) and with few features: a record hides no better there.
        ``"synthetic"``: a synthetic table as long as the private one, by how close its closest row
        is to the record. The synthesizer is trained as it is in every fit, on all rows: slow.
    n_shadows : int, default=100
        Fits with each target, and as many without; at least 10.
    confidence : float, default=0.99
        Of the interval, in (0, 1).
    random_state : int or None, default=0
        Seed of the choice of rows. The noise is never seeded.

    Returns
    -------
    MembershipResult

    Raises
    ------
    InputError
        If the synthesizer is another one, the table has too few rows, or a parameter is out of
        range.
    SchemaError
        If the schema is incomplete.

    Notes
    -----
    The advantage of any attack is at most the total variation distance of the two output
    distributions: the privacy profile at epsilon 0, which is
    :math:`2 \Phi(\mu / 2) - 1` for a Gaussian release [1]_ and is known exactly for noisy rows.
    From :math:`(\epsilon, \delta)` alone follows
    :math:`(e^\epsilon - 1 + 2 \delta) / (e^\epsilon + 1)` [2]_, which is larger.

    The interval joins Clopper-Pearson bounds of both rates, each with a quarter of what may go
    wrong. Pooled over targets it is conservative [3]_.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su, "Gaussian Differential Privacy", arXiv 1905.02383.
    .. [2] T. Humphries et al., "Investigating Membership Inference Attacks under Data
       Dependencies", arXiv 2010.12112.
    .. [3] W. Hoeffding, "On the Distribution of the Number of Successes in Independent Trials",
       Annals of Mathematical Statistics 27 (1956).

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import membership_inference
    >>> table, schema = make_gaussian_grid(200, random_state=0)
    >>> synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema)
    >>> result = membership_inference(synth, table, targets=1, n_shadows=20)
    >>> round(result.bound, 3), round(result.bound_epsilon, 3)
    (0.107, 0.462)
    >>> result.violated
    False
    """
    if attack not in ("release", "synthetic"):
        raise InputError(f"attack must be 'release' or 'synthetic', not {attack!r}.")
    if n_shadows < 10:
        raise InputError("n_shadows must be at least 10.")
    if not 0 < confidence < 1:
        raise InputError("confidence must be in (0, 1), such as 0.99.")
    shadows = Shadows(synthesizer, few=attack == "release")
    rows = as_table(table)
    chosen = Targets.choose(shadows, rows, targets, np.random.default_rng(random_state))
    if attack == "release":
        rows = rows_at(rows, chosen.kept)
    half = n_shadows // 2
    hits = []
    for position, other in zip(chosen.positions, chosen.others, strict=True):
        world = World.of(shadows, rows, chosen.within(position, attack), other)
        score = world.release_score() if attack == "release" else world.synthetic_score()
        scores = np.array([[score(t) for t in (world.here, world.gone)] for _ in range(n_shadows)])
        above = scores[half:] > _threshold(scores[:half])
        hits.append(above.mean(axis=0))
    rates = np.array(hits)
    trials = (n_shadows - half) * len(rates)
    alpha = (1 - confidence) / 4
    true, false = np.rint(rates.sum(axis=0) * (n_shadows - half)).astype(int)
    (true_low, true_high), (false_low, false_high) = (
        clopper_pearson(int(count), trials, alpha) for count in (true, false)
    )
    epsilon, delta = shadows.params["epsilon"], shadows.params["delta"]
    return MembershipResult(
        attack=attack,
        advantage=float(true - false) / trials,
        interval=(true_low - false_high, true_high - false_low),
        confidence=confidence,
        bound=_bound(shadows, rows),
        bound_epsilon=math.tanh(epsilon / 2) + 2 * delta / (math.exp(epsilon) + 1),
        targets=pd.DataFrame(
            {
                "row": chosen.positions,
                "true_positives": rates[:, 0],
                "false_positives": rates[:, 1],
                "advantage": rates[:, 0] - rates[:, 1],
            }
        ),
        n_shadows=n_shadows,
        changed=shadows.changed,
        shadow=shadows.spent(),
        reads=(
            f"Read {n_rows(rows)} rows of the private table, {len(rates)} of them as targets, and "
            f"releases of them that differ in one row: not private, covered by no epsilon."
        ),
    )


def _threshold(scores: npt.NDArray[np.float64]) -> float:
    """What separates the first column from the second best: above means that it was there."""
    seen = np.unique(scores)
    # In the middle of a gap: at its lower end, the next score of the other world is often above.
    candidates = np.append((seen[1:] + seen[:-1]) / 2, seen[-1])
    advantage = [(scores > c).mean(axis=0) @ [1, -1] for c in candidates]
    return float(candidates[int(np.argmax(advantage))])


def _bound(shadows: Shadows, rows: Any) -> float:
    """Total variation distance of the outputs on the worst pair of neighbors, by the claim."""
    params = shadows.params
    if "adjacency" in params or params["directions"] == "frame":
        return gaussian_delta(0.0, 1 / noise_multiplier(params["epsilon"], params["delta"]))
    made: SlicingRelease = shadows.without_noise(rows_at(rows, [0]))
    layout = made.layout
    return slicing_delta(
        0.0, made.noise_scale, n_directions=layout.n_directions, dimension=layout.dimension
    )
