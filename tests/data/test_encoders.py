import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpgen.data import (
    Boolean,
    Categorical,
    Datetime,
    Id,
    Numeric,
    Ordinal,
    SeriesTemplate,
    Text,
    make_encoder,
)
from skdpgen.exceptions import InputError, SchemaError


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int64", [0, 1, 2]),
        ("float32", [0.0, 1.0, 2.0]),
        ("str", ["id-0000000", "id-0000001", "id-0000002"]),
        ("string", ["id-0000000", "id-0000001", "id-0000002"]),
        ("category", ["id-0000000", "id-0000001", "id-0000002"]),
        (object, ["id-0000000", "id-0000001", "id-0000002"]),
        ("Int8", [0, 1, 2]),
    ],
)
def test_surrogate_keys(dtype, expected):
    encoder = make_encoder(Id(), pd.Series([], dtype=dtype))
    assert encoder.encode(pd.Series([None, None], dtype=object)).shape == (2, 0)
    built = SeriesTemplate(encoder.dtype).build(encoder.decode(np.empty((3, 0))))
    assert built.tolist() == expected
    assert built.is_unique
    assert dtype == "category" or built.dtype == pd.Series([], dtype=dtype).dtype
    assert len(encoder.decode(np.empty((0, 0)))) == 0


def test_surrogate_keys_do_not_overflow():
    encoder = make_encoder(Id(), np.array([], dtype="uint8"))
    assert encoder.decode(np.empty((300, 0)))[254:258].tolist() == [254, 255, 0, 1]


def test_text_becomes_the_constant():
    for cells in (pd.Series(["a"]), pl.Series(["a"]), np.array(["a"])):
        encoder = make_encoder(Text("gone"), cells)
        assert encoder.encode(cells).shape == (1, 0)
        assert list(encoder.decode(np.empty((2, 0)))) == ["gone", "gone"]
    enum = pl.Series(["a"], dtype=pl.Enum(["a"]))
    for column in (Id(), Text()):
        with pytest.raises(InputError, match="column 'c': an Enum cannot hold new texts"):
            make_encoder(column, enum, "c")


@pytest.mark.parametrize(
    ("column", "encoding"),
    [
        (Numeric((0, 1)), "onehot"),
        (Categorical(["a"]), "scale"),
        (Boolean(), "linear"),
        (Datetime(("2020-01-01", "2021-01-01")), "log1p"),
        (Ordinal(["a"]), "log1p"),
        (Id(), "onehot"),
        (Numeric((0, 1)), "standard"),
    ],
)
def test_unknown_encodings_are_refused(column, encoding):
    with pytest.raises(SchemaError, match=f"'c' of kind {column.kind} has no encoding"):
        make_encoder(column, pd.Series([], dtype=object), "c", encoding)


def test_undeclared_columns_are_refused():
    cells = pd.Series([1])
    with pytest.raises(SchemaError, match=r"'c' has no bounds. Declare .*'bounds': \(LOWER"):
        make_encoder(Numeric(None), cells, "c")
    with pytest.raises(SchemaError, match=r"'c' has no values. Declare .*'values': \[VALUE"):
        make_encoder(Categorical(None), cells, "c")
    with pytest.raises(SchemaError, match=r"column 'c': whole numbers that span 2\*\*45"):
        make_encoder(Numeric((0, 2**50), "int"), cells, "c", "log1p")


# -- totality and row-wiseness ------------------------------------------------------------------

TEXT = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["1", "01", "2.5", "?", "-9", "a", "b", "2020-02-29", "inf", "nan", "1e400"]),
)
OBJECTS = st.one_of(
    TEXT,
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.sampled_from([pd.NA, pd.NaT, np.datetime64("NaT"), np.int8(2), 10**500]),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.binary(max_size=3),
    st.datetimes(),
    st.dates(),
    st.timedeltas(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=1), st.none(), max_size=1),
)
INT64 = st.integers(-(2**63), 2**63 - 1)
SOURCES = {
    "int64": (INT64, lambda c: np.array(c, dtype="int64")),
    "uint8": (st.integers(0, 255), lambda c: pd.Series(c, dtype="uint8")),
    "uint64": (st.integers(0, 2**64 - 1), lambda c: np.array(c, dtype="uint64")),
    "Int64": (st.none() | INT64, lambda c: pd.Series(c, dtype="Int64")),
    "float64": (st.floats(), lambda c: pd.Series(c, dtype="float64")),
    "float32": (st.floats(width=32), lambda c: np.array(c, dtype="float32")),
    "Float64": (st.none() | st.floats(), lambda c: pd.Series(c, dtype="Float64")),
    "boolean": (st.none() | st.booleans(), lambda c: pd.Series(c, dtype="boolean")),
    "str": (st.none() | TEXT, lambda c: pd.Series(c, dtype="str")),
    "category": (st.none() | TEXT, lambda c: pd.Series(c, dtype=object).astype("category")),
    "object": (OBJECTS, lambda c: pd.Series([*c, None], dtype=object).iloc[:-1]),
    "pl.Int64": (st.none() | INT64, lambda c: pl.Series(c, dtype=pl.Int64)),
    "pl.Float64": (st.none() | st.floats(), lambda c: pl.Series(c, dtype=pl.Float64)),
    "pl.String": (st.none() | TEXT, lambda c: pl.Series(c, dtype=pl.String)),
    "pl.Categorical": (st.none() | TEXT, lambda c: pl.Series(c, dtype=pl.Categorical)),
    "datetime": (
        st.none() | INT64,
        lambda c: pd.Series(
            np.array([-(2**63) if x is None else x for x in c], "int64").view("M8[us]")
        ),
    ),
    "pl.Datetime": (st.none() | INT64, lambda c: pl.Series(c, dtype=pl.Datetime("ns", "UTC"))),
}
NUMBERS = (
    Numeric((-3, 2.5)),
    Numeric((0, 9), "int", missing=["?", -9]),
    Numeric((0, 1e9), scale="log1p", missing=True),
    Numeric((2**62, 2**62 + 2**53 - 1), "int"),
    Numeric((0, 2**44), "int", "log1p"),
)
CATEGORIES = (
    Categorical([1, 0], missing=True),
    Ordinal(["1", "2"], other="1", missing=["-9"]),
    Boolean(),
)
TEXTS = (Categorical(["a", "01", "b"], missing=["?"]), Categorical(["b"], other="z"), Text())
TIMES = (
    Datetime(("2020-01-01", "2020-12-31"), format="%Y-%m-%d", missing=True),
    Datetime(("1700-01-01 00:00:00", "2200-12-31 00:00:00"), format="%Y-%m-%d %H:%M:%S"),
)


