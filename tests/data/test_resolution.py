import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Boolean, FrameTemplate, Id, Numeric, Schema
from skdpgen.exceptions import InputError, SchemaError


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
