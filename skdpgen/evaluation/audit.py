"""How private is it, measured: a lower bound on epsilon from releases of neighboring tables."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.stats import nct, normaltest

from ..exceptions import InputError
from ..privacy.accounting import gaussian_epsilon, noise_multiplier
from ._audit_bounds import APART, counting_mu, critical_t, noncentrality_lower
from ._plain import plain
from ._shadows import Shadows, joined, rows_at, vector

__all__ = ["EpsilonAudit", "empirical_epsilon"]

# Most rows in which the tables differ: they are encoded in every run.
_MOST_ROWS = 2000
_CANDIDATES = 24
# By the matched projection, by counts, and by single numbers: each may be wrong as often.
_N_BOUNDS = 3


@dataclass(frozen=True)
class EpsilonAudit:
    """A lower bound on epsilon beside the claimed one. Made by :func:`empirical_epsilon`.

    Attributes
    ----------
    epsilon, delta : float
        The claim of the synthesizer.
    adjacency : {"replace-one", "add-remove"}
        Of the claim.
    epsilon_lower : float
        Lower confidence bound on epsilon at ``delta``, for Gaussian noise; infinite without noise.
    epsilon_lower_counting : float
        Lower confidence bound from counts, which doesn't take the noise for Gaussian; NaN where
        there is none.
    confidence : float
        Both bounds hold together with at least this probability.
    power : float
        Probability of "violated" if the noise had half of its standard deviation, or a record
        counted twice.
    tightness : float
        Distance of the releases of the two tables without noise, over the largest that the record
        of the release allows; above 1 the record is wrong.
    normality : float
        P-value of a test of the noise for being Gaussian (D'Agostino and Pearson); NaN without any
        noise.
    n_runs : int
        Releases of each table.
    group : int
        Units of privacy in which the two tables differ; the bounds are for one.
    changed : dict of str to object
        Parameters of the synthesizer that were changed, to release few values.
    shadow : dict of str to object
        What the shadow fits would have cost: ``fits``, ``epsilon``, ``delta`` and ``warning``.
    reads : str
        Which private rows it read.
    """

    epsilon: float
    delta: float
    adjacency: str
    epsilon_lower: float
    epsilon_lower_counting: float
    confidence: float
    power: float
    tightness: float
    normality: float
    n_runs: int
    group: int
    changed: dict[str, Any] = field(repr=False)
    shadow: dict[str, Any] = field(repr=False)
    reads: str = field(repr=False)

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted: a lower bound is above it."""
        return max(self.epsilon_lower, np.nan_to_num(self.epsilon_lower_counting)) > self.epsilon

    @property
    def verdict(self) -> str:
        """Either "consistent" or "VIOLATED"."""
        return "VIOLATED" if self.violated else "consistent"

    @property
    def false_alarm_rate(self) -> float:
        """Largest probability of "VIOLATED" for a synthesizer that keeps its claim."""
        return 1 - self.confidence

    def summary(self) -> str:
        """What was found, in plain sentences."""
        found = (
            f"The claim of epsilon = {self.epsilon:g} at delta = {self.delta:g} is VIOLATED: "
            f"epsilon is at least {max(self.epsilon_lower, self.epsilon_lower_counting):.3g}."
            if self.violated
            else f"Consistent with the claim of epsilon = {self.epsilon:g} at delta = "
            f"{self.delta:g}: epsilon is at least {self.epsilon_lower:.3g}."
        )
        counting = (
            ""
            if math.isnan(self.epsilon_lower_counting)
            else f" ({self.epsilon_lower_counting:.3g} by counts alone, whatever the noise is)"
        )
        return (
            f"{found[:-1]}{counting}. {self.n_runs} releases of each of two neighboring tables; "
            f"false alarms at most {self.false_alarm_rate:.2g}, halved noise would be seen with "
            f"probability {self.power:.4g}. Two tables can refute a claim; only the proof of the "
            f"mechanism can support it for all."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types."""
        names = [entry.name for entry in fields(self)] + ["verdict", "false_alarm_rate"]
        return {name: plain(getattr(self, name)) for name in names} | {"summary": self.summary()}

    def __str__(self) -> str:
        return f"{self.summary()}\n{self.reads}"


def empirical_epsilon(
    synthesizer: Any,
    pair: tuple[Any, Any] | None = None,
    *,
    n_runs: int = 300,
    confidence: float = 0.9999,
    random_state: int | None = 0,
) -> EpsilonAudit:
    r"""Try to refute the claimed epsilon: releases of two neighboring tables, told apart.

    The synthesizer is fitted many times on two tables that differ in one record, up to and without
    the training, by the very code that ``fit`` runs: encoder, features, lattice, noise. If the
    releases can be told apart better than the claim allows, something in there is broken: noise
    that is too small, a record that counts twice. The claim itself rests on a proof; passing adds
    that the code does what the proof is about, for this pair of tables.

    The fits are made by a detached copy with a ledger of its own: the budget of ``synthesizer`` is
    left alone. **Never publish shadow fits.**

    Parameters
    ----------
    synthesizer : DPMERFSynthesizer, SlicedFDivSynthesizer or SlicedRowsSynthesizer
        Fitted or not, with a complete schema (or a learned one). The number of frequencies or
        slices is cut down for the audit, since noise costs 10 to 28 microseconds a value; the
        guarantee and the code are the same.
    pair : tuple of two DataFrame, default=None
        Neighboring tables of your own: under replace-one of the same length, under add-remove the
        second one with less. Several records may differ, see Notes. None makes up rows
        from public facts and takes those of which the release shows most.
    n_runs : int, default=300
        Releases of each table, at least 20. For SlicedRowsSynthesizer, where every released row is
        a run, it sets the number of rows that tell as much: at most 50,000 of each table.
    confidence : float, default=0.9999
        Of all bounds together, in (0, 1).
    random_state : int or None, default=0
        Seed of the made-up rows. The noise is never seeded.

    Returns
    -------
    EpsilonAudit

    Raises
    ------
    InputError
        If the synthesizer is another one, the tables aren't neighbors, or a parameter is out of
        range.
    SchemaError
        If the schema is incomplete.

    Notes
    -----
    The statistic of a release r is its projection on :math:`r(D) - r(D')` without noise, the
    likelihood ratio test of the two tables. It is Gaussian, with means :math:`\mu` standard
    deviations apart, so the two-sample t statistic is noncentral t with noncentrality
    :math:`\mu \sqrt{n / 2}`, and the lower bound on :math:`\mu` is exact. Noise and shift are both
    estimated: nothing that the release says of itself is trusted. The lower bound on
    :math:`\epsilon` follows from the profile of the Gaussian mechanism at delta.

    A single number without noise would hardly show in that sum, so the same is computed for each
    number by itself, at a confidence for all of them (Bonferroni). The larger bound counts.

    Beside it stands a bound without normality: with the threshold in the middle, how often each
    table falls above it has Clopper-Pearson bounds, and a :math:`\mu`-GDP mechanism allows no test
    better than :math:`\Phi(\Phi^{-1}(a) + \mu)` [1]_.

    At small epsilon one record moves a release by less than any number of runs could show. A
    mechanism that is :math:`\mu`-GDP is :math:`k \mu`-GDP for k records ([1]_, Theorem 2.14): the
    tables differ in as many as take them about two standard deviations apart, and the bound is
    divided by k.

    For noisy projected rows every row is a run; the bound on :math:`\epsilon` is by the exact
    profile of that mechanism, with confidence bounds on the noise and on the directions' length.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su, "Gaussian Differential Privacy", arXiv 1905.02383.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer
    >>> from skdpgen.evaluation import empirical_epsilon
    >>> schema = {"target": "smoker", "columns": {
    ...     "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
    ...     "smoker": {"kind": "label", "values": ["no", "yes"]}}}
    >>> synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema)
    >>> audit = empirical_epsilon(synth, n_runs=30, confidence=0.999999)
    >>> audit.verdict
    'consistent'
    """
    if n_runs < 20:
        raise InputError("n_runs must be at least 20.")
    if not 0 < confidence < 1:
        raise InputError("confidence must be in (0, 1), such as 0.9999.")
    shadows = Shadows(synthesizer, few=True)
    rng = np.random.default_rng(random_state)
    if "adjacency" not in shadows.params:
        if pair is not None:
            raise InputError(
                f"{type(synthesizer).__name__} is audited by tables of its own, each of equal "
                f"rows: leave pair out."
            )
        from ._audit_rows import audit_rows

        return audit_rows(shadows, n_runs, confidence)
    tables = _Tables.made_up(shadows, rng) if pair is None else _Tables.given(shadows, pair)
    first, second = (vector(shadows.without_noise(table)) for table in tables.pair)
    direction = first - second
    length = float(np.linalg.norm(direction))
    if not length:
        raise InputError("both tables of the pair give the same release: choose other ones.")
    direction /= length
    middle = float((first + second) @ direction) / 2
    vectors = np.empty((n_runs, 2, len(first)))
    for run in vectors:
        for side, table in enumerate(tables.pair):
            release = shadows.release(table)
            run[side] = vector(release)
    runs = vectors @ direction - middle
    epsilon, delta = shadows.params["epsilon"], shadows.params["delta"]
    alpha = (1 - confidence) / _N_BOUNDS
    by_t, by_counts = _bounds(runs, alpha)
    by_t = max(by_t, _single_bound(vectors, first - second, alpha))
    tightness = length / (math.sqrt(release.sensitivity_squared) * tables.group)
    mu = min(1.0, tightness) * tables.group / noise_multiplier(epsilon, delta)
    return EpsilonAudit(
        epsilon=epsilon,
        delta=delta,
        adjacency=shadows.params["adjacency"],
        epsilon_lower=gaussian_epsilon(delta, by_t / tables.group),
        epsilon_lower_counting=gaussian_epsilon(delta, by_counts / tables.group),
        confidence=confidence,
        power=_power(mu, tables.group / noise_multiplier(epsilon, delta), n_runs, confidence),
        tightness=tightness,
        normality=_normality(runs),
        n_runs=n_runs,
        group=tables.group,
        changed=shadows.changed,
        shadow=shadows.spent(),
        reads=(
            "Read made-up rows only: nothing private."
            if pair is None
            else "Read both tables of the pair without noise: not private if their rows are, "
            "covered by no epsilon."
        ),
    )


@dataclass(frozen=True)
class _Tables:
    """Two tables, and the number of units of privacy in which they differ."""

    pair: tuple[Any, Any]
    group: int

    @classmethod
    def made_up(cls, shadows: Shadows, rng: np.random.Generator) -> _Tables:
        params = shadows.params
        mu = 1 / noise_multiplier(params["epsilon"], params["delta"])
        group = max(1, min(round(APART / mu), _MOST_ROWS // params["rows_per_unit"]))
        copies = group * params["rows_per_unit"]
        candidates = shadows.public_rows(_CANDIDATES, rng)
        single = [rows_at(candidates, [i]) for i in range(_CANDIDATES)]
        seen = np.array([vector(shadows.without_noise(row)) for row in single])
        # A row that both tables have: the guarantee is over tables that aren't empty.
        if params["adjacency"] == "add-remove":
            most = int(np.square(seen).sum(axis=1).argmax())
            rest = rows_at(candidates, [0])
            return cls((joined(rest, rows_at(candidates, [most] * copies)), rest), group)
        apart = np.square(seen[:, None] - seen).sum(axis=2)
        a, b = np.unravel_index(apart.argmax(), apart.shape)
        return cls((rows_at(candidates, [a] * copies), rows_at(candidates, [b] * copies)), group)

    @classmethod
    def given(cls, shadows: Shadows, pair: tuple[Any, Any]) -> _Tables:
        first, second = (Counter(_records(table)) for table in pair)
        gone, come = (first - second).total(), (second - first).total()
        if shadows.params["adjacency"] == "replace-one" and gone != come:
            raise InputError("under replace-one both tables of the pair must have as many rows.")
        if shadows.params["adjacency"] == "add-remove" and come:
            raise InputError("under add-remove the second table must be a part of the first.")
        if not gone:
            raise InputError("both tables of the pair are the same: choose other ones.")
        return cls((pair[0], pair[1]), -(-gone // shadows.params["rows_per_unit"]))


def _records(table: Any) -> list[tuple[str, ...]]:
    """Rows as texts, of which those of missing cells are equal, too."""
    frame = nw.from_native(table, eager_only=True).to_pandas()
    return list(frame.astype(str).itertuples(index=False, name=None))


def _bounds(runs: npt.NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """Lower bounds on mu, by the t statistic and by counts, each too large with at most alpha."""
    n = len(runs)
    by_t = noncentrality_lower(float(_t_statistic(runs)), 2 * n - 2, alpha) / math.sqrt(n / 2)
    above = (runs > 0).sum(axis=0)
    return max(0.0, by_t), counting_mu(int(above[0]), int(above[1]), n, alpha)


def _single_bound(
    vectors: npt.NDArray[np.float64], shift: npt.NDArray[np.float64], alpha: float
) -> float:
    """The same of the number that gives most away by itself: its noise may be what is missing."""
    kept = shift != 0
    t = np.sign(shift[kept]) * _t_statistic(vectors[:, :, kept])
    n = len(vectors)
    bound = noncentrality_lower(float(t.max()), 2 * n - 2, alpha / kept.sum())
    return max(0.0, bound / math.sqrt(n / 2))


def _t_statistic(runs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Two-sample t of runs of shape (n, 2, ...); infinite if nothing but the table matters."""
    n = len(runs)
    spread = np.sqrt(runs.var(axis=0, ddof=1).mean(axis=0) * 2 / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num((runs[:, 0] - runs[:, 1]).mean(axis=0) / spread, posinf=np.inf)


def _power(mu: float, claimed: float, n: int, confidence: float) -> float:
    """Probability that twice ``mu`` is found to be more than what is claimed."""
    root, df = math.sqrt(n / 2), 2 * n - 2
    return float(
        nct.sf(critical_t(claimed * root, df, (1 - confidence) / _N_BOUNDS), df, 2 * mu * root)
    )


def _normality(runs: npt.NDArray[np.float64]) -> float:
    noise = (runs - runs.mean(axis=0)).ravel()
    return float(normaltest(noise).pvalue) if noise.any() else math.nan
