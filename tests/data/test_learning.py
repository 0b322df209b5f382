"""Which columns are open follows from names, dtypes, schema; what was learned closes them."""

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Boolean, Categorical, Datetime, FrameTemplate, Id, Numeric, Schema
from skdpgen.data.dtypes import backend_of, describe_dtype
from skdpgen.data.learning import OpenColumns
from skdpgen.exceptions import InputError

FRAME = pd.DataFrame(
    {
        "real": [0.5, 2.0, np.nan],
        "whole": [1, 2, 3],
        "masked": pd.array([1, 2, None], dtype="Int32"),
        "flag": [True, False, True],
        "maybe": pd.array([True, None, True], dtype="boolean"),
        "text": ["a", "b", None],
        "object": pd.Series(["a", 1, None], dtype=object),
        "level": pd.Categorical(["x", None, "x"]),
        "time": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
    }
)


def find(frame, schema=None, target=None):
    return OpenColumns.find(FrameTemplate.from_frame(frame).dtypes, schema, target)


def dtype_of(column):
    return describe_dtype(column.dtype, backend_of(column))


def test_without_a_schema_dtypes_decide():
    columns = find(FRAME)
    specs = columns.schema.columns
    assert list(specs) == list(FRAME)
    assert specs["flag"] == Boolean()
    assert specs["maybe"] == Boolean(missing=True)
    assert specs["real"] == Numeric(None)
    assert specs["whole"] == specs["masked"] == Numeric(None, "int")
    assert specs["text"] == specs["object"] == specs["level"] == Categorical(None)
    assert specs["time"] == Datetime(None)
    assert list(columns.readers) == ["real", "whole", "masked", "text", "object", "level", "time"]
    # Missing cells are counted where the dtype can hold them.
    counted = [name for name, reader in columns.readers.items() if reader.count_missing]
    assert counted == ["real", "masked", "text", "object", "level", "time"]
    assert columns.n_bins == (202, 101, 102, 501)
    assert columns.n_key_columns == 3
    assert columns.positions == {n: list(FRAME).index(n) for n in columns.readers}


def test_polars_and_numpy():
    frame = pl.DataFrame({"f": [0.5], "t": ["a"], "d": [datetime(2020, 1, 1)]}).with_columns(
        e=pl.lit("p").cast(pl.Enum(["p", "q"])), c=pl.lit("p").cast(pl.Categorical)
    )
    columns = find(frame)
    assert list(columns.readers) == ["f", "t", "d", "c"]
    assert columns.schema.columns["e"] == Categorical(("p", "q"))
    assert list(find(np.zeros((2, 3))).readers) == ["x0", "x1", "x2"]


@pytest.mark.parametrize("cell", [1e9, -1e9, np.inf, np.nan])
def test_cells_do_not_decide(cell):
    changed = FRAME.assign(real=[cell] * 3)
    assert find(changed) == find(FRAME)


@pytest.mark.parametrize(
    ("y", "spec"),
    [
        (pd.Series(["a"]), Categorical(None)),
        (pd.Series([1]), Categorical(None)),
        (pd.Series([True]), Boolean()),
        (pd.Series([0.5]), Numeric(None)),
        (pd.Series(["a"], dtype="category"), Categorical(None)),
        (np.array([1, "a"], dtype=object), Categorical(None)),
    ],
)
def test_a_target_that_is_given_apart(y, spec):
    columns = find(FRAME[["real"]], None, ("y", dtype_of(y)))
    assert columns.schema.columns == {"real": Numeric(None), "y": spec}
    assert columns.schema.target == "y"
    assert columns.positions.get("y") is None


def test_with_a_schema_only_what_it_lacks_is_open():
    schema = Schema(
        {"real": Numeric((0, 1)), "text": Categorical(None), "time": Datetime(None), "key": Id()},
        target="text",
    )
    frame = FRAME[["real", "text", "time"]].assign(key=1, more=2)
    columns = find(frame, schema)
    assert list(columns.readers) == ["text", "time"]
    assert all(reader.count_missing for reader in columns.readers.values())
    said = schema.with_columns({"text": {"missing": True}, "time": {"missing": ["?"]}})
    assert not any(reader.count_missing for reader in find(frame, said).readers.values())
    assert columns.schema == schema
    assert find(frame, Schema({"real": Numeric((0, 1))})).readers == {}


def test_an_open_default_is_open_for_each_column():
    columns = find(np.zeros((2, 3)), Schema({"x1": Numeric((0, 1))}, default=Numeric(None)))
    assert list(columns.readers) == ["x0", "x2"]
    closed = columns.declared([(), (101,)], [])
    assert [closed.columns[n].bounds for n in ("x0", "x1", "x2")] == [
        (-1000.0, 1000.0),
        (0, 1),
        (2.0**-50, 2.0**-49),
    ]


def test_an_enum_declares_its_values():
    frame = pl.DataFrame({"e": ["p"]}).cast(pl.Enum(["p", "q"]))
    columns = find(frame, Schema({"e": Categorical(None)}))
    assert columns.readers == {}
    assert columns.schema.columns["e"].values == ("p", "q")


def test_a_dtype_that_cannot_hold_the_kind_is_refused():
    with pytest.raises(InputError, match="column 'time' is declared numeric"):
        find(FRAME[["time"]], Schema({"time": Numeric(None)}))


def test_rows_are_read_each_on_its_own():
    y = pd.Series([1, 2, 2])
    columns = find(FRAME, None, ("y", dtype_of(y)))
    bins, keys = columns.read(FRAME, y)
    assert bins.shape == (3, 4)
    cells = [[found[code] for code in codes] for codes, found in keys]
    assert cells == [["a", "b", None], ["a", 1, None], ["x", None, "x"], [1, 2, 2]]
    for i in range(3):
        part = slice(i, i + 1)
        alone, alone_keys = columns.read(FRAME.iloc[part], y.iloc[part])
        assert alone.tolist() == bins[part].tolist()
        assert [[f[c] for c in codes] for codes, f in alone_keys] == [[c[i]] for c in cells]


def test_without_columns_of_numbers_there_are_no_bins():
    bins, _ = find(FRAME[["text"]]).read(FRAME[["text"]])
    assert bins.shape == (3, 0)
    assert bins.dtype == np.int64


def test_what_was_learned_closes_the_schema():
    columns = find(FRAME)
    bins, _ = columns.read(FRAME)
    occupied = [sorted(set(column)) for column in bins.T.tolist()]
    schema = columns.declared(occupied, [("a", "b", None), (1, "a"), ()])
    found = schema.columns
    assert all(column.undeclared is None for column in found.values())
    assert (found["real"].bounds, found["real"].missing) == ((0.5, 4.0), True)
    assert (found["whole"].bounds, found["whole"].missing) == ((1, 3), False)
    assert found["time"].bounds == ("2020-01-01T00:00:00", "2021-12-31T23:59:59")
    assert (found["text"].categories, found["text"].missing) == (("a", "b", "other"), True)
    assert (found["object"].categories, found["object"].missing) == ((1, "a"), True)
    assert (found["level"].categories, found["level"].missing) == (("other",), True)
    learned = {n for n, c in found.items() if c.metadata.get("learned")}
    assert learned == set(columns.readers)
    assert Schema.from_dict(schema.to_dict()) == schema
