import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPMERFSynthesizer, PrivacyLedger, Release, insecure_noise, load_release
from skdpgen.cli import fitting
from skdpgen.data import files
from skdpgen.utils.canaries import findings

from .conftest import SCHEMA


def test_one_release_and_nothing_else(folder):
    found = folder.fit("--json")
    release = Release.load(folder.path / "a.release")
    assert (release.epsilon, release.delta, release.adjacency) == (1.0, 1e-4, "replace-one")
    assert release.n_rows == 300
    assert release.statement() in found.stdout
    assert folder.names == ["a.release", "data.csv", "schema.json"]


def test_the_release_is_that_of_the_typed_table(folder):
    # The same noise-free sums, whether texts are converted or a frame of these dtypes is given.
    with insecure_noise(scale=0):
        folder.fit("--seed", 3)
        frame = pd.read_csv(folder.data, na_values="?")
        synthesizer = DPMERFSynthesizer(1.0, 1e-4, schema=folder.schema, random_state=3)
        expected = synthesizer.make_release(frame)
    found = Release.load(folder.path / "a.release")
    np.testing.assert_array_equal(found.noisy_sums, expected.noisy_sums)


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".feather"])
def test_other_files(folder, ending):
    data = folder.path / f"data{ending}"
    files.write_table(files.read_table(folder.data), data)
    folder.fit(data=data)
    assert Release.load(folder.path / "a.release").n_rows == 300


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--method", "slices"], {"n_rows": 300}),
        (["--adjacency", "add-remove", "--n-rows-hint", 1000], {"n_rows": None}),
        (["--rows-per-unit", 2], {"unit": "unit", "rows_bounded": False}),
        (["--unit", "town", "--rows-per-unit", 2], {"unit": "unit", "rows_bounded": True}),
        (["--drop", "height"], {"n_rows": 300}),
    ],
)
def test_options(folder, options, facts):
    if "--drop" in options:
        folder.schema.write_text(folder.schema.read_text().replace('"height"', '"weight"'))
        folder.data.write_text(folder.data.read_text().replace("height,", "weight,height,", 1))
    folder.fit(*options)
    release = Release.load(folder.path / "a.release")
    assert {name: getattr(release, name) for name in facts} == facts


def test_noisy_rows(folder):
    found = folder.fit("--method", "rows")
    assert "warning: " in found.stderr  # next to nothing can be learned from so few rows
    assert load_release(folder.path / "a.release").n_slices == 50


def test_a_unit_that_the_schema_does_not_know_is_no_column(folder):
    table = files.read_table(folder.data).assign(who=[f"CANARY-{i // 3}" for i in range(300)])
    files.write_table(table, folder.data)
    folder.fit("--unit", "who", "--rows-per-unit", 3)
    release = Release.load(folder.path / "a.release")
    assert release.rows_bounded
    assert "who" not in release.public["schema"]["columns"]
    assert not findings((folder.path / "a.release").read_bytes())


def test_what_is_open_is_learned_with_a_share_of_the_budget(folder):
    open_town = '{"kind": "categorical", "values": null}'
    closed = '{"kind": "categorical", "values": ["Rome", "Oslo", "Bonn"]}'
    folder.schema.write_text(folder.schema.read_text().replace(closed, open_town))
    assert "town" in folder.fit("--domain-budget", "none", status=1).stderr
    folder.fit("--domain-budget", 0.3, epsilon=20)
    release = Release.load(folder.path / "a.release")
    assert [entry.mechanism for entry in release.earlier] == ["private categories"]
    assert set(release.public["schema"]["columns"]["town"]["values"]) == {"Rome", "Oslo", "Bonn"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "rows", "--adjacency", "replace-one"], "can't be used with --method rows"),
        (["--method", "slices", "--n-rows-hint", 9], "--n-rows-hint can't be used"),
        (["--unit", "town"], "--unit needs --rows-per-unit"),
        (["--domain-budget", "much"], "must be a number"),
        (["--hold-out", 0.2, "--adjacency", "add-remove"], "skdpgen split"),
        (["--hold-out", 0.2, "--unit", "town", "--rows-per-unit", 2], "skdpgen split"),
        (["--hold-out", 1], "is not in the range"),
    ],
)
def test_options_that_do_not_fit_each_other(folder, options, message):
    assert message in folder.fit(*options, status=2).stderr


def test_epsilon_and_delta_have_no_defaults(folder):
    common = ("fit", folder.data, "--schema", folder.schema, "-o", folder.path / "a.release")
    assert "Missing option '--epsilon'" in folder(*common, "--delta", 0.1, status=2).stderr
    assert "Missing option '--delta'" in folder(*common, "--epsilon", 1, status=2).stderr


