"""Fidelity: how far a synthetic table is from the real one, column by column and pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._associations import Associations
from ._columns import facts, missing_cells, table, values_of
from ._dependence import dependence_kept
from ._marginals import Binning, Cells, cells_of, check_bins, empty_note, joint
from ._plain import plain

if TYPE_CHECKING:
    from ..data.columns import Column
    from ..data.schema import Schema

__all__ = ["FidelityResult", "fidelity"]

MOST_PAIRS = 20_000
"""Of a table of more than 200 columns, so many pairs are drawn at random."""

MOST_TRIPLES = 100
"""As the scoring of NIST's challenge drew them."""


@dataclass(frozen=True, repr=False)
class FidelityResult:
    """How far a synthetic table is from the real one. **Not private**.

    Made by :func:`fidelity`.

    Attributes
    ----------
    marginals : DataFrame
        One row for each marginal and binning: ``columns`` (tuple of one or two names), ``order``
        (1 or 2), ``binning`` ("uniform" or "quantile"), ``distance`` (total variation, 0 to 1)
        and ``note``.
    summary : DataFrame
        One row for each order and binning: ``order``, ``binning``, ``mean`` and ``worst``
        distance, ``worst_columns`` and ``note``.
    associations : dict of str to DataFrame
        "real" and "synthetic": how strongly each two columns go together, 0 to 1. Two
        categories: Cramer's V; a category and a number: the correlation ratio; two numbers:
        Pearson's correlation without its sign. NaN where undefined (a constant column).
    correlations : dict of str to DataFrame
        The same for numbers and dates only, Pearson's correlation, -1 to 1.
    missing : DataFrame
        ``column`` and the share of missing cells in the ``real`` and the ``synthetic`` table.
    k_marginal : DataFrame
        One row for k = 1, 2, 3: ``k``, ``score`` (0 to 1000) and ``n_marginals``.
    dependence_kept : float
        How much of the dependence between columns survives: 0 as in a table whose columns are
        independent, 1 as in a fresh sample of the same size. NaN where there is none to keep.
    dependence_note : str
        Why that is NaN.
    notes : dict
        Column to the reason why it is left out or has no association.
    reads : str
        Which private rows were read.
    """

    marginals: pd.DataFrame
    summary: pd.DataFrame
    associations: dict[str, pd.DataFrame]
    correlations: dict[str, pd.DataFrame]
    missing: pd.DataFrame
    k_marginal: pd.DataFrame
    dependence_kept: float
    dependence_note: str
    notes: dict[Any, str]
    reads: str

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types; what is NaN becomes None."""
        square = {
            kind: {
                role: {
                    "columns": plain(list(frame.columns)),
                    "values": plain(frame.to_numpy().tolist()),
                }
                for role, frame in getattr(self, kind).items()
            }
            for kind in ("associations", "correlations")
        }
        tables = ("marginals", "summary", "missing", "k_marginal")
        return {
            **{name: plain(getattr(self, name)) for name in tables},
            **square,
            "dependence_kept": plain(self.dependence_kept),
            "dependence_note": self.dependence_note,
            "notes": [{"column": plain(name), "note": note} for name, note in self.notes.items()],
            "reads": self.reads,
        }

    def __str__(self) -> str:
        lines = ["How far off is the synthetic table? (0: same shares, 1: no overlap)"]
        for row in self.summary[self.summary["binning"] == "uniform"].to_dict("records"):
            what = "single columns" if row["order"] == 1 else "pairs of columns"
            worst = " and ".join(map(str, row["worst_columns"] or ()))
            off = f"{row['mean']:.3f} on average, {row['worst']:.3f} at worst ({worst})"
            lines.append(f"  {what}: {row['note'] or off}")
        kept = self.dependence_kept
        lines.append(
            f"Of the dependence between columns, it keeps {kept:.0%}."
            if kept == kept
            else f"How much of the dependence it keeps is unknown: {self.dependence_note}."
        )
        scores = self.k_marginal.dropna()
        if len(scores):
            each = ", ".join(f"{row.score:.0f} for k = {row.k}" for row in scores.itertuples())
            lines.append(f"k-marginal scores (1000 is perfect): {each}.")
        lines += [f"Note: column {name!r}: {note}." for name, note in self.notes.items()]
        return "\n".join([*lines, self.reads])

    __repr__ = __str__


def fidelity(
    synthetic: Any,
    real: Any,
    *,
    schema: Schema | None = None,
    n_bins: int = 16,
    random_state: int | None = 0,
) -> FidelityResult:
    """Compare a synthetic table with the real one. **Not private**.

    Parameters
    ----------
    synthetic, real : DataFrame
        pandas or polars tables. The result reads the real rows and adds no noise, so no epsilon
        covers it.
    schema : Schema, default=None
        Column facts; id and text columns are left out. None reads them off the real rows, and
        the result says so.
    n_bins : int, default=16
        Number of bins of a number or a date: equal ones between the bounds ("uniform") or cut at
        the quantiles of the real column ("quantile").
    random_state : int or None, default=0
        Seed of what is drawn: triples of columns, pairs of columns in a table with more than
        20,000 of them, and the samples that ``dependence_kept`` compares to.

    Returns
    -------
    FidelityResult
        Distances of marginals, associations, missing shares, scores and reasons.

    Raises
    ------
    InputError
        If a table lacks a column of the schema, or ``n_bins`` is below 1.
    SchemaError
        If a column of the schema lacks its bounds or its list of values.

    Notes
    -----
    ``k_marginal`` is the score of NIST's SDNist [1]_: 1000 (1 - mean total variation distance)
    over all marginals of k columns (for k = 3 over at most 100, drawn without replacement). NIST
    takes k = 2 over all pairs and bins of its own data sets; here numbers are in ``n_bins``
    quantile bins, so figures compare between tables of one data set only.

    ``dependence_kept`` is (b - d) / (b - s), cut to 0 .. 1, as a mean over both binnings: equal
    bins see where in the range, quantile bins who ranks where. All three are mean distances, over
    the pairs of columns, of two-way tables less the product of their margins:
    d that of the synthetic table to the real one, b that of as many rows without dependence (each
    column drawn by itself), s that of as many fresh rows, from the distance of two random halves
    of the real table times sqrt((1/n + 1/m) / (4/n)) for n real and m synthetic rows. A column
    whose own shares are off counts in the marginals, hardly here. Tables of fewer than 100 rows
    have none; below 1,000 rows the figure of fresh ones varies by about 0.1.

    References
    ----------
    .. [1] C. Task, K. Bhagat, G. Howarth, "SDNist v2: Deidentified Data Report Tool", National
       Institute of Standards and Technology, 2023; ``sdnist/metrics/kmarginal.py``.

    Examples
    --------
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import fidelity
    >>> real, schema = make_gaussian_grid(2000, random_state=0)
    >>> same, _ = make_gaussian_grid(2000, random_state=1)
    >>> result = fidelity(same, real, schema=schema)
    >>> result.summary[["order", "binning", "mean"]].round(2)
       order   binning  mean
    0      1   uniform  0.04
    1      2   uniform  0.11
    2      1  quantile  0.05
    3      2  quantile  0.12
    >>> result.dependence_kept > 0.95
    True
    """
    check_bins(n_bins)
    known = facts(schema, [real], {"synthetic": synthetic})
    columns = known.columns
    a, b = table(real, list(columns), "real"), table(synthetic, list(columns), "synthetic")
    values = {"real": values_of(a, columns), "synthetic": values_of(b, columns)}
    rng = np.random.default_rng(random_state)
    every_pair = list(combinations(columns, 2))
    pairs = _some(every_pair, MOST_PAIRS, rng)
    some = len(pairs) < len(every_pair)
    empty = empty_note(a, b)
    rows = []
    kept: list[float] = []
    dependence_note = empty or "there is no pair of columns"
    cells: dict[Any, Cells] = {}
    binnings: tuple[Binning, ...] = ("uniform", "quantile")
    for binning in binnings:
        cells = cells_of(**values, columns=columns, binning=binning, n_bins=n_bins)
        for names in [*((name,) for name in columns), *pairs]:
            distance = np.nan if empty else joint([cells[name] for name in names]).distance
            rows.append((names, len(names), binning, distance, empty))
        if pairs and not empty:
            share, dependence_note = dependence_kept(cells, pairs, rng)
            kept.append(share)
    marginals = pd.DataFrame(rows, columns=["columns", "order", "binning", "distance", "note"])
    known_shares = [share for share in kept if share == share]
    found = {role: Associations(v, pairs) for role, v in values.items()}
    undefined = {
        name: f"{reason} in the {role} table"
        for role, t in reversed(found.items())  # of two reasons the real table's
        for name in columns
        if (reason := t.why_undefined(name))
    }
    return FidelityResult(
        marginals=marginals,
        summary=_summary(marginals),
        associations={role: t.strengths for role, t in found.items()},
        correlations={role: t.correlations for role, t in found.items()},
        missing=pd.DataFrame(
            {
                "column": list(columns),
                "real": _missing(a, columns),
                "synthetic": _missing(b, columns),
            }
        ),
        k_marginal=_k_marginal(marginals, cells, rng),
        dependence_kept=float(np.mean(known_shares)) if known_shares else np.nan,
        dependence_note="" if known_shares else dependence_note,
        notes={**{n: f"left out: {why}" for n, why in known.left_out.items()}, **undefined},
        reads="Not private: reads all real rows without noise, so no epsilon covers these figures."
        + known.reads
        + (f" Of {len(every_pair):,} pairs, {len(pairs):,} were drawn." if some else ""),
    )


def _some(groups: list[Any], most: int, rng: np.random.Generator) -> list[Any]:
    if len(groups) <= most:
        return groups
    return [groups[i] for i in np.sort(rng.choice(len(groups), most, replace=False))]


def _summary(marginals: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (binning, order), part in marginals.groupby(["binning", "order"], sort=False):
        known = part["distance"].notna().all()
        worst = part.sort_values("distance")["columns"].iloc[-1] if known else None
        mean, most = part["distance"].mean(), part["distance"].max()
        rows.append((order, binning, mean, most, worst, part["note"].iloc[0]))
    names = ["order", "binning", "mean", "worst", "worst_columns", "note"]
    return pd.DataFrame(rows, columns=names)


def _missing(frame: pd.DataFrame, columns: Mapping[Any, Column]) -> list[float]:
    if frame.empty:
        return [np.nan] * len(columns)
    return [float(missing_cells(frame[name], column).mean()) for name, column in columns.items()]


def _k_marginal(
    marginals: pd.DataFrame, cells: dict[Any, Cells], rng: np.random.Generator
) -> pd.DataFrame:
    quantile = marginals[marginals["binning"] == "quantile"]
    distances = [quantile.loc[quantile["order"] == k, "distance"].to_numpy(float) for k in (1, 2)]
    triples = _triples(list(cells), rng)
    unknown = quantile["distance"].isna().any()
    distances.append(
        np.array([np.nan if unknown else joint([cells[n] for n in t]).distance for t in triples])
    )
    rows = [
        (k, 1000 * (1 - d.mean()) if len(d) else np.nan, len(d))
        for k, d in enumerate(distances, start=1)
    ]
    return pd.DataFrame(rows, columns=["k", "score", "n_marginals"])


def _triples(names: list[Any], rng: np.random.Generator) -> list[tuple[Any, ...]]:
    """All triples of columns, or so many different ones."""
    if len(names) < 3 or comb(len(names), 3) <= MOST_TRIPLES:
        return list(combinations(names, 3))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < MOST_TRIPLES:
        found[tuple(sorted(rng.choice(len(names), 3, replace=False).tolist()))] = None
    return [tuple(names[i] for i in triple) for triple in found]
