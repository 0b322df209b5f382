"""How well the audit of the claimed epsilon catches faults and leaves sound code alone.

Every synthesizer is audited as it is, with half of its noise, and with rows that count twice, at
three epsilons and under both adjacencies. A second table measures the rates of many small audits
and sets them beside the closed formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import opendp.measurements
import pandas as pd
from _common import Stopwatch, markdown, parser, write_result

import skdpgen.privacy.mechanisms as mechanisms
from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
)
from skdpgen.evaluation import empirical_epsilon
from skdpgen.evaluation._audit_bounds import critical_t
from skdpgen.privacy.slicing_layout import SlicingLayout

DELTA = 1e-5
# Of each table and audit: halved noise is missed less than once in a million audits.
RUNS = 80
SCHEMA = {
    "target": "smoker",
    "columns": {
        "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
        "city": {"kind": "categorical", "values": ["a", "b", "c"], "missing": [""]},
        "smoker": {"kind": "label", "values": ["no", "yes"]},
    },
}
# Wider noise than this is that of directions of noisy rows: halved too, it would hide the fault.
DIRECTIONS = 2.0**27


@contextmanager
def halved_noise(below: float = np.inf) -> Iterator[None]:
    """A sampler that has the privacy map it was asked for, and half the noise."""
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain: Any, metric: Any, scale: float) -> None:
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 2 if scale < below else scale)

        def __call__(self, values: Any) -> Any:
            return self.sample(values)

    with patch.object(opendp.measurements, "make_gaussian", Liar):
        yield


@contextmanager
def rows_that_count_twice() -> Iterator[None]:
    """Sums of rows, and projections of rows, that are twice as large as the sensitivity says."""
    codes, rows = mechanisms.code_sums, mechanisms.row_sums
    weight = SlicingLayout.block_weight.fget
    with (
        patch.object(mechanisms, "code_sums", lambda *a: tuple(2 * x for x in codes(*a))),
        patch.object(mechanisms, "row_sums", lambda *a: tuple(2 * x for x in rows(*a))),
        patch.object(SlicingLayout, "block_weight", property(lambda s: 2 * weight(s))),
    ):
        yield


def synthesizers() -> dict[str, tuple[Callable[[float], Any], float]]:
    """By name: what makes one of an epsilon, and up to which size noise is halved."""
    everywhere: dict[str, tuple[Callable[[float], Any], float]] = {}
    for adjacency in ("replace-one", "add-remove"):
        common = {"schema": SCHEMA, "adjacency": adjacency}
        for name, kind, params in (
            ("DPMERF, interactions", DPMERFSynthesizer, {}),
            ("DPMERF, Gaussian", DPMERFSynthesizer, {"features": GaussianFeatures()}),
            ("SlicedFDiv", SlicedFDivSynthesizer, {}),
        ):
            everywhere[f"{name}; {adjacency}"] = (
                lambda e, kind=kind, params={**common, **params}: kind(e, DELTA, **params),
                np.inf,
            )
    everywhere["SlicedRows; replace-one"] = (
        lambda e: SlicedRowsSynthesizer(e, DELTA, schema=SCHEMA),
        DIRECTIONS,
    )
    return everywhere


def row(name: str, make: Callable[[float], Any], below: float, epsilon: float, fits: int) -> dict:
    """Audits of sound code, and of code with each fault."""
    with Stopwatch() as watch:
        sound = [empirical_epsilon(make(epsilon), n_runs=RUNS) for _ in range(fits)]
    caught = []
    for fault in (halved_noise(below), rows_that_count_twice()):
        with fault:
            audits = [empirical_epsilon(make(epsilon), n_runs=RUNS) for _ in range(fits)]
        caught.append(f"{sum(a.violated for a in audits)} of {fits}")
    lower = np.mean([a.epsilon_lower for a in sound])
    counting = np.mean([a.epsilon_lower_counting for a in sound])
    return {
        "synthesizer": name,
        "epsilon": f"{epsilon:g}",
        "records that differ": sound[0].group,
        "lower bound": f"{lower:.3g}",
        "by counts": "" if np.isnan(counting) else f"{counting:.3g}",
        "false alarms": f"{sum(a.violated for a in sound)} of {fits}",
        "halved noise caught": caught[0],
        "twice caught": caught[1],
        "power": f"{sound[0].power:.6f}",
        "CPU seconds": f"{watch.cpu / fits:.1f}",
    }


def rates(n_audits: int, n_runs: int, confidence: float) -> pd.DataFrame:
    """Rates of many small audits at epsilon = 1, beside the closed formulas."""
    synthesizer = SlicedFDivSynthesizer(1.0, DELTA, schema=SCHEMA)
    found = []
    for name, fault in (("none", nullcontext()), ("noise halved", halved_noise())):
        with fault:
            audits = [
                empirical_epsilon(synthesizer, n_runs=n_runs, confidence=confidence)
                for _ in range(n_audits)
            ]
        alarms = np.mean([a.epsilon_lower > 1 for a in audits])
        counted = np.mean([a.epsilon_lower_counting > 1 for a in audits])
        # Two of the three bounds make up the lower bound on epsilon, and each may err by itself.
        expected = 2 * (1 - confidence) / 3 if name == "none" else audits[0].power
        found.append(
            {
                "fault": name,
                "audits": n_audits,
                "runs a side": n_runs,
                "alarms by t, measured": f"{alarms:.3f}",
                "closed form": f"at {'most' if name == 'none' else 'least'} {expected:.3f}",
                "standard error": f"{np.sqrt(expected * (1 - expected) / n_audits):.3f}",
                "alarms by counts": f"{counted:.3f}",
            }
        )
    return pd.DataFrame(found)


def runs_needed(missed: float = 1e-6, alpha: float = 1e-4 / 3) -> int:
    """Runs a side after which halved noise is missed with less than this probability."""
    from scipy.stats import nct

    for n in range(20, 2000):
        root = np.sqrt(n / 2)
        if nct.cdf(critical_t(2 * root, 2 * n - 2, alpha), 2 * n - 2, 4 * root) < missed:
            return n
    raise AssertionError("within 2000 runs")


def main() -> None:
    """Write results/audit.md."""
    options = parser(__doc__ or "")
    options.set_defaults(fits=1)
    fits = options.parse_args().fits
    table = pd.DataFrame(
        [
            row(name, make, below, epsilon, fits)
            for name, (make, below) in synthesizers().items()
            for epsilon in (0.1, 1.0, 10.0)
        ]
    )
    small = rates(n_audits=60, n_runs=20, confidence=0.8)
    notes = f"""
Each audit makes {RUNS} releases of each of two neighboring tables (SlicedRows: a few releases of
up to 50,000 equal rows) with the code that `fit` runs, at delta = {DELTA:g} and with a schema of
three columns. Lower bound: what the audit can say about sound code, mean of {fits} audit(s) at
confidence 0.9999. Power: probability, in closed form, that halved noise is found. With two standard
deviations between the tables, {runs_needed()} runs a side miss halved noise with a probability
below 1e-6. At epsilon = 0.1 noisy rows would need more than 50,000 rows of each table: the audit
says so by its power.

Rates of many small audits at confidence 0.8, where false alarms are frequent enough to be counted:

{markdown(small)}
"""
    write_result(
        "audit",
        "Audit of the claimed epsilon: sound code, halved noise, rows that count twice",
        f"python benchmarks/audit.py --fits {fits}",
        table,
        notes,
    )


if __name__ == "__main__":
    main()
