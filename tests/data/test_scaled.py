import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Numeric, Ordinal, SeriesTemplate, make_encoder
from skdpgen.exceptions import InputError, SchemaError

INF = float("inf")


def encoded(column, cells, **kwargs):
    return make_encoder(column, cells, **kwargs).encode(cells).tolist()


def test_out_of_range_missing_and_unreadable_cells():
    column = Numeric((0, 10))
    assert encoded(column, np.array([-INF, -1, 2.5, 99, INF, np.nan])) == [
        [0.0],
        [0.0],
        [0.25],
        [1.0],
        [1.0],
        [0.5],
    ]
    assert encoded(column, pd.Series(["2.5", "a", "", None, "1e999"])) == [
        [0.25],
        [0.5],
        [0.5],
        [0.5],
        [1.0],
    ]
    nullable = Numeric((0, 10), missing=["?", -9])
    assert encoded(nullable, np.array([5.0, np.nan, -9.0])) == [
        [0.5, 1, 0],
        [0.5, 0, 1],
        [0.5, 0, 1],
    ]
    assert encoded(nullable, pd.Series(["10", "?", "-9.0", "x"])) == [
        [1.0, 1, 0],
        [0.5, 0, 1],
        [0.5, 0, 1],
        [0.5, 0, 1],
    ]
    assert encoded(nullable, pl.Series([10, None, -9])) == [[1.0, 1, 0], [0.5, 0, 1], [0.5, 0, 1]]


def test_a_dtype_without_nulls_is_never_nullable():
    encoder = make_encoder(Numeric((0, 10), "int", missing=["-9"]), np.array([1]))
    assert (encoder.width, encoder.nullable) == (1, False)
    assert encoder.encode(np.array([-9, 10])).tolist() == [[0.5], [1.0]]
    # The layout stays that of the fitted dtype when another dtype is encoded.
    assert encoder.encode(np.array([np.nan, 10.0])).tolist() == [[0.5], [1.0]]


def test_log_scale():
    column = Numeric((1, 100), scale="log1p")
    cells = np.array([1.0, 10.0, 100.0])
    expected = np.log1p(cells - 1) / np.log(100)
    np.testing.assert_allclose(np.ravel(encoded(column, cells)), expected, rtol=1e-15)
    assert encoded(Numeric((0, 1)), np.array([0.5]), encoding="log1p") == [
        [pytest.approx(np.log(1.5) / np.log(2))]
    ]
    assert encoded(column, np.array([50.5]), encoding="linear") == [[0.5]]


def test_whole_numbers():
    encoder = make_encoder(Numeric((0, 4), "int"), pd.Series([1.0, None]))
    assert encoder.encode(pd.Series([0.5, 1.5, 2.5])).ravel().tolist() == [0.0, 0.5, 0.5]
    assert encoder.decode(np.array([[0.4], [7.0], [-INF], [np.nan]])).tolist() == [2, 4, 0, 2]
    # Declared real, stored as integers: whole numbers within the bounds.
    encoder = make_encoder(Numeric((0.5, 3.5)), np.array([1]))
    assert encoder.decode(np.array([[0.0], [0.5], [1.0]])).tolist() == [1, 2, 3]


def test_small_dtypes_do_not_overflow():
    for dtype in ("uint8", "int8", "Int8", "uint8[pyarrow]"):
        cells = pd.Series([1], dtype=dtype)
        encoder = make_encoder(Numeric((-1000, 1000), "int"), cells)
        limits = encoder.dtype.limits
        built = encoder.decode(np.array([[0.0], [1.0], [1e9]]))
        assert built.dtype == cells.dtype
        assert [int(v) for v in built] == [limits[0], limits[1], limits[1]]
    half = make_encoder(Numeric((0, 1e6)), np.array([1.0], dtype="float16"))
    assert half.decode(np.array([[1.0]])).tolist() == [65504.0]
    half = make_encoder(Numeric((0, 10**6), "int"), np.array([1.0], dtype="float16"))
    assert half.decode(np.array([[1.0]])).tolist() == [65504.0]


