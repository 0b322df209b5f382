"""What is drawn of a column: shares that are right, in few bars and sensible bins."""

import numpy as np
import pandas as pd
import pytest

from skdpgen.data import Boolean, Categorical, Datetime, Numeric, Ordinal
from skdpgen.plotting._shares import marginal_of


def drawn(column, synthetic, real=None, declared=True):
    series = [None if c is None else pd.Series(c, dtype=object) for c in (synthetic, real)]
    return marginal_of("x", column, *series, declared=declared)


def test_categories_stand_by_how_common_they_are_in_the_real_table():
    got = drawn(Categorical(["a", "b", "c"]), list("aab"), list("bbbc"))
    assert got.labels == ("b", "c", "a")
    assert got.real.tolist() == [0.75, 0.25, 0.0]
    assert got.synthetic.tolist() == pytest.approx([1 / 3, 0.0, 2 / 3])
    assert got.missing is None
    assert drawn(Categorical(["a", "b"]), list("bba")).labels == ("b", "a")


def test_values_with_an_order_keep_it():
    assert drawn(Ordinal(["low", "mid", "high"]), ["high"] * 3).labels == ("low", "mid", "high")
    assert drawn(Categorical([3, 1, 2]), [1, 1, 2]).labels == ("3", "1", "2")


def test_long_lists_are_cut_to_the_most_common_values():
    values = [f"v{i:04d}" for i in range(1000)]
    cells = [v for i, v in enumerate(values) for _ in range(2 if i < 8 else 1)]
    got = drawn(Categorical(values), cells, cells)
    assert got.labels == (*values[:8], "992 others")
    assert got.real[0] == pytest.approx(2 / 1008)
    assert got.real[-1] == pytest.approx(992 / 1008)
    assert got.synthetic.sum() == pytest.approx(1)


def test_missing_and_unknown_values():
    cells = ["a", None, "?", np.nan, "new"]
    got = drawn(Categorical(["a", "b"], missing=["?"]), cells)
    assert (got.missing, got.missing_label) == ((0.8, 0.8), "missing")
    got = drawn(Categorical(["a"], other="rest", missing=["?"]), cells)
    assert got.labels == ("a", "rest")
    assert got.synthetic.tolist() == pytest.approx([0.2, 0.2])
    assert got.missing == pytest.approx((0.6, 0.6))
    got = drawn(Categorical(["a"]), ["a", "b"], ["a", "a"])
    assert (got.missing, got.missing_label) == ((0.5, 0.0), "not listed")
    assert drawn(Boolean(missing=True), [True, False]).missing == (0.0, 0.0)


def test_few_whole_numbers_have_a_bin_each_and_many_share_bins_evenly():
    got = drawn(Numeric((0, 100), "int"), [3, 3, 5], [4, 5, 5])
    assert got.edges.tolist() == [2.5, 3.5, 4.5, 5.5]
    assert got.real.tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    got = drawn(Numeric((0, 1000), "int"), list(range(100)))
    assert set(np.diff(got.edges)) == {5.0}
    assert np.allclose(got.synthetic, 0.05)
    assert got.edges[0] == -0.5


def test_bins_cover_what_there_is_and_not_the_wide_bounds():
    got = drawn(Numeric((0, 1e9)), [1.0, 2.0], [3.0, 5.0])
    assert (got.edges[0], got.edges[-1]) == (1.0, 5.0)
    assert got.real.sum() == got.synthetic.sum() == 1
    # Beyond the bounds counts as at the bounds, as in the encoding.
    got = drawn(Numeric((0, 10)), [-5.0, 20.0])
    assert (got.edges[0], got.edges[-1]) == (0.0, 10.0)


def test_a_logarithmic_scale_gives_small_numbers_bins_of_their_own():
    got = drawn(Numeric((0, 1e6), "int", scale="log1p"), [0, 0, 1, 10**6])
    assert got.log
    assert got.edges[:2].tolist() == [-0.5, 0.5]
    assert got.synthetic[0] == 0.5
    assert (np.diff(np.diff(got.edges)) >= 0).all()
    assert not drawn(Numeric((0, 1e6), "int"), [0, 0, 1, 10**6]).log
    # Nobody declared anything: decided by what is there.
    crowded = [0.0] * 9 + [1e6]
    assert drawn(Numeric((0, 1e6)), crowded, declared=False).log
    assert not drawn(Numeric((0, 9)), list(map(float, range(10))), declared=False).log


def test_dates_are_binned_by_days():
    column = Datetime(("2020-01-01", "2020-12-31"), missing=True)
    dates = pd.to_datetime(["2020-03-01", "2020-03-25", None]).to_series()
    got = marginal_of("d", column, dates, None, declared=True)
    assert got.kind == "dates"
    assert got.edges[0] == (pd.Timestamp("2020-03-01") - pd.Timestamp("1970-01-01")).days
    assert got.edges[-1] - got.edges[0] == pytest.approx(24)
    assert got.missing == pytest.approx((1 / 3, 1 / 3))


@pytest.mark.parametrize(
    "column",
    [Numeric((0, 9)), Numeric((0, 9), "int"), Categorical(["a"]), Datetime(("2020", "2021"), "%Y")],
)
def test_degenerate_columns(column):
    for cells in ([], [None], [None, None]):
        got = drawn(column, cells, cells)
        assert len(got.real) == len(got.synthetic) >= 1
        assert np.isnan(got.real).all() if not cells else not got.real.any()
    value = {"categorical": "a", "datetime": "2020"}.get(column.kind, 4)
    got = drawn(column, [value], [value])
    assert got.real.tolist() == got.synthetic.tolist() == [1.0]


def test_many_observed_whole_numbers_are_a_histogram():
    got = drawn(Categorical(tuple(range(12))), [0, 11], declared=False)
    assert (got.kind, len(got.synthetic)) == ("histogram", 12)
    assert drawn(Categorical(tuple(range(12))), [0, 11], declared=True).kind == "bars"