def columns_for(source):
    if "atetime" in source:
        return TIMES
    if source in ("object", "str", "pl.String"):
        return (*NUMBERS, *CATEGORIES, *TEXTS, *TIMES, Id())
    if source in ("category", "pl.Categorical"):
        return (*CATEGORIES, *TEXTS, Id())
    if source == "boolean":  # what comes out of a wider range is another value
        return (Boolean(missing=True), Categorical([1, 0]), Numeric((0, 1), missing=True))
    numbers = [n for n in NUMBERS if source != "uint8" or n.bounds[0] < 256]
    return (*numbers, *CATEGORIES)


def take(series, positions):
    if isinstance(series, pd.Series):
        return series.iloc[positions]
    return series[positions]


@pytest.mark.parametrize("source", SOURCES)
@settings(deadline=None, max_examples=40)
@given(st.data())
def test_encoding_is_total_and_a_function_of_the_cell(source, data):
    cells, make = SOURCES[source]
    series = make(data.draw(st.lists(cells, min_size=1, max_size=12)))
    column = data.draw(st.sampled_from(columns_for(source)))
    encoding = "scale" if isinstance(column, Ordinal) and data.draw(st.booleans()) else "auto"
    encoder = make_encoder(column, series, encoding=encoding)
    before = pickle.dumps(encoder)
    rows = encoder.encode(series)
    n = len(series)

    assert rows.shape == (n, encoder.width)
    assert rows.dtype == np.float64
    assert ((rows >= 0) & (rows <= 1)).all()
    for start, stop in encoder.groups:
        assert (np.sort(rows[:, start:stop])[:, :-1] == 0).all()
        assert (rows[:, start:stop].sum(axis=1) == 1).all()
    # To the last bit, whatever the other rows, their order and the chunk.
    order = data.draw(st.permutations(range(n)))
    cut = data.draw(st.integers(0, n))
    assert encoder.encode(take(series, list(order))).tobytes() == rows[list(order)].tobytes()
    parts = [encoder.encode(series[:cut]), encoder.encode(series[cut:])]
    assert np.vstack(parts).tobytes() == rows.tobytes()
    assert pickle.dumps(encoder) == before  # nothing is remembered

    # What comes out is in the domain: decoded and encoded again it is the same.
    back = encoder.decode(rows)
    assert len(back) == n
    np.testing.assert_allclose(encoder.encode(back), rows, atol=1e-15)


@pytest.mark.parametrize("column", [*NUMBERS, *CATEGORIES, *TEXTS, *TIMES, Id()], ids=repr)
@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_matrix_is_decoded_into_the_domain(column, data):
    encoder = make_encoder(column, pd.Series([], dtype=object))
    row = st.lists(st.floats(), min_size=encoder.width, max_size=encoder.width)
    drawn = data.draw(st.lists(row, max_size=4))
    features = np.array(drawn, dtype=float).reshape(len(drawn), encoder.width)
    back = encoder.decode(features)
    assert len(back) == len(features)
    for cell in back:
        null = isinstance(cell, float) and math.isnan(cell)
        assert not null or encoder.nullable
        if isinstance(column, Numeric) and not null:
            assert column.bounds[0] <= cell <= column.bounds[1]
        if isinstance(column, Categorical) and not null:
            assert cell in column.categories


def test_vectorized_functions_do_not_depend_on_the_place_in_the_array():
    # Tails of vector loops are where a logarithm could differ in its last bit.
    cells = np.random.default_rng(0).uniform(0, 1e9, 1003)
    encoder = make_encoder(Numeric((0, 1e9), scale="log1p"), cells)
    rows = encoder.encode(cells)
    for size in (1, 2, 3, 7, 64, 129):
        parts = [encoder.encode(cells[i : i + size]) for i in range(0, 1003, size)]
        assert np.vstack(parts).tobytes() == rows.tobytes()
    assert encoder.encode(cells[::-1]).tobytes() == rows[::-1].tobytes()
    assert encoder.encode(np.repeat(cells, 3)[::3]).tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    ("declared", "encoding", "width"),
    [
        ("onehot", "auto", 3),
        ("scale", "auto", 1),
        ("onehot", "scale", 1),
        ("onehot", "linear", 1),
        ("scale", "onehot", 3),
    ],
)
def test_ordinal_columns_say_how_they_are_encoded(declared, encoding, width):
    column = Ordinal(["low", "mid", "high"], encoding=declared)
    cells = pd.Series(["mid", "high"])
    encoder = make_encoder(column, cells, encoding=encoding)
    assert encoder.width == width
    # The column of the encoder makes the same encoder by itself.
    again = make_encoder(encoder.column, cells)
    np.testing.assert_array_equal(again.encode(cells), encoder.encode(cells))
    with pytest.raises(SchemaError, match="encoding must be"):
        Ordinal(["a"], encoding="rank")
