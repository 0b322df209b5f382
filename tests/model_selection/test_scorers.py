"""scikit-learn's own searches over rows: every fit charged, every look at private rows recorded."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
    insecure_noise,
)
from skdpgen.data import Categorical, Numeric
from skdpgen.evaluation import tstr
from skdpgen.exceptions import BudgetExceededError, InputError
from skdpgen.model_selection import make_tstr_scorer

SCHEMA = Schema(
    {
        "dose": Numeric((0, 1)),
        "ward": Categorical(["a", "b", "c"]),
        "ill": Categorical(["no", "yes"]),
    },
    target="ill",
)
LOGISTIC = {"lr": LogisticRegression()}
GRID = {"learning_rate": [0.01, 0.1]}


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    dose = rng.random(n)
    return pd.DataFrame(
        {
            "dose": dose,
            "ward": rng.choice(["a", "b", "c"], n),
            "ill": np.where(dose + 0.2 * rng.random(n) > 0.6, "yes", "no"),
        }
    )


def synthesizer(**params):
    usual = {
        "schema": SCHEMA,
        "features": InteractionFeatures(40, n_bins=8),
        "generator": MixtureGenerator(8, n_mixtures=2),
        "n_steps": 5,
        "random_state": 0,
    }
    return DPMERFSynthesizer(5.0, 1e-5, **{**usual, **params})


def test_the_score_is_that_of_tstr():
    synth = synthesizer().fit(table())
    test = table(100, seed=1)
    for metric in ("roc_auc", "accuracy"):
        scorer = make_tstr_scorer(
            estimators={**LOGISTIC, "chance": DummyClassifier()}, metric=metric, public=True
        )
        scores = tstr(
            synth.sample(200, 0), test, estimators=scorer.estimators, schema=SCHEMA
        ).scores.query("metric == @metric and trained_on == 'synthetic'")["score"]
        assert scorer(synth, test) == pytest.approx(scores.mean(), rel=1e-12)
    assert len(synth.ledger_.entries) == 1


def test_the_number_of_rows_follows_the_release_and_not_the_fold(monkeypatch):
    sizes = []
    sample = DPMERFSynthesizer.sample
    monkeypatch.setattr(
        DPMERFSynthesizer, "sample", lambda self, n, *a: sizes.append(n) or sample(self, n, *a)
    )
    synth = synthesizer(adjacency="add-remove").fit(table())
    scorer = make_tstr_scorer(estimators=LOGISTIC, public=True)
    scorer(synth, table(10))
    make_tstr_scorer(estimators=LOGISTIC, public=True, n_samples=33)(synth, table(10))
    assert sizes == [round(synth.release_.row_count), 33]


def test_targets_apart_arrays_and_polars_are_scored_alike():
    frame, test = table(), table(100, seed=1)
    scorer = make_tstr_scorer(estimators=LOGISTIC, public=True)
    # At this size noise alone can make a table from which nothing is learned.
    with insecure_noise(scale=0):
        synth = synthesizer().fit(frame)
    assert 0.5 < scorer(synth, test) <= 1
    assert scorer(synth, pl.from_pandas(test)) == scorer(synth, test)
    apart = synthesizer().fit(frame.drop(columns="ill"), frame["ill"])
    assert 0 <= scorer(apart, test.drop(columns="ill"), test["ill"]) <= 1
    numbers = Schema({"y": Categorical([0, 1])}, default=Numeric((0, 1)), target="y")
    X, y = np.random.default_rng(0).random((60, 2)), np.arange(60) % 2
    from_arrays = synthesizer(schema=numbers).fit(X, y)
    assert 0 <= scorer(from_arrays, X, y) <= 1


def test_another_target_can_be_scored():
    scorer = make_tstr_scorer("ward", estimators=LOGISTIC, metric="accuracy", public=True)
    assert 0 <= scorer(synthesizer().fit(table()), table()) <= 1


def test_private_rows_are_recorded_before_they_are_read():
    class Rows(pd.DataFrame):
        def __getattribute__(self, name):
            raise AssertionError("a row was read")

    ledger = PrivacyLedger(6.0, 1e-5)
    synth = synthesizer(ledger=ledger).fit(table())
    scorer = make_tstr_scorer(estimators=LOGISTIC)
    # A ledger with a cap refuses, and nothing of the table was touched.
    with pytest.raises(BudgetExceededError):
        scorer(synth, Rows())
    assert len(ledger.entries) == 1
    free = synthesizer().fit(table())
    with pytest.raises(AssertionError, match="a row was read"):
        scorer(free, Rows())
    made, recorded = free.ledger_.entries
    assert made.private
    assert not recorded.private
    assert recorded.reason == "read rows for selection"
    assert free.ledger_.spent(1e-5) == math.inf
    assert "read rows for selection" in free.privacy_statement()


def test_a_grid_search_over_rows_records_every_fit_and_every_look():
    search = GridSearchCV(synthesizer(), GRID, cv=2, scoring=make_tstr_scorer(estimators=LOGISTIC))
    search.fit(table())
    entries = search.best_estimator_.ledger_.entries
    # Two candidates on two folds, and the best one on all rows.
    assert [e.private for e in entries].count(True) == 5
    assert [e.private for e in entries].count(False) == 4
    assert search.best_params_["learning_rate"] in GRID["learning_rate"]
    assert search.best_estimator_.sample(3).shape == (3, 3)


def test_a_grid_search_over_public_rows_records_the_fits():
    scorer = make_tstr_scorer(estimators=LOGISTIC, public=True)
    search = GridSearchCV(synthesizer(), GRID, cv=2, scoring=scorer).fit(table())
    ledger = search.best_estimator_.ledger_
    assert len(ledger.entries) == 5
    assert 5 < ledger.spent(1e-5) < math.inf


def test_workers_record_in_a_ledger_that_has_a_path(tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger.sqlite")
    scorer = make_tstr_scorer(estimators=LOGISTIC)
    search = GridSearchCV(synthesizer(ledger=ledger), GRID, cv=2, scoring=scorer, n_jobs=2)
    search.fit(table())
    assert [e.private for e in ledger.entries].count(True) == 5
    assert [e.reason for e in ledger.entries].count("read rows for selection") == 4


def test_there_is_no_score_to_search_by_default():
    # By design: a score method would read rows for free.
    synth = synthesizer()
    with pytest.raises(TypeError, match=r"no scoring.*should have a 'score' method.*DPMERFSynth"):
        GridSearchCV(synth, GRID).fit(table())
    assert not hasattr(synth, "score")
    assert not hasattr(synth, "ledger_")


def test_a_class_that_is_absent_gives_no_score():
    scorer = make_tstr_scorer(estimators=LOGISTIC, public=True)
    assert np.isnan(scorer(synthesizer().fit(table()), table().query("ill == 'no'")))


def test_what_cannot_be_scored_is_refused():
    public = make_tstr_scorer(estimators=LOGISTIC, public=True)
    for estimator in (LogisticRegression(), synthesizer()):
        with pytest.raises(InputError, match="needs a fitted synthesizer"):
            public(estimator, table())
    unlabeled = synthesizer(schema=Schema({**SCHEMA.columns})).fit(table())
    with pytest.raises(InputError, match="needs a target"):
        public(unlabeled, table())
    release = synthesizer().fit(table()).release_
    elsewhere = DPMERFSynthesizer.from_release(release, n_steps=2)
    assert 0 <= public(elsewhere, table()) <= 1
    with pytest.raises(InputError, match="has no ledger"):
        make_tstr_scorer()(elsewhere, table())


@pytest.mark.parametrize("params", [{"metric": "auc"}, {"public": 1}])
def test_bad_parameters_are_refused(params):
    with pytest.raises(InputError, match=f"{next(iter(params))} must be"):
        make_tstr_scorer(**params)


def test_networks_are_scored_and_scorers_travel():
    scorer = pickle.loads(pickle.dumps(make_tstr_scorer(estimators=LOGISTIC, public=True)))
    network = synthesizer(features=GaussianFeatures(20), generator="mlp", batch_size=20)
    assert 0 <= scorer(network.fit(table()), table()) <= 1
