"""Everything that stands on a page, as values for the template."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..plotting import MarginalsDisplay
from ..plotting._tstr import METRICS
from ..privacy.release import Release
from ._figures import privacy_curve, wide_pictures
from ._format import count, counted, short
from ._measured import Measured
from ._page import LIMITS, REFERENCES, lead, meters, plain_words, versions
from ._pictures import Pictures
from ._promise import Promise
from ._rules import RULES, WORDS
from ._verdict import Verdict

if TYPE_CHECKING:
    from ..data.schema import Schema
    from ..privacy.ledger import PrivacyLedger

__all__ = ["context_of"]

_N_OPEN = 9
_N_PAIRS = 10
_TILE = (3.2, 2.0)
_CONTENTS = (
    ("promise", "What was promised"),
    ("learning", "Use for learning"),
    ("columns", "Columns"),
    ("links", "Links between columns"),
    ("copying", "Checks against copying"),
    ("limits", "What this page doesn\u2019t say"),
    ("rules", "How the verdict is made"),
    ("reproduce", "Reproduce and cite"),
)
# Sections that a publishable page doesn't have.
_MEASURED = ("learning", "links", "copying")
_ABSENT = {
    "learning": "Not measured. Pass held-out real rows as test= (and the real rows that were "
    "learned from as real=, to compare), and a target.",
    "columns": "The synthetic columns alone. Pass the real rows as real= to compare.",
    "links": "Not measured. Pass the real rows as real=.",
}


def context_of(
    synthetic: pd.DataFrame,
    promise: Promise | None,
    release: Any,
    ledger: PrivacyLedger | None,
    measured: Measured,
    verdict: Verdict,
    schema: Schema | None,
    real: pd.DataFrame | None,
    *,
    publishable: bool,
) -> dict[str, Any]:
    """Values for the template."""
    pictures = Pictures()
    compared = measured.fidelity is not None
    return {
        "n_rows": len(synthetic),
        "n_columns": synthetic.shape[1],
        "promise": promise,
        "verdict": verdict,
        # Without private rows only one of the questions has an answer.
        "findings": [verdict.privacy] if publishable else list(verdict),
        "lead": lead(verdict, publishable),
        "contents": [entry for entry in _CONTENTS if not (publishable and entry[0] in _MEASURED)],
        "absent": _ABSENT,
        "meters": meters(verdict),
        "rules": {k: r for k, r in RULES.items() if k == "privacy" or not publishable},
        "verdict_words": {topic: WORDS[topic == "privacy"] for topic in RULES},
        "reads": measured.reads,
        "plain_words": [] if promise is None else plain_words(promise),
        "neighbors": "" if promise is None else _neighbors(promise),
        "verification": "" if promise is None else _verification(promise),
        "budget": None if promise is None else _budget(promise),
        "pictures": wide_pictures(measured, pictures, privacy_curve(promise, release, ledger)),
        "learning": None if measured.tstr is None else _learning(measured.tstr),
        "compared": compared,
        "columns": _columns(synthetic, real, schema, measured, pictures),
        "n_open": _N_OPEN,
        "missing": _missing(synthetic, measured),
        "pairs": [] if not compared else _pairs(measured.fidelity),
        "k_marginal": [] if not compared else _known(measured.fidelity.k_marginal, "score"),
        "copying": None
        if measured.privacy_check is None
        else measured.privacy_check.summary().splitlines(),
        "limits": LIMITS,
        "settings": _settings(release),
        "commands": _commands(release),
        "versions": versions(),
        "references": REFERENCES,
    }


def _paragraphs(check: Any) -> list[str] | None:
    return None if check is None else check.summary().splitlines()


def _neighbors(promise: Promise) -> str:
    rows = counted(promise.rows_per_unit, "row")
    who = "one row" if promise.unit == "row" else f"one unit (at most {rows})"
    if promise.adjacency == "replace-one":
        return f"{who}, replaced"
    return f"{who}, added or removed"


def _verification(promise: Promise) -> str:
    if promise.verified is None:
        return f"The release does not verify: {promise.refusal}"
    if not promise.private:
        return "The release itself says that its noise is insecure."
    return (
        "The release verifies: epsilon was computed again from the sensitivity and the noise that "
        f"it records. Result: {promise.verified:.4g}."
    )


def _budget(promise: Promise) -> dict[str, str] | None:
    if promise.cap is None or promise.remaining is None:
        return None
    cap, delta = promise.cap
    used = min(promise.epsilon / cap, 1.0)
    left = f"one more release of up to epsilon = {promise.remaining:.3g} fits"
    if promise.remaining <= 0:
        left = "nothing more fits"
    return {
        "used": f"{100 * used:.1f}",
        "text": f"The ledger refuses more than epsilon = {cap:g} at delta = {delta:g}; {left}. "
        "Squares of noise add up, not epsilons: so it is more than the difference.",
    }


def _columns(
    synthetic: pd.DataFrame,
    real: Any,
    schema: Schema | None,
    measured: Measured,
    pictures: Pictures,
) -> list[dict[str, Any]]:
    """One entry a column, worst first where there is something to compare with."""
    display = MarginalsDisplay.from_tables(synthetic, real, schema=schema)
    distances, notes = _distances(measured.fidelity)
    entries = []
    for marginal in sorted(display.marginals, key=lambda m: -distances.get(m.name, -1.0)):
        distance = distances.get(marginal.name)
        beside = "" if real is None else " beside the real ones"
        entries.append(
            {
                "name": marginal.name,
                "distance": distance,
                "level": "" if distance is None else RULES["columns"].level(distance),
                "note": notes.get(marginal.name, ""),
                "picture": pictures.small(
                    MarginalsDisplay([marginal]).plot,
                    _TILE,
                    f"Shares of the values of {short(marginal.name)} in the synthetic rows{beside}",
                ),
            }
        )
    return entries


def _distances(fidelity: Any) -> tuple[dict[Hashable, float], dict[Hashable, str]]:
    """The larger of the distances in both binnings, and what is to be said of a column."""
    if fidelity is None:
        return {}, {}
    single = fidelity.marginals[fidelity.marginals["order"] == 1].dropna(subset="distance")
    distances: dict[Hashable, float] = {}
    for (name,), distance in zip(single["columns"], single["distance"], strict=True):
        distances[name] = max(distance, distances.get(name, 0.0))
    return distances, dict(fidelity.notes)


def _missing(synthetic: pd.DataFrame, measured: Measured) -> list[dict[str, Any]]:
    if measured.fidelity is not None:
        records = measured.fidelity.missing.to_dict("records")
        kept = [r for r in records if r["real"] or r["synthetic"]]
        return sorted(kept, key=lambda r: -abs(r["real"] - r["synthetic"]))
    shares = synthetic.isna().mean()
    return [{"column": name, "synthetic": value} for name, value in shares.items() if value]


def _settings(release: Any) -> list[tuple[str, str]]:
    """Public facts of the release, as far as they are short."""
    if release is None:
        return []
    facts: list[tuple[str, Any]] = [("release", type(release).__name__)]
    features = release.public.get("feature_map", {})
    facts += [
        (f"features: {k}", v) for k, v in features.items() if isinstance(v, str | int | float)
    ]
    if isinstance(release, Release):
        width = release.noisy_sums.size + release.noisy_counts.size
        facts += [
            ("released numbers", count(width)),
            ("classes", release.spec.n_classes),
            ("adjacency", release.adjacency),
            ("rows per unit", release.rows_per_unit),
            ("noise of one coordinate", f"{release.coordinate_stddev:.3g}"),
        ]
    else:
        facts += [
            ("released numbers", count(release.noisy_rows.size)),
            ("slices", release.n_slices),
            ("directions", release.direction_kind),
            ("adjacency", "replace-one"),
            ("noise of one coordinate", f"{release.noise_scale:.3g}"),
        ]
    facts += [("noise", release.noise), ("epsilon", f"{release.epsilon:g}")]
    return [(name, str(value)) for name, value in [*facts, ("delta", f"{release.delta:g}")]]


def _commands(release: Any) -> str:
    """How somebody who has the release file checks it, and makes a table from it."""
    if release is None:
        return "# Ask for the release file: Release.load verifies it."
    kind = type(release).__name__
    origin = "skdpgen" if kind == "Release" else "skdpgen.privacy"
    return (
        f"from {origin} import {kind}\n\n"
        f'release = {kind}.load("table.release")  # verifies what the file says\n'
        f"print(release.statement())\n"
        f"print(release.verify())  # epsilon, computed again\n\n"
        f"# the same on the command line: skdpgen inspect table.release"
    )


def _learning(tstr: Any) -> dict[str, Any]:
    kinds = [k for k in ("real", "synthetic", "chance") if (tstr.scores["trained_on"] == k).any()]
    groups = []
    for metric in tstr.metrics:
        rows = []
        part = tstr.scores[tstr.scores["metric"] == metric]
        chance = part.loc[part["trained_on"] == "chance", "score"]
        for estimator in part.loc[part["trained_on"] == "synthetic", "estimator"]:
            own = part[part["estimator"] == estimator].set_index("trained_on")
            scores = [
                chance.max() if kind == "chance" else own["score"].get(kind, math.nan)
                for kind in kinds
            ]
            notes = [str(note) for note in own["note"].unique() if note]
            rows.append({"estimator": estimator, "scores": scores, "note": "; ".join(notes)})
        groups.append({"metric": METRICS.get(metric, metric), "rows": rows})
    words = {"real": "Real rows", "synthetic": "Synthetic rows", "chance": "Guessing"}
    return {
        "intro": f"Models learn to predict {short(tstr.target)} and are scored on real rows that "
        "no training has seen. The closer the synthetic rows come to the real ones, the better.",
        "table_caption": "Scores on held-out real rows by what a model learned from; 1 is perfect.",
        "real": "real" in kinds,
        "kinds": [words[kind] for kind in kinds],
        "groups": groups,
    }


def _pairs(fidelity: Any) -> list[dict[str, Any]]:
    """The worst pairs of columns, in the binning that sees more of skewed columns."""
    marginals = fidelity.marginals
    part = marginals[(marginals["order"] == 2) & (marginals["binning"] == "quantile")]
    worst = part.dropna(subset="distance").sort_values("distance", ascending=False).head(_N_PAIRS)
    real, synthetic = (fidelity.associations[role] for role in ("real", "synthetic"))
    return [
        {
            "first": first,
            "second": second,
            "distance": distance,
            "real": real.loc[first, second],
            "synthetic": synthetic.loc[first, second],
        }
        for (first, second), distance in zip(worst["columns"], worst["distance"], strict=True)
    ]


def _known(table: pd.DataFrame, column: str) -> list[dict[Hashable, Any]]:
    return table[table[column].notna()].to_dict("records")
