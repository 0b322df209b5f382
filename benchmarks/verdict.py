"""How the limits of the verdict in a report tell good tables from bad ones.

    python benchmarks/verdict.py

At most 5,000 training rows of each set. Four tables that stand for what the verdict has to tell
apart: one random half of the real rows beside the other (fresh: nothing is wrong with it), a
synthetic table at epsilon = 10 and one at epsilon = 1 (defaults, 500 steps), and the real rows
with every column shuffled by itself. The limits were chosen on the first six sets and checked on
the others. Writes ``results/verdict.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from _common import loader, parser, write_result

from skdpgen import DPMERFSynthesizer, Schema
from skdpgen.evaluation import fidelity, tstr
from skdpgen.reporting._verdict import judge

CHOSEN_ON = ("telco_churn", "bank_marketing", "adult", "taxis", "compas", "titanic")
CHECKED_ON = ("acs_national2019", "credit_fraud", "cervical", "pums_small", "nltcs")
MOST_ROWS, MOST_TEST_ROWS = 5000, 3000


def tables(
    train: pd.DataFrame, schema: Schema, rng: np.random.Generator
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame, Schema]]:
    """What the table is, the table, the real rows to compare with, and their schema."""
    for epsilon in (1.0, 10.0):
        synth = DPMERFSynthesizer(epsilon, 1e-5, schema=schema, n_steps=500, random_state=0)
        table = synth.fit(train).sample(len(train), random_state=0)
        # Values that no codebook lists are learned: the schema of the release has them.
        complete = synth.schema_
        yield f"epsilon = {epsilon:g}", table, train, complete
    order = rng.permutation(len(train))
    halves = [train.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2)]
    yield "fresh", halves[0], halves[1], complete
    shuffled = {name: rng.permutation(train[name].to_numpy()) for name in train}
    yield "shuffled", pd.DataFrame(shuffled), train, complete


def some(frame: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """At most so many rows, drawn at random."""
    return frame.iloc[rng.permutation(len(frame))[:n]].reset_index(drop=True)


def shown(finding: Any) -> str:
    """Number and level."""
    return "" if np.isnan(finding.value) else f"{finding.value:.2f} {finding.label.lower()}"


def main() -> None:
    """Run the benchmark."""
    line = parser(__doc__.splitlines()[0])
    line.add_argument("--sets", nargs="+", default=[*CHOSEN_ON, *CHECKED_ON])
    options = line.parse_args()
    load = loader(options.data)
    lines = []
    for name in options.sets:
        rng = np.random.default_rng(0)
        train, test, _ = load.train_test(name)
        train, test = some(train, MOST_ROWS, rng), some(test, MOST_TEST_ROWS, rng)
        schema = Schema.from_json(options.data / name / "schema.json")
        for what, table, real, facts in tables(train, schema, rng):
            measured = fidelity(table, real, schema=facts)
            scores = None
            if facts.target is not None:
                scores = tstr(table, test, real_train=real, schema=facts)
            verdict = judge(None, measured, scores, publishable=False)
            lines.append(
                {
                    "set": name,
                    "rows": len(table),
                    "table": what,
                    "single columns": shown(verdict.columns),
                    "links": shown(verdict.links),
                    "learning": shown(verdict.learning),
                }
            )
            print(lines[-1], flush=True)
    write_result(
        "verdict",
        "The verdict of the report on tables that are good or bad on purpose",
        "python benchmarks/verdict.py",
        pd.DataFrame(lines),
        f"The limits were chosen on {', '.join(CHOSEN_ON)} and checked on {', '.join(CHECKED_ON)}. "
        "Single columns: mean total variation distance. Links: share of the dependence that "
        "survives. Learning: share of the gain over guessing that is kept, mean of three models.",
    )


if __name__ == "__main__":
    main()
