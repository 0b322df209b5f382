"""What each default of tables is worth: one setting changed at a time.

    python benchmarks/ablation.py
    python benchmarks/ablation.py --epsilon 0.2

On sets that ``compare.py`` doesn't report (telco_churn, credit_fraud, taxis), add-remove. Scores
are means over the sets and fits of ROC AUC on held-out rows and of total variation distances to the
training rows. Privacy settings need a new release, so lines that change one differ in their noise
too; the others train again on the same release. Writes ``results/ablation.md`` or, for another
epsilon than 1, ``results/ablation_epsilon_<epsilon>.md``.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from _common import Stopwatch, loader, parser, write_result
from _scores import score
from _sets import Prepared, prepare

from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator

SETS = ("telco_churn", "credit_fraud", "taxis")
DELTA = 1e-5
PRIVACY: dict[str, dict[str, Any]] = {
    "defaults": {},
    "orders (2,)": {"orders": (2,)},
    "orders (1, 2, 3)": {"orders": (1, 2, 3)},
    "orders (3, 4)": {"orders": (3, 4)},
    "2,000 frequencies": {"n_frequencies": 2_000},
    "20,000 frequencies": {"n_frequencies": 20_000},
    "32 bins": {"n_bins": 32},
    "256 bins": {"n_bins": 256},
    "up to 8 cycles": {"max_cycles": 8.0},
    "up to 16 cycles": {"max_cycles": 16.0},
    "up to 32 cycles": {"max_cycles": 32.0},
    "up to 64 cycles": {"max_cycles": 64.0},
    "no one-way tables": {"block_share": 0.0},
    "one-way share 0.4": {"block_share": 0.4},
}
TRAINING: dict[str, dict[str, Any]] = {
    "1 mixture of 400": {"generator": MixtureGenerator(400, n_mixtures=1)},
    "4 mixtures of 25": {"generator": MixtureGenerator(100, n_mixtures=4)},
    "8 mixtures of 100": {"generator": MixtureGenerator(800, n_mixtures=8)},
    "spread 1": {"generator": MixtureGenerator(spread=1.0)},
    "stop at 0.95 of the floor": {"generator": MixtureGenerator(floor_ratio=0.95)},
    "stop at 1.1 of the floor": {"generator": MixtureGenerator(floor_ratio=1.1)},
    "never stop early": {"generator": MixtureGenerator(floor_ratio=0.0)},
    "at most 1,000 steps": {"n_steps": 1000},
    "at most 2,000 steps": {"n_steps": 2000},
    "learning rate 0.1": {"learning_rate": 0.1},
    "learning rate 0.01": {"learning_rate": 0.01},
    "joint class weights": {"class_weight": None},
}


def line(setting: str, synth: DPMERFSynthesizer, prepared: Prepared, seconds: float) -> dict:
    """Scores of one trained synthesizer."""
    found = score(synth.sample(len(prepared.train)), prepared)
    return {
        "setting": setting,
        "LR": found["LR roc_auc"],
        "XGB": found["XGB roc_auc"],
        "RF": found["RF roc_auc"],
        "depth 1": found["depth 1 roc_auc"],
        "TV 1-way": found["TV1 uniform"],
        "TV 2-way": found["TV2 uniform"],
        "steps": len(synth.loss_curve_),
        "seconds": seconds,
    }


def main() -> None:
    """Run the benchmark."""
    command_line = parser(__doc__.splitlines()[0])
    command_line.add_argument("--epsilon", type=float, default=1.0)
    options = command_line.parse_args()
    epsilon = options.epsilon
    load = loader(options.data)
    rows = []
    for name in SETS:
        prepared = prepare(name, load)
        for seed in range(options.fits):
            for setting, changes in PRIVACY.items():
                synth = DPMERFSynthesizer(
                    epsilon,
                    DELTA,
                    schema=prepared.schema,
                    adjacency="add-remove",
                    features=InteractionFeatures(**changes),
                    random_state=seed,
                )
                with Stopwatch() as watch:
                    synth.fit(prepared.train)
                rows.append(line(setting, synth, prepared, watch.cpu))
                print(name, rows[-1], flush=True)
                if changes:
                    continue
                defaults = {
                    "generator": "auto",
                    "n_steps": None,
                    "learning_rate": None,
                    "class_weight": "balanced",
                }
                for other, training in TRAINING.items():
                    with Stopwatch() as watch:
                        synth.retrain(**{**defaults, **training})
                    rows.append(line(other, synth, prepared, watch.cpu))
                    print(name, rows[-1], flush=True)
    order = [*PRIVACY, *TRAINING]
    table = pd.DataFrame(rows).groupby("setting").mean().loc[order]
    digits = dict.fromkeys(table.columns, 3) | {"TV 1-way": 4, "TV 2-way": 4} | {"steps": 0}
    shown = {column: table[column].map(f"{{:.{n}f}}".format) for column, n in digits.items()}
    usual = epsilon == 1
    write_result(
        "ablation" if usual else f"ablation_epsilon_{epsilon:g}",
        f"Defaults for tables, one at a time, epsilon = {epsilon:g}, delta = 1e-5, add-remove",
        "python benchmarks/ablation.py" + ("" if usual else f" --epsilon {epsilon:g}"),
        pd.DataFrame(shown).reset_index(),
        f"Means over {', '.join(SETS)} and {options.fits} fits each. ROC AUC on held-out rows; "
        "total variation distance to the training rows, numbers in 16 uniform bins; CPU seconds "
        "of the fit, or of training alone where only training changes.",
    )


if __name__ == "__main__":
    main()
