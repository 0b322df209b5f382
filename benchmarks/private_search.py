"""Does choosing pay for its price? Private search over settings that touch rows.

    python benchmarks/private_search.py --fits 3

Adult, epsilon = 1, delta = 1e-5, replace-one. Six candidates that differ in what is released;
beside the search, each of them as a single release with the whole budget. Writes
``results/private_search.md``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd
from _common import Stopwatch, loader, mean_and_spread, parser, write_result
from _scores import score
from _sets import Prepared, prepare

from skdpgen import DPMERFSynthesizer, InteractionFeatures
from skdpgen.exceptions import PrivacyWarning
from skdpgen.model_selection import PrivateSearchCV
from skdpgen.privacy import PrivateSelection, Repetitions, noise_multiplier

EPSILON, DELTA = 1.0, 1e-5
CANDIDATES = {
    f"orders {orders}, {n:,} frequencies": InteractionFeatures(n, orders=orders)
    for orders in ((1, 2), (2,), (2, 3))
    for n in (1000, 10_000)
}
COLUMNS = {
    "LR": ("LR roc_auc", 3),
    "XGB": ("XGB roc_auc", 3),
    "TV 1-way": ("TV1 uniform", 4),
    "TV 2-way": ("TV2 uniform", 4),
    "CPU s": ("seconds", 0),
}


def ways(prepared: Prepared, seed: int) -> Iterator[tuple[str, Any, str]]:
    """Name, synthesizer or search to fit, and noise beside that of a single release."""
    common: dict[str, Any] = {"schema": prepared.schema, "random_state": seed}
    for name, features in CANDIDATES.items():
        yield name, DPMERFSynthesizer(EPSILON, DELTA, features=features, **common), "1"
    synth = DPMERFSynthesizer(EPSILON, DELTA, **common)
    grid = {"features": list(CANDIDATES.values())}
    single = noise_multiplier(EPSILON, DELTA)
    for tries in (2, 5):
        price = PrivateSelection(EPSILON, DELTA, Repetitions.with_mean(tries, 0.0), 0.1)
        yield (
            f"private search, {tries} expected tries",
            PrivateSearchCV(synth, grid, EPSILON, DELTA, expected_tries=tries, random_state=seed),
            f"{price.run_multiplier / single:.2f}",
        )


def main() -> None:
    """Fit all ways, score them, write the table."""
    options = parser(__doc__.splitlines()[0]).parse_args()
    prepared = prepare("adult", loader(options.data))
    found: dict[str, list[dict[str, float]]] = {}
    prices = {}
    for seed in range(options.fits):
        for name, way, price in ways(prepared, seed):
            with Stopwatch() as watch, warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                table = way.fit(prepared.train).sample(len(prepared.train))
            found.setdefault(name, []).append({**score(table, prepared), "seconds": watch.cpu})
            prices[name] = price
            print(name, seed, getattr(way, "best_params_", ""), found[name][-1], flush=True)
    lines = [
        {"way": name, "noise": prices[name]}
        | {c: mean_and_spread([s[k] for s in scores], d) for c, (k, d) in COLUMNS.items()}
        for name, scores in found.items()
    ]
    write_result(
        "private_search",
        "Private search on Adult, epsilon = 1, delta = 1e-5",
        f"python benchmarks/private_search.py --fits {options.fits}",
        pd.DataFrame(lines),
        f"Mean (smallest-largest), fits a way: {options.fits}. Noise beside that of a single one; "
        f"all six released would have {math.sqrt(len(CANDIDATES)):.2f} times. ROC AUC on test rows "
        "of classifiers trained on synthetic ones; total variation distance to the training rows, "
        "numbers in 16 uniform bins. Which way is best among single releases is known only to who "
        "looks at rows.",
    )


if __name__ == "__main__":
    main()
