"""The slicing mechanisms: Adult, 25 Gaussians, and what the noise on rows leaves.

    python benchmarks/slices.py adult        # AUC and total variation of every way to use slices
    python benchmarks/slices.py gaussians    # modes covered, with and without noise
    python benchmarks/slices.py noise        # noise of the rows mechanism beside published bounds
    python benchmarks/slices.py curve        # AUC over epsilon: rows, histograms, DP-MERF

delta = 1e-5, replace-one. Writes ``results/slices_<part>.md``, and ``results/slices_curve.png``.
"""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
from _common import RESULTS, Stopwatch, loader, mean_and_spread, parser, write_result
from _scores import score
from _sets import Prepared, prepare
from gaussians import scores as modes_covered

from skdpgen import (
    DPMERFSynthesizer,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    insecure_noise,
)
from skdpgen.datasets import make_gaussian_grid
from skdpgen.exceptions import SkdpgenWarning
from skdpgen.privacy.slicing_accounting import (
    proposition_3_noise_stddev,
    slicing_noise_stddev,
    theorem_1_noise_stddev,
)

EPSILON, DELTA = 1.0, 1e-5
SPARSE = {"directions": "sparse", "n_slices": 200}
ADULT: dict[str, tuple[type, dict[str, Any], float | None]] = {
    "wrapped slices, mixture (default)": (SlicedFDivSynthesizer, {}, EPSILON),
    "sparse slices, network, Hellinger": (SlicedFDivSynthesizer, SPARSE, EPSILON),
    "sparse slices, network, sliced Wasserstein": (
        SlicedFDivSynthesizer,
        {**SPARSE, "divergence": "sliced_wasserstein"},
        EPSILON,
    ),
    "dense slices, network, sliced Wasserstein": (
        SlicedFDivSynthesizer,
        {"directions": "dense", "n_slices": 200, "divergence": "sliced_wasserstein"},
        EPSILON,
    ),
    "rows": (SlicedRowsSynthesizer, {}, EPSILON),
    "rows, epsilon = 100": (SlicedRowsSynthesizer, {}, 100.0),
    "rows, 200 slices, without noise (not private)": (
        SlicedRowsSynthesizer,
        {"n_slices": 200},
        None,
    ),
    "DPMERFSynthesizer, its defaults": (DPMERFSynthesizer, {}, EPSILON),
}


def fitted(
    kind: type, params: dict[str, Any], epsilon: float | None, table: Any, **more: Any
) -> Any:
    """Fit a synthesizer; epsilon None switches the noise off."""
    context = insecure_noise(scale=0) if epsilon is None else nullcontext()
    with context, warnings.catch_warnings():
        # That rows are hidden by their noise is what some lines show.
        warnings.simplefilter("ignore", SkdpgenWarning)
        return kind(epsilon or EPSILON, DELTA, **params, **more).fit(table)


def adult(prepared: Prepared, n_fits: int) -> None:
    """AUC and total variation of every way to use slices."""
    lines = []
    for name, (kind, params, epsilon) in ADULT.items():
        found = []
        # A line about rows takes minutes, and says the same every time.
        for seed in range(1 if kind is SlicedRowsSynthesizer else n_fits):
            with Stopwatch() as watch:
                synth = fitted(
                    kind, params, epsilon, prepared.train, schema=prepared.schema, random_state=seed
                )
                table = synth.sample(len(prepared.train))
            found.append({**score(table, prepared), "seconds": watch.cpu})
            print(name, seed, found[-1], flush=True)
        columns = {
            "LR": ("LR roc_auc", 3),
            "XGB": ("XGB roc_auc", 3),
            "RF": ("RF roc_auc", 3),
            "TV 1-way": ("TV1 uniform", 4),
            "TV 2-way": ("TV2 uniform", 4),
            "CPU s": ("seconds", 0),
        }
        lines.append(
            {"release": name}
            | {c: mean_and_spread([f[k] for f in found], d) for c, (k, d) in columns.items()}
        )
    write_result(
        "slices_adult",
        "Slices on Adult, epsilon = 1 unless said",
        "python benchmarks/slices.py adult",
        pd.DataFrame(lines),
        f"Mean (smallest-largest) of {n_fits} fits, one for rows. ROC AUC on test rows of "
        "classifiers trained on synthetic ones; total variation distance to the training rows, "
        "numbers in 16 uniform bins.",
    )


