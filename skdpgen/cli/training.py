"""``sample``, ``retrain`` and ``search``: work on a release, free of privacy cost."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from ._errors import CommandError
from ._files import check_output, existing, force_option, output
from ._output import Output, with_output

__all__ = ["retrain", "sample", "search"]


@click.command(short_help="Make a synthetic table.")
@click.argument("source", metavar="RELEASE|MODEL", type=existing)
@click.option("-n", "n_rows", type=click.IntRange(min=0), help="Rows; as many as were released of.")
@click.option("-o", "--output", "target", type=output, required=True, help="Table to write.")
@click.option("--seed", type=int, help="The same rows every time; seeds the training too.")
@click.option("--balanced", is_flag=True, help="Equal shares of all labels.")
@click.option(
    "--label", "labels", multiple=True, metavar="VALUE=SHARE", help="Share of a label; repeat it."
)
@force_option
@with_output
def sample(
    out: Output,
    source: Path,
    n_rows: int | None,
    target: Path,
    seed: int | None,
    balanced: bool,
    labels: tuple[str, ...],
    force: bool,
) -> None:
    """Make a synthetic table: CSV, Parquet or Arrow, by the name of the output.

    A release is trained on first, with default settings; a model (see `retrain`) is not.
    """
    if balanced and labels:
        raise click.UsageError("use either --balanced or --label.")
    shares = dict(_pair("--label", text, _share) for text in labels)
    check_output(target, force=force, inputs=[source])

    from skdpgen.data.files import write_table

    synthesizer = _trained(out, source, seed)
    y: Any = "balanced" if balanced else _shares(synthesizer, shares) if shares else None
    if n_rows is None:
        release = synthesizer.release_
        # Private under add-remove: the noisy total then.
        n_rows = round(getattr(release, "row_count", 0) or release.n_rows)
    with out.waiting("Sampling"):
        table = synthesizer.sample(n_rows, random_state=seed, y=y)
        write_table(table, target, synthesizer.schema_)
    out.result = {"output": target, "rows": len(table), "columns": list(table.columns)}
    out.say(f"{target}: {len(table)} synthetic row{'' if len(table) == 1 else 's'}.")


@click.command(short_help="Train on a release and keep the model.")
@click.argument("release", type=existing)
@click.option("-o", "--output", "target", type=output, required=True, help="Model to write.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Setting of the training."
)
@click.option("--seed", type=int, help="Seeds the training.")
@force_option
@with_output
def retrain(
    out: Output,
    release: Path,
    target: Path,
    settings: tuple[str, ...],
    seed: int | None,
    force: bool,
) -> None:
    """Train on a RELEASE and keep the model, from which `sample` needs no training.

    For example: --set n_steps=500 --set generator__n_components=100
    """
    params = dict(_pair("--set", text, _value) for text in settings)
    check_output(target, force=force, inputs=[release])

    from skdpgen.synthesizers import save_model

    synthesizer = _trained(out, release, seed, params)
    save_model(synthesizer, target)
    _tell(out, target, synthesizer, params)


@click.command(short_help="Try settings on a release, free of cost.")
@click.argument("release", type=existing)
@click.option("-o", "--output", "target", type=output, required=True, help="Best model.")
@click.option(
    "--grid", multiple=True, required=True, metavar="NAME=V1,V2,...", help="Values to try."
)
@click.option(
    "--cv", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seeds folds and trainings.")
@force_option
@with_output
def search(
    out: Output,
    release: Path,
    target: Path,
    grid: tuple[str, ...],
    cv: int,
    seed: int,
    force: bool,
) -> None:
    """Try settings on a RELEASE and keep the best model; free of cost, for no row is read.

    For example: --grid learning_rate=0.03,0.1 --grid n_steps=500,2000
    """
    space = dict(_pair("--grid", text, _values) for text in grid)
    check_output(target, force=force, inputs=[release])

    from skdpgen.model_selection import ReleaseSearchCV
    from skdpgen.synthesizers import save_model, synthesizer_class

    found = _release(release)
    estimator = synthesizer_class(found)(
        found.epsilon, found.delta, random_state=seed, **_generator_for(space)
    )
    n_trainings = 1 + cv * math.prod(map(len, space.values()))
    with out.training("Searching", n_trainings):
        best = ReleaseSearchCV(estimator, space, cv=cv, random_state=seed, error_score="raise")
        best.fit_release(found)
    save_model(best.best_estimator_, target)
    results = best.cv_results_
    rows = [
        (*(params[name] for name in space), -score, error)
        for params, score, error in zip(
            results["params"], results["mean_test_score"], results["sem_test_score"], strict=True
        )
    ]
    rows.sort(key=lambda row: row[-2])
    out.table((*space, "error", "standard error"), rows)
    out.result = {
        "model": target,
        "best": best.best_params_,
        "candidates": [
            dict(zip((*space, "error", "standard_error"), r, strict=True)) for r in rows
        ],
    }
    chosen = ", ".join(f"{name}={value}" for name, value in best.best_params_.items())
    out.say(f"{target}: {chosen}. Sample it: skdpgen sample {target} -o synthetic.csv")


def _tell(out: Output, target: Path, synthesizer: Any, params: Mapping[str, Any]) -> None:
    loss = float(synthesizer.loss_curve_[-1]) if len(synthesizer.loss_curve_) else None
    out.result = {
        "model": target,
        "settings": dict(params),
        "steps": len(synthesizer.loss_curve_),
        "loss": loss,
    }
    out.say(
        f"{target}: trained for {len(synthesizer.loss_curve_)} steps. Sample it: "
        f"skdpgen sample {target} -o synthetic.csv"
    )


def _release(path: Path) -> Any:
    from skdpgen.synthesizers import load_release

    return load_release(path)


def _trained(
    out: Output, source: Path, seed: int | None, params: Mapping[str, Any] | None = None
) -> Any:
    """A synthesizer from a model, or trained on a release."""
    from skdpgen.synthesizers import is_model, load_model, synthesizer_class

    if is_model(source):
        if params is not None:
            raise CommandError(f"{source} is a model; training takes a release.")
        return load_model(source)
    release = _release(source)
    kind = synthesizer_class(release)
    # Names of other arguments, such as the release itself, are no settings either.
    for name in params or ():
        if name.partition("__")[0] not in kind.post_processing_parameters:
            raise CommandError(
                f"{name!r} isn't a post-processing parameter, and only those can be set for a "
                f"release: {', '.join(kind.post_processing_parameters)}."
            )
    settings = {"random_state": seed, **(params or {})}
    settings.update(_generator_for(settings))
    # With verbose=1 a training prints; results alone belong on standard output.
    with out.training("Training"), redirect_stdout(sys.stderr):
        return kind.from_release(release, **settings)


def _pair(option: str, text: str, read: Any) -> tuple[str, Any]:
    name, equals, value = text.rpartition("=") if option == "--label" else text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option} {text!r} needs the form NAME=VALUE.")
    try:
        return name, read(value)
    except ValueError:
        raise click.UsageError(f"{option} {text!r}: the value can't be read.") from None


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share < math.inf:
        raise ValueError
    return share


def _shares(synthesizer: Any, shares: Mapping[str, float]) -> dict[Any, float]:
    """Shares by label: as the schema writes it, which may be a number."""
    if not hasattr(synthesizer, "classes_"):
        raise CommandError("--label needs a target with listed values, which this release lacks.")
    classes = {str(label): label for label in synthesizer.classes_.tolist()}
    unknown = next((text for text in shares if text not in classes), None)
    if unknown is not None:
        raise CommandError(f"{unknown!r} is not a label; there are {', '.join(classes)}.")
    return {classes[text]: share for text, share in shares.items()}


def _value(text: str) -> Any:
    """A number, true, false or null as in JSON; anything else is a text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, dict | list) else value


def _values(text: str) -> list[Any]:
    return [_value(part.strip()) for part in text.split(",")]


def _generator_for(names: Iterable[str]) -> dict[str, Any]:
    """A generator with parameters of its own, where one of them is set."""
    prefix = "generator__"
    nested = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    if not nested:
        return {}
    from skdpgen.generators import MixtureGenerator

    generator = MixtureGenerator()
    known = generator.get_params()
    unknown = next((name for name in nested if name not in known), None)
    if unknown is not None:
        raise CommandError(
            f"the generator has no parameter {unknown!r}; it has {', '.join(sorted(known))}."
        )
    return {"generator": generator}
