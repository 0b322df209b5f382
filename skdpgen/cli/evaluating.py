"""``evaluate``, ``report`` and ``demo``: what a synthetic table is worth."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._errors import CommandError
from ._files import check_output, existing, force_option, output
from ._held_out import recorded
from ._output import Output, with_output
from .schemas import read_schema

if TYPE_CHECKING:
    import pandas as pd

    from skdpgen.data.schema import Schema
    from skdpgen.evaluation import PrivacyCheck

__all__ = ["demo", "evaluate", "report"]

_NO_TEST = (
    "No model is scored: that takes real rows that the release has not seen. Leave some out by "
    "fit --hold-out 0.2, or give --test."
)


def _tables(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name real rows and what is known of the columns."""
    for option in (
        click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn."),
        click.option(
            "--estimators",
            type=click.Choice(["fast", "paper"]),
            default="fast",
            show_default=True,
            help="Three models, or the twelve of the DP-MERF paper.",
        ),
        click.option("--target", metavar="COLUMN", help="To predict; that of the schema."),
        click.option(
            "--schema", "schema_file", type=existing, help="Columns; those of the release if none."
        ),
        click.option("--release", "release_file", type=existing, help="What SYNTHETIC is made of."),
        click.option("--test", type=existing, help="Private rows that the release has not seen."),
        click.option("--real", type=existing, help="Private rows that the release was made from."),
    ):
        command = option(command)
    return command


@click.command(short_help="Compare a synthetic table with real rows.")
@click.argument("synthetic", type=existing)
@_tables
@with_output
def evaluate(
    out: Output,
    synthetic: Path,
    real: Path | None,
    test: Path | None,
    release_file: Path | None,
    schema_file: Path | None,
    target: str | None,
    estimators: str,
    seed: int,
) -> None:
    """Compare a SYNTHETIC table with real rows. Not private: no epsilon covers what it says.

    Models are scored on --test, or on rows of --real that `fit --hold-out` left out.
    """
    if real is None and test is None:
        raise click.UsageError("give --real, --test or both.")
    tables = _Tables(synthetic, real, test, release_file, schema_file)

    from skdpgen.evaluation import fidelity, tstr

    wanted = target if target is not None else tables.schema.target
    scores = None
    if tables.test is not None and wanted is not None:
        with out.waiting("Training models"):
            scores = tstr(
                tables.synthetic,
                tables.test,
                wanted,
                tables.real,
                estimators,
                schema=tables.schema,
                random_state=seed,
            )
    with out.waiting("Comparing"):
        compared = tables.real if tables.real is not None else tables.test
        found = fidelity(tables.synthetic, compared, schema=tables.schema, random_state=seed)
    copies = tables.copies(out, seed)
    out.result = {
        "private": False,
        "tstr": None if scores is None else scores.to_dict(),
        "fidelity": found.to_dict(),
        "copies": None if copies is None else copies.copies.to_dict(),
    }
    if scores is not None:
        table = scores.table().reset_index()
        title = f"Predicting {scores.target} on real rows, after training on ..."
        rows = [tuple(row) for row in table.itertuples(index=False)]
        out.table(tuple(map(str, table.columns)), rows, title)
        out.say(scores.reads)
        out.say("")
    elif wanted is not None:
        out.note(_NO_TEST)
    summary = found.summary[["order", "binning", "mean", "worst", "worst_columns"]]
    rows = [
        (*row[:-1], ", ".join(map(str, row[-1])) if isinstance(row[-1], tuple) else row[-1])
        for row in summary.itertuples(index=False)
    ]
    head = ("columns at once", "bins", "mean", "worst", "worst columns")
    out.table(head, rows, "Distance of shares, 0 (the same) to 1")
    kept = found.dependence_kept
    known = f"{kept:.0%}" if kept == kept else f"not measured, {found.dependence_note}"
    out.say(f"Dependence kept: {known}. {found.reads}")
    if copies is not None:
        out.say(copies.summary())


