"""``skdpgen fit``, the one command that reads private rows and pays for it, and ``split``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._errors import AFTER_THE_CHARGE, CommandError, describe
from ._files import check_output, existing, force_option, output
from ._held_out import held_out, with_record, without_record
from ._output import Output, with_output
from .schemas import misfits, read_schema

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from skdpgen.privacy.ledger import PrivacyLedger
    from skdpgen.privacy.release import Release
    from skdpgen.privacy.slicing_release import SlicingRelease

__all__ = ["fit", "ledger", "split"]

_METHODS = {
    "dpmerf": "DPMERFSynthesizer",
    "slices": "SlicedFDivSynthesizer",
    "rows": "SlicedRowsSynthesizer",
}
# Options that not every method has.
_ONLY = {
    "n_rows_hint": ("dpmerf",),
    "adjacency": ("dpmerf", "slices"),
    "rows_per_unit": ("dpmerf", "slices"),
    "domain_budget": ("dpmerf", "slices"),
}


@click.command(short_help="Make one noisy release of private rows.")
@click.argument("data", type=existing)
@click.option(
    "--schema", "schema_file", type=existing, required=True, help="What is public of DATA."
)
@click.option("--epsilon", type=float, required=True, help="Privacy budget; smaller is stricter.")
@click.option(
    "--delta", type=float, required=True, help="Well below one over the number of rows, as 1e-6."
)
@click.option("-o", "--output", "target", type=output, required=True, help="Release to write.")
@click.option(
    "--method",
    type=click.Choice(list(_METHODS)),
    default="dpmerf",
    show_default=True,
    help="Random features, histograms of slices, or noisy projections of every row.",
)
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove"]),
    help="What changes between two tables that can't be told apart: one row is replaced (the "
    "default; the number of rows is public), or one is added or removed (it is private).",
)
@click.option("--unit", metavar="COLUMN", help="Protect all rows with the same value here.")
@click.option(
    "--rows-per-unit", type=int, metavar="K", help="Rows that one unit contributes at most."
)
@click.option(
    "--domain-budget",
    metavar="SHARE",
    help="Part of the budget that learns bounds and values that the schema leaves open "
    '(0.1; "none" refuses such columns).',
)
@click.option("--n-rows-hint", type=int, help="About how many rows; public. For add-remove.")
@click.option("--ledger", "ledger_file", type=output, help="File where the spend is recorded.")
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 1, True, True),
    metavar="SHARE",
    help="Leave a share of the rows out, for `report` to judge with.",
)
@click.option("--seed", type=int, help="Seeds what is public (frequencies), never the noise.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column of DATA to leave out.")
@force_option
@with_output
def fit(
    out: Output,
    data: Path,
    schema_file: Path,
    epsilon: float,
    delta: float,
    target: Path,
    method: str,
    unit: str | None,
    ledger_file: Path | None,
    hold_out: float | None,
    seed: int | None,
    drop: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Make one noisy release of the rows of DATA: all that is ever learned from them.

    Everything is checked first, then the budget is charged to the ledger, then rows are read. The
    release can be published; `sample` makes synthetic tables of it, as many as you like.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if method not in _ONLY[name]:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} can't be used with --method {method}.")
    if unit is not None and ("rows_per_unit" not in given):
        raise click.UsageError("--unit needs --rows-per-unit: how many rows of a unit may count.")
    if hold_out is not None and (unit is not None or given.get("adjacency") == "add-remove"):
        raise click.UsageError(
            "--hold-out needs a public number of rows: with --unit or --adjacency add-remove use "
            "`skdpgen split` before, and fit on one part."
        )
    if "domain_budget" in given:
        given["domain_budget"] = _share(given["domain_budget"])
    check_output(target, force=force, inputs=[data, schema_file, ledger_file])

    import skdpgen
    from skdpgen.data.files import read_structure, scan_table
    from skdpgen.privacy.ledger import PrivacyLedger

    schema = read_schema(schema_file)
    names = list(read_structure(data).columns)
    # A unit that the schema doesn't know tells rows apart, and is no column of the release.
    left_out = {*drop, *([] if unit is None or unit in schema.columns else [unit])}
    for column, problem, advice in misfits(schema, data, [*left_out]):
        what = f"column {column!r} is {problem}" if column else problem
        raise CommandError(f"{what}: {advice}. See: skdpgen schema check {schema_file} {data}")
    rows = None
    # A schema may come from a release, and then says which rows that one left out.
    schema = without_record(schema)
    if hold_out is not None:
        schema = with_record(schema, hold_out, seed or 0)
        rows = partial(_rows_to_fit, share=hold_out, seed=seed or 0)
    table = scan_table(data, schema, columns=[n for n in names if n not in left_out], rows=rows)
    units = {}
    if unit is not None:
        units["unit_id"] = scan_table(data, columns=[unit])
    ledger = PrivacyLedger(path=ledger_file) if ledger_file else PrivacyLedger()
    synthesizer = getattr(skdpgen, _METHODS[method])(
        epsilon, delta, schema=schema, ledger=ledger, random_state=seed, **given
    )
    with _spending(ledger, ledger_file):
        with out.waiting("Reading rows and adding noise"):
            release = synthesizer.make_release(table, **units)
        _save(release, target)
    out.result = {
        "release": target,
        "epsilon": epsilon,
        "delta": delta,
        "method": method,
        "statement": release.statement(),
        "ledger": ledger_file,
    }
    out.say(f"{target}: {release.statement()}")
    if ledger_file is not None:
        out.result["ledger_statement"] = ledger.statement()
        out.say(f"{ledger_file}: {ledger.statement()}")
    out.say(f"Synthetic tables of it are free: skdpgen sample {target} -o synthetic.csv")


def _rows_to_fit(n_rows: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    import numpy as np

    return np.flatnonzero(~held_out(n_rows, share, seed))


def _share(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise click.UsageError('--domain-budget must be a number, or "none".') from None


@contextmanager
def _spending(ledger: PrivacyLedger, path: Path | None) -> Iterator[None]:
    """Say of an error whether the budget was charged before."""
    before = len(ledger.entries)
    try:
        yield
    except BaseException as error:
        if isinstance(error, CommandError) or len(ledger.entries) == before:
            raise
        message, status = describe(error)
        record = f"{path} has recorded the spend" if path else "count the budget as spent"
        raise CommandError(
            f"{message.rstrip('.')}. Nothing was released, but rows may have been read: {record}.",
            AFTER_THE_CHARGE if status < 128 else status,
        ) from error


def _save(release: Release | SlicingRelease, target: Path) -> None:
    """Write the release where it shall go, or else anywhere: it can't be made again for free."""
    try:
        release.save(target)
    except OSError as error:
        with tempfile.NamedTemporaryFile(
            prefix=f"{target.stem}-", suffix=".release", delete=False
        ) as file:
            rescued = file.name
        release.save(rescued)
        raise CommandError(
            f"{target} can't be written ({error.strerror}); the release is in {rescued} instead"
        ) from None


