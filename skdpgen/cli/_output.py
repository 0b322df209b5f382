"""What a command says: results on standard output, everything else on standard error."""

from __future__ import annotations

import functools
import json
import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from skdpgen.exceptions import SkdpgenWarning

from ._errors import describe, wants_traceback

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Output", "plain", "with_output"]


class Output:
    """Where a command puts its results.

    Parameters
    ----------
    as_json : bool
        One JSON object on standard output and nothing else there.
    quiet : bool
        Nothing but errors and what was asked for by ``as_json``.
    """

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self.result: dict[str, Any] = {}

    # -- results ----------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A line for people."""
        if not (self._quiet or self._as_json):
            click.echo(text)

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None
    ) -> None:
        """A table for people: drawn on a terminal, aligned by spaces elsewhere."""
        if self._quiet or self._as_json or not rows:
            return
        cells = [[_cell(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            from rich.box import SIMPLE_HEAD
            from rich.table import Table
            from rich.text import Text

            drawn = Table(*head, title=title, title_justify="left", box=SIMPLE_HEAD)
            for row in cells:
                drawn.add_row(*map(Text, row))
            self._console(stderr=False).print(drawn)
            return
        if title:
            click.echo(title)
        columns = list(zip(head, *cells, strict=True))
        widths = [max(map(len, column)) for column in columns]
        for row in (list(head), *cells):
            line = "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
            click.echo(line.rstrip())

    def flush(self) -> None:
        """Write the JSON object, if it was asked for."""
        if self._as_json:
            click.echo(json.dumps(plain(self.result), allow_nan=False, ensure_ascii=False))

    def note(self, text: str) -> None:
        """A remark on standard error."""
        if not self._quiet:
            click.echo(text, err=True)

    def error(self, message: str, status: int) -> None:
        """What went wrong, on standard error, and as JSON if that was asked for."""
        click.echo(f"error: {message}", err=True)
        if self._as_json:
            click.echo(json.dumps({"error": message, "status": status}, ensure_ascii=False))

    # -- progress ---------------------------------------------------------------------------------

    @property
    def _shows_progress(self) -> bool:
        return not self._quiet and sys.stderr.isatty()

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """A sign of life on a terminal while something runs."""
        if not self._shows_progress:
            yield
            return
        with self._console(stderr=True).status(text):
            yield

    @contextmanager
    def training(self, text: str, n_trainings: int = 1) -> Iterator[None]:
        """A progress bar on a terminal for the trainings that run inside."""
        if not self._shows_progress:
            yield
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from skdpgen.training.progress import watching

        columns = (TextColumn(text), BarColumn(), TimeRemainingColumn(compact=True))
        with Progress(*columns, console=self._console(stderr=True), transient=True) as bar:
            task = bar.add_task(text, total=n_trainings)
            done = 0

            def listen(step: int, n_steps: int, loss: float) -> None:
                nonlocal done
                bar.update(task, completed=done + step / n_steps)
                done += step == n_steps

            with watching(listen):
                yield

    @staticmethod
    def _console(*, stderr: bool) -> Console:
        from rich.console import Console

        return Console(stderr=stderr, highlight=False, soft_wrap=False)


def with_output(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--json`` and ``--quiet``, an :class:`Output`, and errors of one line."""

    @click.option("--json", "as_json", is_flag=True, help="Write one JSON object, nothing else.")
    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
    @functools.wraps(function)
    def run(*args: Any, as_json: bool, quiet: bool, **options: Any) -> None:
        out = Output(as_json, quiet)
        try:
            with _warnings_to(out):
                function(out, *args, **options)
            out.flush()
        except (click.exceptions.Exit, click.ClickException, BrokenPipeError):
            raise
        except BaseException as error:
            if wants_traceback():
                traceback.print_exc()
            message, status = describe(error)
            out.error(message, status)
            raise click.exceptions.Exit(status) from None

    return run


@contextmanager
def _warnings_to(out: Output) -> Iterator[None]:
    """Show warnings of skdpgen as one line; those of others may quote cells."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, SkdpgenWarning):
            out.note(f"warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def plain(value: Any) -> Any:
    """What JSON can hold: no NaN, no infinity, no numpy."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def _cell(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return "" if math.isnan(cell) else f"{cell:.4g}"
    return str(cell)
