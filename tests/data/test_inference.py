import json

import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Boolean, Categorical, Datetime, Numeric, Schema
from skdpgen.exceptions import InputError, SchemaError

MARKER = "Anne's only value"


def test_dtypes_and_declared_facts():
    frame = pd.DataFrame(
        {
            "age": [1],
            "wage": [1.5],
            "ok": [True],
            "maybe": pd.array([True], dtype="boolean"),
            "code": [3],
            "day": pd.to_datetime(["2020-01-01"]),
            "count": pd.array([1], dtype="Int64"),
            "city": ["x"],
        }
    )
    schema = Schema.from_dtypes(
        frame,
        bounds={
            "age": (0, 9),
            "wage": (0, 5),
            "day": ("2020-01-01", "2021-01-01"),
            "count": (0, 3),
        },
        values={"code": [1, 2, 3], "city": ["x", "y"]},
        target="city",
    )
    assert schema.columns == {
        "age": Numeric((0, 9), "int"),
        "wage": Numeric((0, 5), "float"),
        "ok": Boolean(),
        "maybe": Boolean(missing=True),
        "code": Categorical([1, 2, 3]),
        "day": Datetime(("2020-01-01", "2021-01-01")),
        "count": Numeric((0, 3), "int", missing=True),
        "city": Categorical(["x", "y"]),
    }
    assert schema.target == "city"


def test_missing_replaces_the_default():
    frame = pd.DataFrame({"a": [1.5], "b": pd.array([1], dtype="Int64")})
    schema = Schema.from_dtypes(frame, bounds={"a": (0, 2), "b": (0, 2)}, missing=["a"])
    assert [c.missing for c in schema.columns.values()] == [True, False]


def test_category_list_is_private_unless_trusted():
    frame = pd.DataFrame({"c": pd.Series([MARKER], dtype="category")})
    with pytest.raises(SchemaError) as caught:
        Schema.from_dtypes(frame)
    assert MARKER not in str(caught.value)
    assert "values={'c': [VALUE, ...]}" in str(caught.value)
    trusted = Schema.from_dtypes(frame, trust_categories=True)
    assert trusted.columns["c"] == Categorical([MARKER])
    declared = Schema.from_dtypes(frame, trust_categories=True, values={"c": ["a"]})
    assert declared.columns["c"] == Categorical(["a"])


def test_polars_enum_is_declared_and_categorical_is_not():
    frame = pl.DataFrame(
        {
            "e": pl.Series(["b"], dtype=pl.Enum(["b", "a"])),
            "c": pl.Series(["b"], dtype=pl.Categorical),
        }
    )
    assert Schema.from_dtypes(frame.select("e")).columns["e"] == Categorical(["b", "a"])
    with pytest.raises(SchemaError, match=r"values=\{'c': \[VALUE"):
        Schema.from_dtypes(frame, trust_categories=True)


def test_every_open_column_is_shown_with_its_line():
    frame = pd.DataFrame({"age": [1], "b c": [1.5], "city": [MARKER], "o": [[1]]})
    with pytest.raises(SchemaError) as caught:
        Schema.from_dtypes(frame)
    assert str(caught.value) == (
        "from_dtypes needs more public facts:\n"
        "    bounds={'age': (LOWER, UPPER), 'b c': (LOWER, UPPER)}\n"
        "    values={'city': [VALUE, ...], 'o': [VALUE, ...]}"
    )


def test_only_the_open_kinds_of_facts_are_shown():
    with pytest.raises(SchemaError) as caught:
        Schema.from_dtypes(pd.DataFrame({"city": ["x"]}))
    assert str(caught.value).count("\n") == 1


def test_facts_are_checked_by_name():
    frame = pd.DataFrame({"age": [1]})
    with pytest.raises(InputError, match="no column 'wage'"):
        Schema.from_dtypes(frame, bounds={"wage": (0, 1)})
    with pytest.raises(InputError, match="no column 'wage'"):
        Schema.from_dtypes(frame, bounds={"age": (0, 1)}, missing=["wage"])
    with pytest.raises(SchemaError, match="column 'age': bounds must be in order"):
        Schema.from_dtypes(frame, bounds={"age": (1, 0)})


