"""The methods of the comparison, and how one fit is run: in a process of its own, kept on disk."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from _common import HERE
from _sets import Prepared, export, restore

DELTA = 1e-5
LIMIT_SECONDS = 900.0
# Wall clock is allowed more: the cores are shared.
PATIENCE = 3.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Method:
    """What a method is called in the tables, who runs it and under which relation it accounts."""

    title: str
    runner: str | None  # None: the real rows
    peer: str | None = None  # the package whose environment runs it
    private: bool = True


OWN = "run_skdpgen.py"
METHODS = {
    "real": Method("real rows", None, private=False),
    "default": Method("skdpgen, default", OWN),
    "paper": Method("skdpgen, DP-MERF of the paper", OWN),
    "slices": Method("skdpgen, SlicedFDivSynthesizer", OWN),
    "default_no_noise": Method("skdpgen, default, without noise", OWN, private=False),
    "paper_no_noise": Method("skdpgen, DP-MERF of the paper, without noise", OWN, private=False),
    "aim": Method("dpmm AIM, its defaults", "peers/run_dpmm.py", "dpmm"),
    "aim_light": Method("dpmm AIM, light settings", "peers/run_dpmm.py", "dpmm"),
    "mst": Method("dpmm MST", "peers/run_dpmm.py", "dpmm"),
    "privbayes": Method("dpmm PrivBayes", "peers/run_dpmm.py", "dpmm"),
    "smartnoise_mst": Method("smartnoise-synth MST", "peers/run_smartnoise.py", "smartnoise"),
}


@dataclass(frozen=True)
class Fit:
    """One fit: which set, method, epsilon, neighboring relation and seed."""

    set: str
    method: str
    epsilon: float
    adjacency: str
    seed: int

    @property
    def key(self) -> str:
        """Name of its files in the cache."""
        return f"{self.method}_eps{self.epsilon:g}_{self.adjacency}_{self.seed}"


class Cache:
    """A folder with, for each set, the tables that were made and what is known about them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, fit: Fit, ending: str) -> Path:
        """Where something of a fit lies: its table, ``fit.json``, ``json`` (scores), ``log``."""
        return self.folder / fit.set / f"{fit.key}.{ending}"

    def read(self, fit: Fit, ending: str) -> dict[str, Any] | None:
        """A JSON file of the cache, or None."""
        path = self.path(fit, ending)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def write(self, fit: Fit, ending: str, found: dict[str, Any]) -> None:
        """Write a JSON file of the cache, whole or not at all."""
        path = self.path(fit, ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".draft")
        draft.write_text(json.dumps(found, indent=1), encoding="utf-8")
        os.replace(draft, path)


def run(
    fit: Fit, prepared: Prepared, cache: Cache, python: dict[str, str], data: Path, limit: float
) -> dict[str, Any]:
    """Run a fit that the cache doesn't have yet; what came out of it.

    A fit that fails or takes more than ``limit`` CPU seconds is kept too, as ``failed``.
    """
    found = cache.read(fit, "fit.json")
    if found is not None:
        return found
    method = METHODS[fit.method]
    if method.peer is not None and not (cache.folder / fit.set / "data").exists():
        export(prepared, cache.folder / fit.set / "data")
    job = {
        **asdict(fit),
        "delta": DELTA,
        "data": str(data if method.peer is None else cache.folder / fit.set / "data"),
        "table": str(cache.path(fit, "csv" if method.peer else "pkl")),
        "result": str(cache.path(fit, "fit.json")),
    }
    cache.write(fit, "job.json", job)
    interpreter = python[method.peer] if method.peer else sys.executable
    command = [interpreter, str(HERE / str(method.runner)), str(cache.path(fit, "job.json"))]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    if method.peer is not None:
        # A peer has packages of its own.
        environment.pop("PYTHONPATH", None)
    with cache.path(fit, "log").open("w") as log:
        try:
            code = subprocess.run(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=_limiter(limit),
                timeout=PATIENCE * limit,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    found = cache.read(fit, "fit.json")
    if found is None:
        late = code in (-1, -signal.SIGXCPU)
        reason = f"did not finish in {limit:.0f} s" if late else f"failed with status {code}"
        found = {"failed": reason}
        cache.write(fit, "fit.json", found)
    return found


def table(fit: Fit, prepared: Prepared, cache: Cache) -> pd.DataFrame:
    """The table of a fit, as the set's own columns and values."""
    method = METHODS[fit.method]
    if method.runner is None:
        return prepared.train
    if method.peer is None:
        return pd.read_pickle(cache.path(fit, "pkl"))
    return restore(prepared, cache.path(fit, "csv"))


def _limiter(limit: float) -> Callable[[], None]:
    def limit_cpu() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))

    return limit_cpu
