"""``skdpgen inspect``: what a release, a model or a ledger says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._files import existing
from ._output import Output, with_output
from .schemas import show_columns

if TYPE_CHECKING:
    from skdpgen.privacy.release import Release
    from skdpgen.privacy.slicing_release import SlicingRelease

__all__ = ["inspect"]

_SQLITE = b"SQLite format 3\0"


@click.command(short_help="Say what was promised and spent.")
@click.argument("path", metavar="RELEASE|MODEL|LEDGER", type=existing)
@with_output
def inspect(out: Output, path: Path) -> None:
    """Say what was promised and spent, and what a release holds.

    Epsilon is computed again from the noise and the sensitivity that the file records.
    """
    with open(path, "rb") as file:
        is_ledger = file.read(len(_SQLITE)) == _SQLITE
    if is_ledger:
        _ledger(out, path)
        return
    from skdpgen.synthesizers import is_model, load_model, load_release

    release = load_release(path)
    _release(out, path, release)
    if is_model(path):
        _model(out, load_model(path))


def _ledger(out: Output, path: Path) -> None:
    from skdpgen.privacy.ledger import PrivacyLedger

    ledger = PrivacyLedger(path=path)
    records = ledger.to_records()
    out.result = {
        "kind": "ledger",
        "statement": ledger.statement(),
        "cap": None if ledger.epsilon is None else [ledger.epsilon, ledger.delta],
        "remaining_epsilon": ledger.remaining(),
        "entries": records,
    }
    out.say(f"{path}: {ledger.statement()}")
    if ledger.epsilon is not None:
        out.say(
            f"The cap is epsilon = {ledger.epsilon:g} at delta = {ledger.delta:g}; one more "
            f"Gaussian release may have epsilon = {ledger.remaining():.4g}."
        )
    head = ("charge", "mechanism", "epsilon", "delta", "adjacency", "unit", "rows_per_unit")
    out.table(head, [[record[name] for name in head] for record in records])


def _release(out: Output, path: Path, release: Release | SlicingRelease) -> None:
    from skdpgen.data.schema import Schema
    from skdpgen.privacy.release import Release

    recomputed = release.verify()
    facts = release.public.get("schema")
    schema = None if facts is None else Schema.from_dict(facts)
    sizes = _sizes(release)
    out.result = {
        "kind": "release",
        "statement": release.statement(),
        "private": release.private,
        "epsilon": release.epsilon,
        "delta": release.delta,
        "recomputed_epsilon": recomputed,
        "features": sizes,
        "schema": facts,
        "bytes": path.stat().st_size,
    }
    out.say(f"{path}: {release.statement()}")
    if release.private:
        out.say(f"Checked: what it records of its noise gives epsilon = {recomputed:.6g}.\n")
    out.table(("of the release", ""), list(sizes.items()))
    if isinstance(release, Release) and release.earlier:
        out.say("")
        rows = [(entry.mechanism, entry.epsilon, entry.delta) for entry in release.earlier]
        out.table(("learned before, part of the promise", "epsilon", "delta"), rows)
    if schema is not None:
        out.say("")
        show_columns(out, schema)


def _sizes(release: Release | SlicingRelease) -> dict[str, Any]:
    """What is released, in numbers that are public."""
    from skdpgen.privacy.slicing_release import SlicingRelease

    if isinstance(release, SlicingRelease):
        return {
            "kind": "noisy rows",
            "rows": release.n_rows,
            "slices": release.n_slices,
            "dimension of a slice": release.slice_dim,
        }
    spec = release.spec
    return {
        "kind": release.public.get("feature_map", {}).get("kind", "gaussian"),
        "numbers of a class": spec.width,
        "classes": spec.n_classes,
        "adjacency": release.adjacency,
        "unit of privacy": release.unit,
        "rows of a unit at most": release.rows_per_unit,
        "rows": "private" if release.n_rows is None else release.n_rows,
        "noise, in rows": release.noise_stddev / 2**spec.lattice_bits,
    }


def _model(out: Output, model: Any) -> None:
    settings = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name in model.post_processing_parameters
    }
    out.result["kind"] = "model"
    out.result["settings"] = {
        name: value if value is None or isinstance(value, str | int | float) else repr(value)
        for name, value in settings.items()
    }
    out.result["steps"] = len(model.loss_curve_)
    out.say("")
    rows = [(name, value) for name, value in out.result["settings"].items()]
    out.table(("setting of the training", ""), [*rows, ("steps done", len(model.loss_curve_))])
