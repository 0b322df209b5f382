import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdpgen import Schema
from skdpgen.datasets import make_gaussian_grid
from skdpgen.evaluation import default_classifiers, tstr_scores
from skdpgen.evaluation import tstr as module
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


def scores(train, test, schema=SCHEMA, classifiers=LOGISTIC, **options):
    result = tstr_scores(train, test, schema, classifiers=classifiers, **options)
    return result.set_index(["classifier", "metric"])["score"]


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


def test_default_classifiers_learn_and_their_scores_are_seeded():
    train, test = patients(300, 0), patients(200, 1)
    first = tstr_scores(train, test, SCHEMA)
    assert list(first["classifier"].unique()) == list(default_classifiers())
    assert (first.query("metric == 'roc_auc'")["score"] > 0.8).all()
    assert set(first["privacy"]) == {"not private"}
    pd.testing.assert_frame_equal(first, tstr_scores(train, test, SCHEMA))


def test_without_xgboost_scikit_learn_boosts(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    boosting = default_classifiers()["gradient boosting"]
    assert isinstance(boosting, HistGradientBoostingClassifier)


def test_several_classes_are_scored_one_against_the_rest():
    train, schema = make_gaussian_grid(500, random_state=0)
    test, _ = make_gaussian_grid(500, random_state=1)
    found = scores(train, test, schema, {"lr": LogisticRegression()})
    guess = scores(train, test, schema, {"lr": DummyClassifier(strategy="prior")})
    assert found["lr", "roc_auc"] > 0.85
    assert guess["lr", "roc_auc"] == 0.5
    assert guess["lr", "pr_auc"] == pytest.approx(0.2, abs=0.001)


def test_a_class_missing_from_the_synthetic_table_is_a_reason_not_a_crash():
    train, schema = make_gaussian_grid(300, random_state=0)
    test, _ = make_gaussian_grid(300, random_state=1)
    result = tstr_scores(train[train["label"] != 3], test, schema)
    areas = result[result["metric"].isin(["roc_auc", "pr_auc"])]
    assert areas["score"].isna().all()
    assert set(areas["note"]) == {"class 3 is absent from the training table"}
    rest = result.drop(areas.index)
    assert rest["score"].between(0.1, 1).all()
    assert set(rest["note"]) == {""}


@pytest.mark.parametrize("kept", [["no"], []])
def test_one_class_or_none_to_learn_from_gives_nan(kept):
    train = patients(100, 0)
    result = tstr_scores(train[train["ill"].isin(kept)], patients(50, 1), SCHEMA)
    assert result["score"].isna().all()
    assert result["note"].str.contains("absent from the training table").all()


def test_no_test_rows_give_nan():
    result = tstr_scores(patients(100, 0), patients(0, 1), SCHEMA)
    assert result["score"].isna().all()
    assert set(result["note"]) == {"class 'no' is absent from the test table"}


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


def test_bad_arguments_are_named():
    train = patients(20, 0)
    with pytest.raises(InputError, match="target with declared values"):
        tstr_scores(train, train, SCHEMA, target="dose")
    with pytest.raises(InputError, match="target with declared values"):
        tstr_scores(train, train, SCHEMA, target="nothing")
    with pytest.raises(InputError, match="training table lacks column 'ward'"):
        tstr_scores(train.drop(columns="ward"), train, SCHEMA)
