"""skdpgen beside its peers and beside real rows, on eight sets.

    python benchmarks/compare.py --sets adult compas --fits 1
    python benchmarks/compare.py --peers dpmm=PYTHON smartnoise=PYTHON

Every method gets the same rows, the same public schema, the same total epsilon and makes as many
rows as it was given. Each fit runs in a process of its own. Everything is kept in the cache
folder, so that a run that was stopped goes on where it was, and a new method costs only its own
fits. Peers run in environments of their own (``pip install dpmm==0.1.9``, ``pip install
smartnoise-synth==1.0.8``), whose Python ``--peers`` names; without it, only what the cache has of
them is shown. Writes ``results/compare_<set>.md`` and, for several sets, ``results/compare.md``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from _common import HERE, loader, markdown, mean_and_spread, parser, write_result
from _fits import DELTA, LIMIT_SECONDS, METHODS, OWN, Cache, Fit, run, table
from _scores import DEPTHS, metrics, score
from _sets import NOTES, SETS, Prepared, prepare

PEER_ADJACENCY = "add-remove"
ACCOUNTING = (
    "Budgets: epsilon is the total of each method, with everything it spends before its model. "
    "skdpgen: one Gaussian release, by the exact curve of the Gaussian mechanism. dpmm: 0.1 of "
    "epsilon for PrivTree's bins (pure), the rest for the model, by zCDP; PrivBayes half of that "
    "by the exponential mechanism. smartnoise: zCDP. Peers account under add-remove and know the "
    "number of rows, which skdpgen gets as a hint there. What their accounting leaves out: dpmm "
    "reads constant columns and which numbers are ever missing off the rows, smartnoise the lists "
    "of categories. AIM gets 3 rounds a column on more than 40 columns, where it would overspend "
    "with fewer."
)


def options() -> argparse.Namespace:
    """The command line."""
    line = parser(__doc__.splitlines()[0])
    line.add_argument("--sets", nargs="+", default=list(SETS))
    line.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    line.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    line.add_argument(
        "--adjacency",
        nargs="+",
        default=[PEER_ADJACENCY],
        choices=["add-remove", "replace-one"],
        help="neighboring relations of skdpgen's fits; peers account under add-remove",
    )
    line.add_argument("--peers", nargs="+", default=[], metavar="NAME=PYTHON")
    line.add_argument("--cache", type=Path, default=HERE / ".compare_cache")
    line.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="CPU seconds of one fit")
    return line.parse_args()


def fits(name: str, chosen: argparse.Namespace) -> Iterator[Fit]:
    """The fits of a set, one of each kind before the second of any."""
    for seed in range(chosen.fits):
        for method, facts in ((m, METHODS[m]) for m in chosen.methods):
            if facts.runner is None:
                if seed == 0:
                    yield Fit(name, method, math.inf, "", 0)
                continue
            epsilons = chosen.epsilons if facts.private else [math.inf]
            adjacencies = chosen.adjacency if facts.runner == OWN else [PEER_ADJACENCY]
            for epsilon in epsilons:
                for adjacency in adjacencies[: None if facts.private else 1]:
                    yield Fit(name, method, epsilon, adjacency, seed)


def rows(name: str, chosen: argparse.Namespace, cache: Cache) -> tuple[Prepared, pd.DataFrame]:
    """Run, score and collect the fits of a set: one row each."""
    prepared = prepare(name, loader(chosen.data))
    python = dict(peer.split("=", 1) for peer in chosen.peers)
    found = []
    for fit in fits(name, chosen):
        known = cache.read(fit, "fit.json")
        peer = METHODS[fit.method].peer
        if known is None and peer is not None and peer not in python:
            continue
        first = cache.read(Fit(name, fit.method, fit.epsilon, fit.adjacency, 0), "fit.json")
        if known is None and first is not None and "failed" in first:
            continue
        if METHODS[fit.method].runner is None:
            known = {}
        elif known is None:
            known = run(fit, prepared, cache, python, chosen.data.resolve(), chosen.limit)
        scores = cache.read(fit, "json")
        if scores is None and "failed" not in known:
            real = METHODS[fit.method].runner is None
            scores = score(table(fit, prepared, cache), prepared, real=real)
            cache.write(fit, "json", scores)
        print(fit.key, {**known, **(scores or {})}, flush=True)
        found.append({**vars(fit), **known, **(scores or {})})
    return prepared, pd.DataFrame(found)


def summary(found: pd.DataFrame, names: dict[str, tuple[str, int]]) -> pd.DataFrame:
    """One line for each method, epsilon and relation; ``names``: column -> (score, digits)."""
    lines = []
    groups = found.groupby(["method", "epsilon", "adjacency"], sort=False)
    for (method, epsilon, adjacency), part in groups:
        line = {
            "trained on": METHODS[str(method)].title,
            "epsilon": "not private" if math.isinf(float(epsilon)) else f"{epsilon:g}",
            "adjacency": "" if math.isinf(float(epsilon)) else adjacency,
            "fits": len(part) if METHODS[str(method)].runner else "",
        }
        done = part[part["failed"].isna()] if "failed" in part else part
        for column, (score_name, digits) in names.items():
            known = done[score_name] if score_name in done else pd.Series([math.nan])
            line[column] = mean_and_spread(known, digits) if len(done) else ""
        if not len(done):
            line["fits"] = part["failed"].iloc[0]
        lines.append(line)
    return pd.DataFrame(lines)


def write(prepared: Prepared, found: pd.DataFrame, command: str) -> None:
    """Write ``results/compare_<set>.md``."""
    kept = metrics(prepared)
    short = {"roc_auc": "AUC", "pr_auc": "PR", "accuracy": "acc.", "f1_macro": "F1"}
    main = {f"{c} {short[m]}": (f"{c} {m}", 3) for m in kept for c in ("LR", "XGB", "RF")}
    main |= {f"TV {order}-way": (f"TV{order} uniform", 4) for order in (1, 2)}
    main |= {f"TV {order}-way, quantiles": (f"TV{order} quantile", 4) for order in (1, 2)}
    main |= {"CPU s": ("cpu_seconds", 0), "MB": ("peak_mb", 0)}
    deep = {f"depth {d} {short[m]}": (f"depth {d} {m}", 3) for m in kept for d in DEPTHS}
    settings = found["settings"].dropna().unique() if "settings" in found else []
    sizes = f"{len(prepared.train):,} training rows, {len(prepared.test):,} test rows"
    notes = [
        f"{sizes}, {len(prepared.train.columns)} columns, {prepared.n_classes} classes, "
        f"delta = {DELTA:g}. {NOTES.get(prepared.name, '')}",
        "Mean (smallest-largest) over the fits. Classifiers: trained on at most 30,000 synthetic "
        "rows, tested on at most 20,000 real ones. TV: mean total variation distance to the "
        "training rows over all one- and two-way marginals, numbers in 16 bins, uniform or cut at "
        "the training rows' quantiles; in the line of the real rows, that of the test rows. CPU "
        "seconds and peak memory: of the fit and the sampling, in a process of its own, one "
        "thread. Lines without noise are not private and show what the noise costs.",
        ACCOUNTING,
        "Boosted trees by depth:\n\n" + markdown(summary(found, deep)),
        "\n".join(f"- {text}" for text in settings),
    ]
    write_result(
        f"compare_{prepared.name}",
        f"Comparison on {prepared.name}",
        command,
        summary(found, main),
        "\n\n".join(notes),
    )


def write_overview(sets: list[tuple[Prepared, pd.DataFrame]], command: str) -> None:
    """Write ``results/compare.md``: a line a set, a column a method, at epsilon 1, add-remove."""
    scores, distances = [], []
    for prepared, found in sets:
        metric = metrics(prepared)[0]
        facts = {"set": prepared.name, "rows": f"{len(prepared.train):,}"}
        learned, apart = {**facts, "score": metric.replace("_", " ")}, dict(facts)
        shown = found[found["epsilon"].isin([1.0, math.inf])]
        shown = shown[shown["adjacency"].isin([PEER_ADJACENCY, ""])]
        for method in METHODS:
            part = shown[shown["method"] == method]
            if METHODS[method].runner is not None and not METHODS[method].private:
                continue
            title = METHODS[method].title
            done = part[part["failed"].isna()] if "failed" in part else part
            if len(done):
                means = (done[f"{c} {metric}"].mean() for c in ("LR", "XGB", "RF"))
                learned[title] = " / ".join(f"{mean:.3f}" for mean in means)
                apart[title] = f"{done['TV2 uniform'].mean():.4f}"
            else:
                learned[title] = apart[title] = "failed or late" if len(part) else ""
        scores.append(learned)
        distances.append(apart)
    write_result(
        "compare",
        f"Comparison on {len(sets)} sets, epsilon = 1, delta = 1e-5, add-remove",
        command,
        pd.DataFrame(scores).fillna(""),
        "Logistic regression / boosted trees / random forest on real test rows, trained on "
        "synthetic ones; means over the fits that the tables of the sets count. Empty: not run.\n\n"
        "Mean total variation distance of all two-way tables, numbers in 16 uniform bins:\n\n"
        + markdown(pd.DataFrame(distances).fillna("")),
    )


def main() -> None:
    """Run the comparison."""
    chosen = options()
    cache = Cache(chosen.cache.resolve())
    done = []
    for name in chosen.sets:
        prepared, found = rows(name, chosen, cache)
        if found.empty:
            print(f"{name}: nothing was run and nothing is in {cache.folder}.")
            continue
        write(prepared, found, "python benchmarks/compare.py")
        done.append((prepared, found))
    if len(done) > 1:
        write_overview(done, "python benchmarks/compare.py")


if __name__ == "__main__":
    main()
