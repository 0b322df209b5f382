"""What goes in comes out: every dtype of every library, every shared data set."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import (
    Boolean,
    Categorical,
    Numeric,
    Ordinal,
    Schema,
    TabularPreprocessor,
)

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def round_trip(schema, table):
    preprocessor = TabularPreprocessor.from_schema(schema).fit(table)
    return preprocessor.inverse_transform(preprocessor.transform(table))


def assert_round_trip(schema, frame):
    back = round_trip(schema, frame)
    assert type(back) is type(frame)
    if isinstance(frame, pd.DataFrame):
        pd.testing.assert_frame_equal(back, frame, check_exact=True)
    else:
        assert back.schema == frame.schema
        assert back.equals(frame, null_equal=True)


def ends(dtype):
    """The 2**53 integers at each end of the range of a dtype, as bounds and cells."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    span = min(high - low, 2**53 - 1)
    for lower in {low, high - span}:
        yield (lower, lower + span), [lower, lower + 1, lower + span // 3, lower + span]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_all_widths(dtype):
    capital = dtype.replace("i", "I").replace("u", "U")
    for bounds, cells in ends(dtype):
        schema = Schema({"n": Numeric(bounds, "int", missing=True)})
        assert_round_trip(schema, pd.DataFrame({"n": np.array(cells, dtype=dtype)}))
        for nullable in (capital, f"{dtype}[pyarrow]"):
            column = pd.Series([*cells, None], dtype=nullable)
            assert_round_trip(schema, pd.DataFrame({"n": column}))
        polars = getattr(pl, capital)
        assert_round_trip(schema, pl.DataFrame({"n": pl.Series([*cells, None], dtype=polars)}))
        array = np.array(cells, dtype=dtype).reshape(-1, 1)
        back = round_trip(Schema({0: Numeric(bounds, "int")}), array)
        np.testing.assert_array_equal(back, array)
        assert back.dtype == dtype


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]"]
)
def test_floats(dtype):
    schema = Schema({"f": Numeric((-150, 1000), missing=True)})
    cells = pd.Series([-150, -0.1, 0.0, 36.6, 999.999, None], dtype=dtype)
    assert_round_trip(schema, pd.DataFrame({"f": cells}))
    # Whole numbers that are stored as floats, because some are missing.
    schema = Schema({"f": Numeric((-150, 1000), "int", missing=True)})
    assert_round_trip(schema, pd.DataFrame({"f": pd.Series([-150, 7, None], dtype=dtype)}))


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_floats_of_polars(dtype):
    schema = Schema({"f": Numeric((-150, 1000), missing=True)})
    cells = pl.Series([-150, -0.1, 0.0, 36.6, 999.999, None], dtype=dtype)
    assert_round_trip(schema, pl.DataFrame({"f": cells}))


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]", object, pl.Boolean])
def test_booleans(dtype):
    schema = Schema({"b": Boolean(missing=True)})
    cells = [True, False] if dtype == "bool" else [True, False, np.nan if dtype is object else None]
    if dtype == pl.Boolean:
        assert_round_trip(schema, pl.DataFrame({"b": pl.Series(cells, dtype=dtype)}))
    else:
        assert_round_trip(schema, pd.DataFrame({"b": pd.Series(cells, dtype=dtype)}))


TEXTS = ["str", "string", "string[python]", "string[pyarrow]", "large_string[pyarrow]", object]


@pytest.mark.parametrize("dtype", [*TEXTS, pl.String, pl.Categorical, pl.Enum(["311", "0311"])])
def test_texts(dtype):
    schema = Schema({"t": Categorical(["0311", "311"], missing=True)})
    cells = ["0311", "311", np.nan if dtype is object else None]
    if dtype in TEXTS:
        assert_round_trip(schema, pd.DataFrame({"t": pd.Series(cells, dtype=dtype)}))
    else:
        assert_round_trip(schema, pl.DataFrame({"t": pl.Series(cells, dtype=dtype)}))


def test_arrays_of_texts_and_objects():
    schema = Schema({0: Categorical(["0311", "1"]), 1: Categorical(["a", "a long text"])})
    for dtype in (np.str_, object):
        array = np.array([["0311", "a"], ["1", "a long text"]], dtype=dtype)
        np.testing.assert_array_equal(round_trip(schema, array), array)
    schema = Schema({0: Numeric((0, 9), "int"), 1: Categorical(["a"], missing=True)})
    array = np.array([[3, "a"], [4, None]], dtype=object)
    back = round_trip(schema, array)
    assert back[:, 0].tolist() == [3, 4]
    assert back[0, 1] == "a"
    assert np.isnan(back[1, 1])


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "values", [["low", "unused", "high"], [3, 1, 2], [0.5, 1.5], [True, False]]
)
def test_pandas_categories_keep_order_and_unused_levels(ordered, values):
    cells = pd.Categorical([values[-1], None, values[0]], categories=values, ordered=ordered)
    schema = Schema({"c": Ordinal(values, missing=True)})
    assert_round_trip(schema, pd.DataFrame({"c": cells}))