# -- nothing is read before everything is checked and charged --------------------------------------


@pytest.fixture
def unreadable(monkeypatch):
    """Cells of the data can't be read."""

    def fail(cells, column):
        assert not len(cells), "a row was read"
        return text(cells, column)

    text = files.column_of_texts
    monkeypatch.setattr(files, "column_of_texts", fail)


@pytest.mark.parametrize(
    "options",
    [
        ["--epsilon", 0],
        ["--delta", 2],
        ["--rows-per-unit", 0],
        ["--drop", "x"],
        ["--drop", "town"],
        ["--unit", "x", "--rows-per-unit", 2],
        ["--seed", -1],
        ["-o", "no/such/folder/a.release"],
        ["--domain-budget", 0.3, "--n-rows-hint", 0],
    ],
)
def test_whatever_is_wrong_shows_before_a_row_is_read_and_nothing_is_spent(
    folder, options, unreadable
):
    ledger = folder.path / "a.ledger"
    result = folder.fit("--ledger", ledger, *options, status=1)
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert "a.release" not in folder.names
    assert not ledger.exists() or not PrivacyLedger(path=ledger).entries


def test_a_spend_beyond_the_cap_is_refused_before_a_row_is_read(folder, unreadable):
    ledger = folder.path / "a.ledger"
    folder("ledger", ledger, "--epsilon", 0.5, "--delta", 1e-4)
    result = folder.fit("--ledger", ledger, "--json", status=3)
    assert "the cap is 0.5" in result.stderr
    assert '"status": 3' in result.stdout
    assert folder.names == ["a.ledger", "data.csv", "schema.json"]
    assert not PrivacyLedger(path=ledger).entries


def test_units_are_not_read_before_the_charge_either(folder, unreadable):
    ledger = folder.path / "a.ledger"
    folder("ledger", ledger, "--epsilon", 0.5, "--delta", 1e-4)
    folder.fit("--ledger", ledger, "--unit", "town", "--rows-per-unit", 2, status=3)


def test_several_releases_add_up_in_a_ledger(folder):
    ledger = folder.path / "a.ledger"
    folder("ledger", ledger, "--epsilon", 1.2, "--delta", 1e-4)
    folder.fit("--ledger", ledger)
    assert "the cap is 1.2" in folder.fit("--ledger", ledger, "--force", status=3).stderr
    found = folder.json("inspect", ledger)
    assert len(found["entries"]) == 1
    assert found["cap"] == [1.2, 1e-4]
    assert 0 < found["remaining_epsilon"] < 1.2


def test_a_ledger_is_started_once(folder):
    ledger = folder.path / "a.ledger"
    start = ("ledger", ledger, "--epsilon", 1, "--delta", 1e-4)
    folder(*start)
    assert "isn't started twice" in folder(*start, status=1).stderr


def test_a_release_is_not_replaced_unless_that_is_asked_for(folder):
    folder.fit()
    before = (folder.path / "a.release").read_bytes()
    assert "--force replaces it" in folder.fit(status=1).stderr
    assert (folder.path / "a.release").read_bytes() == before
    folder.fit("--force")
    assert (folder.path / "a.release").read_bytes() != before


def test_an_input_is_never_replaced(folder):
    before = folder.data.read_bytes()
    assert "another name" in folder.fit("--force", "-o", folder.data, status=1).stderr
    assert folder.data.read_bytes() == before


def test_a_new_ledger_is_not_overwritten_by_the_release(folder):
    # Neither is there yet: the release would take the place of what it spent.
    target = folder.path / "a.release"
    assert "another name" in folder.fit("--ledger", target, status=1).stderr
    beside = target.parent / ".." / target.parent.name / target.name
    assert "another name" in folder.fit("--ledger", beside, status=1).stderr
    assert folder.names == ["data.csv", "schema.json"]


def test_a_name_that_can_not_be_written_is_refused_before_the_charge(folder):
    # Of the whole name, and of the one that it has while it is written.
    for length in (201, 250):
        arguments = ("--ledger", folder.path / "a.ledger", "-o", folder.path / ("x" * length))
        assert "too long" in folder.fit(*arguments, status=1).stderr
    assert "a.ledger" not in folder.names
    folder.fit("-o", folder.path / ("x" * 200))


