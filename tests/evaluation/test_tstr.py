import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdpgen import Schema
from skdpgen.datasets import load_fair, make_gaussian_grid
from skdpgen.evaluation import _estimators, tstr
from skdpgen.evaluation._estimators import chosen_estimators
from skdpgen.exceptions import InputError

SCHEMA = Schema.from_dict(
    {
        "target": "ill",
        "columns": {
            "id": {"kind": "id"},
            "dose": {"kind": "numeric", "bounds": [0, 10], "dtype": "float", "missing": [""]},
            "ward": {"kind": "categorical", "values": ["a", "b", "c"]},
            "ill": {"kind": "label", "values": ["no", "yes"]},
        },
    }
)
LOGISTIC = {"lr": LogisticRegression()}


def patients(n, seed):
    rng = np.random.default_rng(seed)
    dose = rng.uniform(0, 10, n)
    ward = rng.choice(["a", "b", "c"], n)
    ill = rng.random(n) < 1 / (1 + np.exp(5 - dose - (ward == "c")))
    dose = np.where(rng.random(n) < 0.1, np.nan, dose)
    return pd.DataFrame(
        {"id": range(n), "dose": dose, "ward": ward, "ill": np.where(ill, "yes", "no")}
    )


def scores(synthetic, test, schema=SCHEMA, estimators=LOGISTIC, **options):
    result = tstr(synthetic, test, schema=schema, estimators=estimators, **options).scores
    result = result[result["trained_on"] == "synthetic"]
    return result.set_index(["estimator", "metric"])["score"]


def notes(result, trained_on="synthetic"):
    kept = result.scores[result.scores["trained_on"] == trained_on]
    return kept.set_index("metric")["note"].to_dict()


def test_scores_are_those_of_the_classifier_on_the_public_encoding():
    train, test = patients(400, 0), patients(300, 1)

    def encoded(frame):
        wards = np.stack([frame["ward"] == w for w in "abc"], axis=1)
        dose = frame["dose"].fillna(5.0).to_numpy()[:, None] / 10
        return np.hstack([dose, frame["dose"].isna().to_numpy()[:, None], wards]).astype(float)

    model = LogisticRegression().fit(encoded(train), train["ill"])
    probability = model.predict_proba(encoded(test))[:, 1]
    found = scores(train, test)
    assert found["lr", "roc_auc"] == pytest.approx(roc_auc_score(test["ill"] == "yes", probability))
    assert found["lr", "accuracy"] == (model.predict(encoded(test)) == test["ill"]).mean()
    assert 0.8 < found["lr", "roc_auc"] < found["lr", "pr_auc"] + 0.1


def test_the_fast_preset_learns_and_its_scores_are_seeded():
    synthetic, test = patients(300, 0), patients(200, 1)
    first = tstr(synthetic, test, schema=SCHEMA)
    assert list(first.scores["estimator"].unique()) == [
        "logistic regression",
        "gradient boosting",
        "random forest",
        "chance",
    ]
    areas = first.table()["roc_auc"]
    assert (areas["synthetic"] > 0.8).all()
    assert areas["chance"].tolist() == [0.5]
    pd.testing.assert_frame_equal(first.scores, tstr(synthetic, test, schema=SCHEMA).scores)


def test_linear_models_standardize_numbers_and_leave_indicators_alone():
    rng = np.random.default_rng(0)
    x = np.stack([rng.uniform(0.2, 0.3, 500), np.arange(500) == 7, np.arange(500) % 2], axis=1)
    for task, name in (
        ("classification", "logistic regression"),
        ("regression", "ridge regression"),
    ):
        first = chosen_estimators("fast", task, 0)[name][0]
        expected = np.column_stack([StandardScaler().fit_transform(x[:, :1]), x[:, 1:]])
        np.testing.assert_allclose(first.fit_transform(x), expected, rtol=1e-12)
        # Nothing but indicators, and a value that training didn't have.
        assert first.fit(x[:, 1:]).transform(np.array([[0.5, 1.0]])).tolist() == [[0.5, 1.0]]


def test_without_xgboost_scikit_learn_boosts_and_the_paper_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(_estimators, "find_spec", lambda name: None)
    boosting = [
        chosen_estimators("fast", task, 0)["gradient boosting"]
        for task in ("classification", "regression")
    ]
    assert isinstance(boosting[0], HistGradientBoostingClassifier)
    assert isinstance(boosting[1], HistGradientBoostingRegressor)
    result = tstr(patients(100, 0), patients(50, 1), estimators="paper", schema=SCHEMA)
    missing = result.scores[result.scores["estimator"] == "XGBoost"]
    assert missing["score"].isna().all()
    assert set(missing["note"]) == {"XGBoost is not installed: pip install xgboost"}


