import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import FrameTemplate
from skdpgen.data.restoring import restored


def like(frame):
    return FrameTemplate.from_frame(frame)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int64", [-2, 0, 3, 0, 2**63 - 1024]),
        ("uint8", [0, 0, 3, 0, 255]),
        ("uint64", [0, 0, 3, 0, 2**64 - 2048]),
        ("float32", [-1.5, 0.49, 2.51, np.nan, np.inf]),
        ("bool", [False, False, True, False, True]),
        ("Int16", [-2, 0, 3, pd.NA, 2**15 - 1]),
        ("Float64", [-1.5, 0.49, 2.51, pd.NA, np.inf]),
        ("boolean", [False, False, True, pd.NA, True]),
    ],
)
def test_numbers_are_rounded_and_clipped_into_their_dtype(dtype, expected):
    table = pd.DataFrame({"a": [-1.5, 0.49, 2.51, np.nan, 1e30]})
    if "Float" in dtype or "float" in dtype:
        table["a"] = table["a"].replace(1e30, np.inf)
    result = restored(table, like(pd.DataFrame({"a": pd.Series([1], dtype=dtype)})))
    expected = pd.Series(expected, dtype=dtype, name="a")
    pd.testing.assert_series_equal(result["a"], expected)


def test_infinity_is_no_whole_number():
    table = pd.DataFrame({"a": [np.inf, 3.0]})
    assert restored(table, like(pd.DataFrame({"a": [1]})))["a"].tolist() == [0, 3]


def test_integers_and_booleans_become_floats():
    template = like(pd.DataFrame({"a": [0.5], "b": [0.5]}))
    result = restored(pd.DataFrame({"a": [1], "b": [True]}), template)
    assert result.to_dict("list") == {"a": [1.0], "b": [1.0]}


def test_booleans_become_integers():
    result = restored(pd.DataFrame({"a": [True, False]}), like(pd.DataFrame({"a": [7]})))
    assert result["a"].tolist() == [1, 0]


def test_integers_are_clipped_into_narrower_ones():
    result = restored(pd.DataFrame({"a": [300, -5]}), like(pd.DataFrame({"a": [1]}, dtype="uint8")))
    assert result["a"].tolist() == [255, 0]


def test_arrays_become_frames_by_position():
    frame = pl.DataFrame({"a": [1], "b": [0.5]})
    result = restored(np.array([[1.6, 2.5]]), like(frame))
    assert result.equals(pl.DataFrame({"a": [2], "b": [2.5]}))
    array = restored(pd.DataFrame({"p": [1.6]}), like(np.zeros((1, 1), dtype=int)))
    assert array.tolist() == [[2]]


def test_order_and_other_columns():
    template = like(pd.DataFrame({"a": [1], "t": ["x"], "when": pd.to_datetime(["2020-01-01"])}))
    part = pd.DataFrame({"t": ["y"], "a": [1.2]})
    result = restored(part, template)
    assert result.columns.tolist() == ["a", "t"]
    assert result.loc[0].tolist() == [1, "y"]
    other = pd.DataFrame({"z": [1.2]})
    assert restored(other, template) is other
    wide = np.zeros((1, 5))
    assert restored(wide, template) is wide
