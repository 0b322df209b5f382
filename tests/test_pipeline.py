"""Steps before a synthesizer: which ones may come there, and the way back of samples."""

import json
import pickle
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from skdpgen import (
    DPMERFSynthesizer,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    SynthesisPipeline,
    TabularPreprocessor,
    insecure_noise,
    make_synthesis_pipeline,
)
from skdpgen.data import Boolean, Categorical, Numeric, Ordinal
from skdpgen.exceptions import (
    BudgetExceededError,
    InputError,
    PrivacyLeakError,
    SchemaError,
    SkdpgenError,
)
from skdpgen.model_selection import PrivateSearchCV, ReleaseSearchCV

N = 60
SCHEMA = Schema({"a": Numeric((0, 10)), "b": Numeric((0, 20), "int"), "c": Boolean()}, target="c")
ANY = Schema({}, default=Numeric((0, 20)))


CODED = Schema(
    {
        "grade": Ordinal(["C", "B", "A"]),
        "wage": Numeric((0, 1000), missing=True),
        "city": Categorical(["Rome", "Oslo"]),
        "age": Numeric((0, 100), "int"),
        "ok": Boolean(),
    },
    target="ok",
)


def table(n=N):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": rng.uniform(0, 10, n), "b": rng.integers(0, 21, n), "c": rng.random(n) < 0.5}
    )


def synthesizer(schema=SCHEMA, **params):
    cheap = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "features": InteractionFeatures(60, n_bins=8),
        "generator": MixtureGenerator(8, n_mixtures=2),
        "n_steps": 3,
        "batch_size": 20,
        "random_state": 0,
    }
    return DPMERFSynthesizer(schema=schema, **{**cheap, **params})


def halved(X):
    return X.assign(b=X["b"] / 2)


def doubled(X):
    return X.assign(b=X["b"] * 2)


HALVES = FunctionTransformer(halved, doubled)


class Watched(pd.DataFrame):
    """A table that fails once its cells are asked for."""

    @property
    def iloc(self):
        raise AssertionError("rows were read")


class Shift(TransformerMixin, BaseEstimator):
    """A user's own step: adds one, and says by its tag that it learns nothing."""

    def __init__(self, learns=False):
        self.learns = learns

    def fit(self, X, y=None):
        self.n_rows_seen_ = len(X)
        return self

    def transform(self, X):
        return X + 1

    def inverse_transform(self, X):
        return X - 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.learns
        return tags


class Untagged:
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


# -- steps that learn ------------------------------------------------------------------------------

LEARNING = [
    (StandardScaler(), "bounds of the schema"),
    (MinMaxScaler(), "bounds of the schema"),
    (OneHotEncoder(), "encodes categories by itself"),
    (OrdinalEncoder(), "encodes categories by itself"),
    (TargetEncoder(), "encodes categories by itself"),
    (SimpleImputer(), "missing=True"),
    (KNNImputer(), "missing=True"),
    (PCA(), "as they are"),
    (SelectKBest(), "publicly known"),
    (KBinsDiscretizer(), "bins numbers"),
    (Shift(learns=True), "requires_fit = False"),
    (Untagged(), "requires_fit = False"),
]


