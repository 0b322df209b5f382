"""Runs one fit of skdpgen for the comparison, in a process of its own.

    python benchmarks/run_skdpgen.py job.json

The job is what ``compare.py`` writes; see ``peers/_job.py``.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

# Before anything is measured: the time that its import takes isn't the fit's.
import torch  # noqa: F401
from _common import loader
from _sets import prepare
from peers._job import finish, measured, read_job

from skdpgen import DPMERFSynthesizer, GaussianFeatures, SlicedFDivSynthesizer, __version__
from skdpgen.privacy.noise import insecure_noise

# The paper: random Fourier features of rows, and a generator network.
VARIANTS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "default": (DPMERFSynthesizer, {}),
    "paper": (DPMERFSynthesizer, {"features": GaussianFeatures()}),
    "slices": (SlicedFDivSynthesizer, {}),
}
# Without noise there is no epsilon; the largest one says that nothing is to be expected of it.
LARGEST_EPSILON = 500.0


def main() -> None:
    """Run the job named on the command line."""
    job = read_job()
    prepared = prepare(job["set"], loader(Path(job["data"])))
    variant = job["method"].removesuffix("_no_noise")
    noiseless = variant != job["method"]
    kind, parameters = VARIANTS[variant]
    if kind is DPMERFSynthesizer:
        # The peers are told the number of rows, which they take for public.
        parameters = {**parameters, "n_rows_hint": len(prepared.train)}
    synthesizer = kind(
        LARGEST_EPSILON if math.isinf(job["epsilon"]) else job["epsilon"],
        job["delta"],
        schema=prepared.schema,
        adjacency=job["adjacency"],
        random_state=job["seed"],
        **parameters,
    )
    with insecure_noise(job["seed"], scale=0.0) if noiseless else nullcontext():
        synthetic, found = measured(
            lambda: synthesizer.fit(prepared.train).sample(len(prepared.train))
        )
    synthetic.to_pickle(job["table"])
    settings = f"skdpgen {__version__}: {kind.__name__}, {VARIANTS[variant][1] or 'defaults'}"
    finish(job, {**found, "settings": settings})


if __name__ == "__main__":
    main()