def test_column_order_and_index():
    frame = pd.DataFrame({"z": [1], "a": [2], "m": [3]}, index=["row"])
    schema = Schema({name: Numeric((0, 9)) for name in "amz"})
    pd.testing.assert_frame_equal(round_trip(schema, frame), frame.reset_index(drop=True))


@pytest.mark.parametrize("dtype", ["float64", "Int64", "str", "category", "boolean", object])
def test_a_column_without_any_value_harms_no_other(dtype):
    column = {
        "float64": Numeric((0, 1), missing=True),
        "Int64": Numeric((0, 9), "int", missing=True),
        "boolean": Boolean(missing=True),
    }.get(dtype, Categorical(["a"], missing=True))
    schema = Schema({"empty": column, "n": Numeric((0, 9), "int")})
    frame = pd.DataFrame({"n": [1, 2], "empty": pd.Series([np.nan, None], dtype=dtype)})
    back = round_trip(schema, frame)
    assert back["n"].tolist() == [1, 2]
    assert back["empty"].isna().all()
    assert dtype == "category" or back["empty"].dtype == frame["empty"].dtype


def test_missing_values_are_not_invented():
    schema = Schema({"f": Numeric((0, 1)), "c": Categorical(["a", "b"])})
    frame = pd.DataFrame({"f": [np.nan, 1.0], "c": [None, "b"]})
    assert round_trip(schema, frame).to_dict("list") == {"f": [0.5, 1.0], "c": ["a", "b"]}
    rows = np.random.default_rng(0).normal(size=(100, 3))
    back = TabularPreprocessor(schema=schema).fit(frame).inverse_transform(rows)
    assert not back.isna().any().any()


SMALL = ["acs_national2019", "adult", "bank_marketing", "cervical", "compas", "pums_small"]
MORE = ["credit_fraud", "epileptic", "isolet", "nltcs", "taxis", "telco_churn", "titanic"]
LARGE = ["census_kdd", "covtype", "diabetes130", "intrusion", "mnist", "nist_taxi"]


@pytest.mark.parametrize("name", [*SMALL, *MORE, *LARGE])
def test_shared_data(shared_data, name):
    frame, entries = shared_data.load(name)
    frame = frame.iloc[:: max(len(frame) // 20_000, 1)].reset_index(drop=True)
    schema = Schema.from_dict(entries)
    undeclared = [n for n, column in schema.columns.items() if column.undeclared]
    schema, frame = schema.drop(undeclared), frame.drop(columns=undeclared)
    unread = [n for n, column in schema.columns.items() if column.kind in ("id", "text")]

    preprocessor = TabularPreprocessor.from_schema(schema).fit(frame)
    rows = preprocessor.transform(frame)
    assert ((rows >= 0) & (rows <= 1)).all()
    back = preprocessor.inverse_transform(rows)
    assert back.columns.tolist() == frame.columns.tolist()
    if name == "credit_fraud":  # principal components with 15 decimals, within -150 .. 150
        pd.testing.assert_frame_equal(back, frame, rtol=0, atol=1e-13)
    else:
        expected = frame.drop(columns=unread)
        pd.testing.assert_frame_equal(back.drop(columns=unread), expected, check_exact=True)
    for column in unread:
        assert back[column].dtype == frame[column].dtype

    if name in SMALL:
        polars = pl.from_pandas(frame)
        preprocessor = TabularPreprocessor.from_schema(schema).fit(polars)
        nullable = {c for c, e in preprocessor.encoders_.items() if e.nullable}
        if nullable == {c for c in nullable if frame[c].dtype != np.int64}:
            np.testing.assert_array_equal(preprocessor.transform(polars), rows)
        back = preprocessor.inverse_transform(preprocessor.transform(polars))
        assert back.drop(unread).equals(polars.drop(unread), null_equal=True)


@pytest.mark.parametrize("name", ["adult", "telco_churn", "titanic"])
def test_raw_text_encodes_like_parsed_columns(shared_data, name):
    frame, entries = shared_data.load(name)
    raw, _ = shared_data.load(name, raw=True)
    schema = Schema.from_dict(entries)
    undeclared = [n for n, column in schema.columns.items() if column.undeclared]
    schema = schema.drop(undeclared)
    parsed = TabularPreprocessor(schema=schema).fit(frame.drop(columns=undeclared))
    texts = TabularPreprocessor(schema=schema).fit(raw.drop(columns=undeclared))
    rows = texts.transform(raw.drop(columns=undeclared))
    np.testing.assert_array_equal(rows, parsed.transform(frame.drop(columns=undeclared)))