@pytest.mark.parametrize(("step", "instead"), LEARNING, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("where", ["step", "pipeline", "union", "columns", "remainder"])
def test_steps_that_learn_are_refused_before_anything_is_read(step, instead, where):
    name = "first"
    if where == "pipeline":
        step, name = Pipeline([("none", None), ("inner", step)]), "first.inner"
    elif where == "union":
        step, name = FeatureUnion([("inner", step), ("off", "drop")]), "first.inner"
    elif where == "columns":
        step, name = ColumnTransformer([("inner", step, ["a"])]), "first.inner"
    elif where == "remainder":
        step, name = ColumnTransformer([("x", "drop", ["a"])], remainder=step), "first.remainder"
    ledger = PrivacyLedger()
    pipeline = SynthesisPipeline([("first", step), ("last", synthesizer(ledger=ledger))])
    with pytest.raises(PrivacyLeakError, match=instead) as caught:
        pipeline.fit(Watched(table()))
    assert f"the step {name!r}" in str(caught.value)
    assert isinstance(caught.value, SkdpgenError | ValueError)
    assert len(ledger.entries) == 0


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Normalizer(), r"step 'first' \(Normalizer\) has none"),
        (Binarizer(), "has none"),
        (ColumnTransformer([("x", Normalizer(), ["a"])]), r"\(ColumnTransformer\) has none"),
        (FeatureUnion([("x", Normalizer())]), r"\(FeatureUnion\) has none"),
        (make_pipeline(HALVES, Normalizer()), r"\(Pipeline\) has none"),
        (FunctionTransformer(np.log1p), "has a func and no inverse_func"),
        (make_pipeline(FunctionTransformer(np.log1p)), "'first.functiontransformer' has a func"),
    ],
)
def test_steps_without_a_way_back_are_refused_before_anything_is_read(step, message):
    pipeline = SynthesisPipeline([("first", step), ("last", synthesizer())])
    with pytest.raises(InputError, match=message):
        pipeline.fit(Watched(table()))


@pytest.mark.parametrize(
    ("pipeline", "error", "message"),
    [
        (SynthesisPipeline([("s", synthesizer())], memory="cache"), PrivacyLeakError, "to disk"),
        (
            make_synthesis_pipeline(Pipeline([("f", HALVES)], memory="cache"), synthesizer()),
            PrivacyLeakError,
            "'pipeline' has a memory",
        ),
        (
            make_synthesis_pipeline(FunctionTransformer(validate=True), synthesizer()),
            PrivacyLeakError,
            "validate=False",
        ),
        (make_synthesis_pipeline(HALVES), InputError, "last step must be a synthesizer"),
        (make_synthesis_pipeline(GaussianMixture()), InputError, "GaussianMixture"),
        (SynthesisPipeline([("a", HALVES), ("b", "passthrough")]), InputError, "type str"),
        (
            make_synthesis_pipeline(TabularPreprocessor(schema=SCHEMA), HALVES, synthesizer(None)),
            InputError,
            "right before",
        ),
        (
            make_synthesis_pipeline(
                make_pipeline(TabularPreprocessor(schema=SCHEMA)), synthesizer(None)
            ),
            InputError,
            "right before",
        ),
        (
            make_synthesis_pipeline(TabularPreprocessor(schema=CODED), synthesizer()),
            SchemaError,
            "different schemas",
        ),
        (SynthesisPipeline([]), ValueError, "empty"),
        (SynthesisPipeline([("a__b", synthesizer())]), ValueError, "__"),
    ],
)
def test_pipelines_that_are_refused(pipeline, error, message):
    with pytest.raises(error, match=message):
        pipeline.fit(Watched(table()))


# -- steps that mix rows, or fail ------------------------------------------------------------------


MIXING = [
    lambda X: X - X.mean(),
    lambda X: X.assign(b=X["b"].rank()),
    lambda X: X.assign(a=X["a"].fillna(X["a"].median())),
    lambda X: X.assign(a=X["a"].cumsum()),
    lambda X: X.sort_values("a"),
    lambda X: X[X["b"] > 50],
    lambda X: X.assign(b=X["b"] + np.random.default_rng().normal(size=len(X))),
    lambda X: X.assign(b=X["b"].astype("category").cat.codes),
]


@pytest.mark.parametrize("function", MIXING)
def test_functions_that_mix_rows_are_found_out_on_made_up_rows(function):
    ledger = PrivacyLedger()
    step = FunctionTransformer(function, lambda X: X)
    with pytest.raises(PrivacyLeakError, match="'functiontransformer' mixes rows"):
        make_synthesis_pipeline(step, synthesizer(ledger=ledger)).fit(table())
    assert len(ledger.entries) == 0


@pytest.mark.parametrize(
    "function",
    [
        halved,
        lambda X: X.assign(b=X["b"].map({0: 1, 1: 2})),
        lambda X: X.assign(a=X["a"].fillna(0.0)),
        lambda X: X.assign(a=X["a"].clip(0, 5)),
        lambda X: X.assign(a=np.log1p(X["a"])),
        lambda X: X.assign(a=X["a"] / X[["a", "b"]].sum(axis=1)),
    ],
)
def test_functions_of_one_row_pass(function):
    make_synthesis_pipeline(FunctionTransformer(function, lambda X: X), synthesizer()).fit(table())


