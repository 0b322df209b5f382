import io
import json
import sys
import warnings

import click
import numpy as np
from click.testing import CliRunner

from skdpgen.cli._output import Output, plain, with_output
from skdpgen.exceptions import PrivacyWarning
from skdpgen.training.progress import Progress


@click.command()
@with_output
def speaking(out):
    out.say("a line")
    out.note("a remark")
    out.table(("name", "value"), [("a", 1.23456), ("long name", None)], title="A table")
    warnings.warn("a privacy\nwarning", PrivacyWarning, stacklevel=1)
    warnings.warn("of others: CANARY", RuntimeWarning, stacklevel=1)
    out.result = {"value": float("nan"), "array": [np.int64(3)]}


def test_results_and_remarks_are_apart():
    result = CliRunner().invoke(speaking, [])
    assert result.stdout.splitlines() == [
        "a line",
        "A table",
        "name       value",
        "a          1.235",
        "long name",
    ]
    assert result.stderr.splitlines() == ["a remark", "warning: a privacy warning"]


def test_quiet():
    result = CliRunner().invoke(speaking, ["--quiet"])
    assert result.output == ""


def test_json_is_one_object_and_nothing_else():
    result = CliRunner().invoke(speaking, ["--json", "-q"])
    assert json.loads(result.stdout) == {"value": None, "array": [3]}
    assert result.stderr == ""


def test_an_error_is_json_too():
    @click.command()
    @with_output
    def failing(out):
        raise FileNotFoundError(2, "No such file", "a.csv")

    result = CliRunner().invoke(failing, ["--json"])
    assert json.loads(result.stdout) == {"error": "a.csv: No such file", "status": 1}


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


def terminals(monkeypatch):
    """Standard output and standard error, both a terminal."""
    found = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", found[0])
    monkeypatch.setattr(sys, "stderr", found[1])
    monkeypatch.setenv("TERM", "xterm")
    return found


def test_on_a_terminal_tables_are_drawn(monkeypatch):
    out, _ = terminals(monkeypatch)
    Output(False, False).table(("name",), [("[bold]",)], title="A table")
    assert "[bold]" in out.getvalue()
    assert "─" in out.getvalue()


def test_on_a_terminal_trainings_have_a_progress_bar(monkeypatch):
    out, err = terminals(monkeypatch)
    with Output(False, False).training("Training", n_trainings=2):
        for _ in range(2):
            progress = Progress(4)
            progress.step(1.0)
            progress.end()
    with Output(False, False).waiting("Reading"):
        pass
    assert "Training" in err.getvalue()
    assert out.getvalue() == ""


def test_quiet_shows_no_progress(monkeypatch):
    _, err = terminals(monkeypatch)
    with Output(False, True).training("Training"), Output(False, True).waiting("Reading"):
        pass
    assert err.getvalue() == ""


def test_plain():
    assert plain({1: (np.float64("inf"), np.bool_(True), {"a": "b"})}) == {
        "1": [None, True, {"a": "b"}]
    }
