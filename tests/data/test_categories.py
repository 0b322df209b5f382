import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Boolean, Categorical, make_encoder
from skdpgen.exceptions import InputError


def codes(column, cells, **kwargs):
    return make_encoder(column, cells, **kwargs).codes(cells).tolist()


def test_numbers_are_compared_as_numbers():
    column = Categorical([0, 1])
    assert codes(column, np.array([1.0, 0.0])) == [1, 0]
    assert codes(column, np.array([True, False])) == [1, 0]
    assert codes(column, pd.Series([1, 0], dtype="UInt8")) == [1, 0]
    assert codes(column, pd.Series([True, 0.0, np.int8(1)], dtype=object)) == [1, 0, 1]
    assert codes(Boolean(), np.array([0, 1, 7, -1], dtype="int8")) == [0, 1, 0, 0]
    assert codes(Boolean(), pd.Series(["True", "False"])) == [1, 0]
    assert codes(Categorical([0.5, 1.5]), pd.Series([1.5, 1], dtype=object)) == [1, 0]
    # None of the declared values is an integer, but a test table may have integers only.
    assert make_encoder(Categorical([0.5, 1.5]), np.array([0.5])).codes(np.array([1])) == [0]
    assert codes(Categorical([0.1, 0.5]), np.array([0.5, 0.1], dtype="float32")) == [1, 0]


def test_texts_are_compared_exactly():
    column = Categorical(["311", "0311"])
    assert codes(column, pd.Series(["0311", "311", " 311"])) == [1, 0, 0]
    assert codes(Categorical([0, 1]), pd.Series(["1", "01", "0"])) == [1, 0, 0]
    # Codes that a reader of CSV files has turned into integers.
    assert codes(Categorical(["94", "95"]), np.array([95, 94])) == [1, 0]
    assert make_encoder(Categorical(["94", "95"]), np.array([95])).decode_codes(
        np.array([1])
    ).tolist() == [95]
    with pytest.raises(InputError, match=r"'c': the declared value '0311' does not fit .* int64"):
        make_encoder(column, np.array([1]), "c")


def test_large_integers_are_told_apart():
    values = [2**63 - 1, 2**63 - 2]
    assert codes(Categorical(values), np.array(values)) == [0, 1]
    values = [2**64 - 1, 2**64 - 2]
    assert codes(Categorical(values), np.array(values, dtype="uint64")) == [0, 1]


@pytest.mark.parametrize(
    ("column", "unknown", "null"),
    [
        (Categorical(["a", "b"]), 0, 0),
        (Categorical(["a", "b"], missing=True), 2, 2),
        (Categorical(["a", "b"], other="b"), 1, 1),
        (Categorical(["a", "b"], other="z"), 2, 2),
        (Categorical(["a", "b"], other="z", missing=["?"]), 2, 3),
    ],
)
@pytest.mark.parametrize("dtype", ["str", "string", "category", object, "pl"])
def test_unknown_and_missing_cells(column, unknown, null, dtype):
    cells = ["b", "nope", None, "B"]
    series = pl.Series(cells) if dtype == "pl" else pd.Series(cells, dtype=dtype)
    assert codes(column, series) == [1, unknown, null, unknown]


def test_tokens_mean_missing():
    column = Categorical(["a", "b"], missing=["?", "", -9])
    assert codes(column, pd.Series(["?", "", "-9", "-9.0", "a"])) == [2, 2, 2, 2, 0]
    assert codes(column, pd.Series([-9, "?", "a", 1.5], dtype=object)) == [2, 2, 0, 2]
    numbers = Categorical([1, 2], missing=["9"])
    assert codes(numbers, np.array([1.0, 9.0, np.nan, 2.0])) == [0, 2, 2, 1]
    # A dtype without nulls makes a column that is never missing.
    assert codes(numbers, np.array([9, 2])) == [0, 1]
    assert make_encoder(numbers, np.array([1])).n_codes == 2


def test_hostile_cells(hostile_cells):
    column = Categorical(["17", True, "x"], other="other", missing=True)
    series = pd.Series(hostile_cells, dtype=object)
    found = codes(column, series)
    assert found[:7] == [3, 0, 4, 4, 4, 4, 4]
    assert set(found) == {0, 1, 3, 4}


def test_values_have_to_fit_the_dtype():
    for values, cells in [
        ([1, 300], np.array([1], dtype="uint8")),
        ([1, 0.5], np.array([1])),
        ([0, 2], np.array([True])),
        (["a"], np.array([1.5])),
        (["a", "z"], pl.Series(["a"], dtype=pl.Enum(["a", "b"]))),
        ([1, 2**53 + 1], pd.Series([1], dtype="category")),
        ([1, 10**400], pd.Series([1], dtype="category")),
    ]:
        with pytest.raises(InputError, match=r"column 'c': the declared value .* does not fit"):
            make_encoder(Categorical(values), cells, "c")
    with pytest.raises(InputError, match="'c': two declared values are equal in int64"):
        make_encoder(Categorical(["1", "1.0"]), np.array([1]), "c")


def test_one_hot():
    encoder = make_encoder(Categorical(["a", "b"], missing=True), pd.Series(["a"]))
    assert (encoder.width, encoder.numeric, encoder.groups) == (3, (), ((0, 3),))
    assert encoder.suffixes == ("_a", "_b", "_<missing>")
    rows = encoder.encode(pd.Series(["b", None, "a"]))
    assert rows.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    wild = np.array([[0.2, 1.7, -3.0], [np.nan, -np.inf, -9.0], [np.nan] * 3, [5, np.inf, 0]])
    assert encoder.decode(wild).tolist()[0::2] == ["b", "a"]
    assert pd.isna(encoder.decode(wild)[1])
    assert encoder.decode_codes(np.array([-5, 99])).tolist()[0] == "a"


def test_one_value_needs_no_features():
    encoder = make_encoder(Categorical(["k"]), pd.Series(["k"]))
    assert (encoder.width, encoder.groups, encoder.n_codes) == (0, (), 1)
    assert encoder.encode(pd.Series(["k", "j", None])).shape == (3, 0)
    assert encoder.decode(np.empty((2, 0))).tolist() == ["k", "k"]


def test_pandas_category_gets_the_declared_levels():
    cells = pd.Series(pd.Categorical(["low"], categories=["high", "secret", "low"], ordered=True))
    encoder = make_encoder(Categorical(["low", "mid", "high"], missing=True), cells)
    built = encoder.decode_codes(np.array([2, 3, 0]))
    expected = pd.Categorical(["high", None, "low"], ["low", "mid", "high"], ordered=True)
    pd.testing.assert_extension_array_equal(built, expected)
