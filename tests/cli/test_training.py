import json

import pandas as pd
import pytest

from skdpgen import load_model
from skdpgen.cli.training import _value, _values
from skdpgen.data.files import FORMATS, read_table

from .conftest import SCHEMA

QUICK = ("--set", "n_steps=20", "--set", "generator__n_components=16")


def test_a_model_is_sampled_without_training(folder, model):
    path = folder.path / "synthetic.csv"
    found = folder.json("sample", model, "-n", 50, "-o", path, "--seed", 0)
    assert found["rows"] == 50
    assert found["columns"] == list(SCHEMA["columns"])
    table = pd.read_csv(path)
    assert table["age"].between(18, 90).all()
    assert set(table["twins"]) == {0, 1}
    expected = load_model(model).sample(50, random_state=0)
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


@pytest.mark.parametrize("ending", FORMATS)
def test_all_kinds_of_files_come_out(folder, model, ending):
    path = folder.path / f"synthetic{ending}"
    folder("sample", model, "-n", 20, "-o", path, "--seed", 0)
    assert read_table(path).shape == (20, 5)


def test_a_release_is_trained_on_first(folder, release):
    paths = [folder.path / name for name in ("a.csv", "b.csv")]
    for path in paths:
        folder("sample", release, "-n", 50, "-o", path, "--seed", 3)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_as_many_rows_as_were_released(folder, model):
    folder("sample", model, "-o", folder.path / "synthetic.csv")
    assert len(read_table(folder.path / "synthetic.csv")) == 300


def test_samples_are_new_ones_without_a_seed(folder, model):
    paths = [folder.path / name for name in ("a.csv", "b.csv")]
    for path in paths:
        folder("sample", model, "-n", 50, "-o", path)
    assert paths[0].read_bytes() != paths[1].read_bytes()


@pytest.mark.parametrize(
    ("options", "n_yes"),
    [
        (["--balanced"], 50),
        (["--label", "no=1", "--label", "yes=3"], 75),
        (["--label", "yes=1"], 100),
    ],
)
def test_shares_of_labels(folder, model, options, n_yes):
    folder("sample", model, "-n", 100, "-o", folder.path / "a.csv", "--seed", 0, *options)
    assert (read_table(folder.path / "a.csv")["smoker"] == "yes").sum() == n_yes


@pytest.mark.parametrize(
    ("options", "message", "status"),
    [
        (["--balanced", "--label", "no=1"], "either --balanced or --label", 2),
        (["--label", "no"], "NAME=VALUE", 2),
        (["--label", "no=much"], "can't be read", 2),
        (["--label", "no=-1"], "can't be read", 2),
        (["--label", "maybe=1"], "'maybe' is not a label; there are no, yes", 1),
        (["-n", -1], "is not in the range", 2),
        (["-o", "a.xlsx"], "has to end in", 1),
    ],
)
def test_what_can_not_be_sampled(folder, model, options, message, status):
    result = folder("sample", model, "-o", folder.path / "a.csv", *options, status=status)
    assert message in result.stderr
    assert "a.csv" not in folder.names


def test_what_is_no_release(folder):
    result = folder("sample", folder.data, "-o", folder.path / "a.csv", status=1)
    assert "damaged or not a release" in result.stderr


def test_an_output_is_not_replaced_unless_that_is_asked_for(folder, model):
    arguments = ("sample", model, "-n", 3, "-o", folder.path / "a.csv")
    folder(*arguments)
    assert "--force" in folder(*arguments, status=1).stderr
    folder(*arguments, "--force")


def test_retrain(folder, release):
    path = folder.path / "a.model"
    found = folder.json("retrain", release, "-o", path, *QUICK, "--seed", 1)
    assert found["settings"] == {"n_steps": 20, "generator__n_components": 16}
    model = load_model(path)
    assert (model.n_steps, model.generator.n_components, model.random_state) == (20, 16, 1)
    assert model.generator_.n_components == 16
    again = folder("retrain", path, "-o", folder.path / "b.model", status=1).stderr
    assert "training takes a release" in again


@pytest.mark.parametrize(
    ("setting", "message", "status"),
    [
        ("n_steps", "NAME=VALUE", 2),
        ("epsilon=3", "isn't a post-processing parameter", 1),
        ("release=other.release", "isn't a post-processing parameter", 1),
        ("n_steps=many", "must be an integer", 1),
        ("generator__layers=3", "has no parameter 'layers'", 1),
    ],
)
def test_settings_that_can_not_be(folder, release, setting, message, status):
    path = folder.path / "a.model"
    result = folder("retrain", release, "-o", path, "--set", setting, status=status)
    assert message in result.stderr
    assert "a.model" not in folder.names


def test_numbers_have_the_decimals_of_the_schema(folder):
    text = folder.schema.read_text()
    folder.schema.write_text(text.replace('"dtype": "float"', '"dtype": "float", "decimals": 1'))
    folder.fit()
    folder("retrain", folder.path / "a.release", "-o", folder.path / "a.model", *QUICK)
    folder("sample", folder.path / "a.model", "-n", 50, "-o", folder.path / "a.csv")
    heights = read_table(folder.path / "a.csv")["height"].dropna()
    assert heights.str.fullmatch(r"\d+\.\d").all()


def test_search(folder, release):
    path = folder.path / "a.model"
    grid = ("--grid", "learning_rate=0.03,0.1", "--grid", "n_steps=10")
    found = folder.json("search", release, "-o", path, *grid, "--cv", 2)
    assert [set(row) for row in found["candidates"]] == 2 * [
        {"learning_rate", "n_steps", "error", "standard_error"}
    ]
    errors = [row["error"] for row in found["candidates"]]
    assert errors == sorted(errors)
    assert found["best"] == {
        name: found["candidates"][0][name] for name in ("learning_rate", "n_steps")
    }
    assert load_model(path).learning_rate == found["best"]["learning_rate"]
    shown = folder("search", release, "-o", path, *grid, "--cv", 2, "--force").stdout
    assert shown.startswith("learning_rate")


def test_values():
    assert [_value(text) for text in ("3", "0.5", "null", "true", "mlp", "[1]")] == [
        3, 0.5, None, True, "mlp", "[1]",
    ]  # fmt: skip
    assert _values("1, mlp") == [1, "mlp"]
    assert json.dumps(_values("0.03,0.1")) == "[0.03, 0.1]"


def test_a_training_that_prints_leaves_standard_output_alone(folder, release):
    target = folder.path / "a.model"
    settings = ("--set", "n_steps=2", "--set", "verbose=2")
    assert folder.json("retrain", release, "-o", target, *settings)["steps"] == 2
