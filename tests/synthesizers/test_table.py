"""The codec of tables: structure checked without reading cells, rows in, rows out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import Schema
from skdpgen.data import Categorical, Datetime, Id, Numeric, Ordinal, Text
from skdpgen.exceptions import InputError, SchemaError
from skdpgen.synthesizers._table import TableCodec, empty_frame

SCHEMA = Schema(
    {"a": Numeric((0, 10)), "u": Categorical(["p", "q"]), "c": Categorical(["x", "y"])},
    target="c",
)
DF = pd.DataFrame({"u": ["p", "q", "?"], "c": ["x", "y", "z"], "a": [0.0, 5.0, 99.0]})


def encoded(codec, X, y=None):
    rows, labels = zip(*codec.encode(X, y), strict=True)
    return np.vstack(rows), np.concatenate(labels)


def test_rows_are_encoded_in_the_order_of_the_frame():
    codec = TableCodec.build(DF, None, SCHEMA)
    rows, labels = encoded(codec, DF)
    assert rows.tolist() == [[1, 0, 0.0], [0, 1, 0.5], [1, 0, 1.0]]
    assert labels.tolist() == [0, 1, 0]
    assert list(codec.schema.columns) == ["u", "c", "a"]
    assert codec.layout.groups == ((0, 2),)
    assert codec.layout.numeric == (2,)
    assert (codec.n_classes, codec.classes) == (2, ["x", "y"])


def test_decoding_gives_the_frame_back():
    codec = TableCodec.build(DF, None, SCHEMA)
    back = codec.decode(*encoded(codec, DF))
    expected = pd.DataFrame({"u": ["p", "q", "p"], "c": ["x", "y", "x"], "a": [0.0, 5.0, 10.0]})
    pd.testing.assert_frame_equal(back, expected.astype(DF.dtypes))


def test_decoding_gives_table_and_target_back():
    X, y = DF[["a", "u"]], pd.Series([9, 1, 1], name="c", dtype="Int8")
    schema = SCHEMA.with_columns({"c": Categorical([9, 1], missing=True)})
    codec = TableCodec.build(X, y, schema)
    rows, labels = encoded(codec, X, y)
    assert labels.tolist() == [0, 1, 1]
    X_back, y_back = codec.decode(rows, labels)
    assert X_back.columns.tolist() == ["a", "u"]
    pd.testing.assert_series_equal(y_back, y)
    assert codec.classes == [9, 1, None]
    assert list(codec.schema.columns) == ["a", "u", "c"]


def test_number_as_target_is_one_more_feature():
    X, y = DF[["u"]], DF["a"]
    schema = Schema({"a": Numeric((0, 10)), "u": Categorical(["p", "q"])}, target="a")
    codec = TableCodec.build(X, y, schema)
    rows, labels = encoded(codec, X, y)
    assert rows.tolist() == [[1, 0, 0.0], [0, 1, 0.5], [1, 0, 1.0]]
    assert labels.tolist() == [0, 0, 0]
    assert (codec.layout.numeric, codec.n_classes, codec.classes) == ((2,), 1, [])
    assert codec.decode(rows, labels)[1].tolist() == [0.0, 5.0, 10.0]


def test_atoms_cover_the_features_and_a_number_as_target():
    X, y = DF[["u"]], DF["a"]
    schema = Schema({"a": Numeric((0, 10), "int"), "u": Categorical(["p", "q"])}, target="a")
    codec = TableCodec.build(X, y, schema)
    atoms = codec.atoms(16)
    assert (atoms.n_codes, atoms.n_ordered, atoms.width) == ((2, 11), (0, 11), codec.layout.width)
    rows, _ = encoded(codec, X, y)
    assert atoms.encode(rows).tolist() == [[0, 0], [1, 5], [0, 10]]
    # A labeled target has no atoms: it is the class.
    assert TableCodec.build(DF, None, SCHEMA).atoms(16).width == 3


def test_chunks_of_table_and_target_stay_together(monkeypatch):
    monkeypatch.setattr("skdpgen.synthesizers._table._CHUNK_CELLS", 6)
    codec = TableCodec.build(DF, None, SCHEMA)
    assert len(list(codec.encode(DF, None))) == 2
    labels = pd.Series(["x", "y", "x"], index=[2.5, 0.5, 1.5], name="c")
    beside = TableCodec.build(DF[["a", "u"]], labels, SCHEMA)
    assert encoded(beside, DF[["a", "u"]], labels)[1].tolist() == [0, 1, 0]


def test_schema_of_the_release_describes_what_was_encoded():
    schema = Schema(
        {
            "i": Numeric((0.5, 9.5), missing=True),
            "u": Ordinal([1, 2], missing=[-1]),
            "c": Categorical(["x"], missing=True),
        },
        target="c",
        default=Numeric((0, 1)),
        notes="a note",
    )
    df = pd.DataFrame({"z": [0.5], "i": [3], "u": [2], "c": ["x"]}).astype({"i": "int8"})
    facts = TableCodec.build(df, None, schema).public_schema()
    assert facts["columns"] == {
        "z": {"kind": "numeric", "bounds": [0, 1], "dtype": "float"},
        "i": {"kind": "numeric", "bounds": [1, 9], "dtype": "int"},
        "u": {"kind": "ordinal", "values": [1, 2]},
        "c": {"kind": "label", "values": ["x"], "missing": True},
    }
    assert (facts["target"], facts["notes"], "default" in facts) == ("c", "a note", False)


def test_schemas_that_json_cannot_hold():
    odd_names = Schema({(1, 2): Numeric((0, 1))})
    frame = pd.DataFrame(np.zeros((2, 1)), columns=pd.MultiIndex.from_tuples([(1, 2)]))
    assert TableCodec.build(frame, None, odd_names).public_schema() is None
    for metadata in ({"seen": {1}}, {"share": float("nan")}):
        odd_facts = Schema({"a": Numeric((0, 1), metadata=metadata)})
        with pytest.raises(SchemaError, match="metadata"):
            TableCodec.build(DF[["a"]], None, odd_facts).public_schema()


def test_labels_that_users_ask_for_are_checked():
    codec = TableCodec.build(DF, None, SCHEMA)
    assert codec.encode_labels(["y", np.str_("x")]).tolist() == [1, 0]
    for bad in ("z", None, ["x"], 0, np.array(["x"])):
        with pytest.raises(InputError, match="is not one of the classes"):
            codec.encode_labels([bad])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_structure_only(library):
    # Frames of no cells but many names: what decides is names and dtypes.
    frame = pd.DataFrame({"c": ["x"], "a": [1.0], "u": ["p"], "more": [1]})
    frame = pl.from_pandas(frame) if library == "polars" else frame
    with pytest.raises(InputError, match="not in the schema: 'more'"):
        TableCodec.build(frame, None, SCHEMA)


def test_usual_dtypes():
    schema = Schema(
        {
            "i": Numeric((0, 9), "int"),
            "m": Numeric((0, 9), "int", missing=True),
            "w": Numeric((2**63, 2**63 + 1), "int"),
            "v": Numeric((2**63, 2**63 + 1), "int", missing=True),
            "f": Numeric((0, 9), missing=True),
            "t": Datetime(("2020-01-01", "2020-01-02")),
            "z": Datetime(("2020-01-01T00:00+01:00", "2020-01-02T00:00+01:00")),
            "b": Categorical([True, False]),
            "n": Categorical([True, False], missing=True),
            "k": Categorical([1, 2]),
            "o": Categorical([1, 2], missing=True),
            "s": Categorical(["1", 2]),
            "id": Id(),
            "text": Text(),
        }
    )
    assert [str(dtype) for dtype in empty_frame(schema).dtypes] == [
        "int64",
        "Int64",
        "uint64",
        "UInt64",
        "float64",
        "datetime64[us]",
        "datetime64[us, UTC]",
        "bool",
        "boolean",
        "int64",
        "Int64",
        "object",
        "int64",
        "object",
    ]
