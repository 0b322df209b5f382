"""Did the synthesizer copy rows? Distances to the closest training and held-out record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..exceptions import InputError
from ._audit_bounds import clopper_pearson
from ._columns import facts, table
from ._nearest import ONE, GowerRows, blocks, distances
from ._plain import plain

if TYPE_CHECKING:
    from ..data.columns import Column
    from ..data.schema import Schema

__all__ = ["CopyResult", "copy_check"]

_QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 1.0)
# So many synthetic rows that equal real ones are no coincidence where real rows hardly ever do.
_MANY = 0.05
_WHAT_IT_IS = "This is a check against copying, not evidence of privacy: only the mechanism is."


@dataclass(frozen=True)
class CopyResult:
    """Whether synthetic rows lie closer to training rows than to held-out ones. **Not private**.

    Made by :func:`copy_check`. It can show that rows were copied. It can't show that a table is
    private.

    Attributes
    ----------
    share : float
        Share of the synthetic rows whose closest real row is a training row, 0.5 where nothing
        was copied; NaN with a reason in ``note``.
    interval : tuple of two floats
        The share with the margin that chance alone needs.
    confidence : float
        A check of a synthesizer that copies nothing has 0.5 in the interval with at least this
        probability.
    false_alarm_rate : float
        Largest probability of ``copying`` where nothing was copied.
    n_votes : float
        So many independent votes the share is worth: rows that share a closest row vote as one.
    quantiles : DataFrame
        Distance of synthetic rows to the closest record, 0 to 1: ``quantile``, ``train`` and
        ``held_out``.
    exact : dict of str to float
        Share of synthetic rows that equal a row of ``"train"`` or ``"held_out"`` in every column
        (numbers up to a millionth of their range).
    coincidence : float
        Share of the held-out rows that equal a training row: so often real rows equal each other;
        NaN without held-out rows.
    n_rows : dict of str to int
        Rows compared: ``"synthetic"``, ``"train"`` and ``"held_out"``.
    note : str
        Why the share is NaN.
    reads : str
        Which private rows it read, and which columns were left out.
    """

    share: float
    interval: tuple[float, float]
    confidence: float
    n_votes: float
    quantiles: pd.DataFrame = field(repr=False)
    exact: dict[str, float]
    coincidence: float
    n_rows: dict[str, int]
    note: str
    reads: str = field(repr=False)

    @property
    def false_alarm_rate(self) -> float:
        """Largest probability of ``copying`` where nothing was copied."""
        return (1 - self.confidence) / 2

    @property
    def copying(self) -> bool | None:
        """Whether copying shows: the whole interval lies above 0.5; None if not judged.

        Not judged are tables without a share, and so few rows that copies only would not show.
        """
        if math.isnan(self.share) or 1 - self._margin <= 0.5:
            return None
        return self.interval[0] > 0.5

    @property
    def repeating(self) -> bool:
        """Whether far more synthetic rows equal real ones than these equal each other.

        Copies of training and of held-out rows leave the share at 0.5. This is a remark without a
        rate of false alarms: a bad table that repeats a few frequent rows has it too. But few rows
        are no reason: both shares are taken at their confidence bounds.
        """
        if math.isnan(self.coincidence) or not self.n_rows["synthetic"]:
            return False
        often, seldom = (
            clopper_pearson(round(share * n), n, self.false_alarm_rate)
            for share, n in (
                (max(self.exact.values()), self.n_rows["synthetic"]),
                (self.coincidence, self.n_rows["held_out"]),
            )
        )
        return often[0] > 2 * seldom[1] + _MANY

    @property
    def _margin(self) -> float:
        return math.sqrt(math.log(1 / self.false_alarm_rate) / (2 * self.n_votes))

    def summary(self) -> str:
        """What was found, in plain sentences."""
        if self.copying is None:
            # Of few different rows, repeated often, the share says nothing.
            reason = self.note or "there are too few rows to tell"
            many = f" {self._many}" if self.repeating else ""
            return f"Copying was not judged: {reason}.{many} {_WHAT_IT_IS}"
        low, high = self.interval
        found = (
            "Synthetic rows lie CLOSER to training rows than to held-out rows: rows were copied, or"
            " learned by heart."
            if self.copying
            else self._many
            if self.repeating
            else "No sign of copied rows."
        )
        equal = (
            f"{self.exact['train']:.2%} of the synthetic rows equal a training row and "
            f"{self.exact['held_out']:.2%} a held-out row."
        )
        return (
            f"{found} {self.share:.1%} of the synthetic rows have a training row as their closest "
            f"real row ({low:.1%} to {high:.1%}; 50% where nothing is copied; false alarms at most "
            f"{self.false_alarm_rate:.2g}). {equal} {_WHAT_IT_IS}"
        )

    @property
    def _many(self) -> str:
        return (
            f"MANY synthetic rows equal real rows, but only {self.coincidence:.2%} of the held-out "
            "rows equal a training row: training and held-out rows were copied, or few rows "
            "repeated."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types; NaN becomes None."""
        names = (
            "share",
            "interval",
            "confidence",
            "n_votes",
            "quantiles",
            "exact",
            "n_rows",
            "coincidence",
        )
        rest = {name: plain(getattr(self, name)) for name in (*names, "note", "reads")}
        judged = {
            "copying": self.copying,
            "repeating": self.repeating,
            "false_alarm_rate": self.false_alarm_rate,
        }
        return {**rest, **judged, "summary": self.summary()}

    def __str__(self) -> str:
        return f"{self.summary()}\n{self.quantiles.round(4).to_string(index=False)}\n{self.reads}"


