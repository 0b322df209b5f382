"""Bad input: a clear error before any noise is drawn, nothing spent, nothing changed."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from skdpgen import GaussianFeatures, InteractionFeatures, PrivacyLedger, Schema
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import InputError, PrivacyParameterError, SchemaError

N = 31
SCHEMA = Schema(
    {"a": Numeric((0, 1)), "u": Categorical(["p", "q"]), "c": Categorical(["x", "y"])},
    target="c",
)
DF = pd.DataFrame({"a": np.linspace(0, 1, N), "u": ["p"] * N, "c": ["x"] * N})
X, Y = DF[["a", "u"]], DF["c"]
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def refuses(make, noise_calls):
    """Check that a fit raises and did nothing else."""

    def check(error, message, X=DF, y=None, schema=SCHEMA, unit_id=None, **params):
        ledger = params.setdefault("ledger", PrivacyLedger())
        synthesizer = make(schema, **params)
        before = X.copy(deep=True) if isinstance(X, pd.DataFrame) else None
        with pytest.raises(error, match=message) as caught:
            synthesizer.fit(X, y, unit_id=unit_id)
        assert isinstance(caught.value, ValueError)
        # The number of rows may be private.
        assert not re.search(rf"\b{N}\b", str(caught.value))
        assert noise_calls == []
        assert getattr(ledger, "entries", ()) == ()
        assert not hasattr(synthesizer, "release_")
        if before is not None:
            pd.testing.assert_frame_equal(X, before)

    return check


@pytest.mark.parametrize("epsilon", [0, -1.0, NAN, INF, -INF, 0.0, 501, True, None, "1", 1j, [1]])
def test_epsilon(refuses, epsilon):
    refuses(PrivacyParameterError, "epsilon must be a number in", epsilon=epsilon)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, NAN, INF, 0.0, 1.0, None, "1e-5"])
def test_delta(refuses, delta):
    refuses(PrivacyParameterError, "delta must be a number in", delta=delta)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("data", "y"),
    [
        (DF.head(0), None),
        (pl.from_pandas(DF).head(0), None),
        (X.head(0), Y.head(0)),
        (np.empty((0, 3)), None),
        ([], None),
    ],
)
def test_no_rows(refuses, data, y, adjacency):
    refuses(InputError, "0 sample", X=data, y=y, adjacency=adjacency)


def test_no_columns(refuses):
    refuses(InputError, "0 feature", X=DF[[]])


@pytest.mark.parametrize(
    ("data", "y", "message"),
    [
        (DF.drop(columns="a"), None, r"lacks column\(s\) of the schema: 'a'"),
        (DF.rename(columns={"a": "A"}), None, "lacks column.*'a'"),
        (DF.assign(zip=1), None, r"not in the schema: 'zip'.*with_columns"),
        (X[["u"]], Y, "lacks column.*'a'"),
        (X.assign(zip=1), Y, "not in the schema: 'zip'"),
        (X, None, "target 'c' is neither a column of X nor given as y"),
        (pl.from_pandas(DF).drop("u"), None, "lacks column.*'u'"),
        (DF.to_numpy(), None, "target 'c' is neither"),
        (pd.concat([DF, DF[["u"]]], axis=1), None, "duplicate column name 'u'"),
        (DF, Y, "target 'c' is a column of X and given as y"),
        (pl.from_pandas(DF), Y, "target 'c' is a column of X and given as y"),
    ],
)
def test_columns_that_do_not_match(refuses, data, y, message):
    refuses(InputError, message, X=data, y=y)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (DF.assign(a=pd.Timestamp("2020")), "column 'a' is declared numeric but has the dtype"),
        (DF.assign(a=pd.Categorical(["k"] * N)), "column 'a' is declared numeric"),
        (DF.assign(u=0.5), "column 'u'.*'p' does not fit the dtype float64"),
        (DF.assign(c=1), "column 'c'.*'x' does not fit the dtype int64"),
        (DF.assign(a=1j), "column 'a'.*Complex data not supported"),
        (DF.assign(a=pd.Timedelta("1h")), "column 'a'.*time differences"),
        (DF.assign(a=pd.arrays.SparseArray([0.0] * N)), "column 'a'.*sparse"),
        (DF.assign(u=pd.period_range("2020", periods=N)), "column 'u'.*not supported"),
        (pl.from_pandas(DF).with_columns(a=pl.lit([1.0])), "column 'a'.*not supported"),
    ],
)
def test_wrong_dtypes(refuses, data, message):
    refuses(InputError, message, X=data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (sparse.csr_matrix(np.eye(3)), "sparse"),
        (sparse.coo_array(np.eye(3)), "sparse"),
        (np.eye(3) * 1j, "Complex data not supported"),
        (np.zeros(3), "2D"),
        (np.zeros((3, 2, 2)), "2D"),
        (["a", "b"], "2D"),
        ([[1, 2], [1]], "same number of cells"),
        (None, "not supported"),
        ("table.csv", "not supported"),
        ({"a": [1]}, "not supported"),
        (DF["a"], "2D"),
        (pl.from_pandas(DF).lazy(), "collect"),
    ],
)
def test_things_that_are_no_tables(refuses, data, message):
    refuses(InputError, message, X=data, schema=Schema({}, default=Numeric((0, 1))))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y.head(5), "inconsistent numbers of samples"),
        (["x"], "inconsistent numbers of samples"),
        ([], "inconsistent numbers of samples"),
        (np.array(["x", "y"] * N).reshape(N, 2), "one column"),
        (pd.DataFrame({"c": Y, "d": Y}), "one column"),
        ("x" * N, "one column"),
        (7, "one column"),
        (sparse.csr_matrix(np.ones((N, 1))), "one column"),
        (np.ones(N) * 1j, "Complex data not supported"),
        (pd.Series([0.5] * N), "'x' does not fit the dtype float64"),
    ],
)
def test_targets_that_do_not_fit(refuses, y, message):
    refuses(InputError, message, X=X, y=y)


def test_target_that_is_not_declared(refuses):
    refuses(SchemaError, "declares no column 'y'", X=X, y=Y.rename(None), schema=SCHEMA.drop(["c"]))
    refuses(SchemaError, "declares no column 'c'", X=X, y=Y, schema=SCHEMA.drop(["c"]))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, r"bounds=\{'a': \(LOWER, UPPER\)\}"),
        (Schema({"a": Numeric(None), "u": Categorical(["p"]), "c": Categorical(["x"])}), "'a'"),
        (Schema({"a": Numeric((0, 1)), "u": Categorical(None), "c": Categorical(["x"])}), "'u'"),
        (3, "schema must be a Schema"),
        ({"a": 1}, "columns"),
        (SCHEMA.with_columns({"a": Numeric((0, 1), metadata={"seen": {1}})}), "metadata"),
    ],
)
def test_schemas_that_do_not_say_enough(refuses, schema, message):
    refuses(SchemaError, message, schema=schema, domain_budget=None)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"adjacency": "zero-out"}, "adjacency must be 'replace-one' or 'add-remove'"),
        ({"adjacency": None}, "adjacency must be"),
        ({"rows_per_unit": 0}, "rows_per_unit must be an integer in"),
        ({"rows_per_unit": 1.5}, "rows_per_unit must be an integer in"),
        ({"rows_per_unit": True}, "rows_per_unit must be an integer in"),
        ({"features": "fourier"}, "features must be 'auto'"),
        ({"features": GaussianFeatures}, "features must be 'auto'"),
        ({"features": InteractionFeatures(0)}, "n_frequencies must be"),
        ({"features": InteractionFeatures(10.5)}, "n_frequencies must be"),
        ({"features": InteractionFeatures(20, orders=())}, "orders must be"),
        ({"features": InteractionFeatures(20, orders=(0,))}, "orders must be"),
        ({"features": InteractionFeatures(20, orders=2)}, "orders must be"),
        ({"features": InteractionFeatures(20, orders=("pairs",))}, "orders must be"),
        ({"features": InteractionFeatures(20, n_bins=3)}, "n_bins must be"),
        ({"features": InteractionFeatures(20, n_bins="auto")}, "n_bins must be"),
        ({"features": InteractionFeatures(20, max_cycles=0.1)}, "max_cycles must be"),
        ({"features": InteractionFeatures(20, max_cycles=NAN)}, "max_cycles must be"),
        ({"features": InteractionFeatures(20, max_cycles="all")}, "max_cycles must be"),
        ({"features": InteractionFeatures(20, block_share=1.0)}, "block_share must be"),
        ({"features": InteractionFeatures(20, block_share=NAN)}, "block_share must be"),
        ({"features": InteractionFeatures(20, max_subsets=0)}, "max_subsets must be"),
        ({"features": GaussianFeatures(0)}, "n_features must be a positive even integer"),
        ({"features": GaussianFeatures(7)}, "n_features must be a positive even integer"),
        ({"features": GaussianFeatures(20.0)}, "n_features must be a positive even integer"),
        ({"features": GaussianFeatures("auto")}, "n_features must be a positive even integer"),
        ({"features": GaussianFeatures(20, bandwidth=0)}, "bandwidth must be a positive number"),
        (
            {"features": GaussianFeatures(20, bandwidth=[0.5, -1])},
            "bandwidth must be a positive number",
        ),
        ({"features": GaussianFeatures(20, bandwidth=NAN)}, "bandwidth must be a positive number"),
        ({"features": GaussianFeatures(20, bandwidth=[])}, "bandwidth must be a positive number"),
        ({"features": GaussianFeatures(20, bandwidth=None)}, "bandwidth must be"),
        ({"features": GaussianFeatures(20, bandwidth=["wide"])}, "bandwidth must be 'auto'"),
        ({"features": GaussianFeatures(20, bandwidth=1j)}, "bandwidth must be 'auto'"),
        ({"features": GaussianFeatures(20, bandwidth="median")}, "bandwidth must be 'auto'"),
        ({"features": GaussianFeatures(20, bandwidth=1e-9)}, "bandwidth is too small"),
        ({"n_rows_hint": 0}, "n_rows_hint must be"),
        ({"n_rows_hint": 1e4}, "n_rows_hint must be"),
        ({"features": InteractionFeatures(20, n_harmonics=0)}, "n_harmonics must be"),
        ({"features": InteractionFeatures(20, n_harmonics="all")}, "n_harmonics must be"),
        ({"features": InteractionFeatures(3, n_harmonics=4)}, "n_frequencies must be"),
        ({"count_weight": -1}, "count_weight must be"),
        ({"count_weight": NAN}, "count_weight must be"),
        ({"count_weight": 17}, "count_weight must be"),
        ({"count_weight": None}, "count_weight"),
        ({"count_weight": "free"}, "count_weight must be 'auto'"),
        ({"count_weight": 0, "adjacency": "add-remove"}, "positive count_weight"),
        ({"ledger": "file.sqlite"}, "ledger must be a PrivacyLedger"),
        ({"epsilon": 1e-6, "rows_per_unit": 2**20}, "noise"),
    ],
)
def test_privacy_parameters(refuses, params, message):
    refuses(PrivacyParameterError, message, **params)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"class_weight": "inverse"}, "class_weight must be None or 'balanced'"),
        ({"generator": "gan"}, "generator must be 'auto'"),
        ({"generator": 3}, "generator must be 'auto'"),
        ({"generator": "conv"}, "image"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_steps": 1.5}, "n_steps must be an integer"),
        ({"batch_size": -1}, "batch_size"),
        ({"batch_size": "all"}, "batch_size must be an integer"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
        ({"device": "cuda:99"}, "device"),
        ({"device": "toaster"}, "device"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_post_processing_parameters(refuses, params, message):
    refuses(InputError, message, **params)


@pytest.mark.parametrize("unit_id", [np.arange(5), "a" * N, np.zeros((N, 2)), 1])
def test_units(refuses, unit_id):
    refuses(InputError, "one entry for each row|one column", unit_id=unit_id)


def test_unknown_parameters(make):
    with pytest.raises(TypeError, match="n_frequencies"):
        make(SCHEMA, n_frequencies=10)
    with pytest.raises(ValueError, match="Invalid parameter 'n_frequencies'"):
        make(SCHEMA).set_params(n_frequencies=10)


def test_a_refused_refit_keeps_the_fitted_model(make):
    synthesizer = make(SCHEMA).fit(DF)
    release = synthesizer.release_
    with pytest.raises(InputError):
        synthesizer.fit(DF.drop(columns="a"))
    assert synthesizer.release_ is release
    assert len(synthesizer.ledger_.entries) == 1
    assert synthesizer.sample(2).columns.tolist() == ["a", "u", "c"]
