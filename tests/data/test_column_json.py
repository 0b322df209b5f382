import pickle

import pytest

from skdpgen.data import Categorical
from skdpgen.data.column_json import column_from_dict, named_column
from skdpgen.exceptions import SchemaError


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "numeric", "bounds": [0, 99], "dtype": "int"},
        {
            "kind": "numeric",
            "bounds": [0.5, 1],
            "dtype": "float",
            "scale": "log1p",
            "missing": [" "],
        },
        {"kind": "numeric", "bounds": None, "dtype": "float", "missing": True, "note": "later"},
        {"kind": "categorical", "values": None, "missing": ["", "?"], "note": "no list"},
        {"kind": "categorical", "values": ["a", 1, 2.5, False], "other": "z"},
        {"kind": "ordinal", "values": [3, 1], "description": {"3": "low", "1": "high"}},
        {"kind": "ordinal", "values": [3, 1], "encoding": "scale"},
        {"kind": "boolean", "missing": True},
        {"kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"], "format": "%Y-%m-%d"},
        {"kind": "id", "missing": [""]},
        {"kind": "text", "constant": "removed", "groups": [["a"], ["b"]]},
    ],
)
def test_json_keeps_every_entry(entry):
    column = column_from_dict(entry)
    assert column.to_dict() == entry
    assert column_from_dict(column.to_dict()) == column
    assert pickle.loads(pickle.dumps(column)) == column
    assert hash(column) == hash(column_from_dict(entry))


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({}, "needs an entry 'kind'"),
        ({"kind": 3}, "needs an entry 'kind'"),
        ([], "needs an entry 'kind'"),
        ({"kind": "number"}, "unknown kind 'number'; there are boolean, categorical"),
        ({"kind": "text", "constant": 3}, "constant must be a text"),
    ],
)
def test_from_dict_refuses(entry, rule):
    with pytest.raises(SchemaError, match=rule):
        column_from_dict(entry)


def test_open_entries_may_be_left_out():
    assert column_from_dict({"kind": "numeric"}).undeclared == "bounds"
    assert column_from_dict({"kind": "datetime"}).undeclared == "bounds"
    assert column_from_dict({"kind": "ordinal"}).undeclared == "values"


def test_named_column_takes_both_forms_and_names_its_errors():
    column = Categorical(["a"])
    assert named_column("c", column) is column
    assert named_column("c", {"kind": "categorical", "values": ["a"]}) == column
    with pytest.raises(SchemaError, match=r"^column 'c': values must not be empty"):
        named_column("c", {"kind": "categorical", "values": []})
