import copy
import pickle

import pytest

from skdpgen.data import Boolean, Categorical, Id, Numeric, Schema, Text
from skdpgen.exceptions import SchemaError


def adult():
    columns = {
        "age": Numeric((17, 90), "int"),
        "job": Categorical(["a", "b"], missing=["?"], metadata={"note": "x"}),
        "income": Categorical(["<=50K", ">50K"]),
    }
    return Schema(columns, target="income", metadata={"domain": {"age": 74}})


def test_order_counts_and_schemas_are_not_hashable():
    a, b = Numeric((0, 1)), Boolean()
    assert Schema({"a": a, "b": b}) != Schema({"b": b, "a": a})
    assert Schema({"a": a}) != "schema"
    with pytest.raises(TypeError):
        hash(Schema({"a": a}))
    assert repr(Schema({"a": a}, default=b)) == "Schema(1 columns, default=boolean)"


def test_copies_are_equal():
    assert pickle.loads(pickle.dumps(adult())) == copy.deepcopy(adult()) == adult()


def test_constructor_refuses_a_list():
    with pytest.raises(SchemaError, match="must be a mapping"):
        Schema(["a"])


def test_too_many_values_are_refused_by_name_and_size():
    with pytest.raises(SchemaError, match=r"column 'zip': 50000 values .* limit of 10000"):
        Schema({"zip": Categorical(range(50_000))})


def test_with_columns_changes_a_copy():
    schema = adult()
    changed = schema.with_columns({"age": {"scale": "log1p"}, "new": Id(), "job": {"kind": "text"}})
    assert changed.columns["age"] == Numeric((17, 90), "int", "log1p")
    assert changed.columns["job"] == Text()
    assert list(changed.columns) == ["age", "job", "income", "new"]
    assert changed.target == "income"
    assert changed.metadata == schema.metadata
    assert schema == adult()
    label = schema.with_columns({"income": {"values": ["low", "high"]}})
    assert label.columns["income"].values == ("low", "high")
    assert label.to_dict()["columns"]["income"]["kind"] == "label"
    with pytest.raises(SchemaError, match="column 'age': scale"):
        schema.with_columns({"age": {"scale": "log"}})
    with pytest.raises(SchemaError, match="column 'more': a column needs"):
        schema.with_columns({"more": {"bounds": (0, 1)}})


def test_drop_and_without_target():
    schema = adult()
    assert list(schema.drop(["age"]).columns) == ["job", "income"]
    assert list(schema.drop("age").columns) == ["job", "income"]
    assert schema.drop(["income"]).target is None
    assert schema.without_target() == schema.drop(["income"])
    assert schema.without_target().without_target() == schema.without_target()
    with pytest.raises(SchemaError, match="no column 'wage'"):
        schema.drop(["wage"])


def test_columns_is_a_copy():
    schema = adult()
    schema.columns.clear()
    assert len(schema.columns) == 3
