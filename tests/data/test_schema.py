import copy
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Boolean, Categorical, FrameTemplate, Id, Numeric, Schema, Text
from skdpgen.exceptions import InputError, SchemaError


def schema_of(**columns):
    return Schema(columns, target="y" if "y" in columns else None)


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
    assert pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema) == schema


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


def test_order_counts_and_schemas_are_not_hashable():
    a, b = Numeric((0, 1)), Boolean()
    assert Schema({"a": a, "b": b}) != Schema({"b": b, "a": a})
    assert Schema({"a": a}) != "schema"
    with pytest.raises(TypeError):
        hash(Schema({"a": a}))
    assert repr(Schema({"a": a}, default=b)) == "Schema(1 columns, default=boolean)"


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
            {"columns": {"a": {"kind": "label", "values": [0, 1]}}, "target": None},
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


def test_constructor_refuses_a_list():
    with pytest.raises(SchemaError, match="must be a mapping"):
        Schema(["a"])


def test_damaged_file_is_named(tmp_path):
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(SchemaError, match=r"s\.json is no JSON"):
        Schema.from_json(tmp_path / "s.json")


def test_too_many_values_are_refused_by_name_and_size():
    with pytest.raises(SchemaError, match=r"column 'zip': 50000 values .* limit of 10000"):
        schema_of(zip=Categorical(range(50_000)))


def test_with_columns_changes_a_copy():
    schema = Schema.from_dict(ADULT)
    changed = schema.with_columns({"age": {"scale": "log1p"}, "new": Id(), "job": {"kind": "text"}})
    assert changed.columns["age"] == Numeric((17, 90), "int", "log1p")
    assert changed.columns["job"] == Text()
    assert list(changed.columns) == ["age", "job", "income", "new"]
    assert changed.target == "income"
    assert changed.metadata == schema.metadata
    assert schema == Schema.from_dict(ADULT)
    label = schema.with_columns({"income": {"values": ["low", "high"]}})
    assert label.columns["income"].values == ("low", "high")
    assert label.to_dict()["columns"]["income"]["kind"] == "label"
    with pytest.raises(SchemaError, match="column 'age': scale"):
        schema.with_columns({"age": {"scale": "log"}})
    with pytest.raises(SchemaError, match="column 'more': a column needs"):
        schema.with_columns({"more": {"bounds": (0, 1)}})


def test_drop_and_without_target():
    schema = Schema.from_dict(ADULT)
    assert list(schema.drop(["age"]).columns) == ["job", "income"]
    assert list(schema.drop("age").columns) == ["job", "income"]
    assert schema.drop(["income"]).target is None
    assert schema.without_target() == schema.drop(["income"])
    assert schema.without_target().without_target() == schema.without_target()
    with pytest.raises(SchemaError, match="no column 'wage'"):
        schema.drop(["wage"])


def test_columns_is_a_copy():
    schema = Schema.from_dict(ADULT)
    schema.columns.clear()
    assert len(schema.columns) == 3


# -- resolve ------------------------------------------------------------------------------------


def resolve(schema, frame):
    return schema.resolve(FrameTemplate.from_frame(frame).dtypes)


def test_resolve_gives_schema_order_then_the_default():
    schema = Schema({"b": Id(), "a": Boolean()}, default=Numeric((0, 1)))
    frame = pd.DataFrame({"z": [0.5], "a": [True], "b": [1], "y": [1]})
    assert list(resolve(schema, frame)) == ["b", "a", "z", "y"]
    assert resolve(schema, frame)["y"] == Numeric((0, 1))


def test_resolve_refuses_missing_extra_and_undeclared_columns():
    frame = pd.DataFrame({"a": [1], "b": [1]})
    with pytest.raises(InputError, match=r"lacks .*'c'.*schema.drop\(\['c', ...\]\)"):
        resolve(Schema({"a": Id(), "b": Id(), "c": Id()}), frame)
    with pytest.raises(
        InputError, match=r"not in the schema: 'b'\. .*with_columns\(\{'b': ...\}\)"
    ):
        resolve(Schema({"a": Id()}), frame)
    with pytest.raises(SchemaError, match=r"'b'\. Declare .*\{'b': \{'values': \[VALUE, ...\]\}\}"):
        resolve(Schema({"a": Id(), "b": {"kind": "categorical"}}), frame)
    with pytest.raises(SchemaError, match=r"'a'\. Declare .*\(LOWER, UPPER\)"):
        resolve(Schema({"a": {"kind": "numeric"}, "b": Id()}), frame)
    many = pd.DataFrame(np.zeros((1, 9)), columns=list("abcdefghi"))
    with pytest.raises(InputError, match=r"'a', 'b', 'c', 'd', 'e', \.\.\.\."):
        resolve(Schema({}), many)


CELLS = {
    "int": pd.Series([1]),
    "float": pd.Series([1.0]),
    "bool": pd.Series([True]),
    "text": pd.Series(["a"], dtype="str"),
    "object": pd.Series([[]], dtype=object),
    "category": pd.Series(["a"], dtype="category"),
    "datetime": pd.Series(pd.to_datetime(["2020-01-01"])),
    "polars datetime": pl.Series([None], dtype=pl.Date),
}
ACCEPTED = {
    "numeric": {"int", "float", "bool", "text", "object"},
    "categorical": {"int", "float", "bool", "text", "object", "category"},
    "ordinal": {"int", "float", "bool", "text", "object", "category"},
    "boolean": {"int", "float", "bool", "text", "object", "category"},
    "datetime": {"datetime", "text", "object", "polars datetime"},
    "id": {"int", "float", "text", "object", "category"},
    "text": {"text", "object", "category"},
}


@pytest.mark.parametrize("kind", ACCEPTED)
@pytest.mark.parametrize("family", CELLS)
def test_kinds_and_dtypes(kind, family):
    facts = {"values": [1, 0], "bounds": [0, 1]}
    if kind == "datetime":
        facts["bounds"] = ["2020-01-01", "2020-01-02"]
    schema = Schema({"c": {"kind": kind, **facts}})
    library = pl.DataFrame if family.startswith("polars") else pd.DataFrame
    frame = library({"c": CELLS[family]})
    if family in ACCEPTED[kind]:
        assert resolve(schema, frame)["c"].kind == kind
    else:
        with pytest.raises(InputError, match=rf"'c' is declared {kind} but has the dtype"):
            resolve(schema, frame)
