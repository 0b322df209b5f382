"""AIM, MST and PrivBayes of dpmm, run by the Python of dpmm's own environment.

    python run_dpmm.py job.json

The budget: dpmm adds the share of its binning (pure epsilon) on top of ``epsilon``, so a total of
epsilon is asked for as 0.9 epsilon for the model and 0.1 epsilon for PrivTree, its default ratio.
Bounds and categories are the public schema's; numbers are binned by PrivTree, dpmm's default.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from _job import run_peer
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PROCESSING_SHARE = 0.1
# AIM spends 0.9/rounds of its budget on each column before the first round: with as many columns
# as rounds that is all of it, and dpmm goes on beyond it without a word. So wide tables get more.
LIGHT_ROUNDS, WIDE = 40, 40
MODEL_MB = 80


def options(method: str, n_columns: int) -> dict[str, Any]:
    """Keyword arguments of the pipeline."""
    if method == "aim_light":
        rounds = LIGHT_ROUNDS if n_columns <= WIDE else 3 * n_columns
        gen = {"rounds": rounds, "n_iters": 250}
        return {"max_model_size": MODEL_MB, "compress": True, "gen_kwargs": gen}
    if method == "aim":
        # The pipeline's own default is no limit of the model's size; the model's is this one.
        return {"max_model_size": MODEL_MB}
    return {}


def fit(
    table: pd.DataFrame, domain: dict[str, Any], job: dict[str, Any]
) -> tuple[pd.DataFrame, str]:
    """Fit one pipeline and sample as many rows as it was given."""
    known = {}
    for name, facts in domain.items():
        if facts["kind"] == "number":
            known[name] = dict(zip(("lower", "upper"), facts["bounds"], strict=True))
            known[name] = {bound: float(value) for bound, value in known[name].items()}
        else:
            known[name] = {"categories": [f"{code:04d}" for code in range(facts["size"])]}
    kinds = {"aim": AIMPipeline, "aim_light": AIMPipeline, "mst": MSTPipeline}
    chosen = options(job["method"], table.shape[1])
    pipeline = kinds.get(job["method"], PrivBayesPipeline)(
        epsilon=(1 - PROCESSING_SHARE) * job["epsilon"],
        delta=job["delta"],
        proc_epsilon=PROCESSING_SHARE * job["epsilon"],
        n_jobs=1,
        **chosen,
    )
    pipeline.fit(table, domain=known, random_state=job["seed"])
    cells = pipeline.proc.bin_domain.values()
    shown = {**chosen, "cells a column": f"{min(cells)}-{max(cells)}", "columns": len(cells)}
    return pipeline.generate(n_records=len(table)), str(shown)


if __name__ == "__main__":
    run_peer("dpmm", fit)