def test_the_twelve_of_the_paper():
    result = tstr(patients(400, 0), patients(300, 1), estimators="paper", schema=SCHEMA)
    table = result.table().loc["synthetic"]
    assert len(table) == 12
    assert table.notna().all().all()
    # Bernoulli naive Bayes sees of the dose only that it isn't zero.
    assert (table["roc_auc"].drop("Bernoulli naive Bayes") > 0.7).all()
    assert table["roc_auc"].median() > 0.85
    models = chosen_estimators("paper", "classification", 0)
    assert models["logistic regression"].max_iter == 2000
    assert models["Bernoulli naive Bayes"].alpha == 0.02


def test_chance_knows_the_shares_of_the_synthetic_table():
    synthetic, test = patients(300, 0), patients(200, 1)
    synthetic["ill"] = np.where(np.arange(300) < 100, "no", "yes")
    chance = tstr(synthetic, test, schema=SCHEMA, estimators=LOGISTIC).table().loc["chance"]
    share = (test["ill"] == "yes").mean()
    assert chance["roc_auc"].item() == 0.5
    assert chance["pr_auc"].item() == pytest.approx(share)
    assert chance["accuracy"].item() == pytest.approx(share)
    assert chance["f1_macro"].item() == pytest.approx(share / (1 + share))


def test_real_rows_only_where_they_are_given():
    a, b, test = patients(300, 0), patients(300, 2), patients(200, 1)
    without = tstr(a, test, schema=SCHEMA, estimators=LOGISTIC)
    assert list(without.scores["trained_on"].unique()) == ["synthetic", "chance"]
    assert "the real test rows" in without.reads
    result = tstr(a, test, real_train=b, schema=SCHEMA, estimators=LOGISTIC)
    assert list(result.scores["trained_on"].unique()) == ["synthetic", "real", "chance"]
    assert result.table().loc[("real", "lr"), "roc_auc"] == scores(b, test)["lr", "roc_auc"]
    assert "the real training and test rows" in result.reads


def test_areas_come_from_scores_and_not_from_labels():
    svm, logistic = LinearSVC(random_state=0), LogisticRegression()
    both = {"svm": svm, "lr": logistic}
    found = scores(patients(400, 0), patients(300, 1), estimators=both)
    assert found["svm", "roc_auc"] == pytest.approx(found["lr", "roc_auc"], abs=0.01)
    several, schema = make_gaussian_grid(400, random_state=0)
    fresh, _ = make_gaussian_grid(300, random_state=1)
    # Linear scores of one class against the rest can't see the inner columns of the grid.
    assert 0.75 < scores(several, fresh, schema, both)["svm", "roc_auc"] < 0.95