def copy_check(
    synthetic: Any,
    train: Any,
    holdout: Any = None,
    *,
    schema: Schema | None = None,
    max_rows: int = 10_000,
    confidence: float = 0.999,
    random_state: int | None = 0,
) -> CopyResult:
    r"""Look for copied rows by distances to the closest real records. **Not private**.

    A synthesizer that has learned what is common to all rows is as far from the rows that it saw
    as from rows that it never saw. One that repeats its rows is closer to those that it saw. That
    is all that this check looks for: a table that passes may still tell all about a person. Never
    call it evidence of privacy.

    Parameters
    ----------
    synthetic : DataFrame
        pandas or polars table.
    train : DataFrame
        The rows that the synthesizer was fitted on.
    holdout : DataFrame, default=None
        Rows of the same origin that it never saw: split them off at random before fitting. None
        leaves the share open; distances to training rows alone say nothing about copying.
    schema : Schema, default=None
        Column facts; id and text columns are left out. Without one, they are read off the
        training rows.
    max_rows : int, default=10_000
        Largest number of rows of each table, at least 1; more are cut down to a random choice. As
        many training rows are compared as held-out ones: the larger table is cut down too.
    confidence : float, default=0.999
        Of the interval, in (0, 1).
    random_state : int or None, default=0
        Seed of these choices.

    Returns
    -------
    CopyResult

    Raises
    ------
    InputError
        If a table lacks a column of the schema, or a parameter is out of range.
    SchemaError
        If a column of the schema lacks its bounds or its list of values.

    Notes
    -----
    The distance is Gower's [1]_: the mean over the columns of the difference of two numbers in
    their range, or of 1 for two different categories. A missing number is half a range to a whole
    range away from any other.

    Synthetic rows with the same closest row aren't independent, so a binomial interval for the
    share would be too short and raise false alarms. Let :math:`w_r` be the share of the synthetic
    rows that have real row r as their closest (rows that tie share them). If nothing was copied,
    training and held-out rows may trade places: pair each training row with a held-out one, and
    each pair decides by a fair coin who is who. By Hoeffding's inequality [2]_ the share then
    exceeds one half by t with a probability of at most

    .. math:: \exp(-2 t^2 / \sum_r w_r^2),

    which is what :math:`1 / \sum_r w_r^2` independent votes would give. If a part c of the
    synthetic rows are copies of compared training rows, the share is about (1 + c) / 2.

    References
    ----------
    .. [1] J. C. Gower, "A General Coefficient of Similarity and Some of Its Properties",
       Biometrics 27 (1971), pp. 857-871.
    .. [2] W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", Journal
       of the American Statistical Association 58 (1963), Theorem 2.

    Examples
    --------
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import copy_check
    >>> real, schema = make_gaussian_grid(2000, random_state=0)
    >>> fresh, _ = make_gaussian_grid(1000, random_state=1)
    >>> train, held_out = real[:1000], real[1000:]
    >>> copy_check(fresh, train, held_out, schema=schema).copying
    False
    >>> copy_check(train, train, held_out, schema=schema).copying
    True
    """
    if not 0 < confidence < 1:
        raise InputError("confidence must be in (0, 1), such as 0.999.")
    if max_rows < 1:
        raise InputError("max_rows must be at least 1.")
    real_tables = {"training": train} | ({} if holdout is None else {"held-out": holdout})
    # Observed on both, so that training and held-out rows may trade places.
    known = facts(schema, list(real_tables.values()), {"synthetic": synthetic})
    names = list(known.columns)
    train, *rest = (table(frame, names, role) for role, frame in real_tables.items())
    synthetic = table(synthetic, names, "synthetic")
    rng = np.random.default_rng(random_state)
    n = min(max_rows, *(len(frame) for frame in (train, *rest)))
    real, *others = (_encoded(frame, n, known.columns, rng) for frame in (train, *rest))
    made = _encoded(synthetic, max_rows, known.columns, rng)
    held_out = others[0] if others else None
    found = _closest(made, real, held_out)
    note = _note(len(made), len(real), held_out, known.columns)
    alpha = (1 - confidence) / 2
    left_out = (f" Column {name!r} is left out: {why}." for name, why in known.left_out.items())
    share, votes = (math.nan, math.nan) if note else (found.share, found.n_votes)
    margin = math.sqrt(math.log(1 / alpha) / (2 * votes))
    roles = {"train": found.to_train, "held_out": found.to_held_out}
    per_column = ONE * max(1, real.n_columns)
    return CopyResult(
        share=share,
        interval=(float(max(0.0, share - margin)), float(min(1.0, share + margin))),
        confidence=confidence,
        n_votes=votes,
        quantiles=pd.DataFrame(
            {"quantile": _QUANTILES}
            | {k: _quantiles(v) / per_column for k, v in roles.items() if v is not None}
        ),
        exact={k: _mean(v == 0) for k, v in roles.items() if v is not None},
        coincidence=math.nan if held_out is None else _coincidence(held_out, real),
        n_rows={"synthetic": len(made), "train": len(real)}
        | ({} if held_out is None else {"held_out": len(held_out)}),
        note=note,
        reads=(
            f"Read {len(real)} training rows"
            + ("" if held_out is None else f" and {len(held_out)} held-out rows")
            + " without noise: not private, covered by no epsilon."
            + known.reads
            + "".join(left_out)
        ),
    )


