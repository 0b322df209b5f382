import datetime
import pickle

import numpy as np
import pytest

from skdpgen.data.columns import (
    Boolean,
    Categorical,
    Datetime,
    Id,
    Numeric,
    Ordinal,
    Text,
    column_from_dict,
    declaration_hint,
)
from skdpgen.exceptions import SchemaError


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"bounds": (1, 0)}, "in order"),
        ({"bounds": (0, float("inf"))}, "finite"),
        ({"bounds": (float("nan"), 1)}, "finite"),
        ({"bounds": (False, True)}, "two finite numbers"),
        ({"bounds": ("0", "1")}, "two finite numbers"),
        ({"bounds": (0, 1, 2)}, "two finite numbers"),
        ({"bounds": "TODO"}, "must be a list"),
        ({"bounds": 3}, "must be a list"),
        ({"bounds": (-1.7e308, 1.7e308)}, "difference"),
        ({"bounds": (0, 10**400)}, "difference"),
        ({"bounds": (0, 1), "dtype": "decimal"}, "dtype must be"),
        ({"bounds": (0, 1), "scale": "log"}, "scale must be"),
        ({"bounds": (0, 1), "missing": "?"}, "missing must be a list"),
        ({"bounds": (0, 0.5), "dtype": "int"}, "whole"),
        ({"bounds": (0, 2**53), "dtype": "int"}, r"2\*\*53"),
        ({"bounds": (0, 2**45), "dtype": "int", "scale": "log1p"}, r"2\*\*45"),
        ({"bounds": (2**64, 2**64 + 1), "dtype": "int"}, "64 bits"),
        ({"bounds": (-(2**63) - 1, -(2**63)), "dtype": "int"}, "64 bits"),
        ({"bounds": (0, 1), "metadata": "note"}, "mapping"),
    ],
)
def test_numeric_refuses(arguments, rule):
    with pytest.raises(SchemaError, match=rule):
        Numeric(**arguments)


def test_numeric_accepts_extremes():
    assert Numeric((5, 5)).bounds == (5, 5)
    assert Numeric((0, 2**53 - 1), "int").bounds == (0, 2**53 - 1)
    assert Numeric((2**64 - 2, 2**64 - 1), "int").bounds == (2**64 - 2, 2**64 - 1)
    assert Numeric((np.int8(1), np.float32(2.0)), "int").bounds == (1, 2)
    assert Numeric((0, 1), missing=[]).missing is False
    assert Numeric((0, 1), missing=None).missing is False
    assert Numeric((0, 1), missing=["?", -9]).missing == ("?", -9)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"values": []}, "not be empty"),
        ({"values": "abc"}, "must be a list"),
        ({"values": ["a", "a"]}, "distinct"),
        ({"values": [1, 1.0]}, "distinct"),
        ({"values": [0, False]}, "distinct"),
        ({"values": [1, "1"]}, "distinct"),
        ({"values": ["a", None]}, "must be texts"),
        ({"values": [float("nan")]}, "finite"),
        ({"values": [["a"]]}, "must be texts"),
        ({"values": ["a"], "other": ["b"]}, "must be texts"),
        ({"values": ["a", "?"], "missing": ["?"]}, "also declared to mean missing"),
        ({"values": [1], "other": 9, "missing": ["9"]}, "also declared to mean missing"),
    ],
)
def test_categorical_refuses(arguments, rule):
    with pytest.raises(SchemaError, match=rule):
        Categorical(**arguments)


def test_categories_include_other_once():
    assert Categorical(["a", "b"], other="b").categories == ("a", "b")
    assert Categorical(["a", "b"], other="c").categories == ("a", "b", "c")
    assert Categorical(np.array([1, 2])).values == (1, 2)
    assert type(Categorical(np.array([1, 2])).values[0]) is int
    with pytest.raises(SchemaError, match="not declared"):
        _ = Categorical(None).categories


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"bounds": ("2020-02-30", "2021-01-01")}, "does not follow"),
        ({"bounds": ("01.02.2020", "2021-01-01"), "format": "%d.%m.%Y"}, "does not follow"),
        ({"bounds": ("2021-01-01", "2020-01-01")}, "in order"),
        ({"bounds": "TODO"}, "two times"),
        ({"bounds": ("2020-01-01",)}, "two times"),
        ({"bounds": (1, 2)}, "texts or datetimes"),
        ({"bounds": ("2020-01-01", "2020-01-02T00:00+02:00")}, "time zone"),
        ({"bounds": ("2020-01-01", "2021-01-01"), "format": 3}, "format must be"),
    ],
)
def test_datetime_refuses(arguments, rule):
    with pytest.raises(SchemaError, match=rule):
        Datetime(**arguments)


def test_datetime_takes_all_kinds_of_bounds():
    first = datetime.datetime(2020, 1, 2)
    for bound in ("2020-01-02", first, first.date(), np.datetime64("2020-01-02")):
        assert Datetime((bound, "2021-01-01")).parsed_bounds[0] == first
    assert Datetime((first, first), format="%d.%m.%Y").bounds == ("02.01.2020", "02.01.2020")
    with pytest.raises(SchemaError, match="not declared"):
        _ = Datetime(None).parsed_bounds


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


def test_metadata_is_a_copy():
    groups = {"a": [1]}
    column = Id(metadata={"groups": groups})
    groups["a"].append(2)
    column.to_dict()["groups"]["a"].append(3)
    assert column.metadata == {"groups": {"a": [1]}}


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


def test_undeclared():
    assert column_from_dict({"kind": "numeric"}).undeclared == "bounds"
    assert column_from_dict({"kind": "datetime"}).undeclared == "bounds"
    assert column_from_dict({"kind": "ordinal"}).undeclared == "values"
    for column in (Id(), Text(), Boolean(), Ordinal(["a"]), Numeric((0, 1))):
        assert column.undeclared is None
    assert declaration_hint("a b", "values") == (
        "schema.with_columns({'a b': {'values': [VALUE, ...]}})"
    )
