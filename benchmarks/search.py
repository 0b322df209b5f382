"""Search over settings that never touch rows: Adult, a network on the paper's features.

    python benchmarks/search.py

epsilon = 1, delta = 1e-5, replace-one. Twelve candidates for the network, the defaults among them,
scored by three folds of the frequencies of one release. Beside each score stands the true error:
the candidate, trained on the whole release, against the embedding of the training rows without
noise. No user has that, and the search hasn't seen it; nor has it seen a row. Writes
``results/search.md``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _common import Stopwatch, loader, parser, write_result
from scipy.stats import spearmanr

from skdpgen import DPMERFSynthesizer, GaussianFeatures, Release, Schema, insecure_noise
from skdpgen.generators import MLPGenerator
from skdpgen.model_selection import ReleaseSearchCV
from skdpgen.model_selection._held_out import held_out_error

EPSILON, DELTA = 1.0, 1e-5
LOG_SCALED = ("capital-gain", "capital-loss", "fnlwgt")
WIDTHS = {
    64: partial(MLPGenerator, hidden_sizes=(64, 64)),
    128: partial(MLPGenerator, hidden_sizes=(128, 128)),
    256: "mlp",
}
# Steps, learning rate, batch size, width; the first are the defaults.
CANDIDATES = (
    (2000, 3e-3, 256, 256),
    (250, 1e-2, 128, 64),
    (500, 1e-3, 128, 64),
    (500, 3e-3, 128, 64),
    (500, 1e-2, 128, 64),
    (500, 3e-2, 128, 64),
    (500, 1e-2, 64, 128),
    (500, 1e-2, 256, 128),
    (1000, 3e-3, 128, 64),
    (1000, 1e-2, 128, 64),
    (2000, 1e-2, 128, 64),
    (2000, 1e-2, 128, 128),
)


def settings(candidate: tuple[int, float, int, int]) -> dict[str, Any]:
    """A candidate as parameters."""
    n_steps, learning_rate, batch_size, width = candidate
    return {
        "n_steps": n_steps,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "generator": WIDTHS[width],
    }


def exact_release(train: pd.DataFrame, **params: Any) -> Release:
    """The release without noise, which says so: for the true error only."""
    with insecure_noise(scale=0):
        release = DPMERFSynthesizer(EPSILON, DELTA, n_steps=1, **params).fit(train).release_
    return replace(release, noise_stddev=0.0)


def main() -> None:
    """Run the benchmark."""
    line = parser(__doc__.splitlines()[0])
    line.set_defaults(fits=1)
    options = line.parse_args()
    load = loader(options.data)
    train, _, _ = load.train_test("adult")
    schema = Schema.from_dict(load.schema("adult"))
    schema = schema.with_columns({name: {"scale": "log1p"} for name in LOG_SCALED})
    rows, notes = [], []
    for seed in range(options.fits):
        params = {"schema": schema, "features": GaussianFeatures(), "random_state": seed}
        synth = DPMERFSynthesizer(EPSILON, DELTA, **params)
        grid = [{k: [v] for k, v in settings(c).items()} for c in CANDIDATES]
        with Stopwatch() as watch:
            search = ReleaseSearchCV(synth, grid, cv=3, verbose=3, random_state=seed).fit(train)
        found = search.cv_results_
        exact = exact_release(train, **params)
        parts = np.arange(len(exact.public_arrays["frequencies"]))
        true = []
        for position, candidate in enumerate(CANDIDATES):
            trained = search.best_estimator_.retrain(**settings(candidate))
            true.append(held_out_error(trained.generator_, exact, parts, seed))
            rows.append(
                {
                    "fit": seed,
                    **dict(zip(("steps", "rate", "batch", "width"), candidate, strict=True)),
                    "held-out error": -1e4 * found["mean_test_score"][position],
                    "standard error": 1e4 * found["sem_test_score"][position],
                    "true error": 1e4 * true[-1],
                    "chosen": "x" if position == search.best_index_ else "",
                }
            )
            print(rows[-1], flush=True)
        rank = spearmanr(found["mean_test_score"], np.negative(true)).statistic
        ledger = search.ledger_
        notes.append(
            f"Fit {seed}: Spearman correlation of score and true error {rank:.3f}; true error "
            f"{true[0] / true[search.best_index_]:.2f} times smaller than with the defaults; "
            f"{len(ledger.entries)} entry in the ledger, epsilon = {ledger.spent(DELTA):.4f}; "
            f"{watch.wall:.0f} seconds."
        )
    table = pd.DataFrame(rows).round(3)
    write_result(
        "search",
        "Free search for the network on Adult, epsilon = 1, delta = 1e-5, replace-one",
        "python benchmarks/search.py",
        table if options.fits > 1 else table.drop(columns="fit"),
        "Errors in 1e-4: mean over frequencies of the squared error of the true embedding, summed "
        "over the classes. Held-out: three folds of the frequencies of one release, noise "
        "subtracted, with the standard error over the folds. True: trained on the whole release, "
        "against the embedding of the training rows without noise, which no user has. The first "
        "line has the defaults. " + " ".join(notes),
    )


if __name__ == "__main__":
    main()