@dataclass(frozen=True)
class _Closest:
    """Distances to the closest rows, in steps, and how the share comes about."""

    to_train: npt.NDArray[np.float64]
    to_held_out: npt.NDArray[np.float64] | None
    share: float
    n_votes: float


def _closest(made: GowerRows, train: GowerRows, held_out: GowerRows | None) -> _Closest:
    n = len(train)
    closest = np.full((2, len(made)), np.nan)
    weights = np.zeros(2 * n)
    pooled = n if held_out is None else 2 * n
    for part, block in blocks(made, pooled):
        if not n:
            break
        apart = [distances(block, rows) for rows in (train, held_out) if rows is not None]
        for role, matrix in enumerate(apart):
            closest[role, part] = matrix.min(axis=1)
        if held_out is not None:
            # Of several closest rows each gets its part of the vote.
            ties = np.hstack(apart) == closest[:, part].min(axis=0)[:, None]
            weights += (ties / ties.sum(axis=1, keepdims=True)).sum(axis=0)
    total = weights.sum()
    if not total:
        return _Closest(closest[0], None if held_out is None else closest[1], math.nan, math.nan)
    votes = total**2 / np.square(weights).sum()
    return _Closest(closest[0], closest[1], float(weights[:n].sum() / total), float(votes))


def _note(n_made: int, n_real: int, held_out: GowerRows | None, columns: Any) -> str:
    """Why there is no share; empty if there is."""
    if not columns:
        return "the tables have no column that could be compared"
    if held_out is None:
        return "there are no held-out rows to compare with"
    empty = [role for role, n in (("synthetic", n_made), ("training or held-out", n_real)) if not n]
    return f"the {empty[0]} table has no rows" if empty else ""


def _encoded(
    frame: pd.DataFrame, n: int, columns: Mapping[Any, Column], rng: np.random.Generator
) -> GowerRows:
    """At most n rows of a table."""
    if len(frame) > n:
        frame = frame.iloc[rng.choice(len(frame), n, replace=False)]
    return GowerRows.encode(frame, columns)


def _quantiles(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.quantile(values, _QUANTILES) if len(values) else np.full(len(_QUANTILES), np.nan)


def _coincidence(held_out: GowerRows, train: GowerRows) -> float:
    known = set(train.identities())
    return _mean(np.array([key in known for key in held_out.identities()], dtype=bool))


def _mean(values: npt.NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else math.nan
