import json

import pandas as pd
import pytest

from .conftest import SCHEMA


def test_a_draft_holds_names_and_todo_and_nothing_else(folder):
    found = folder.json("schema", "draft", folder.data)
    assert found["columns"] == list(SCHEMA["columns"])
    kinds = {json.dumps(entry) for entry in found["schema"]["columns"].values()}
    assert kinds == {'{"kind": "TODO: categorical, ordinal, numeric, datetime, id or text"}'}
    assert json.loads(folder("schema", "draft", folder.data).stdout) == found["schema"]


def test_a_draft_is_the_same_whatever_the_rows(folder):
    first = folder("schema", "draft", folder.data).output
    folder.data.write_text(folder.data.read_text().partition("\n")[0] + "\nCANARY,,\x00,\n1\n")
    assert folder("schema", "draft", folder.data).output == first


def test_a_draft_goes_to_a_file_that_must_not_exist(folder):
    path = folder.path / "draft.json"
    output = folder("schema", "draft", folder.data, "-o", path).stdout
    assert f"skdpgen schema check {path} {folder.data}" in output
    assert '"bounds": [0, 120]' in output
    assert "exists" in folder("schema", "draft", folder.data, "-o", path, status=1).stderr


def test_names_that_may_be_a_row_are_warned_of(folder):
    assert folder("schema", "draft", folder.data).stderr == ""
    folder.data.write_text("39,State-gov,77516\n")
    assert "is a row" in folder("schema", "draft", folder.data).stderr


def test_a_draft_of_a_parquet_file_has_its_dtypes(folder):
    path = folder.path / "data.parquet"
    pd.DataFrame({"age": [33], "smoker": [True]}).to_parquet(path)
    columns = folder.json("schema", "draft", path)["schema"]["columns"]
    assert columns["age"]["bounds"] == "TODO"
    assert columns["smoker"]["kind"] == "boolean"


def test_a_complete_schema(folder):
    found = folder.json("schema", "check", folder.schema, folder.data)
    assert found == {"ok": True, "problems": [], "open": [], "target": "smoker", "hints": []}
    output = folder("schema", "check", folder.schema).stdout
    assert "18 .. 90 int" in output
    assert "5 columns, target smoker. Nothing is missing." in output


def test_every_todo_is_listed_with_how_to_write_it(folder):
    path = folder.path / "draft.json"
    folder("schema", "draft", folder.data, "-o", path)
    found = folder.json("schema", "check", path, status=1)
    assert [p["column"] for p in found["problems"]] == list(SCHEMA["columns"])
    assert found["problems"][0]["write"].startswith("one of numeric, categorical")


@pytest.mark.parametrize(
    ("change", "column", "problem"),
    [
        ({"age": {"kind": "numeric", "bounds": "TODO"}}, "age", "bounds: TODO"),
        ({"age": {"kind": "number"}}, "age", "unknown kind 'number'"),
        ({"age": {"kind": "numeric", "bounds": [9, 1]}}, "age", "in order"),
        ({"age": 3}, "age", "needs an entry 'kind'"),
        ({"town": {"kind": "categorical", "values": []}}, "town", "must not be empty"),
        ({"town": {"kind": "label", "values": ["a", "b"]}}, "", "is a label but not the target"),
    ],
)
def test_what_breaks_a_rule_is_named(folder, change, column, problem):
    folder.schema.write_text(json.dumps({**SCHEMA, "columns": {**SCHEMA["columns"], **change}}))
    (found,) = folder.json("schema", "check", folder.schema, status=1)["problems"]
    assert found["column"] == column
    assert problem in found["problem"]
    assert found["write"]
    assert "schema check" in folder.fit(status=1).stderr


@pytest.mark.parametrize("text", ["[]", "{}", '{"columns": [1]}', '{"columns": 3}'])
def test_what_is_no_schema(folder, text):
    folder.schema.write_text(text)
    assert not folder.json("schema", "check", folder.schema, status=1)["ok"]


def test_what_is_no_json(folder):
    folder.schema.write_text("{")
    assert "is no JSON file" in folder("schema", "check", folder.schema, status=1).stderr


def test_names_are_compared_with_the_data(folder):
    columns = {("edad" if n == "age" else n): c for n, c in SCHEMA["columns"].items()}
    folder.schema.write_text(json.dumps({**SCHEMA, "columns": columns}))
    found = folder.json("schema", "check", folder.schema, folder.data, status=1)["problems"]
    assert [(p["column"], p["problem"]) for p in found] == [
        ("edad", "not in the data"),
        ("age", "not in the schema"),
    ]
    found = folder.json("schema", "check", folder.schema, folder.data, "--drop", "age", status=1)
    assert [p["column"] for p in found["problems"]] == ["edad"]


def test_dtypes_of_a_parquet_file_are_compared_too(folder):
    path = folder.path / "data.parquet"
    frame = pd.read_csv(folder.data).assign(town=pd.Timestamp("2020-01-01"))
    frame.to_parquet(path)
    (found,) = folder.json("schema", "check", folder.schema, path, status=1)["problems"]
    assert found["column"] == "town"
    assert "has the dtype timestamp" in found["problem"]


def test_a_file_without_names_is_not_quoted(folder):
    folder.data.write_text("39,CANARY,x,y,z\n")
    for result in (
        folder("schema", "check", folder.schema, folder.data, status=1),
        folder.fit(status=1),
    ):
        assert "CANARY" not in result.output
        assert "is named in its first line" in result.output


def test_what_is_open_is_said(folder):
    change = {"town": {"kind": "categorical", "values": None}}
    folder.schema.write_text(json.dumps({**SCHEMA, "columns": {**SCHEMA["columns"], **change}}))
    assert folder.json("schema", "check", folder.schema)["open"] == ["town"]
    assert "(learned)" in folder("schema", "check", folder.schema).stdout
