import json

import pytest

from skdpgen.data import Boolean, Categorical, Id, Numeric, Schema
from skdpgen.data.schema_json import schema_arguments
from skdpgen.exceptions import SchemaError

ADULT = {
    "target": "income",
    "notes": "a note",
    "domain": {"age": 74},
    "columns": {
        "age": {"kind": "numeric", "bounds": [17, 90], "dtype": "int"},
        "job": {"kind": "categorical", "values": ["a", "b"], "missing": ["?"], "note": "x"},
        "income": {"kind": "label", "values": ["<=50K", ">50K"], "groups": {"rich": [">50K"]}},
    },
}


def test_json_round_trip_keeps_every_entry(tmp_path):
    schema = Schema.from_dict(ADULT)
    assert schema.to_dict() == ADULT
    assert schema.target == "income"
    assert schema.metadata == {"domain": {"age": 74}}
    schema.to_json(tmp_path / "s.json")
    schema.to_json(tmp_path / "s.json")  # replaces
    assert Schema.from_json(tmp_path / "s.json") == schema
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]


def test_failed_write_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        Schema.from_dict(ADULT).to_json(tmp_path / "s.json")
    assert list(tmp_path.iterdir()) == []


def test_shared_schemas_read_and_write(shared_data):
    for name in shared_data.names():
        entries = shared_data.schema(name)
        schema = Schema.from_json(shared_data.HERE / name / "schema.json")
        assert schema == Schema.from_dict(entries)
        assert schema == Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
        assert schema.to_dict()["columns"] == entries["columns"], name
    assert len(Schema.from_dict(shared_data.schema("mnist")).columns) == 785
    assert Schema.from_dict(shared_data.schema("mnist")).image_shape == (28, 28)


def test_integer_names_survive_json():
    columns = {1: Boolean(), 0: Numeric((0, 1)), "a": Id()}
    schema = Schema(columns, target=1, default=Categorical(["x"]))
    back = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert back == schema
    assert list(back.columns) == [1, 0, "a"]
    with pytest.raises(SchemaError, match="cannot be written"):
        Schema({(1, 2): Id()}).to_dict()


def test_repeat_stands_for_many_columns():
    pixels = {"kind": "numeric", "bounds": [0, 9], "repeat": 3, "prefix": "p"}
    schema = Schema.from_dict({"columns": {"pixels": pixels, "y": {"kind": "boolean"}}})
    assert list(schema.columns) == ["p0", "p1", "p2", "y"]
    with pytest.raises(SchemaError, match="'p1' is declared twice"):
        Schema.from_dict({"columns": {"p1": {"kind": "id"}, "pixels": pixels}})


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ({}, "needs an entry 'columns'"),
        ([], "needs an entry 'columns'"),
        ({"columns": "abc"}, "must be an object"),
        ({"columns": [{"kind": "id"}]}, "with a 'name'"),
        ({"columns": {"a": {"kind": "numeric", "bounds": [2, 1]}}}, "column 'a': bounds"),
        ({"columns": {"a": {"kind": "nope"}}}, "column 'a': unknown kind"),
        ({"columns": {"a": 3}}, "column 'a': a column needs"),
        ({"columns": {"a": {"kind": "id"}}, "target": "b"}, "target 'b' is not"),
        ({"columns": {"a": {"kind": "id"}}, "target": "a"}, "cannot be a key"),
        ({"columns": {}, "image_shape": [28]}, "image_shape"),
        ({"columns": {}, "image_shape": [28, 0]}, "image_shape"),
        (
            {
                "columns": {"a": {"kind": "label", "values": [0, 1]}, "b": {"kind": "boolean"}},
                "target": "b",
            },
            "'a' is a label but not the target",
        ),
        (
            {
                "columns": {
                    "a": {"kind": "label", "values": [0, 1]},
                    "b": {"kind": "label", "values": [0, 1]},
                }
            },
            "'a' is a label but not the target",
        ),
    ],
)
def test_from_dict_refuses(entries, rule):
    with pytest.raises(SchemaError, match=rule):
        Schema.from_dict(entries)


def test_damaged_file_is_named(tmp_path):
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(SchemaError, match=r"s\.json is no JSON"):
        Schema.from_json(tmp_path / "s.json")


def test_the_one_label_is_the_target_where_a_draft_names_none():
    entries = {"target": None, "columns": {"a": {"kind": "label", "values": [0, 1]}}}
    assert schema_arguments(entries)["target"] == "a"
