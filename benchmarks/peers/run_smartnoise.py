"""MST of smartnoise-synth, run by the Python of its own environment.

    python run_smartnoise.py job.json

Numbers: smartnoise's 20 bins of its marginal synthesizers, over the public bounds, so that no
budget goes to finding them; whole numbers of fewer values and categories: its label transformer,
which reads the values off the rows. The whole epsilon goes to the synthesizer.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from _job import run_peer
from snsynth import Synthesizer
from snsynth.transform import BinTransformer, LabelTransformer
from snsynth.transform.table import TableTransformer

BINS = 20


def fit(
    table: pd.DataFrame, domain: dict[str, Any], job: dict[str, Any]
) -> tuple[pd.DataFrame, str]:
    """Fit MST and sample as many rows as it was given. smartnoise can't be seeded."""
    transformers = []
    for name, facts in domain.items():
        nullable = bool(table[name].isna().any())
        low, high = facts.get("bounds", (0, 0))
        if facts["kind"] == "number" and not (facts["whole"] and high - low < BINS):
            transformers.append(
                BinTransformer(bins=BINS, lower=float(low), upper=float(high), nullable=nullable)
            )
        else:
            transformers.append(LabelTransformer(nullable=nullable))
    synthesizer = Synthesizer.create("mst", epsilon=job["epsilon"], delta=job["delta"])
    synthesizer.fit(table, transformer=TableTransformer(transformers), preprocessor_eps=0.0)
    return synthesizer.sample(len(table)), f"mst, {BINS} bins"


if __name__ == "__main__":
    run_peer("smartnoise-synth", fit)
