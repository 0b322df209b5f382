"""The verdict: four questions, a level for each, and the rules that decide it.

The rules are few and public, and the page prints them. They are for tables that are meant to stand
in for the real one: where a table serves one known purpose, that purpose is the better judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..plotting._tstr import METRICS
from ._format import at_most, percent, share, short
from ._format import epsilon as shown_epsilon
from ._promise import Promise
from ._rules import LEAST_GAIN, LOST, RULES, WORDS, WORST, Level

__all__ = ["Finding", "Verdict", "judge"]

_WORDS, _PRIVACY_WORDS = WORDS


@dataclass(frozen=True)
class Finding:
    """The answer to one question.

    Parameters
    ----------
    topic : {"columns", "links", "learning", "privacy"}
        Which one.
    question : str
        In words.
    level : {"good", "fair", "poor", "unknown"}
        By the rule of the topic.
    label : str
        The level in a word.
    headline, detail : str
        The answer in plain sentences.
    value : float
        The number that the rule looked at; NaN where there is none.
    """

    topic: str
    question: str
    level: Level
    label: str
    headline: str
    detail: str
    value: float = math.nan

    def __str__(self) -> str:
        return f"{self.question}: {self.label}. {self.headline} {self.detail}"


@dataclass(frozen=True)
class Verdict:
    """Four findings.

    Parameters
    ----------
    columns, links, learning, privacy : Finding
        Whether single columns agree, whether relations of columns do, whether models can be
        trained on the rows, and what was promised.

    Examples
    --------
    >>> from skdpgen.reporting import report
    >>> import pandas as pd
    >>> page = report(pd.DataFrame({"age": [20, 30]}))
    >>> page.verdict.privacy.level
    'unknown'
    """

    columns: Finding
    links: Finding
    learning: Finding
    privacy: Finding

    def __iter__(self) -> Iterator[Finding]:
        return iter((self.columns, self.links, self.learning, self.privacy))

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values by topic; NaN and infinity as None."""
        findings = {finding.topic: asdict(finding) for finding in self}
        for finding in findings.values():
            if not math.isfinite(finding["value"]):
                finding["value"] = None
        return findings


def judge(
    promise: Promise | None, fidelity: Any, tstr: Any, check: Any = None, *, publishable: bool
) -> Verdict:
    """Apply the rules.

    Parameters
    ----------
    promise : Promise or None
        What was promised.
    fidelity, tstr : FidelityResult and TSTRResult, or None
        What was measured.
    check : PrivacyCheck, CopyResult, EpsilonAudit, MembershipResult or None
        A check that looks for faults. One that it finds counts; that it finds none doesn't.
    publishable : bool
        Whether nothing may be measured, which the findings then give as their reason.
    """
    return Verdict(
        _columns(fidelity, publishable),
        _links(fidelity, publishable),
        _learning(tstr, publishable),
        _fault() if _found_fault(check) else _doubted(_privacy(promise), check),
    )


def _unknown(topic: str, question: str, publishable: bool, needed: str) -> Finding:
    if publishable:
        headline = "Not on this page."
        detail = "It takes private rows to tell, and this page is made without any."
    else:
        headline, detail = "Nothing to compare with.", f"Pass {needed} to tell."
    return Finding(topic, question, "unknown", _WORDS["unknown"], headline, detail)


def _columns(fidelity: Any, publishable: bool) -> Finding:
    topic, question = "columns", "Single columns"
    if fidelity is None:
        return _unknown(topic, question, publishable, "the real rows as real=")
    single = fidelity.summary[fidelity.summary["order"] == 1]
    known = single[single["mean"].notna()]
    if known.empty:
        reason = next(
            (str(note) for note in single["note"] if note), "There is no column to judge."
        )
        return Finding(topic, question, "unknown", "Can't tell", "No distance.", _sentence(reason))
    # The binning that sees the larger difference: equal bins miss spikes, quantiles miss tails.
    # Of a lost column too, whichever binning has the larger mean.
    row = known.loc[known["worst"].idxmax()]
    mean, worst = float(known["mean"].max()), float(row["worst"])
    level = RULES[topic].level(mean)
    headline = {
        "good": "Single columns are close to the real ones.",
        "fair": "Single columns are roughly right.",
        "poor": "Single columns are off.",
    }[level]
    if worst > WORST and level != "poor":
        most = "Most single columns are close" if level == "good" else headline.rstrip(".")
        level, headline = "fair", f"{most}, but {_quoted(row['worst_columns'][0])} is off."
    detail = (
        f"On average {percent(mean)} of the rows would have to change for the right shares; "
        f"{percent(worst)} in the worst column{_names(row['worst_columns'])}."
    )
    return Finding(topic, question, level, _WORDS[level], headline, detail, mean)


