import click
import pytest
from click.testing import CliRunner

from skdpgen.cli._errors import CommandError, describe
from skdpgen.cli._output import with_output
from skdpgen.exceptions import BudgetExceededError, InputError


@pytest.mark.parametrize(
    ("error", "message", "status"),
    [
        (InputError("column 'a'\n is wrong."), "column 'a' is wrong.", 1),
        (BudgetExceededError("no."), "no.", 3),
        (CommandError("spent.", 4), "spent.", 4),
        (FileNotFoundError(2, "No such file", "a.csv"), "a.csv: No such file", 1),
        (MemoryError("CANARY"), "there is not enough memory", 1),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_known_errors(error, message, status):
    assert describe(error) == (message, status)


@pytest.mark.parametrize("kind", [ValueError, KeyError, OSError, RuntimeError, AssertionError])
def test_of_unexpected_errors_only_the_class_is_named(kind):
    message, status = describe(kind("cell 'CANARY'"))
    assert status == 1
    assert kind.__name__ in message
    assert "CANARY" not in message


@click.command()
@with_output
def failing(out):
    raise ValueError("cell 'CANARY'")


def test_an_unexpected_error_shows_no_traceback(monkeypatch):
    monkeypatch.delenv("SKDPGEN_TRACEBACK", raising=False)
    for options in ([], ["--json"]):
        result = CliRunner().invoke(failing, options)
        assert result.exit_code == 1
        assert "CANARY" not in result.output
        assert len(result.stderr.splitlines()) == 1


def test_developers_can_ask_for_it(monkeypatch):
    monkeypatch.setenv("SKDPGEN_TRACEBACK", "1")
    result = CliRunner().invoke(failing, [])
    assert "Traceback" in result.stderr
    assert "CANARY" in result.stderr
