import datetime
import pickle
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdpgen.data.dtypes import backend_of, describe_dtype
from skdpgen.exceptions import InputError

PANDAS = {
    "bool": ("bool", False),
    "boolean": ("bool", True),
    "bool[pyarrow]": ("bool", True),
    "int8": ("int", False),
    "uint64": ("int", False),
    "Int32": ("int", True),
    "UInt8": ("int", True),
    "int64[pyarrow]": ("int", True),
    "float32": ("float", True),
    "Float64": ("float", True),
    "double[pyarrow]": ("float", True),
    "str": ("text", True),
    "string": ("text", True),
    "string[python]": ("text", True),
    "string[pyarrow]": ("text", True),
    "large_string[pyarrow]": ("text", True),
    "category": ("category", True),
    "datetime64[ns]": ("datetime", True),
    "datetime64[s, Europe/Berlin]": ("datetime", True),
    "timestamp[us][pyarrow]": ("datetime", True),
    "date32[pyarrow]": ("datetime", True),
    "object": ("object", True),
}


def described(dtype, library="pandas"):
    module = pd if library == "pandas" else pl
    return describe_dtype(module.Series([], dtype=dtype).dtype, library)


@pytest.mark.parametrize("dtype", PANDAS)
def test_pandas_dtypes(dtype):
    found = described(dtype)
    assert (found.family, found.nullable) == PANDAS[dtype]
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(pickle.loads(pickle.dumps(found))) == hash(found)


@pytest.mark.parametrize(
    ("dtype", "family"),
    [
        (pl.Boolean, "bool"),
        (pl.UInt8, "int"),
        (pl.Int64, "int"),
        (pl.Float32, "float"),
        (pl.String, "text"),
        (pl.Categorical, "category"),
        (pl.Enum(["a"]), "category"),
        (pl.Datetime("ms", "UTC"), "datetime"),
        (pl.Date, "datetime"),
    ],
)
def test_polars_dtypes(dtype, family):
    found = described(dtype, "polars")
    assert (found.family, found.nullable) == (family, True)
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.declared_levels == (("a",) if dtype == pl.Enum else None)


def test_limits_units_and_zones():
    assert described("UInt8").limits == (0, 255)
    assert described("int64[pyarrow]").limits == (-(2**63), 2**63 - 1)
    assert described(pl.UInt64, "polars").limits == (0, 2**64 - 1)
    assert described("float32").limits[1] == int(np.finfo("float32").max)
    assert described("datetime64[ms]").unit == "ms"
    assert described("date32[pyarrow]").unit == "D"
    berlin = [
        described("datetime64[s, Europe/Berlin]"),
        described(pd.ArrowDtype(pa.timestamp("us", "Europe/Berlin"))),
        described(pl.Datetime("us", "Europe/Berlin"), "polars"),
    ]
    assert [d.zone for d in berlin] == [ZoneInfo("Europe/Berlin")] * 3
    fixed = described(pd.ArrowDtype(pa.timestamp("us", "+02:00")))
    moment = datetime.datetime(2020, 1, 1)
    assert fixed.zone.utcoffset(moment) == datetime.timedelta(hours=2)


def test_what_a_dtype_remembers_of_the_rows_is_left_out():
    a = describe_dtype(pd.CategoricalDtype(["x"]), "pandas")
    assert a == describe_dtype(pd.CategoricalDtype(["a secret", "x"]), "pandas")
    assert a != describe_dtype(pd.CategoricalDtype(["x"], ordered=True), "pandas")
    short, long = np.array(["a"]).dtype, np.array(["a long text"]).dtype
    assert describe_dtype(short, "numpy") == describe_dtype(long, "numpy")
    assert describe_dtype(long, "numpy").label == "str"
    assert a.label == "category"


def test_object_columns_are_described_without_a_look_at_their_cells():
    # Narwhals calls the first one text and the second one object.
    texts = pd.Series(["a", "b"], dtype=object).dtype
    mixed = pd.Series(["a", [1]], dtype=object).dtype
    assert describe_dtype(texts, "pandas") == describe_dtype(mixed, "pandas")


@pytest.mark.parametrize(
    ("dtype", "library", "rule"),
    [
        (np.dtype("complex64"), "numpy", "Complex data not supported"),
        (np.dtype("m8[s]"), "pandas", "time differences"),
        (np.dtype("S3"), "numpy", "bytes"),
        (np.dtype([("a", "i4")]), "numpy", "records"),
        (np.dtypes.StringDType(), "numpy", "variable-width"),
        (np.dtype("longdouble"), "numpy", "more than 64 bits"),
        (np.dtype("M8[M]"), "numpy", "datetimes of this unit"),
        (np.dtype("M8[10s]"), "numpy", "datetimes of this unit"),
        (pd.SparseDtype("int64"), "pandas", "sparse"),
        (pd.PeriodDtype("D"), "pandas", "PeriodDtype"),
        (pd.IntervalDtype("int64"), "pandas", "IntervalDtype"),
        (pd.ArrowDtype(pa.list_(pa.int8())), "pandas", "list"),
        (pd.ArrowDtype(pa.decimal128(9, 2)), "pandas", "decimal"),
        (pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())), "pandas", "dictionary"),
        (pl.List(pl.Int8), "polars", "List"),
        (pl.Struct({"a": pl.Int8}), "polars", "Struct"),
        (pl.Decimal(9, 2), "polars", "Decimal"),
        (pl.Duration("us"), "polars", "Duration"),
        (pl.Time(), "polars", "Time"),
        (pl.Object(), "polars", "Object"),
        (pl.Null(), "polars", "Null"),
        (pl.Int128(), "polars", "Int128"),
    ],
)
def test_refused_by_name(dtype, library, rule):
    with pytest.raises(InputError, match=rule) as caught:
        describe_dtype(dtype, library, "wage")
    assert "column 'wage' has a dtype that is not supported" in str(caught.value)


def test_library_of():
    assert backend_of(pd.array([1], dtype="Int64")) == "pandas"
    assert backend_of(pl.Series([1])) == "polars"
    assert backend_of(np.zeros(1)) == "numpy"