def gaussians(n_fits: int) -> None:
    """Modes of a 5 x 5 grid that are covered, with and without noise."""
    frame, schema = make_gaussian_grid(100_000, noise=0.2, random_state=0)
    params = {"directions": "dense", "n_slices": 50, "n_cells": 64, "batch_size": 640}
    lines = []
    ways = (("mixture", {"n_slices": 200}, n_fits), ("network, Hellinger", params, 1))
    for name, more, fits in ways:
        for epsilon in (EPSILON, None):
            for seed in range(fits):
                started = time.perf_counter()
                synth = fitted(
                    SlicedFDivSynthesizer, more, epsilon, frame, schema=schema, random_state=seed
                )
                table = synth.sample(100_000)
                found = modes_covered(table[["x", "y"]].to_numpy(), table["label"])
                shown = "none" if epsilon is None else f"epsilon = {epsilon:g}"
                seconds = time.perf_counter() - started
                lines.append({"trained": name, "noise": shown, **found, "seconds": seconds})
                print(lines[-1], flush=True)
    write_result(
        "slices_gaussians",
        "Slices on 25 Gaussians",
        "python benchmarks/slices.py gaussians",
        pd.DataFrame(lines).round(3),
        "100,000 points; columns as in `gaussians.md`. The network: 50 dense slices of 64 cells.",
    )


def noise() -> None:
    """Noise of the rows mechanism, exact and by the published bounds."""
    lines = []
    for m in (50, 200, 1000):
        for epsilon in (0.2, 1.0, 5.0):
            geometry = {"n_directions": m, "dimension": 50}
            exact = slicing_noise_stddev(epsilon, DELTA, **geometry)
            theorem = theorem_1_noise_stddev(epsilon, DELTA, **geometry)
            fixed = proposition_3_noise_stddev(epsilon, DELTA, n_directions=m)
            lines.append(
                {
                    "directions": m,
                    "epsilon": epsilon,
                    "exact": f"{exact:.4g}",
                    "Theorem 1 / exact": f"{theorem / exact:.3f}",
                    "Prop. 3 / exact": f"{fixed / exact:.2f}",
                }
            )
    write_result(
        "slices_noise",
        "Noise of the slicing mechanism on rows, 50 coordinates, diameter 1, delta = 1e-5",
        "python benchmarks/slices.py noise",
        pd.DataFrame(lines),
        "Exact: the least noise there is. Bounds derived after arXiv 2410.19941: see docstrings.",
    )


def curve(prepared: Prepared, n_fits: int) -> None:
    """AUC of a logistic regression over epsilon, for three ways to release a table."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    kinds = {
        "noisy rows (50 slices)": SlicedRowsSynthesizer,
        "histograms of slices": SlicedFDivSynthesizer,
        "DP-MERF": DPMERFSynthesizer,
    }
    epsilons = (0.1, 1.0, 10.0, 100.0, 400.0)
    lines = []
    for epsilon in epsilons:
        for name, kind in kinds.items():
            aucs = []
            for seed in range(n_fits):
                synth = fitted(
                    kind, {}, epsilon, prepared.train, schema=prepared.schema, random_state=seed
                )
                aucs.append(score(synth.sample(len(prepared.train)), prepared)["LR roc_auc"])
            lines.append({"epsilon": epsilon, "release": name, "LR": np.mean(aucs)})
            print(lines[-1], flush=True)
    table = pd.DataFrame(lines).pivot(index="epsilon", columns="release", values="LR")[list(kinds)]
    figure, axis = plt.subplots(figsize=(7, 4))
    for name, style in zip(kinds, ("o-", "s-", "^-"), strict=True):
        axis.plot(table.index, table[name], style, label=name)
    axis.axhline(0.5, color="gray", linestyle=":", label="chance")
    axis.set(xscale="log", xlabel="epsilon", ylabel="AUC on test rows", title="Adult, delta = 1e-5")
    axis.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(RESULTS / "slices_curve.png", dpi=110)
    write_result(
        "slices_curve",
        "AUC of a logistic regression on Adult over epsilon",
        "python benchmarks/slices.py curve",
        table.round(3).reset_index(),
        f"Mean of {n_fits} fits; trained on synthetic rows, tested on real ones. Replace-one.",
    )


def main() -> None:
    """Run the parts that were asked for."""
    line = parser(__doc__.splitlines()[0])
    parts = ("adult", "gaussians", "noise", "curve")
    line.add_argument("parts", nargs="*", default=list(parts), choices=parts)
    options = line.parse_args()
    load = loader(options.data)
    if "noise" in options.parts:
        noise()
    if "gaussians" in options.parts:
        gaussians(options.fits)
    if "adult" in options.parts:
        adult(prepare("adult", load), options.fits)
    if "curve" in options.parts:
        curve(prepare("adult", load), options.fits)


if __name__ == "__main__":
    main()