def test_an_estimator_without_scores_still_has_labels():
    class Labels(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    result = tstr(patients(100, 0), patients(50, 1), estimators={"l": Labels()}, schema=SCHEMA)
    table = result.table().loc["synthetic"]
    assert table[["roc_auc", "pr_auc"]].isna().all().all()
    assert table["accuracy"].item() == (patients(50, 1)["ill"] == "no").mean()
    assert notes(result)["roc_auc"] == (
        "the estimator has neither predict_proba nor decision_function"
    )


def test_regression_against_scikit_learn():
    train, test = patients(400, 0), patients(300, 1)
    result = tstr(train, test, "dose", train, {"ols": LinearRegression()}, schema=SCHEMA)
    assert result.task == "regression"
    assert result.metrics == ("r2", "spearman")

    def encoded(frame):
        kept = frame.dropna()
        blocks = [kept["ward"] == w for w in "abc"] + [kept["ill"] == i for i in ("no", "yes")]
        return np.stack(blocks, axis=1).astype(float), kept["dose"] / 10

    x, y = encoded(train)
    x_test, y_test = encoded(test)
    predicted = LinearRegression().fit(x, y).predict(x_test)
    table = result.table()
    for trained_on in ("synthetic", "real"):
        found = table.loc[(trained_on, "ols")]
        assert found["r2"] == pytest.approx(r2_score(y_test, predicted))
        ranks = pd.Series(predicted).corr(y_test.reset_index(drop=True), method="spearman")
        assert found["spearman"] == pytest.approx(ranks, abs=1e-3)
    chance = table.loc[("chance", "chance")]
    assert chance["r2"] == pytest.approx(r2_score(y_test, np.full(len(y_test), y.mean())))
    assert np.isnan(chance["spearman"])
    assert notes(result, "chance")["spearman"].startswith("the same prediction for all rows")


def test_the_fast_regressors_learn():
    frame, schema = load_fair()
    frame = frame.sample(1200, random_state=0)
    table = tstr(frame[:600], frame[600:], "age", schema=schema).table().loc["synthetic"]
    assert list(table.index) == ["ridge regression", "gradient boosting", "random forest"]
    assert (table > 0.6).all().all()


def test_several_classes_are_scored_one_against_the_rest():
    train, schema = make_gaussian_grid(500, random_state=0)
    test, _ = make_gaussian_grid(500, random_state=1)
    both = {"lr": LogisticRegression(), "guess": DummyClassifier(strategy="prior")}
    found = scores(train, test, schema, both)
    assert found["lr", "roc_auc"] > 0.85
    assert found["guess", "roc_auc"] == 0.5
    assert found["guess", "pr_auc"] == pytest.approx(0.2, abs=0.001)


def test_a_class_missing_from_the_synthetic_table_is_a_reason_not_a_crash():
    train, schema = make_gaussian_grid(300, random_state=0)
    test, _ = make_gaussian_grid(300, random_state=1)
    result = tstr(train[train["label"] != 3], test, schema=schema).scores
    areas = result[result["metric"].isin(["roc_auc", "pr_auc"])]
    assert areas["score"].isna().all()
    assert set(areas["note"]) == {"class 3 is absent from the synthetic table"}
    rest = result.drop(areas.index)
    assert rest["score"].between(0.01, 1).all()
    assert set(rest["note"]) == {""}


def test_a_class_missing_from_the_test_table_is_left_out_of_the_mean():
    train, schema = make_gaussian_grid(300, random_state=0)
    test, _ = make_gaussian_grid(300, random_state=1)
    test = test[test["label"] != 3]
    result = tstr(train, test, estimators=LOGISTIC, schema=schema)
    assert notes(result)["roc_auc"] == "mean without 3: absent from the test table"
    model = LogisticRegression().fit((train[["x", "y"]] + 3) / 6, train["label"])
    probability = model.predict_proba((test[["x", "y"]] + 3) / 6)
    for metric, score in (("roc_auc", roc_auc_score), ("pr_auc", average_precision_score)):
        expected = [score(test["label"] == c, probability[:, c]) for c in (0, 1, 2, 4)]
        found = result.table().loc[("synthetic", "lr"), metric]
        assert found == pytest.approx(np.mean(expected))


def test_one_class_to_learn_from_gives_nan_and_a_reason():
    synthetic = patients(100, 0)
    result = tstr(synthetic[synthetic["ill"] == "no"], patients(50, 1), schema=SCHEMA)
    assert result.scores["score"].isna().all()
    assert set(result.scores["note"]) == {"'no' is the only class in the synthetic table"}


def test_one_class_to_be_tested_on_has_labels_only():
    test = patients(100, 1)
    result = tstr(patients(100, 0), test[test["ill"] == "no"], schema=SCHEMA, estimators=LOGISTIC)
    assert notes(result)["roc_auc"] == "'no' is the only class in the test table"
    assert result.table()["accuracy"].notna().all()


def test_no_known_target_gives_nan_and_a_reason():
    full, other = patients(100, 0), patients(50, 1)
    for synthetic, test, role in (
        (full.assign(ill="perhaps"), other, "synthetic"),
        (full[:0], other, "synthetic"),
        (full, other[:0], "test"),
        (full, other.assign(ill=None), "test"),
    ):
        result = tstr(synthetic, test, schema=SCHEMA, estimators=LOGISTIC)
        assert result.scores["score"].isna().all()
        assert set(result.scores["note"]) == {f"no row of the {role} table has a known target"}


def test_nothing_to_learn_gives_nan_and_a_reason():
    only = Schema({"ill": SCHEMA.columns["ill"]}, target="ill")
    result = tstr(patients(100, 0), patients(50, 1), schema=only)
    assert set(result.scores["note"]) == {"there is no column to learn from"}
    result = tstr(patients(50, 0), patients(50, 1).assign(dose=3.0), "dose", schema=SCHEMA)
    assert set(result.scores["note"]) == {"the target has one value only in the test table"}


def test_a_failing_estimator_is_a_reason_that_quotes_no_cell():
    class Broken(LogisticRegression):
        def fit(self, X, y):
            raise ValueError("row 7 has the secret value 4711")

    result = tstr(patients(50, 0), patients(50, 1), estimators={"b": Broken()}, schema=SCHEMA)
    assert set(notes(result).values()) == {"the estimator failed with ValueError"}
    assert result.table().loc[("chance", "chance")].notna().all()
    assert "4711" not in str(result)


def test_values_outside_the_schema_are_ignored():
    train, test = patients(300, 0), patients(200, 1)
    found = scores(train, test.assign(ward="nowhere"))
    assert 0.7 < found["lr", "roc_auc"] < 1
    # A row without a declared class can't be scored.
    unlabeled = test.head(50).assign(ill="perhaps")
    pd.testing.assert_series_equal(scores(train, pd.concat([test, unlabeled])), scores(train, test))


def test_polars_and_pandas_agree():
    train, test = patients(200, 0), patients(100, 1)
    pd.testing.assert_series_equal(
        scores(pl.from_pandas(train), pl.from_pandas(test)), scores(train, test)
    )


def test_another_target_can_be_named():
    found = scores(patients(300, 0), patients(200, 1), target="ward")
    assert 0.4 < found["lr", "roc_auc"] < 0.8


def test_a_schema_is_not_needed():
    synthetic, test = patients(300, 0), patients(200, 1)
    test["id"] += 300
    result = tstr(synthetic, test, "ill", estimators=LOGISTIC)
    with_schema = tstr(synthetic, test, estimators=LOGISTIC, schema=SCHEMA)
    # Observed bounds are a little narrower than the declared ones.
    difference = result.table() - with_schema.table()
    assert difference.abs().max(axis=None) < 0.02
    assert "come from the real rows" in result.reads
    assert "come from the real rows" not in with_schema.reads
    assert "no epsilon" in with_schema.reads
    assert tstr(synthetic, test, "dose", estimators=LOGISTIC).task == "regression"


def test_a_target_that_cannot_be_described_gives_nan_and_a_reason():
    synthetic, test = patients(300, 0), patients(200, 1)
    texts = {"ill": [f"note {i}" for i in range(200)]}
    result = tstr(synthetic, test.assign(**texts), "ill")
    assert result.task == "classification"
    assert set(result.scores["note"]) == {"it has too many different texts"}
    nothing = tstr(synthetic, test.assign(ill=None), "ill", synthetic.assign(ill=None))
    assert set(nothing.scores["note"]) == {"no real row has a value"}
    # What the real training rows have counts as well.
    some = tstr(synthetic, test.assign(ill="no"), "ill", synthetic, LOGISTIC).table()
    assert some["accuracy"].notna().all()


def test_the_result_is_json_ready_and_readable():
    synthetic = patients(100, 0)
    result = tstr(synthetic[synthetic["ill"] == "no"], patients(50, 1), schema=SCHEMA)
    entries = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert entries["target"] == "ill"
    assert entries["task"] == "classification"
    assert entries["metrics"] == ["roc_auc", "pr_auc", "accuracy", "f1_macro"]
    assert entries["scores"][0] == {
        "trained_on": "synthetic",
        "estimator": "logistic regression",
        "metric": "roc_auc",
        "score": None,
        "note": "'no' is the only class in the synthetic table",
    }
    assert str(result).count("Note: 'no' is the only class") == 1
    text = str(tstr(patients(100, 0), patients(50, 1), schema=SCHEMA))
    assert text.startswith("Predicting 'ill' on real rows, after training on ...")
    assert "random forest" in text
    assert "how frequent each class is" in text
    assert text.endswith("so no epsilon covers these scores.")
    number = tstr(patients(50, 0), patients(50, 1), "dose", schema=SCHEMA)
    assert "predicts the mean everywhere" in repr(number)


def test_bad_arguments_are_named():
    train = patients(20, 0)
    with pytest.raises(InputError, match="needs a target: name a column"):
        tstr(train, train)
    with pytest.raises(InputError, match="lacks column 'nothing'; it is the target"):
        tstr(train, train, "nothing", schema=SCHEMA)
    with pytest.raises(InputError, match="'id' can't be predicted: the schema says id"):
        tstr(train, train, "id", schema=SCHEMA)
    with pytest.raises(InputError, match="'other' can't be predicted: the schema doesn't have it"):
        tstr(train.assign(other=1), train.assign(other=1), "other", schema=SCHEMA)
    with pytest.raises(InputError, match="the synthetic table lacks column 'ward'"):
        tstr(train.drop(columns="ward"), train, schema=SCHEMA)
    with pytest.raises(InputError, match="estimators must be"):
        tstr(train, train, estimators="slow", schema=SCHEMA)
    with pytest.raises(InputError, match="'paper' are classifiers"):
        tstr(train, train, "dose", estimators="paper", schema=SCHEMA)
    with pytest.raises(InputError, match="str is not supported"):
        tstr("file.csv", train, schema=SCHEMA)