def test_functions_that_fail_on_made_up_rows_are_up_to_the_user():
    def picky(X):
        if len(X) and X["b"].max() > 21:
            raise RuntimeError
        return X

    make_synthesis_pipeline(FunctionTransformer(picky, picky), synthesizer()).fit(table())


def test_errors_and_warnings_of_steps_quote_no_cells():
    df = table().assign(b=lambda X: X["b"].where(X.index != 7, 12345))

    def fails(X):
        if len(X) and X["b"].max() > 200:
            raise KeyError(X["b"].max())
        return X

    def warns(X):
        if len(X) and X["b"].max() > 200:
            warnings.warn("cell 12345", stacklevel=1)
            np.log(np.array([-12345.0]))
        return X

    ledger = PrivacyLedger()
    pipeline = make_synthesis_pipeline(
        FunctionTransformer(fails, fails), synthesizer(ledger=ledger)
    )
    with pytest.raises(InputError, match="raised KeyError on the table") as caught:
        pipeline.fit(df)
    assert "12345" not in "".join(
        line
        for text in traceback.format_exception(caught.value)
        for line in text.splitlines()
        if ":" not in line[:20]
    )
    assert "12345" not in str(caught.value)
    # The rows were asked for, so the budget is gone.
    assert len(ledger.entries) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_synthesis_pipeline(FunctionTransformer(warns, warns), synthesizer()).fit(df)


def test_functions_that_drop_rows_unseen_are_stopped():
    step = FunctionTransformer(lambda X: X[X["b"] != 12345], lambda X: X)
    df = table().assign(b=lambda X: X["b"].where(X.index != 7, 12345))
    with pytest.raises(InputError, match="one row out of each row"):
        make_synthesis_pipeline(step, synthesizer()).fit(df)


def test_columns_that_depend_on_rows_are_stopped():
    step = FunctionTransformer(lambda X: X if len(X) < 20 else X[["b", "a", "c"]], lambda X: X)
    with pytest.raises(InputError, match="make other columns"):
        make_synthesis_pipeline(step, synthesizer()).fit(table())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X.iloc[[0]], "fails on a table without rows"),
        (lambda X: X["missing"], "fails on a table without rows"),
        (lambda X: pd.DataFrame({"a": [1.0]}), "makes rows out of no rows"),
    ],
)
def test_steps_must_work_without_rows(function, message):
    ledger = PrivacyLedger()
    step = FunctionTransformer(function, lambda X: X)
    with pytest.raises(InputError, match=message):
        make_synthesis_pipeline(step, synthesizer(ledger=ledger)).fit(table())
    assert len(ledger.entries) == 0


def test_steps_are_fitted_without_rows_and_category_lists():
    seen = []

    class Spy(Shift):
        def fit(self, X, y=None):
            seen.append((len(X), list(X["k"].cat.categories), X.attrs, X.index, y))
            return self

        def transform(self, X):
            return X

    df = table().assign(k=pd.Categorical(["secret"] * N))
    df.attrs["source"] = "secret"
    df.index = pd.Index(range(N), name="secret")
    schema = SCHEMA.with_columns({"k": Categorical(["public"], other="other")})
    make_synthesis_pipeline(Spy(), synthesizer(schema)).fit(df)
    [(n, categories, attrs, index, y)] = seen
    assert (n, categories, attrs, index.name, y) == (0, [], {}, None, None)


