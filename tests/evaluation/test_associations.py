"""Strengths of association against scipy, scikit-learn and hand-made tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import contingency, pearsonr
from sklearn.linear_model import LinearRegression

from skdpgen.evaluation._associations import Associations, correlation_ratio, cramers_v, pearson


def test_pearson_is_that_of_scipy_on_complete_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = -x + rng.normal(size=200)
    expected = pearsonr(x, y).statistic
    assert pearson(x, y) == pytest.approx(expected, rel=1e-12)
    gaps = np.append(x, [np.nan, 5.0]), np.append(y, [7.0, np.nan])
    assert pearson(*gaps) == pytest.approx(expected, rel=1e-12)
    assert pearson(x, x) == pearson(-x, -x) == pytest.approx(1.0, rel=1e-12)
    assert pearson(x, x) <= 1


@pytest.mark.parametrize("sizes", [(2, 2), (3, 7), (40, 300)])
def test_cramers_v_is_that_of_scipy(sizes):
    rng = np.random.default_rng(0)
    a = rng.integers(1, sizes[0] + 1, 500)
    b = (a * rng.integers(1, 3, 500)) % sizes[1] + 1
    table = pd.crosstab(a, b).to_numpy()
    expected = contingency.association(table, method="cramer")
    assert cramers_v(a, b) == pytest.approx(expected, rel=1e-10)
    missing = np.append(a, [0, 1]), np.append(b, [1, 0])
    assert cramers_v(*missing) == pytest.approx(expected, rel=1e-10)


def test_cramers_v_at_its_ends():
    a = np.repeat([1, 2, 3], 20)
    assert cramers_v(a, a) == pytest.approx(1.0)
    assert cramers_v(a, np.tile([1, 2], 30)) == pytest.approx(0.0, abs=1e-7)
    # 2 x 2: the phi coefficient, which is Pearson's correlation of the codes.
    rng = np.random.default_rng(0)
    x = rng.integers(1, 3, 300)
    y = np.where(rng.random(300) < 0.7, x, 3 - x)
    assert cramers_v(x, y) == pytest.approx(abs(pearson(x * 1.0, y * 1.0)), rel=1e-10)


def test_the_correlation_ratio_is_the_root_of_the_share_that_dummies_explain():
    rng = np.random.default_rng(0)
    groups = rng.integers(1, 5, 300)
    y = groups**2 + rng.normal(size=300) * 4
    dummies = groups[:, None] == np.arange(1, 5)
    expected = np.sqrt(LinearRegression().fit(dummies, y).score(dummies, y))
    assert correlation_ratio(groups, y) == pytest.approx(expected, rel=1e-10)
    gaps = np.append(groups, [0, 1]), np.append(y, [99.0, np.nan])
    assert correlation_ratio(*gaps) == pytest.approx(expected, rel=1e-10)
    assert correlation_ratio(groups, groups * 2.0) == pytest.approx(1.0)


def test_what_is_constant_or_missing_goes_together_with_nothing():
    ones, codes, gone = np.ones(5), np.array([1, 2, 1, 2, 1]), np.full(5, np.nan)
    for undefined in (
        pearson(ones, codes * 1.0),
        pearson(gone, codes * 1.0),
        pearson(np.empty(0), np.empty(0)),
        correlation_ratio(codes, ones),
        correlation_ratio(codes, gone),
        correlation_ratio(np.ones(5, int), codes * 1.0),
        correlation_ratio(np.empty(0, int), np.empty(0)),
        cramers_v(codes, np.ones(5, int)),
        cramers_v(codes, np.zeros(5, int)),
        cramers_v(np.empty(0, int), np.empty(0, int)),
    ):
        assert np.isnan(undefined)


def test_squares_are_symmetric_with_ones_and_what_was_not_asked_for_is_nan():
    rng = np.random.default_rng(0)
    codes = rng.integers(1, 4, 100)
    values = {
        "n": codes + rng.normal(size=100),
        "c": codes.astype(np.int32),
        "m": -codes + rng.normal(size=100),
        "k": np.ones(100, dtype=np.int32),
        "d": rng.integers(1, 4, 100).astype(np.int32),
    }
    found = Associations(values, [("n", "c"), ("n", "m"), ("c", "m"), ("c", "k"), ("c", "d")])
    strengths = found.strengths
    pd.testing.assert_frame_equal(strengths, strengths.T)
    assert strengths.loc["n", "n"] == 1
    assert np.isnan(strengths.loc["k", "k"])
    assert np.isnan(strengths.loc["n", "d"])
    assert strengths.loc["n", "c"] == correlation_ratio(values["c"], values["n"])
    assert strengths.loc["c", "m"] == correlation_ratio(values["c"], values["m"])
    assert strengths.loc["d", "c"] == cramers_v(values["c"], values["d"])
    assert list(found.correlations) == ["n", "m"]
    assert found.correlations.loc["m", "n"] == pearson(values["n"], values["m"]) < 0
    assert strengths.loc["m", "n"] == -found.correlations.loc["m", "n"]
    assert found.why_undefined("k") == "all cells have the same value"
    assert found.why_undefined("n") == ""
