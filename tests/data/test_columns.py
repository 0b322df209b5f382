import numpy as np
import pytest

from skdpgen.data import Boolean, Categorical, Id, Numeric, Ordinal
from skdpgen.data.columns import declaration_hint
from skdpgen.exceptions import SchemaError


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


def test_metadata_is_a_copy():
    groups = {"a": [1]}
    column = Id(metadata={"groups": groups})
    groups["a"].append(2)
    column.to_dict()["groups"]["a"].append(3)
    assert column.metadata == {"groups": {"a": [1]}}


def test_undeclared():
    assert Categorical(None).undeclared == "values"
    for column in (Boolean(), Ordinal(["a"]), Numeric((0, 1))):
        assert column.undeclared is None
    assert declaration_hint("a b", "values") == (
        "schema.with_columns({'a b': {'values': [VALUE, ...]}})"
    )
