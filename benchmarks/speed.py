"""Seconds and memory of a fit and of sampling as many rows, stage by stage.

    OMP_NUM_THREADS=1 python benchmarks/speed.py

Adult's training rows and all 581,012 rows of covtype, defaults, epsilon = 1, delta = 1e-5,
add-remove, the number of rows as a hint. Each fit runs in a process of its own; reading the rows
and importing torch don't count. Writes ``results/speed.md``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from _common import Stopwatch, loader, mean_and_spread, parser, write_result

SETS = ("adult", "covtype")
EPSILON, DELTA = 1.0, 1e-5
STAGES = ("release", "training", "sampling")


def measure(name: str, data: Path, seed: int) -> dict[str, Any]:
    """Seconds of the stages of one fit, and the peak memory of all of them."""
    # Before anything is measured: the time that its import takes isn't the fit's.
    import torch
    from _sets import prepare
    from peers._job import measured

    from skdpgen import DPMERFSynthesizer

    prepared = prepare(name, loader(data))
    rows = prepared.train
    if name == "covtype":
        rows = pd.concat([rows, prepared.test], ignore_index=True)
    synth = DPMERFSynthesizer(
        EPSILON,
        DELTA,
        schema=prepared.schema,
        adjacency="add-remove",
        n_rows_hint=len(rows),
        random_state=seed,
    )
    watches = {stage: Stopwatch() for stage in STAGES}

    def fit_and_sample() -> pd.DataFrame:
        with watches["release"]:
            synth.make_release(rows)
        with watches["training"]:
            synth.retrain()
        with watches["sampling"]:
            return synth.sample(len(rows))

    _, found = measured(fit_and_sample)
    stages = {stage: watch.wall for stage, watch in watches.items()}
    facts = {"rows": len(rows), "threads": torch.get_num_threads()}
    return {**facts, "steps": len(synth.loss_curve_), **stages, **found}


def main() -> None:
    """Run the benchmark, or one fit of it in a process of its own."""
    line = parser(__doc__.splitlines()[0])
    line.add_argument("--one", nargs=2, metavar=("SET", "SEED"), help="one fit; prints JSON")
    options = line.parse_args()
    if options.one:
        name, seed = options.one
        print(json.dumps(measure(name, options.data, int(seed))))
        return
    lines = []
    for name in SETS:
        command = [sys.executable, __file__, "--data", str(options.data), "--one", name]
        printed = [
            subprocess.run([*command, str(seed)], stdout=subprocess.PIPE, check=True).stdout
            for seed in range(options.fits)
        ]
        fits = pd.DataFrame(map(json.loads, printed))
        lines.append(
            {
                "set": name,
                "rows": f"{fits['rows'][0]:,}",
                "fits": options.fits,
                "threads of torch": fits["threads"][0],
                "steps": mean_and_spread(fits["steps"], 0),
                **{f"{stage} s": mean_and_spread(fits[stage], 1) for stage in STAGES},
                "all s": mean_and_spread(fits["seconds"], 1),
                "CPU s": mean_and_spread(fits["cpu_seconds"], 1),
                "MB": mean_and_spread(fits["peak_mb"], 0),
            }
        )
    write_result(
        "speed",
        "Seconds and memory of a fit and of sampling",
        "OMP_NUM_THREADS=1 python benchmarks/speed.py",
        pd.DataFrame(lines),
        "Mean (smallest-largest) over the fits; seconds are wall clock. The release counts in up "
        "to four threads of its own, whatever torch has. Load of the machine when the last fit "
        f"ended: {os.getloadavg()[0]:.1f}.",
    )


if __name__ == "__main__":
    main()