def test_what_is_not_declared_can_be_left_open():
    frame = pd.DataFrame(
        {
            "age": [33],
            "wage": [1.5],
            "town": [MARKER],
            "flag": [True],
            "when": pd.to_datetime(["1923-04-05"]),
            "count": pd.array([1], dtype="Int64"),
            "label": [1],
        }
    )
    schema = Schema.from_dtypes(frame, bounds={"age": (0, 99)}, target="label", leave_open=True)
    assert schema == Schema(
        {
            "age": Numeric((0, 99), "int"),
            "wage": Numeric(None),
            "town": Categorical(None),
            "flag": Boolean(),
            "when": Datetime(None),
            "count": Numeric(None, "int"),
            "label": Categorical(None),
        },
        target="label",
    )
    said = Schema.from_dtypes(frame, missing=["wage", "town", "when"], leave_open=True).columns
    assert [n for n, column in said.items() if column.missing] == ["wage", "town", "when"]


def test_draft_says_names_dtypes_and_todo():
    frame = pd.DataFrame(
        {
            "n": [987654321],
            "f": pd.array([1.5], dtype="Float32"),
            "b": [True],
            "t": [MARKER],
            "c": pd.Series([MARKER], dtype="category"),
            "d": pd.to_datetime(["1923-04-05"]),
        }
    )
    draft = Schema.draft(frame)
    undecided = "TODO: categorical, ordinal, numeric, datetime, id or text"
    assert draft == {
        "target": None,
        "columns": {
            "n": {
                "kind": "numeric",
                "bounds": "TODO",
                "dtype": "int",
                "note": "int64 in frame",
            },
            "f": {
                "kind": "numeric",
                "bounds": "TODO",
                "dtype": "float",
                "note": "Float32 in frame",
            },
            "b": {"kind": "boolean", "note": "bool in frame"},
            "t": {"kind": undecided, "note": "str in frame"},
            "c": {"kind": undecided, "note": "category in frame"},
            "d": {"kind": "datetime", "bounds": "TODO", "note": "datetime64[us] in frame"},
        },
    }
    for name in ("n", "f", "t", "c", "d"):  # each TODO is refused until it is filled in
        with pytest.raises(SchemaError, match=name):
            Schema.from_dict({"columns": {name: draft["columns"][name]}})


def test_a_draft_becomes_a_file_that_waits_for_a_person(tmp_path):
    frame = pd.DataFrame({"age": [MARKER], "level": pd.Categorical([MARKER])})
    path = tmp_path / "schema.json"
    draft = Schema.draft(frame, path)
    assert json.loads(path.read_text()) == draft == Schema.draft(frame)
    assert MARKER not in path.read_text()
    with pytest.raises(SchemaError, match="age"):
        Schema.from_json(path)
    # What a person has filled in isn't replaced.
    done = {"columns": {n: {"kind": "categorical", "values": ["a"]} for n in frame}}
    path.write_text(json.dumps(done))
    with pytest.raises(FileExistsError, match="doesn't replace"):
        Schema.draft(frame, path)
    assert Schema.from_json(path) == Schema.from_dict(done)


def test_a_draft_of_odd_names_cannot_be_a_file(tmp_path):
    frame = pd.DataFrame(
        {("a", 1): [True], "b": [False]}, columns=pd.Index([("a", 1), "b"], tupleize_cols=False)
    )
    with pytest.raises(SchemaError, match="cannot be written to JSON"):
        Schema.draft(frame, tmp_path / "schema.json")
    assert list(tmp_path.iterdir()) == []


def test_draft_of_integer_names():
    draft = Schema.draft(pd.DataFrame({0: [True], 1: [False]}))
    assert [entry["name"] for entry in draft["columns"]] == [0, 1]
    assert Schema.from_dict(draft) == Schema.from_dict(
        {"columns": [{"name": n, "kind": "boolean", "note": "bool in frame"} for n in (0, 1)]}
    )