@click.command(short_help="Put private rows aside, to judge with.")
@click.argument("data", type=existing)
@click.option(
    "--test",
    "share",
    type=click.FloatRange(0, 1, True, True),
    default=0.2,
    show_default=True,
    help="Share to put aside.",
)
@click.option("--seed", type=int, help="The same split every time; as secret as the rows are.")
@click.option("--unit", metavar="COLUMN", help="Keep rows with the same value here together.")
@click.option("--train-output", type=output, required=True, help="Rows to fit on.")
@click.option("--test-output", type=output, required=True, help="Rows to judge with.")
@force_option
@with_output
def split(
    out: Output,
    data: Path,
    share: float,
    seed: int | None,
    unit: str | None,
    train_output: Path,
    test_output: Path,
    force: bool,
) -> None:
    """Put a share of the rows aside, to judge with what `fit` has never seen.

    Every row, or all rows of a unit, by a toss of a coin. Both parts are as private as DATA.
    """
    if train_output.resolve() == test_output.resolve():
        raise click.UsageError("the two outputs need different names.")
    for target in (train_output, test_output):
        check_output(target, force=force, inputs=[data])

    import numpy as np

    from skdpgen.data.files import read_table, write_table

    table = read_table(data)
    if unit is not None and unit not in table.columns:
        raise CommandError(f"--unit {unit}: the data have no such column.")
    # Rows that belong together have one number.
    together = np.arange(len(table)) if unit is None else table[unit].factorize(False, False)[0]
    # Each by a coin of its own, so that one who comes or goes moves nobody else to the other part:
    # what is promised of releases of one part is true of all rows then. A share drawn of the whole,
    # or coins that somebody knows beside the order of rows, would move others.
    coins = np.random.default_rng(seed).random(int(together.max(initial=-1)) + 1)
    test = (coins < share)[together]
    write_table(table[test], test_output)
    write_table(table[~test], train_output)
    out.result = {"train": train_output, "test": test_output, "share": share, "seed": seed}
    out.say(f"{train_output} to fit on, {test_output} to judge with.")


@click.command()
@click.argument("path", metavar="LEDGER", type=output)
@click.option("--epsilon", type=float, required=True, help="Most that all releases may spend.")
@click.option("--delta", type=float, required=True, help="The delta of this cap.")
@click.option(
    "--adjacency",
    type=click.Choice(["replace-one", "add-remove"]),
    help="Of the cap; that of the first release if not given.",
)
@with_output
def ledger(out: Output, path: Path, epsilon: float, delta: float, adjacency: Any) -> None:
    """Start a ledger with a cap: `fit --ledger` is refused beyond it.

    A ledger without a cap needs no start: `fit --ledger` makes one. `inspect` shows what was spent.
    """
    if path.exists():
        raise CommandError(f"{path} exists; a ledger isn't started twice.")
    from skdpgen.privacy.ledger import PrivacyLedger

    made = PrivacyLedger(epsilon, delta, adjacency=adjacency, path=path)
    out.result = {"ledger": path, "epsilon": made.epsilon, "delta": made.delta}
    out.say(f"{path}: all releases together may spend epsilon = {epsilon:g} at delta = {delta:g}.")