def test_the_check_of_inverse_functions_is_set_aside():
    def wrong(X):
        return X * 3

    step = FunctionTransformer(np.sqrt, wrong, check_inverse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_synthesis_pipeline(make_pipeline(step), synthesizer(ANY)).fit(table()[["a", "b"]])
    assert step.check_inverse is True


# -- rows in, samples out --------------------------------------------------------------------------


def test_the_synthesizer_sees_transformed_rows_and_samples_come_back():
    df = pd.DataFrame({"a": np.full(N, 8.0), "b": np.full(N, 6), "c": [True, False] * (N // 2)})
    schema = SCHEMA.with_columns({"b": Numeric((0, 10))})
    pipeline = make_synthesis_pipeline(HALVES, synthesizer(schema))
    direct = synthesizer(schema)
    with insecure_noise(seed=1):
        released = pipeline.fit(df).release_
    with insecure_noise(seed=1):
        expected = direct.fit(halved(df)).release_
    np.testing.assert_array_equal(released.noisy_sums, expected.noisy_sums)
    sample = pipeline.sample(200, random_state=3)
    inner = direct.sample(200, random_state=3)
    np.testing.assert_array_equal(sample["b"], np.rint(inner["b"] * 2))
    assert sample.dtypes.equals(df.dtypes)
    pd.testing.assert_series_equal(sample["a"], inner["a"])
    pd.testing.assert_frame_equal(sample, pipeline.sample(200, random_state=3))


def test_several_steps_run_back_in_reverse():
    pipeline = SynthesisPipeline(
        [
            ("shift", Shift()),
            ("none", None),
            ("pass", "passthrough"),
            ("scale", make_pipeline(FunctionTransformer(lambda X: X**3, np.cbrt), Shift())),
            ("synth", synthesizer(Schema({}, default=Numeric((0, 500))))),
        ]
    )
    X = table()[["a", "b"]].to_numpy()
    sample = pipeline.fit(X).sample(100, random_state=0)
    inner = pipeline["synth"].sample(100, random_state=0)
    np.testing.assert_allclose(sample, np.cbrt(inner - 1) - 1)
    assert pipeline["shift"].n_rows_seen_ == 0


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("kind", ["numpy", "nullable", "polars"])
def test_frames_and_dtypes_come_back(n, kind):
    df = table()[["a", "b"]]
    forward, back = halved, doubled
    if kind == "nullable":
        df = df.astype({"a": "Float64", "b": "Int32"})
    elif kind == "polars":
        df = pl.from_pandas(df).cast({"b": pl.UInt16})
        forward, back = (
            lambda X: X.with_columns(b=pl.col("b") / 2),
            lambda X: X.with_columns(b=pl.col("b") * 2),
        )
    schema = Schema({"a": Numeric((0, 10)), "b": Numeric((0, 10))})
    step = FunctionTransformer(forward, back)
    sample = make_synthesis_pipeline(step, synthesizer(schema)).fit(df).sample(n)
    assert type(sample) is type(df)
    assert list(sample.dtypes) == list(df.dtypes)
    assert sample.shape == (n, 2)


def test_a_frame_comes_back_from_steps_that_make_arrays():
    step = FunctionTransformer(lambda X: np.asarray(X) / 2, lambda X: X * 2)
    df = table()[["b"]]
    schema = Schema({}, default=Numeric((0, 20)))
    sample = make_synthesis_pipeline(step, synthesizer(schema)).fit(df).sample(5)
    assert sample.dtypes.equals(df.dtypes)


def test_with_y_the_steps_see_the_features_only():
    df = table()
    X, y = df[["a", "b"]], df["c"]
    pipeline = make_synthesis_pipeline(HALVES, synthesizer()).fit(X, y)
    X_syn, y_syn = pipeline.sample(40)
    assert X_syn.dtypes.equals(X.dtypes)
    assert y_syn.name == "c"
    _, y_asked = pipeline.sample(3, y=[True, True, False])
    assert y_asked.tolist() == [True, True, False]
    assert pipeline.classes_.tolist() == [False, True]


@pytest.mark.parametrize(
    "last",
    [
        SlicedFDivSynthesizer(1.0, 1e-5, schema=SCHEMA, n_slices=4, n_steps=2),
        SlicedRowsSynthesizer(400.0, 1e-5, schema=SCHEMA, n_slices=4, n_steps=2),
    ],
    ids=lambda last: type(last).__name__,
)
def test_other_synthesizers(last):
    sample = make_synthesis_pipeline(HALVES, last).fit(table()).sample(9)
    assert sample.dtypes.equals(table().dtypes)


# -- preprocessors ---------------------------------------------------------------------------------


def coded(n=N):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "city": rng.choice(["Rome", "Oslo"], n),
            "grade": rng.choice(["C", "B", "A"], n),
            "age": rng.integers(0, 101, n),
            "wage": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 1000, n)),
            "ok": rng.random(n) < 0.5,
        }
    )


