"""From facts to one HTML file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from .. import __version__
from . import _format
from ._promise import FALSE_ALARMS, Promise
from ._rules import RULES
from ._verdict import Finding, Verdict

__all__ = ["LIMITS", "REFERENCES", "lead", "meters", "plain_words", "render", "versions"]

LIMITS = (
    "Whether the table was really made from this release and from nothing else. Whoever made it "
    "has to answer for that.",
    "Whether what was learned is harmless. That smokers fall ill more often is learned from "
    "everybody, and it says something about a smoker who isn't in the table.",
    "What else is known about the same people: other releases of the same rows add up, also those "
    "that no ledger here knows of.",
    "Whether rules that join several columns hold in every row, such as an end after its start. "
    "Only single columns and pairs are compared.",
    "How rare groups fare. Averages are made of the many; what fewer people share than the noise "
    "can hide is lost or made up.",
)

REFERENCES = (
    "F. Harder, K. Adamczewski, M. Park: DP-MERF: Differentially Private Mean Embeddings with "
    "Random Features for Practical Privacy-Preserving Data Generation. AISTATS 2021, "
    "arXiv:2002.11603.",
    "K. Greenewald, Y. Yu, H. Wang, K. Xu: Privacy without Noisy Gradients: Slicing Mechanism for "
    "Generative Model Training. NeurIPS 2024, arXiv:2410.19941.",
    f"skdpgen developers: skdpgen, differentially private synthetic tables from one release, "
    f"version {__version__}.",
)

_PACKAGES = ("numpy", "pandas", "scikit-learn", "scipy", "torch")


def lead(verdict: Verdict, publishable: bool) -> str:
    """The verdict in one or two sentences."""
    quality = (verdict.columns, verdict.links, verdict.learning)
    measured = [finding for finding in quality if finding.level != "unknown"]
    bad = [f for f in measured if f.level == "poor"]
    if publishable and verdict.privacy.level == "poor":
        return f"Don't publish it. {verdict.privacy.headline}"
    if publishable and verdict.privacy.level == "unknown":
        return "Nothing was promised to the people in the private table, as far as is known."
    if publishable:
        text = "What the people in the private table were promised."
    elif bad:
        text = f"This table can't stand in for the real one. {' '.join(f.headline for f in bad)}"
    elif not measured:
        text = "Nothing was compared with real rows, so this page can't say how good the table is."
    elif len(measured) < len(quality):
        text = f"As far as it was measured: {' '.join(f.headline for f in measured)}"
    elif all(f.level == "good" for f in measured):
        text = "By these measures the table can stand in for the real one."
    else:
        fair = " ".join(f.headline for f in measured if f.level == "fair")
        text = f"Usable with care. {fair}"
    # A copy of the private rows is good by all other measures.
    if verdict.privacy.level in ("poor", "unknown"):
        text += f" As to privacy: {verdict.privacy.headline}"
    return text


def meters(verdict: Verdict) -> dict[str, dict[str, str] | None]:
    """Where each number stands on its scale, in percent from worst to best."""
    scales = {
        "columns": lambda x: 1 - x / 0.3,
        "links": lambda x: x,
        "learning": lambda x: x,
        # Tenfold steps from 100 to 0.1.
        "privacy": lambda x: (2 - math.log10(max(x, 1e-9))) / 3,
    }
    return {
        f.topic: _meter(f, scales[f.topic]) if math.isfinite(f.value) else None for f in verdict
    }


def _meter(finding: Finding, scale: Any) -> dict[str, str]:
    rule = RULES[finding.topic]
    places = {"at": finding.value, "fair": rule.fair, "good": rule.good}
    return {k: f"{100 * min(max(scale(v), 0.0), 1.0):.1f}" for k, v in places.items()}


def plain_words(promise: Promise) -> list[str]:
    """What the promise means, for people who don't know what epsilon is."""
    if not promise.private:
        return [
            "There is no promise. Rows were read without noise that protects them, so treat the "
            "table as you treat the private rows."
        ]
    who = "one row" if promise.unit == "row" else "all rows of one unit"
    same = f"The table would have looked almost the same with {who} "
    same += "changed at will." if promise.adjacency == "replace-one" else "left out."
    paragraphs = [
        same + " Epsilon says how nearly, delta how often that may fail. It holds whatever anybody "
        "knows already or finds out later, and whatever is done with the table."
    ]
    if promise.odds is not None:
        two = "there are two equally likely candidates for it"
        if promise.adjacency == "add-remove":
            two = "it is a coin toss whether it is in the table"
        paragraphs.append(
            f"Suppose somebody knows all the rest, and {two}. The best guess from everything that "
            f"was released is right at most {_format.at_most(promise.odds.guess)} of the time; "
            f"a coin is right 50%. Whoever wants to accuse at most {FALSE_ALARMS:.0%} wrongly can "
            f"accuse at most {_format.at_most(promise.odds.caught)} rightly."
        )
    if promise.unit == "row":
        paragraphs.append(
            "It protects rows. Somebody with several rows in the table is protected less: then "
            "rows_per_unit is needed."
        )
    else:
        paragraphs.append(
            "A unit, a person say, has at most "
            f"{_format.counted(promise.rows_per_unit, 'row')} in what was read."
        )
    return paragraphs


def versions() -> list[tuple[str, str]]:
    """Packages that decide the result, with their versions; nothing is imported."""
    found = [("skdpgen", __version__)]
    for package in _PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return found


def render(context: Mapping[str, Any]) -> str:
    """Fill in the template."""
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return _template().render(style=Markup(style), **context)


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_finalize, trim_blocks=False
    )
    environment.filters.update({name: getattr(_format, name) for name in _format.__all__})
    text = files(__package__).joinpath("template.html").read_text(encoding="utf-8")
    return environment.from_string(text)


def _finalize(value: Any) -> Any:
    return _format.clean(value) if type(value) is str else value
