import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpgen.data import Boolean, Categorical, Datetime, Id, Numeric, Ordinal, Text, make_encoder
from skdpgen.data.text_cells import column_of_texts

COLUMNS = [
    None,
    Numeric((0, 10)),
    Numeric((0, 10), "int", missing=("?", -9)),
    Numeric((2**63, 2**63 + 9), "int"),
    Numeric(None, "int"),
    Categorical(("red", 1, 2.5), missing=("?",), other="other"),
    Categorical(("0", "1")),
    Categorical(None),
    Ordinal(("low", "high")),
    Boolean(missing=True),
    Datetime(("2020-01-01", "2020-12-31"), format="%Y-%m-%d"),
    Datetime(("2020-01-01", "2020-12-31")),
    Datetime(("2020-01-01T00:00+00:00", "2020-12-31T00:00+00:00")),
    Id(),
    Text(),
]


def listed(cells, column):
    found = pd.Series(column_of_texts(cells, column))
    return [None if missing else cell for cell, missing in zip(found, found.isna(), strict=True)]


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (None, "string"),
        (Numeric((0, 1)), "Float64"),
        (Numeric((0, 1), "int"), "Int64"),
        (Numeric((2**63, 2**63 + 5), "int"), "UInt64"),
        (Numeric(None), "Float64"),
        (Categorical((0, 1)), "string"),
        (Boolean(), "boolean"),
        (Datetime(("2020-01-01", "2020-12-31")), "datetime64[us]"),
        (Datetime(("2020-01-01T00:00Z", "2020-12-31T00:00Z")), "datetime64[us, UTC]"),
        (Id(), "string"),
    ],
)
def test_the_dtype_is_that_of_the_schema_whatever_the_cells(column, dtype):
    for cells in ([], ["1"], ["x", "", "2.5"], ["9" * 30]):
        assert column_of_texts(cells, column).dtype == dtype


def test_numbers():
    assert listed(["1.5", " 2 ", "", " ", "x", "nan", "1e400", "?"], Numeric((0, 9))) == [
        1.5, 2.0, None, None, None, None, np.inf, None,
    ]  # fmt: skip


def test_whole_numbers_are_rounded_and_cut_to_64_bits():
    column = Numeric((0, 9), "int", missing=("?", "-9"))
    cells = ["7", "2.5", "3.5", "1e400", "-" + "9" * 30, "?", "-9", "-9.0"]
    assert listed(cells, column) == [7, 2, 4, 2**63 - 1, -(2**63), None, None, None]
    assert listed([str(2**64)], Numeric((2**63, 2**63 + 1), "int")) == [2**64 - 1]


def test_values_that_are_numbers_in_any_notation():
    cells = ["0", "0.0", " 1", "+1", "1e0", "2", ""]
    assert listed(cells, Categorical((0, 1))) == ["0", "0", "1", "1", "1", "2", None]


def test_values_that_are_texts_as_they_are_but_for_spaces():
    column = Categorical(("0311", "red", " x"), missing=("?",))
    cells = ["0311", "311", " red ", "Red", " x", "?", " ? ", ""]
    assert listed(cells, column) == ["0311", "311", "red", "Red", " x", None, None, None]


def test_an_empty_text_may_be_a_value():
    assert listed(["", "a"], Categorical(("", "a"))) == ["", "a"]


def test_booleans():
    cells = ["True", "false", "T", "n", "YES", "1", "0.0", "2", "", "maybe"]
    expected = [True, False, True, False, True, True, False, None, None, None]
    assert listed(cells, Boolean()) == expected


def test_times():
    column = Datetime(("01.01.2020", "31.12.2020"), format="%d.%m.%Y", missing=("never",))
    assert listed(["07.03.2020", "2020-03-07", "never", ""], column) == [
        pd.Timestamp("2020-03-07"), None, None, None,
    ]  # fmt: skip
    iso = Datetime(("2020-01-01T00:00Z", "2020-12-31T00:00Z"))
    assert listed(["2020-03-07T12:00+02:00", "?"], iso) == [
        pd.Timestamp("2020-03-07T10:00Z"),
        None,
    ]


@given(st.lists(st.text(), max_size=4), st.sampled_from(COLUMNS))
def test_it_is_total_and_row_wise(cells, column):
    together = listed(cells, column)
    assert len(together) == len(cells)
    assert [repr(cell) for cell in together] == [repr(listed([c], column)[0]) for c in cells]


@given(
    st.lists(
        st.sampled_from(["", " ", "?", "3", "3.5", "11", "-9", "1e400", "red", "1.0", "low", "x"]),
        max_size=6,
    ),
    st.sampled_from([c for c in COLUMNS if isinstance(c, Numeric | Ordinal) and not c.undeclared]),
)
def test_a_converted_column_is_encoded_as_its_texts_are(cells, column):
    texts = pd.Series(pd.array(cells, dtype="string"))
    converted = pd.Series(column_of_texts(cells, column))
    expected = make_encoder(column, texts).encode(texts)
    np.testing.assert_array_equal(make_encoder(column, converted).encode(converted), expected)
