"""The main job on real data: ``python -m skdpgen.demo``.

A private table in, a synthetic table out: Fair's survey of married women, one release at
epsilon = 1 and delta = 1e-5, a CSV of synthetic women, and what that table is worth.
"""

from __future__ import annotations

import argparse
import textwrap
import time
from pathlib import Path

import torch
from sklearn.model_selection import train_test_split

from .data.files import write_table
from .datasets import load_fair
from .evaluation import tstr
from .synthesizers.dpmerf import DPMERFSynthesizer

__all__ = ["main"]

EPSILON = 1.0
DELTA = 1e-5
# Half the default: enough for a table of this size, and within a minute on one slow core.
N_STEPS = 1000


def main(arguments: list[str] | None = None) -> None:
    """Run the demo.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Command line; that of the process if None. ``--output PATH`` names the CSV
        (``fair_synthetic.csv``).
    """
    parser = argparse.ArgumentParser(prog="python -m skdpgen.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("fair_synthetic.csv"))
    output: Path = parser.parse_args(arguments).output
    start = time.perf_counter()
    # Matrices this small gain little from threads, and on a busy machine threads wait for each
    # other for minutes.
    torch.set_num_threads(1)

    frame, schema = load_fair()
    train, test = train_test_split(
        frame, test_size=0.25, random_state=0, stratify=frame[schema.target]
    )
    print("Fair's survey of 6,366 married women: who reports an affair?")
    print(f"{len(train):,} women to learn from (private), {len(test):,} held out to test with.\n")

    begin = time.perf_counter()
    synth = DPMERFSynthesizer(
        epsilon=EPSILON, delta=DELTA, schema=schema, n_steps=N_STEPS, random_state=0
    )
    synth.fit(train)
    synthetic = synth.sample(len(train), random_state=0)
    seconds = time.perf_counter() - begin
    # Ages to a tenth of a year: more digits would only be noise.
    write_table(synthetic.round(1), output)
    print(
        f"Fitted and sampled in {seconds:.1f} s; {output} has {len(synthetic):,} rows like these:\n"
    )
    print(_indent(synthetic.head(5).round(1).to_string(index=False)))

    print("\nROC AUC on the held-out real women, of classifiers trained on ...\n")
    scores = tstr(synthetic, test, real_train=train, schema=schema).scores
    areas = scores[(scores["metric"] == "roc_auc") & (scores["trained_on"] != "chance")]
    table = areas.pivot(index="estimator", columns="trained_on", values="score")
    table = table.loc[list(areas["estimator"].unique()), ["real", "synthetic"]]
    table = table.add_suffix(" rows").rename_axis(index=None, columns=None)
    print(_indent(table.to_string(float_format="{:.3f}".format)))
    print(
        "\n0.5 is guessing; real rows show what there is to learn. These figures are not private:"
    )
    print("they read real rows. What covers the CSV file:\n")

    print(textwrap.indent(synth.privacy_statement(), "  "))
    print(f"\n{time.perf_counter() - start:.1f} seconds in all.")


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")


if __name__ == "__main__":
    main()