@click.command(short_help="Write a page: is the table any good?")
@click.argument("synthetic", type=existing)
@click.option("-o", "--output", "target_file", type=output, required=True, help="HTML to write.")
@click.option("--ledger", "ledger_file", type=existing, help="All that was spent on these rows.")
@click.option("--publishable", is_flag=True, help="Leave out all that takes private rows.")
@click.option("--title", help="Of the page.")
@_tables
@force_option
@with_output
def report(
    out: Output,
    synthetic: Path,
    target_file: Path,
    ledger_file: Path | None,
    publishable: bool,
    title: str | None,
    real: Path | None,
    test: Path | None,
    release_file: Path | None,
    schema_file: Path | None,
    target: str | None,
    estimators: str,
    seed: int,
    force: bool,
) -> None:
    """Write one page on a SYNTHETIC table: whether it is good, and what was promised.

    With --real or --test the page holds exact figures of private rows: keep it as you keep these.
    --publishable makes a page without them.
    """
    if publishable and (real is not None or test is not None):
        raise click.UsageError("--publishable takes neither --real nor --test.")
    inputs = [synthetic, real, test, release_file, schema_file, ledger_file]
    check_output(target_file, force=force, inputs=inputs)
    tables = _Tables(synthetic, real, test, release_file, schema_file)

    from skdpgen.privacy.ledger import PrivacyLedger
    from skdpgen.reporting import report as make_report

    copies = tables.copies(out, seed)
    with out.waiting("Measuring"):
        page = make_report(
            tables.synthetic,
            release=tables.release,
            ledger=None if ledger_file is None else PrivacyLedger(path=ledger_file),
            real=tables.real,
            test=tables.test,
            target=target,
            schema=tables.schema,
            privacy_check=copies,
            estimators=estimators,
            publishable=publishable,
            title=title,
            random_state=seed,
        )
    page.save(target_file)
    if tables.real is not None and tables.test is None:
        out.note(_NO_TEST)
    out.result = {"report": target_file, **page.to_dict()}
    out.say(str(page.verdict))
    out.say(f"{target_file}: open it in a browser.")
    if not publishable and (real is not None or test is not None):
        out.note("It holds exact figures of private rows: not for publication.")


@click.command(short_help="Make data that come along synthetic.")
@click.option(
    "-o", "--output", "target", type=output, default=Path("fair_synthetic.csv"), show_default=True
)
@with_output
def demo(out: Output, target: Path) -> None:
    """A private table in, a synthetic table out, on data that come along."""
    from skdpgen.demo import main as run

    text = StringIO()
    with redirect_stdout(text):
        run(["--output", str(target)])
    out.result = {"output": target, "text": text.getvalue()}
    out.say(text.getvalue().rstrip())


class _Tables:
    """The tables that an evaluation reads, converted by one schema."""

    def __init__(
        self,
        synthetic: Path,
        real: Path | None,
        test: Path | None,
        release_file: Path | None,
        schema_file: Path | None,
    ) -> None:
        from skdpgen.data.files import read_table
        from skdpgen.synthesizers import load_release

        self.release = None if release_file is None else load_release(release_file)
        self.schema = self._schema(schema_file)
        self.synthetic = read_table(synthetic, self.schema)
        self.real = None if real is None else read_table(real, self.schema)
        self.test: pd.DataFrame | None = None if test is None else read_table(test, self.schema)
        if self.real is not None and self.test is None:
            left_out = recorded(self.release, len(self.real))
            if left_out is not None:
                self.test = self.real[left_out].reset_index(drop=True)
                self.real = self.real[~left_out].reset_index(drop=True)

    def copies(self, out: Output, seed: int) -> PrivacyCheck | None:
        """Whether rows were copied: that takes rows that the release was made from, and others."""
        if self.real is None or self.test is None:
            return None
        from skdpgen.evaluation import privacy_check

        with out.waiting("Looking for copies"):
            return privacy_check(
                self.synthetic, self.real, self.test, schema=self.schema, random_state=seed
            )

    def _schema(self, path: Path | None) -> Schema:
        from skdpgen.data.schema import Schema

        if path is not None:
            return read_schema(path)
        facts = None if self.release is None else self.release.public.get("schema")
        if facts is None:
            raise CommandError("give --schema, or --release: its schema says what columns hold.")
        return Schema.from_dict(facts)