def _links(fidelity: Any, publishable: bool) -> Finding:
    topic, question = "links", "Links between columns"
    if fidelity is None:
        return _unknown(topic, question, publishable, "the real rows as real=")
    kept = float(fidelity.dependence_kept)
    level = RULES[topic].level(kept)
    if level == "unknown":
        detail = _sentence(fidelity.dependence_note)
        return Finding(topic, question, level, _WORDS[level], "Not measured.", detail)
    headline = {
        "good": "Links between columns are kept.",
        "fair": "Links between columns are kept in part.",
        "poor": f"Links between columns are {'lost' if kept < LOST else 'mostly lost'}.",
    }[level]
    detail = f"Of the dependence between pairs of columns {percent(kept)} survives."
    pairs = fidelity.summary[fidelity.summary["order"] == 2]
    if pairs["worst"].notna().any():
        # A mean over many pairs hides a rule between two columns that got lost.
        row = pairs.loc[pairs["worst"].idxmax()]
        share, names = percent(float(row["worst"])), _names(row["worst_columns"])
        detail += f" In the worst pair{names} {share} of the rows would have to change."
    return Finding(topic, question, level, _WORDS[level], headline, detail, kept)


def _learning(tstr: Any, publishable: bool) -> Finding:
    topic, question = "learning", "Use for learning"
    if tstr is None:
        needed = "held-out real rows as test=, and a target,"
        return _unknown(topic, question, publishable, needed)
    target = _quoted(tstr.target)
    found = _mean_scores(tstr)
    if found is None:
        notes = [str(note) for note in tstr.scores["note"] if note]
        detail = _sentence(notes[0]) if notes else "No score could be computed."
        real = tstr.scores[tstr.scores["trained_on"] == "real"]
        lost = real["score"].notna().any()
        level_: Level = "poor" if lost else "unknown"
        headline = "Models can't learn from it at all." if lost else "No score."
        return Finding(topic, question, level_, _WORDS[level_], headline, detail)
    metric, scores = found
    name = METRICS.get(metric, metric)
    # Why it isn't the first metric, such as a class that the synthetic table lacks.
    first = tstr.scores[tstr.scores["metric"] == tstr.metrics[0]]
    notes = first.loc[(first["trained_on"] != "chance") & first["score"].isna(), "note"]
    why = f" {_sentence(str(notes.iloc[0]))}" if len(notes) and notes.iloc[0] else ""
    chance, synthetic = scores["chance"], scores["synthetic"]
    if math.isnan(scores["real"]):
        if synthetic - chance < LEAST_GAIN:
            level, headline = "poor", "No better than guessing."
        else:
            level, headline = "unknown", "Better than guessing."
        detail = f"{name} {share(synthetic, 2)} for {target}, guessing {share(chance, 2)}."
        if not (tstr.scores["trained_on"] == "real").any():
            detail += " Pass the real rows as real= to see what real rows would give."
        detail += why
        return Finding(topic, question, level, _WORDS[level], headline, detail)  # type: ignore[arg-type]
    figures = f"{name} {share(synthetic, 2)}, real rows {share(scores['real'], 2)}, guessing "
    figures += f"{share(chance, 2)}"
    if scores["real"] - chance < LEAST_GAIN:
        detail = f"Real rows hardly help to predict {target} either: {figures}.{why}"
        return Finding(topic, question, "unknown", "Can't tell", "Nothing to learn.", detail)
    kept = (synthetic - chance) / (scores["real"] - chance)
    level_ = RULES[topic].level(kept)
    headline = {
        "good": "Models learn almost as well as from real rows.",
        "fair": "Models learn, but less than from real rows.",
        "poor": "Models learn little of what real rows teach.",
    }[level_]
    if synthetic - chance < LEAST_GAIN:
        headline = "Models do no better than guessing."
    gain = percent(min(max(kept, 0.0), 1.0))
    detail = f"{gain} of the gain over guessing {target} is kept: {figures}.{why}"
    return Finding(topic, question, level_, _WORDS[level_], headline, detail, kept)


