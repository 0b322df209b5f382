"""What the runners share: read a job, measure a fit, write down what came out.

Needs numpy and pandas only and never imports skdpgen, because peers have environments of their
own. A runner is called with one argument, the path of a JSON file: ``data`` (for a peer: folder
with ``train.csv`` and ``domain.json``), ``set``, ``method``, ``epsilon``, ``delta``,
``adjacency``, ``seed``, and where to write: ``table`` and ``result``.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

Job = dict[str, Any]


def read_job() -> Job:
    """The job named on the command line."""
    job: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return job


def measured(fit: Callable[[], pd.DataFrame]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table that a fit returns, and its seconds (wall, CPU) and peak memory in MB."""
    # The peak starts anew, so that reading the table doesn't count (where Linux allows it).
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    wall, cpu = time.perf_counter(), time.process_time()
    table = fit()
    seconds = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    return table, {**seconds, "peak_mb": _peak_mb()}


def finish(job: Job, found: dict[str, Any]) -> None:
    """Write the result, whole or not at all; the last thing that a runner does."""
    draft = Path(job["result"] + ".draft")
    draft.write_text(json.dumps(found, indent=1), encoding="utf-8")
    os.replace(draft, job["result"])


def run_peer(
    package: str,
    fit: Callable[[pd.DataFrame, dict[str, Any], Job], tuple[pd.DataFrame, str]],
) -> None:
    """Run a job of a peer: ``fit(table, domain, job)`` returns synthetic rows and its settings.

    Categories are text in the table that it gets, numbers are numbers. Settings say what was
    asked of the peer, for the notes of the benchmark.
    """
    job = read_job()
    folder = Path(job["data"])
    domain = json.loads((folder / "domain.json").read_text(encoding="utf-8"))["columns"]
    table = pd.read_csv(folder / "train.csv")
    categories = [name for name, facts in domain.items() if facts["kind"] == "category"]
    for name in categories:
        # Zeros in front: peers sort categories as texts.
        table[name] = table[name].map("{:04d}".format).astype(object)
    shown = []

    def fit_and_sample() -> pd.DataFrame:
        synthetic, settings = fit(table, domain, job)
        shown.append(settings)
        return synthetic

    synthetic, found = measured(fit_and_sample)
    for name in categories:
        synthetic[name] = synthetic[name].astype(int)
    synthetic.to_csv(job["table"], index=False)
    finish(job, {**found, "settings": f"{package} {version(package)}: {shown[0]}"})


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