def test_what_fits_no_dtype_is_refused_by_name():
    with pytest.raises(InputError, match=r"column 'n': no whole number within .* uint8"):
        make_encoder(Numeric((300, 400), "int"), np.array([1], dtype="uint8"), "n")
    with pytest.raises(InputError, match=r"column 'n': no whole number within .* int64"):
        make_encoder(Numeric((0.2, 0.8)), np.array([1]), "n")
    with pytest.raises(SchemaError, match=r"column 'n': whole numbers that span 2\*\*53"):
        make_encoder(Numeric((0, 1e17)), np.array([1]), "n")
    with pytest.raises(InputError, match=r"column 'n': the bounds are beyond .* float32"):
        make_encoder(Numeric((1e39, 1e40)), np.array([1.0], dtype="float32"), "n")


@pytest.mark.parametrize("lower", [2**60, 2**63 - 2**53 + 1, -(2**63)])
@pytest.mark.parametrize("make", [np.array, pl.Series, lambda c: pd.Series(c, dtype="Int64")])
def test_integers_beyond_2_to_the_53_keep_their_digits(lower, make):
    cells = make([lower, lower + 1, lower + 2**52 + 1, lower + 2**53 - 2])
    encoder = make_encoder(Numeric((lower, lower + 2**53 - 1), "int"), cells)
    assert list(encoder.decode(encoder.encode(cells))) == list(cells)


def test_unsigned_integers_near_the_end():
    cells = np.array([2**64 - 1, 2**64 - 2, 2**64 - 2**52], dtype="uint64")
    for dtype in ("uint64", "UInt64", "uint64[pyarrow]", object, "str"):
        series = pd.Series(cells.astype(str) if dtype == "str" else cells).astype(dtype)
        encoder = make_encoder(Numeric((2**64 - 2**53, 2**64 - 1), "int"), series)
        back = SeriesTemplate(encoder.dtype).build(encoder.decode(encoder.encode(series)))
        pd.testing.assert_series_equal(back, series)


def test_text_and_object_columns_of_numbers():
    whole = pd.Series(["3", "17", None, "x"])
    encoder = make_encoder(Numeric((0, 99), "int", missing=True), whole)
    assert encoder.decode(encoder.encode(whole)).tolist() == ["3", "17", np.nan, np.nan]
    real = pd.Series([0.25, "1.5", True, None], dtype=object)
    encoder = make_encoder(Numeric((0, 2), missing=True), real)
    assert encoder.decode(encoder.encode(real)).tolist()[:3] == [0.25, 1.5, 1.0]


def test_constant_columns():
    encoder = make_encoder(Numeric((5, 5), "int"), np.array([5]))
    assert encoder.encode(np.array([5, 6])).shape == (2, 0)
    assert encoder.decode(np.empty((2, 0))).tolist() == [5, 5]
    encoder = make_encoder(Numeric((0.1, 0.1), missing=True), np.array([0.1]))
    assert (encoder.width, encoder.numeric, encoder.groups) == (2, (), ((0, 2),))
    assert encoder.suffixes == ("_<present>", "_<missing>")
    rows = encoder.encode(np.array([7.0, np.nan]))
    assert rows.tolist() == [[1, 0], [0, 1]]
    np.testing.assert_array_equal(encoder.decode(rows), [0.1, np.nan])


def test_hostile_cells(hostile_cells):
    series = pd.Series(hostile_cells, dtype=object)
    for column in (
        Numeric((0, 10), missing=True),
        Numeric((0, 10), "int", missing=True),
        Numeric((0, 10), scale="log1p"),
    ):
        encoder = make_encoder(column, series)
        rows = encoder.encode(series)
        assert rows.shape == (len(series), encoder.width)
        assert ((rows >= 0) & (rows <= 1)).all()
        assert rows[1, 0] == 1.0  # the text "17"
        assert rows[8, 0] == 1.0  # inf
        assert rows[10, 0] == 1.0  # 10**1000