def _mean_scores(tstr: Any) -> tuple[str, dict[str, float]] | None:
    """First metric if it says something, and its mean over the models by what they learned from.

    Not the best model: the best of several is better than guessing by luck alone. Where the first
    metric is unknown, the one that real rows improve most: guessing is almost always accurate
    where a class is rare.
    """
    usable = {}
    for metric in tstr.metrics:
        part = tstr.scores[tstr.scores["metric"] == metric]
        mean = part.groupby("trained_on")["score"].mean()
        found = {k: float(mean.get(k, math.nan)) for k in ("synthetic", "real", "chance")}
        if not (math.isnan(found["synthetic"]) or math.isnan(found["chance"])):
            usable[metric] = found

    def gain(metric: str) -> float:
        real = usable[metric]["real"]
        return -math.inf if math.isnan(real) else real - usable[metric]["chance"]

    if not usable:
        return None
    chosen = tstr.metrics[0]
    if chosen not in usable or gain(chosen) == -math.inf:
        chosen = max(usable, key=gain)
    return chosen, usable[chosen]


def _found_fault(check: Any) -> bool:
    # What a check of everything, of copies, and of a claim call it.
    return any(bool(getattr(check, name, False)) for name in ("alarms", "copying", "violated"))


def _doubted(found: Finding, check: Any) -> Finding:
    """A promise that the table doesn't look like: whether it was made from it, nobody can tell."""
    if found.level == "poor" or not getattr(getattr(check, "copies", check), "repeating", False):
        return found
    return replace(
        found,
        level="poor",
        label="In doubt",
        headline="Many of its rows equal real rows.",
        detail="Real rows equal each other far less often: was the table made from the release? "
        f"See the checks below. {found.detail}",
    )


def _fault() -> Finding:
    return Finding(
        "privacy",
        "Privacy promised",
        "poor",
        "Fault found",
        "A check found a fault: don't publish the table.",
        "Whatever was promised, something is wrong. See the checks below.",
        math.inf,
    )


def _privacy(promise: Promise | None) -> Finding:
    topic, question = "privacy", "Privacy promised"
    if promise is None:
        return Finding(
            topic,
            question,
            "unknown",
            "Can't tell",
            "No promise was given.",
            "Pass the release as release=, or the ledger as ledger=. Without them, treat the table "
            "as if it were the private rows.",
        )
    if not promise.private:
        return Finding(
            topic,
            question,
            "poor",
            "Not private",
            "NOT PRIVATE.",
            "Rows were read without secure noise, so nothing is promised to anybody in the table.",
            math.inf,
        )
    if promise.statement is not None and promise.verified is None:
        detail = f"The release contradicts itself: {_sentence(promise.refusal)}"
        return Finding(topic, question, "poor", "Broken", "Don't rely on it.", detail, math.inf)
    if promise.foreign:
        detail = "The ledger doesn't hold what the release spent, so the total isn't known."
        headline = "The ledger isn't that of the release."
        return Finding(topic, question, "poor", "Broken", headline, detail, math.inf)
    if promise.n_rows and promise.delta * promise.n_rows > 1:
        detail = "Delta is larger than one over the number of rows: that allows publishing a row."
        return Finding(topic, question, "poor", "Weak", "The promise is empty.", detail, math.inf)
    level = RULES[topic].level(promise.epsilon)
    who = "one row" if promise.unit == "row" else "all rows of one unit"
    headline = f"Epsilon {shown_epsilon(promise.epsilon)} for {who}."
    if promise.epsilon == 0:
        headline = "Nothing was spent."
    detail = ""
    if promise.odds is not None:
        detail = (
            f"Whoever guesses between two equally likely candidates for {who} is right at most "
            f"{at_most(promise.odds.guess)} of the time; a coin is right 50%."
        )
    if promise.incomplete:
        detail += " What its schema cost before isn't included."
        level = "fair" if level == "good" else level
    return Finding(topic, question, level, _PRIVACY_WORDS[level], headline, detail, promise.epsilon)


def _names(columns: Any) -> str:
    if columns is None or (isinstance(columns, float) and math.isnan(columns)):
        return ""
    names = columns if isinstance(columns, tuple) else (columns,)
    return f" ({', '.join(short(name, 40) for name in names)})"


def _quoted(name: Any) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{short(name, 40)}\N{RIGHT DOUBLE QUOTATION MARK}"


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
