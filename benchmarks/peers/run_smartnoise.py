"""MST of smartnoise-synth, run by the Python of its own environment.

    python run_smartnoise.py job.json

Numbers go in as one of 32 bins of equal width over the public bounds, whole numbers with fewer
values as themselves, and come out spread evenly over their bin. smartnoise's own default is much
worse (one-way total variation on Adult 0.070 instead of 0.012): 20 bins that come out as their
middles, and a lower bound of 0 that its BinTransformer takes for a missing one. All columns
then take its label transformer, which reads the values off the rows. The whole epsilon goes to
the synthesizer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from _job import run_peer
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer
from snsynth.transform.table import TableTransformer

BINS = 32


def edges(facts: dict[str, Any]) -> np.ndarray:
    """Where the bins of a number begin and end; a whole number's are at halves."""
    low, high = facts["bounds"]
    if facts["whole"]:
        low, high = low - 0.5, high + 0.5
    n_bins = min(BINS, round(high - low)) if facts["whole"] else BINS
    return np.linspace(low, high, n_bins + 1)


def encode(cells: pd.Series, cuts: np.ndarray) -> pd.Series:
    """The bin of each number, as text; one more for missing ones."""
    last = len(cuts) - 2
    codes = np.clip(np.searchsorted(cuts, cells, side="right") - 1, 0, last)
    return pd.Series(np.where(cells.isna(), last + 1, codes), cells.index).map("{:02d}".format)


def decode(codes: pd.Series, facts: dict[str, Any], rng: np.random.Generator) -> pd.Series:
    """A number somewhere in each bin."""
    cuts = np.append(edges(facts), np.nan)
    code = codes.astype(int).to_numpy()
    within = rng.random(len(code)) * (cuts[code + 1] - cuts[code])
    cells = pd.Series(cuts[code] + within, codes.index)
    return cells.round().clip(*facts["bounds"]) if facts["whole"] else cells


def fit(
    table: pd.DataFrame, domain: dict[str, Any], job: dict[str, Any]
) -> tuple[pd.DataFrame, str]:
    """Fit MST and sample as many rows as it was given. smartnoise can't be seeded."""
    numbers = {name: facts for name, facts in domain.items() if facts["kind"] == "number"}
    coded = table.assign(**{n: encode(table[n], edges(f)) for n, f in numbers.items()})
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in coded])
    synthesizer = Synthesizer.create("mst", epsilon=job["epsilon"], delta=job["delta"])
    synthesizer.fit(coded, transformer=transformer, preprocessor_eps=0.0)
    synthetic = synthesizer.sample(len(table))
    rng = np.random.default_rng(job["seed"])
    numeric = {name: decode(synthetic[name], facts, rng) for name, facts in numbers.items()}
    return synthetic.assign(**numeric), f"mst, {BINS} bins"


if __name__ == "__main__":
    run_peer("smartnoise-synth", fit)