def test_ranks():
    cells = pd.Series(["low", "high", None, "mid"])
    column = Ordinal(["low", "mid", "high"], missing=True)
    encoder = make_encoder(column, cells, encoding="scale")
    rows = encoder.encode(cells)
    assert rows.tolist() == [[0, 1, 0], [1, 1, 0], [0.5, 0, 1], [0.5, 1, 0]]
    assert encoder.decode(rows).tolist() == ["low", "high", np.nan, "mid"]
    assert encoder.decode(np.array([[0.74, 1, 0], [0.76, 1, 0]])).tolist() == ["mid", "high"]
    never_missing = make_encoder(Ordinal([1, 2]), np.array([1]), encoding="linear")
    assert never_missing.encode(np.array([2, 9])).tolist() == [[1.0], [0.0]]
    assert make_encoder(Ordinal([7]), np.array([7]), encoding="scale").width == 0


@pytest.mark.parametrize("scale", ["linear", "log1p"])
def test_decimals_round_what_comes_out_within_the_bounds(scale):
    encoder = make_encoder(Numeric((0.126, 9.874), scale=scale, decimals=2), np.array([1.0]))
    values = encoder.decode(np.linspace(0, 1, 1001)[:, None])
    assert (values[0], values[-1]) == (0.13, 9.87)
    assert values.tolist() == [float(f"{value:.2f}") for value in values.tolist()]
    # No rounding leaves the bounds: there the bound itself comes out.
    assert make_encoder(Numeric((0.4, 0.6), decimals=0), np.array([0.5])).decode(
        np.array([[0.0], [1.0]])
    ).tolist() == [0.4, 0.6]
    # What comes in keeps its digits.
    exact = make_encoder(Numeric((0.126, 9.874), scale=scale), np.array([1.0]))
    assert np.array_equal(encoder.encode(np.array([1.2345])), exact.encode(np.array([1.2345])))


@pytest.mark.parametrize("scale", ["linear", "log1p"])
@pytest.mark.parametrize(
    ("bounds", "decimals", "ends"),
    [
        ((0.124, 9.876), 2, (0.13, 9.87)),
        ((-0.55, 0.55), 1, (-0.5, 0.5)),
        ((0.1, 0.3), 1, (0.1, 0.3)),
        ((-2.5, 1.5), 0, (-2.0, 1.0)),
        ((-0.004, 0.3), 2, (0.0, 0.3)),
    ],
)
def test_the_ends_of_the_bounds_are_rounded_too(scale, bounds, decimals, ends):
    encoder = make_encoder(Numeric(bounds, scale=scale, decimals=decimals), np.array([1.0]))
    values = encoder.decode(np.linspace(0, 1, 1001)[:, None])
    assert (values[0], values[-1]) == ends
    assert values.tolist() == [float(f"{value:.{decimals}f}") for value in values.tolist()]
    assert not np.signbit(values[values == 0]).any()
    narrow = make_encoder(Numeric(bounds, scale=scale, decimals=decimals), np.float32([1.0]))
    assert narrow.decode(np.array([[0.0], [1.0]])).tolist() == np.float32(ends).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_too_large_for_decimals_are_left_alone(dtype):
    column = Numeric((0.0, 1e300), decimals=15)
    z = np.linspace(0, float(np.finfo(dtype).max) / 1e300 if dtype is np.float32 else 1, 101)
    values = make_encoder(column, np.ones(1, dtype)).decode(z[:, None])
    plain = make_encoder(Numeric((0.0, 1e300)), np.ones(1, dtype)).decode(z[:, None])
    np.testing.assert_allclose(values, plain, rtol=1e-6)