def test_what_is_no_plain_file_is_not_replaced(folder):
    pipe = folder.path / "pipe"
    os.mkfifo(pipe)
    assert "no plain file" in folder.fit("-o", pipe, "--force", status=1).stderr
    assert pipe.is_fifo()


def test_a_run_that_fails_after_the_charge_says_so(folder, monkeypatch):
    def fail(cells, column):
        if len(cells):
            raise ValueError("cell 'CANARY'")
        return text(cells, column)

    text = files.column_of_texts
    monkeypatch.setattr(files, "column_of_texts", fail)
    ledger = folder.path / "a.ledger"
    result = folder.fit("--ledger", ledger, status=4)
    assert "a.ledger has recorded the spend" in result.stderr
    assert "Nothing was released" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "CANARY" not in result.output
    assert "a.release" not in folder.names
    assert len(PrivacyLedger(path=ledger).entries) == 1
    assert "count the budget as spent" in folder.fit(status=4).stderr


def test_a_release_that_can_not_be_written_where_it_should_is_kept_elsewhere(folder, monkeypatch):
    save = Release.save

    def fail(self, path):
        if str(path).endswith("a.release"):
            raise OSError(28, "No space left on device")
        save(self, path)

    monkeypatch.setattr(Release, "save", fail)
    monkeypatch.setattr(fitting.tempfile, "tempdir", str(folder.path))
    message = folder.fit(status=1).stderr
    (kept,) = [name for name in folder.names if name.startswith("a-")]
    assert kept in message
    assert Release.load(folder.path / kept).n_rows == 300


