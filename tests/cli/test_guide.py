"""The commands of the guide page run, in order, and say what it shows."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from skdpgen.cli import main
from skdpgen.data import write_table
from skdpgen.datasets import load_fair

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "command_line.rst"


def blocks(language):
    """Code blocks of the page."""
    found = re.findall(
        rf"^\.\. code-block:: {language}\n((?:   .*\n|\n)+)", PAGE.read_text(), re.MULTILINE
    )
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in found]


def commands():
    """Each command of the page and what it is said to print."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block.strip() + "\n", flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield command, expected


@pytest.fixture
def _women(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(load_fair()[0], "women.csv")
    (schema,) = blocks("json")
    Path("women.json").write_text(schema.partition("women.json\n")[2])


@pytest.mark.usefixtures("_women")
def test_the_commands_of_the_guide_do_what_it_shows():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    seen = set()
    for command, expected in commands():
        program, *arguments = shlex.split(command)
        assert program == "skdpgen"
        seen.add(arguments[0])
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == (3 if expected.startswith("error: ") else 0), result.output
        got = result.stdout or result.stderr
        assert doctest.OutputChecker().check_output(expected, got, flags), (command, got)
    assert seen == set(main.commands) - {"demo"}