STEPS = [
    ("words", "onehot", ["city"]),
    ("ranks", "scale", ["grade"]),
    ("logs", "log1p", ["wage"]),
    ("target", "onehot", ["ok"]),
    ("dropped", "drop", ["age"]),
]


@pytest.mark.parametrize("given", ["pandas", "polars", "with y"])
def test_a_preprocessor_lends_its_encoding_to_the_synthesizer(given):
    df, y = coded(), None
    exclude = given == "with y"
    steps = [s for s in STEPS if s[0] != "target"] if exclude else STEPS
    preprocessor = TabularPreprocessor(steps, schema=CODED, exclude_target=exclude)
    pipeline = make_synthesis_pipeline(preprocessor, synthesizer(None))
    if exclude:
        df, y = df.drop(columns="ok"), df["ok"]
    if given == "polars":
        df = pl.from_pandas(df)
    plain = CODED.drop(["age"]).with_columns({"wage": {"scale": "log1p"}})
    plain = plain.with_columns({"grade": {"encoding": "scale"}})
    direct = synthesizer(plain)
    with insecure_noise(seed=5):
        pipeline.fit(df, y)
    with insecure_noise(seed=5):
        direct.fit(df.drop("age") if given == "polars" else df.drop(columns="age"), y)
    np.testing.assert_array_equal(pipeline.release_.noisy_sums, direct.release_.noisy_sums)
    codec = pipeline["dpmerfsynthesizer"]._codec
    assert codec.layout == direct._codec.layout
    assert codec.layout.groups == ((0, 2), (3 + 1, 5 + 1))
    assert pipeline["dpmerfsynthesizer"].schema is None
    sample, expected = pipeline.sample(20, random_state=0), direct.sample(20, random_state=0)
    if exclude:
        sample, expected = sample[0], expected[0]
    assert sample.equals(expected)
    assert list(sample.columns) == [n for n in df.columns if n != "age"]


def test_the_encoding_travels_in_the_release(tmp_path):
    preprocessor = TabularPreprocessor(STEPS, schema=CODED)
    pipeline = make_synthesis_pipeline(preprocessor, synthesizer(None)).fit(coded())
    pipeline.release_.save(tmp_path / "release")
    again = DPMERFSynthesizer.from_release(tmp_path / "release", n_steps=2)
    assert again._codec.layout == pipeline[-1]._codec.layout
    facts = json.loads(json.dumps(pipeline.release_.public["schema"]))
    assert again.schema == Schema.from_dict(facts)
    assert again.schema.columns["grade"] == Ordinal(["C", "B", "A"], encoding="scale")
    assert again.sample(3).columns.tolist() == ["city", "grade", "wage", "ok"]


@pytest.mark.parametrize("form", [lambda s: s, lambda s: s.to_dict()])
def test_the_same_schema_may_be_given_twice(form):
    preprocessor = TabularPreprocessor(STEPS, schema=CODED)
    pipeline = make_synthesis_pipeline(preprocessor, synthesizer(form(CODED))).fit(coded())
    assert pipeline[-1]._codec.schema.columns["grade"].encoding == "scale"
    assert list(pipeline[-1]._codec.schema.columns) == ["city", "grade", "wage", "ok"]


SEARCHES = {
    "on the release": lambda synth: ReleaseSearchCV(synth, {"learning_rate": [0.01, 0.1]}, cv=2),
    "private": lambda synth: PrivateSearchCV(
        synth, {"features__n_frequencies": [10, 20, 30, 40, 50]}, epsilon=1.0, delta=1e-3
    ),
}


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.filterwarnings("ignore:releasing all:skdpgen.exceptions.PrivacyWarning")
def test_a_search_is_a_last_step_too(kind):
    inner = synthesizer(None)
    pipeline = make_synthesis_pipeline(
        HALVES,
        TabularPreprocessor(schema=SCHEMA.with_columns({"b": Numeric((0, 10))})),
        SEARCHES[kind](inner),
    ).fit(table())
    assert inner.schema is None
    assert len(pipeline.ledger_.entries) == {"on the release": 1, "private": 2}[kind]
    assert pipeline.sample(5).dtypes.equals(table().dtypes)
    assert "differentially private" in pipeline.privacy_statement()


