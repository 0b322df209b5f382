import json
import os
import subprocess
import sys

import pytest

COMMANDS = [
    "schema", "split", "fit", "ledger", "sample", "retrain", "search", "inspect", "evaluate",
    "report", "demo",
]  # fmt: skip


def run(*arguments, **options):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "skdpgen", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_help_lists_the_commands_in_the_order_of_use(folder):
    text = folder("--help").stdout
    places = [text.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "Exit status" in text


@pytest.mark.parametrize("command", [*COMMANDS, "schema draft", "schema check"])
def test_every_command_has_help_and_json(folder, command):
    text = folder(*command.split(), "--help").stdout
    if command != "schema":
        assert "--json" in text
        assert "--quiet" in text


def test_help_imports_nothing_heavy():
    heavy = [
        "torch",
        "numpy",
        "pandas",
        "sklearn",
        "scipy",
        "matplotlib",
        "autodp",
        "opendp",
        "rich.table",
    ]
    script = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from skdpgen.cli import main\n"
        "assert CliRunner().invoke(main, ['fit', '--help']).exit_code == 0\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr


def test_version(folder):
    from skdpgen import __version__

    assert folder("--version").stdout.strip() == f"skdpgen, version {__version__}"


def test_wrong_usage_ends_with_2(folder):
    assert "No such command" in folder("nothing", status=2).stderr
    assert "Missing option '--schema'" in folder("fit", folder.data, status=2).stderr


def test_results_of_a_piped_command_are_plain_text_on_standard_output(folder, release):
    done = run("inspect", release)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "(2, 0.0001)-differentially private" in done.stdout
    assert "\x1b" not in done.stdout
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_a_closed_pipe_is_no_error_with_a_traceback(release):
    command = f"{sys.executable} -m skdpgen inspect {release} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr


def test_a_command_needs_no_terminal_and_no_home(folder, model):
    target = folder.path / "synthetic.csv"
    environment = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH")}
    done = run("sample", model, "-n", 3, "-o", target, "--json", env=environment)
    assert json.loads(done.stdout)["rows"] == 3, done.stderr
    assert done.stderr == ""
    assert len(target.read_text().splitlines()) == 4
