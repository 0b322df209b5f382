"""25 Gaussians on a grid: how many modes does the synthetic table cover.

    python benchmarks/gaussians.py

100,000 points around the 25 nodes of a 5 x 5 grid, standard deviation 0.2, labeled by column;
epsilon = 1, delta = 1e-5, replace-one. A mode counts as covered when at least half of its share of
the points lies within two standard deviations of its node. Writes ``results/gaussians.md`` and
``results/gaussians.png``.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from _common import RESULTS, Stopwatch, parser, write_result

from skdpgen import DPMERFSynthesizer, GaussianFeatures
from skdpgen.datasets import gaussian_grid_centers, make_gaussian_grid
from skdpgen.generators import MLPGenerator

EPSILON, DELTA, N_ROWS, NOISE = 1.0, 1e-5, 100_000, 0.2
REACH = 2 * NOISE
# Chosen on this very grid, whose scales are public: the modes are 0.03 wide and 0.17 apart on
# columns scaled to [0, 1]. Two columns need little noise, but steep functions of it.
SETTINGS = {
    "features": GaussianFeatures(1200, bandwidth=(0.03, 0.06, 0.15, 0.5)),
    "generator": partial(MLPGenerator, noise_dim=2, hidden_sizes=(256, 256, 256)),
    "batch_size": 1000,
    "n_steps": 4000,
    "learning_rate": 1e-2,
}
# Share of a two-dimensional Gaussian within two standard deviations (Rayleigh distribution).
NEAR_SHARE = 1 - np.exp(-2.0)


def scores(points: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Modes covered, share of points near a node, share of labels that fit, spread of a mode."""
    centers = gaussian_grid_centers()
    distances = np.sqrt(((points[:, None, :] - centers[None]) ** 2).sum(-1))
    nearest, distance = distances.argmin(1), distances.min(1)
    near = distance < REACH
    counts = np.bincount(nearest[near], minlength=len(centers))
    expected = NEAR_SHARE * len(points) / len(centers)
    return {
        "modes": int((counts >= 0.5 * expected).sum()),
        "near a node": near.mean(),
        "label fits": (nearest // 5 == labels).mean(),
        "std": np.sqrt(((points - centers[nearest]) ** 2).mean()),
    }


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__.splitlines()[0]).parse_args()
    frame, schema = make_gaussian_grid(N_ROWS, noise=NOISE, random_state=0)
    rows = [{"table": "real", **scores(frame[["x", "y"]].to_numpy(), frame["label"])}]
    for seed in range(options.fits):
        with Stopwatch() as watch:
            synth = DPMERFSynthesizer(
                EPSILON, DELTA, schema=schema, random_state=seed, **SETTINGS
            ).fit(frame)
            synthetic = synth.sample(N_ROWS)
        found = scores(synthetic[["x", "y"]].to_numpy(), synthetic["label"])
        rows.append({"table": f"synthetic, fit {seed}", **found, "seconds": watch.wall})
    write_result(
        "gaussians",
        "25 Gaussians, epsilon = 1",
        "python benchmarks/gaussians.py",
        pd.DataFrame(rows).round(3).fillna(""),
        f"Modes: nodes with at least half of their share of points within {REACH:g}. Near a node: "
        f"points within {REACH:g} of one ({NEAR_SHARE:.3f} of them for true Gaussians). Label "
        f"fits: the nearest node stands in the label's column. Std: of a coordinate around the "
        f"nearest node.",
    )
    picture(frame, synthetic)


def picture(frame: pd.DataFrame, synthetic: pd.DataFrame) -> None:
    """Real and synthetic points side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharex=True, sharey=True)
    for axis, table, title in zip(
        axes, (frame, synthetic), ("real", f"synthetic, epsilon = {EPSILON:g}"), strict=True
    ):
        shown = table.sample(10_000, random_state=0)
        axis.scatter(shown["x"], shown["y"], c=shown["label"], s=2, alpha=0.4, cmap="viridis")
        axis.set_title(title)
        axis.set_aspect("equal")
    figure.tight_layout()
    figure.savefig(RESULTS / "gaussians.png", dpi=100)


if __name__ == "__main__":
    main()