SLOW = """
import sys, time
from skdpgen.data import files
text = files.column_of_texts
def slow(cells, column):
    if len(cells):
        print("reading", file=sys.stderr, flush=True)
        time.sleep(60)
    return text(cells, column)
files.column_of_texts = slow
from skdpgen.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_while_it_reads_leaves_no_output_and_a_true_ledger(folder, number):
    ledger, target = folder.path / "a.ledger", folder.path / "a.release"
    options = f"--schema {folder.schema} --epsilon 1 --delta 1e-4 --ledger {ledger} -o {target}"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "fit", str(folder.data), *options.split()],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "reading\n"
    time.sleep(0.1)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert errors.startswith(
            "error: interrupted. Nothing was released, but rows may have been read"
        )
        assert "Traceback" not in errors
    assert {"a.ledger", "data.csv", "schema.json"} >= {
        name for name in folder.names if not name.startswith("a.ledger-")
    }
    assert [entry.epsilon for entry in PrivacyLedger(path=ledger).entries] == [1.0]


# -- nothing comes out -----------------------------------------------------------------------------

MARKED_ROWS = [
    "CANARY,CANARY,CANARY,CANARY,CANARY",
    "918273645,86753.09375,CANARY-town,7,CANARY-label",
    "33,197.30078125",
    "33,170,Rome,0,no,CANARY,CANARY",
    '"CANARY"x,170,"Rome\nCANARY",0,no',
    "\x00CANARY,170,Rome,0,no",
    ",,,,",
    '33,"CANARY never ends,Rome,0,no',
]


def test_marked_cells_show_nowhere(folder):
    names = folder.data.read_text().partition("\n")[0]
    rows = ["33,170,Rome,0,no", *MARKED_ROWS]
    folder.data.write_bytes("\n".join([names, *rows]).encode() + b"\nCANARY\xff\xfe,1,2,3,4\n")
    texts = []
    for options in ([], ["--json", "--force"], ["--method", "slices", "--force"]):
        texts.append(folder.fit(*options, "--ledger", folder.path / "a.ledger").output)
    for command in (["inspect"], ["sample", "-n", 3, "-o", folder.path / "s.csv", "--seed", 0]):
        if command[0] == "inspect":
            texts.append(folder(*command, folder.path / "a.release").output)
    texts.append(folder("schema", "check", folder.schema, folder.data).output)
    outputs = [folder.path / name for name in ("a.release", "a.ledger")]
    for content in [*map(str.encode, texts), *(path.read_bytes() for path in outputs)]:
        assert not findings(content)


@pytest.mark.parametrize("row", MARKED_ROWS, ids=range(len(MARKED_ROWS)))
def test_what_is_said_does_not_depend_on_a_row(folder, row):
    lines = folder.data.read_text().splitlines()
    first = folder.fit().output
    folder.data.write_text("\n".join([*lines[:-1], row]) + "\n")
    again = folder.fit("--force")
    assert again.output == first


def test_under_add_remove_no_number_of_rows_is_said(folder):
    release = folder.path / "a.release"
    texts = [folder.fit("--adjacency", "add-remove", "--json").output]
    texts += [folder("inspect", release).output, folder("inspect", release, "--json").output]
    assert "private" in texts[1]
    # As a number: the digits can be among those of the noise.
    assert not any(re.search(r"(?<![\d.])300(?!\d)", text) for text in texts)


# -- rows put aside --------------------------------------------------------------------------------


def test_rows_held_out_are_not_learned_from(folder):
    folder.fit("--hold-out", 0.25, "--seed", 5)
    release = Release.load(folder.path / "a.release")
    assert release.n_rows == 225
    assert release.public["schema"]["held_out"] == {"share": 0.25, "seed": 5}
    # Cells of these rows change nothing, not even the sums without noise.
    sums = []
    for change in (False, True):
        if change:
            table = files.read_table(folder.data)
            table.loc[fitting.held_out(300, 0.25, 5), "town"] = "Bonn"
            files.write_table(table, folder.data)
        with insecure_noise(scale=0):
            folder.fit("--hold-out", 0.25, "--seed", 5, "--force")
        sums.append(Release.load(folder.path / "a.release").noisy_sums)
    np.testing.assert_array_equal(*sums)


def test_what_another_release_left_out_is_not_said_of_this_one(folder):
    folder.fit("--hold-out", 0.25)
    facts = Release.load(folder.path / "a.release").public["schema"]
    folder.schema.write_text(json.dumps(facts))
    folder.fit("--force")
    assert "held_out" not in Release.load(folder.path / "a.release").public["schema"]


def test_split_needs_two_files(folder):
    other = folder.path / ".." / folder.path.name / "one.csv"
    names = ("--train-output", folder.path / "one.csv", "--test-output", other)
    assert "different names" in folder("split", folder.data, *names, status=2).stderr


def test_split(folder):
    outputs = [folder.path / "train.csv", folder.path / "test.csv"]
    names = ("--train-output", outputs[0], "--test-output", outputs[1])
    folder("split", folder.data, "--test", 0.2, "--seed", 0, *names)
    train, test = (files.read_table(path) for path in outputs)
    assert len(train) + len(test) == 300
    assert 40 < len(test) < 80
    both = pd.concat([train, test]).sort_values(list(train.columns)).reset_index(drop=True)
    whole = files.read_table(folder.data).sort_values(list(train.columns)).reset_index(drop=True)
    pd.testing.assert_frame_equal(both, whole)
    assert "exists" in folder("split", folder.data, *names, status=1).stderr


def test_split_keeps_the_rows_of_a_unit_together(folder):
    table = files.read_table(folder.data).assign(who=[str(i // 3) for i in range(300)])
    files.write_table(table, folder.data)
    outputs = [folder.path / "train.csv", folder.path / "test.csv"]
    names = ("--train-output", outputs[0], "--test-output", outputs[1])
    folder("split", folder.data, "--unit", "who", "--seed", 0, *names)
    train, test = (set(files.read_table(path)["who"]) for path in outputs)
    assert len(train) + len(test) == 100
    assert 8 < len(test) < 35
    assert not train & test
    assert "no such column" in folder(
        "split", folder.data, "--unit", "x", *names, "--force", status=1
    ).stderr  # fmt: skip


@pytest.mark.parametrize("unit", [False, True])
def test_who_is_split_off_does_not_depend_on_others(folder, unit):
    # Else a release of one part wouldn't keep its promise for the rows of both.
    outputs = [folder.path / "train.csv", folder.path / "test.csv"]
    names = ("--train-output", outputs[0], "--test-output", outputs[1], "--seed", 3, "--force")
    options = ("--unit", "who") if unit else ()
    table = files.read_table(folder.data).assign(who=[str(i // 3) for i in range(300)])
    table["row"] = [str(i) for i in range(300)]
    found = []
    for rows in (300, 297):
        files.write_table(table[:rows], folder.data)
        folder("split", folder.data, *names, *options)
        found.append(set(files.read_table(outputs[0])["row"]) - {"297", "298", "299"})
    assert found[0] == found[1]


def test_a_split_is_random(folder):
    outputs = [folder.path / "train.csv", folder.path / "test.csv"]
    names = ("--train-output", outputs[0], "--test-output", outputs[1], "--force")
    found = []
    for _ in range(2):
        folder("split", folder.data, *names)
        found.append(outputs[0].read_text())
    assert found[0] != found[1]


def test_the_schema_of_these_tests_is_complete(folder):
    assert folder.json("schema", "check", folder.schema, folder.data)["target"] == SCHEMA["target"]