def test_a_search_over_rows_is_no_last_step():
    with pytest.raises(InputError, match="GridSearchCV"):
        make_synthesis_pipeline(GridSearchCV(synthesizer(), {})).fit(table())


def test_a_preprocessor_of_arrays_may_drop_columns():
    schema = Schema({f"x{i}": Numeric((0, 10 * (i + 1))) for i in range(3)}, target="x2")
    steps = [("n", "scale", ["x0"]), ("log", "log1p", ["x2"]), ("d", "drop", ["x1"])]
    X = np.random.default_rng(0).uniform(0, 10, (N, 3))
    pipeline = make_synthesis_pipeline(
        TabularPreprocessor(steps, schema=schema), synthesizer(None)
    ).fit(X)
    assert pipeline[-1]._codec.schema.columns == {
        "x0": Numeric((0, 10)),
        "x1": Numeric((0, 30), scale="log1p"),
    }
    assert pipeline[-1]._codec.schema.target == "x1"
    assert pipeline.sample(4).shape == (4, 2)


def test_steps_before_a_preprocessor():
    schema = SCHEMA.with_columns({"b": Numeric((0, 10))})
    pipeline = make_synthesis_pipeline(
        HALVES, TabularPreprocessor(schema=schema), synthesizer(None)
    ).fit(table())
    assert pipeline.sample(5).dtypes.equals(table().dtypes)
    assert pipeline[:-1].transform(table()).shape == (N, 4)


def test_the_synthesizers_schema_is_as_before_if_its_fit_fails():
    ledger = PrivacyLedger(epsilon=0.1, delta=1e-5)
    pipeline = make_synthesis_pipeline(
        TabularPreprocessor(schema=SCHEMA), synthesizer(None, ledger=ledger)
    )
    with pytest.raises(BudgetExceededError):
        pipeline.fit(table())
    assert pipeline[-1].schema is None


# -- what pipelines do -----------------------------------------------------------------------------


def test_the_budget_is_checked_before_steps_see_rows():
    seen = []

    def watched(X):
        seen.append(len(X))
        return X

    ledger = PrivacyLedger(epsilon=0.1, delta=1e-5)
    pipeline = make_synthesis_pipeline(
        FunctionTransformer(watched, watched), synthesizer(ledger=ledger)
    )
    with pytest.raises(BudgetExceededError):
        pipeline.fit(table(N))
    assert N not in seen
    pipeline.set_params(dpmerfsynthesizer__ledger=None).fit(table(N))
    assert seen[-1] == N


def test_parameters_clones_and_refits():
    pipeline = make_synthesis_pipeline(FunctionTransformer(), synthesizer())
    assert pipeline.get_params()["dpmerfsynthesizer__epsilon"] == 1.0
    pipeline.set_params(dpmerfsynthesizer__epsilon=0.5, functiontransformer=HALVES)
    pipeline.fit(table()).fit(table())
    copy = clone(pipeline)
    with pytest.raises(NotFittedError):
        copy.sample()
    copy.fit(table())
    assert len(pipeline.ledger_.entries) == 3
    assert copy.ledger_ is pipeline.ledger_
    assert "3 releases in its ledger" in pipeline.privacy_statement()
    assert pipeline.release_.epsilon == pytest.approx(0.5)
    assert set(SynthesisPipeline([]).get_params(deep=False)) == {"steps", "memory", "verbose"}


def test_retraining_is_free():
    pipeline = make_synthesis_pipeline(HALVES, synthesizer()).fit(table())
    release = pipeline.release_
    assert pipeline.retrain(n_steps=2) is pipeline
    assert pipeline.release_ is release
    assert len(pipeline[-1].loss_curve_) == 2
    assert len(pipeline.ledger_.entries) == 1
    with pytest.raises(InputError, match="epsilon"):
        pipeline.retrain(epsilon=2.0)


