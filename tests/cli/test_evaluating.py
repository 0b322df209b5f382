import json

import pytest

from skdpgen.data.files import read_table, write_table


@pytest.fixture
def synthetic(folder, model):
    path = folder.path / "synthetic.csv"
    folder("sample", model, "-n", 300, "-o", path, "--seed", 0)
    return path


def test_rows_that_were_held_out_judge(folder, synthetic):
    folder.fit("--hold-out", 0.25, epsilon=20)
    release = ("--release", folder.path / "a.release")
    found = folder.json("evaluate", synthetic, "--real", folder.data, *release)
    assert found["private"] is False
    scores = found["tstr"]["scores"]
    assert {row["trained_on"] for row in scores} == {"synthetic", "real", "chance"}
    area = {
        (row["trained_on"], row["estimator"]): row["score"]
        for row in scores
        if row["metric"] == "roc_auc"
    }
    assert area["real", "logistic regression"] > 0.75
    assert 0 <= found["fidelity"]["dependence_kept"] <= 1
    assert found["copies"]["copying"] is False
    output = folder("evaluate", synthetic, "--real", folder.data, *release).stdout
    assert "Predicting smoker on real rows" in output
    assert "Not private" in output
    assert "No sign of copied rows" in output


def test_copies_of_training_rows_are_found(folder):
    train, test, page = (folder.path / name for name in ("train.csv", "test.csv", "a.html"))
    parts = ("--train-output", train, "--test-output", test)
    folder("split", folder.data, "--test", 0.5, *parts)
    real = ("--real", train, "--test", test, "--schema", folder.schema)
    assert folder.json("evaluate", train, *real)["copies"]["copying"] is True
    folder("report", train, *real, "-o", page)
    assert "rows were copied" in page.read_text()


def test_without_rows_to_test_on_no_model_is_scored(folder, synthetic, release):
    arguments = ("evaluate", synthetic, "--real", folder.data, "--release", release)
    assert folder.json(*arguments)["tstr"] is None
    assert "fit --hold-out 0.2" in folder(*arguments).stderr


def test_tables_by_name(folder, synthetic):
    parts = [folder.path / "train.csv", folder.path / "test.csv"]
    folder("split", folder.data, "--train-output", parts[0], "--test-output", parts[1])
    common = ("evaluate", synthetic, "--test", parts[1], "--schema", folder.schema)
    both = folder.json(*common, "--real", parts[0], "--target", "town")
    assert both["tstr"]["target"] == "town"
    alone = folder.json(*common)
    assert {row["trained_on"] for row in alone["tstr"]["scores"]} == {"synthetic", "chance"}


def test_without_a_target_only_shares_are_compared(folder, synthetic):
    schema = json.loads(folder.schema.read_text())
    schema["columns"]["smoker"]["kind"] = "categorical"
    folder.schema.write_text(json.dumps({**schema, "target": None}))
    found = folder.json("evaluate", synthetic, "--test", folder.data, "--schema", folder.schema)
    assert found["tstr"] is None
    assert found["copies"] is None
    assert found["fidelity"]["summary"]


@pytest.mark.parametrize(
    ("options", "message", "status"),
    [
        ([], "--real, --test or both", 2),
        (["--real", "data"], "give --schema, or --release", 1),
        (["--real", "missing"], "does not exist", 2),
    ],
)
def test_what_is_needed(folder, synthetic, options, message, status):
    options = [folder.data if option == "data" else option for option in options]
    assert message in folder("evaluate", synthetic, *options, status=status).stderr


def test_a_table_that_lacks_a_column(folder, synthetic):
    table = read_table(synthetic).drop(columns="town")
    write_table(table, synthetic)
    common = ("--test", folder.data, "--schema", folder.schema)
    assert "lacks column 'town'" in folder("evaluate", synthetic, *common, status=1).stderr


def test_report(folder, synthetic):
    folder.fit("--hold-out", 0.25, "--ledger", folder.path / "a.ledger", epsilon=20)
    page = folder.path / "report.html"
    sources = ("--release", folder.path / "a.release", "--ledger", folder.path / "a.ledger")
    arguments = ("report", synthetic, *sources, "--real", folder.data, "-o", page)
    result = folder(*arguments)
    assert "Use for learning" in result.stdout
    assert "not for publication" in result.stderr
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    assert "--force" in folder(*arguments, status=1).stderr
    found = folder.json(*arguments, "--force", "--title", "Smokers")
    assert found["title"] == "Smokers"
    assert found["publishable"] is False
    assert {row["trained_on"] for row in found["tstr"]["scores"]} == {
        "synthetic", "real", "chance",
    }  # fmt: skip


def test_a_report_without_rows_to_test_on_says_so(folder, synthetic, release):
    page = folder.path / "report.html"
    arguments = ("report", synthetic, "--release", release, "--real", folder.data, "-o", page)
    assert "fit --hold-out 0.2" in folder(*arguments).stderr


def test_a_publishable_report_reads_no_private_row(folder, synthetic, release):
    page = folder.path / "report.html"
    arguments = ("report", synthetic, "--release", release, "--publishable", "-o", page)
    found = folder.json(*arguments)
    assert found["publishable"] is True
    assert "tstr" not in found
    assert "not for publication" not in folder(*arguments, "--force").stderr
    assert "takes neither" in folder(*arguments, "--real", folder.data, status=2).stderr


def test_a_report_never_replaces_what_it_reads(folder, synthetic, release):
    arguments = ("report", synthetic, "--release", release, "-o", synthetic, "--force")
    assert "another name" in folder(*arguments, status=1).stderr


def test_demo(folder, monkeypatch):
    calls = []

    def run(arguments):
        calls.append(arguments)
        print("what the demo says")

    monkeypatch.setattr("skdpgen.demo.main", run)
    path = folder.path / "demo.csv"
    assert folder.json("demo", "-o", path)["text"] == "what the demo says\n"
    assert folder("demo", "-o", path).stdout == "what the demo says\n"
    assert calls == 2 * [["--output", str(path)]]


def test_dependence_that_is_not_measured_has_its_reason(folder, synthetic):
    few = folder.path / "few.csv"
    few.write_text("".join(synthetic.read_text().splitlines(keepends=True)[:6]))
    output = folder("evaluate", few, "--test", folder.data, "--schema", folder.schema).stdout
    assert "Dependence kept: not measured, a table has fewer than 100 rows." in output