def test_pickles():
    pipeline = make_synthesis_pipeline(HALVES, synthesizer()).fit(table())
    again = pickle.loads(pickle.dumps(pipeline))
    pd.testing.assert_frame_equal(
        again.sample(9, random_state=1), pipeline.sample(9, random_state=1)
    )


def test_attributes_of_the_fitted_table():
    pipeline = make_synthesis_pipeline(None, HALVES, synthesizer())
    assert not hasattr(pipeline, "n_features_in_")
    assert not hasattr(pipeline, "feature_names_in_")
    assert not hasattr(pipeline, "release_")
    pipeline.fit(table())
    assert pipeline.n_features_in_ == 3
    assert pipeline.feature_names_in_.tolist() == ["a", "b", "c"]
    arrays = make_synthesis_pipeline(synthesizer(ANY)).fit(table()[["a"]].to_numpy())
    assert arrays.n_features_in_ == 1
    assert not hasattr(arrays, "feature_names_in_")


def test_parts():
    pipeline = make_synthesis_pipeline(HALVES, synthesizer()).fit(table())
    assert type(pipeline[:-1]) is Pipeline
    pd.testing.assert_frame_equal(pipeline[:-1].transform(table()), halved(table()))
    assert type(pipeline[:]) is SynthesisPipeline
    assert type(pipeline[1:]) is SynthesisPipeline
    assert pipeline[1] is pipeline["dpmerfsynthesizer"]
    assert len(pipeline[:0]) == 0
    # A part samples what its first step would take.
    assert pipeline[1:].sample(3)["b"].dtype == np.float64


def test_nothing_reads_rows_for_free():
    pipeline = make_synthesis_pipeline(HALVES, synthesizer()).fit(table())
    names = ["score", "predict", "transform", "fit_transform", "fit_predict", "score_samples"]
    names += ["predict_proba", "decision_function", "inverse_transform"]
    assert [name for name in names if hasattr(pipeline, name)] == []


def test_units_reach_the_synthesizer():
    pipeline = make_synthesis_pipeline(HALVES, synthesizer(rows_per_unit=2))
    pipeline.fit(table(), dpmerfsynthesizer__unit_id=np.arange(N) // 3)
    assert "unit" in pipeline.privacy_statement()
    with pytest.raises(InputError, match=r"doesn't take 'unit_id'.*dpmerfsynthesizer__unit_id"):
        pipeline.fit(table(), unit_id=np.arange(N))
    with pytest.raises(InputError, match="functiontransformer__x"):
        pipeline.fit(table(), functiontransformer__x=1)


def test_set_output_and_verbose(capsys):
    pipeline = SynthesisPipeline(
        [("half", FunctionTransformer(lambda X: X / 2, lambda X: X * 2)), ("s", synthesizer(ANY))],
        verbose=True,
    ).set_output(transform="polars")
    pipeline.fit(pl.from_pandas(table()[["a", "b"]]))
    assert "(step 2 of 2) Processing s" in capsys.readouterr().out
    assert isinstance(pipeline[:-1].transform(pl.from_pandas(table()[["a"]])), pl.DataFrame)


def test_no_row_survives_a_fit():
    marker = 7351.0 / 1024
    df = table()
    df.loc[3, "a"] = marker
    pipeline = make_synthesis_pipeline(make_pipeline(FunctionTransformer()), synthesizer()).fit(df)
    content = pickle.dumps(pipeline)
    assert not [order for order in "<>" if np.array(marker, f"{order}f8").tobytes() in content]


def test_empty_tables_and_strange_ones():
    pipeline = make_synthesis_pipeline(HALVES, synthesizer())
    with pytest.raises(InputError, match="0 sample"):
        pipeline.fit(table(0))
    with pytest.raises(InputError, match="2D"):
        pipeline.fit(np.zeros(3))
    rows = [[1.0, 2.0], [3.0, 4.0]]
    lists = make_synthesis_pipeline(FunctionTransformer(), synthesizer(ANY, delta=0.4)).fit(rows)
    assert lists.sample(3).shape == (3, 2)
