"""Searches on one release: what they try, what they charge, what they refuse, what they return."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from torch import nn

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    insecure_noise,
)
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import BudgetExceededError, InputError, ReleaseError
from skdpgen.generators import MLPGenerator
from skdpgen.model_selection import (
    ReleaseHalvingSearchCV,
    ReleaseRandomizedSearchCV,
    ReleaseSearchCV,
    _held_out,
)
from skdpgen.model_selection import _search as module

SCHEMA = Schema(
    {
        "dose": Numeric((0, 1)),
        "ward": Categorical(["a", "b", "c"]),
        "ill": Categorical(["no", "yes"]),
    },
    target="ill",
)
GRID = {"learning_rate": [1e-6, 0.1]}
SMALL = partial(MLPGenerator, hidden_sizes=(16,), couple_categories=True)


def table(n=300):
    rng = np.random.default_rng(0)
    dose = rng.beta(2, 6, n)
    return pd.DataFrame(
        {
            "dose": dose,
            "ward": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]),
            "ill": np.where(dose + 0.2 * rng.random(n) > 0.4, "yes", "no"),
        }
    )


def families(**params):
    usual = {
        "features": InteractionFeatures(80, n_bins=8),
        "generator": MixtureGenerator(8, n_mixtures=2),
        "n_steps": 40,
        "schema": SCHEMA,
        "random_state": 0,
    }
    return DPMERFSynthesizer(5.0, 1e-5, **{**usual, **params})


def frequencies(**params):
    usual = {"features": GaussianFeatures(40), "generator": SMALL}
    return families(**{**usual, **params})


def slices(**params):
    usual = {"n_slices": 15, "n_cells": 8, "n_steps": 40, "schema": SCHEMA, "random_state": 0}
    return SlicedFDivSynthesizer(5.0, 1e-5, **{**usual, **params})


def sparse(**params):
    return slices(**{"directions": "sparse", "batch_size": 32, "generator": SMALL, **params})


@pytest.fixture(autouse=True)
def _fewer_rows(monkeypatch):
    """What a network's rows tell is sharp enough here, and found in milliseconds."""
    monkeypatch.setattr(_held_out, "_ROWS", 4000)


@pytest.fixture(scope="module")
def made():
    """A synthesizer with a release whose noise is always the same."""
    with insecure_noise(seed=0):
        return families().fit(table())


@pytest.mark.parametrize("make", [families, frequencies, slices, sparse])
def test_the_better_candidate_of_every_release_is_found(make):
    rate = 0.01 if make in (frequencies, sparse) else 0.1
    search = ReleaseSearchCV(
        make(), {"learning_rate": [1e-7, rate]}, cv=3, random_state=0, error_score="raise"
    )
    with insecure_noise(seed=0):
        search.fit(table())
    assert search.best_params_ == {"learning_rate": rate}
    assert search.best_estimator_.learning_rate == rate
    assert search.best_estimator_.release_ is search.release_
    best, other = search.cv_results_["mean_test_score"][[1, 0]]
    assert search.best_score_ == best > other
    columns = [search.cv_results_[f"split{k}_test_score"] for k in range(3)]
    sem = np.std(columns, axis=0, ddof=1) / np.sqrt(3)
    assert search.cv_results_["sem_test_score"] == pytest.approx(sem)


def test_a_search_costs_one_fit(made):
    search = ReleaseSearchCV(families(), GRID, cv=2).fit(table())
    (entry,) = search.ledger_.entries
    assert (entry.epsilon, entry.private) == (5.0, True)
    assert search.ledger_.spent(1e-5) == pytest.approx(5.0, rel=1e-6)
    assert len(made.ledger_.entries) == 1
    search.fit_release(made)
    assert len(made.ledger_.entries) == 1


def test_the_best_candidate_is_trained_on_the_whole_release_and_sampled():
    search = ReleaseSearchCV(families(), GRID, cv=2, random_state=0).fit(table())
    again = families().from_release(search.release_, template=table().head(0))
    alone = again.retrain(
        generator=MixtureGenerator(8, n_mixtures=2),
        n_steps=40,
        random_state=0,
        **search.best_params_,
    )
    pd.testing.assert_frame_equal(search.sample(20, 3), alone.sample(20, 3))
    assert search.sample(6, y="balanced")["ill"].value_counts().tolist() == [3, 3]
    assert search.privacy_statement().startswith("(5, 1e-05)-differentially private")
    assert search.classes_.tolist() == ["no", "yes"]
    assert search.n_features_in_ == 3
    assert search.feature_names_in_.tolist() == ["dose", "ward", "ill"]
    assert search.refit_time_ > 0


def test_fit_with_y_and_with_units():
    frame = table()
    X, y = frame.drop(columns="ill"), frame["ill"]
    search = ReleaseSearchCV(families(), GRID, cv=2).fit(X, y, unit_id=np.arange(300) // 2)
    X_syn, y_syn = search.sample(5)
    assert X_syn.shape == (5, 2)
    assert y_syn.name == "ill"
    assert search.release_.rows_bounded


def test_a_saved_release_and_a_fitted_synthesizer_are_searched_without_rows(made, tmp_path):
    synth = made
    path = tmp_path / "ward.release"
    synth.release_.save(path)
    # The estimator's privacy parameters aren't those of the release, and don't matter.
    search = ReleaseSearchCV(families(features="auto", schema=None), GRID, cv=2, random_state=0)
    scores = []
    for source in (path, synth.release_, synth):
        search.fit_release(source)
        assert search.best_params_ == {"learning_rate": 0.1}
        scores.append(search.cv_results_["mean_test_score"].tolist())
        assert list(search.sample(3).columns) == ["dose", "ward", "ill"]
    assert scores[0] == scores[1] == scores[2]
    assert len(synth.ledger_.entries) == 1
    # The synthesizer that was given is left as it was.
    assert synth.learning_rate is None
    assert len(search.ledger_.entries) == 1
    search.fit_release(path, template=table()[["ill", "dose", "ward"]].head(0))
    assert not hasattr(search, "ledger_")
    with pytest.raises(InputError, match="can't be trained on the release of a Sliced"):
        search.fit_release(slices())
    with pytest.raises(NotFittedError):
        search.fit_release(families())
    with pytest.raises(ReleaseError):
        ReleaseSearchCV(slices(), GRID).fit_release(path)


REFUSED = [
    ({"epsilon": [1.0, 2.0]}, "'epsilon' is a privacy parameter.*PrivateSearchCV"),
    ([GRID, {"features__n_frequencies": [10]}], "'features__n_frequencies' is a privacy"),
    ({"ledger": [None]}, "'ledger' is a privacy parameter"),
    ({"learning_rat": [1.0]}, "'learning_rat' isn't a parameter of DPMERFSynthesizer"),
    ({"learning_rate": [0.1, -1.0]}, r"candidate \{'learning_rate': -1.0\} can't be trained"),
    ({"generator": ["mlp"]}, "interaction features train a mixture"),
    ({"generator__n_components": [0]}, "n_components must be at least 1"),
    ({"generator__depth": [1]}, "Invalid parameter 'depth'"),
    ({"class_weight": ["rare"]}, "class_weight must be None or 'balanced'"),
    ({"learning_rate": 0.1}, "learning_rate"),
    ({"learning_rate": []}, "learning_rate"),
    ([1], "Parameter grid is not a dict"),
]


@pytest.mark.parametrize(("grid", "message"), REFUSED)
def test_bad_candidates_are_refused_before_anything_is_charged(grid, message, monkeypatch):
    def read(*args):
        raise AssertionError("a row was read")

    monkeypatch.setattr("skdpgen.synthesizers._table.TableCodec.encode", read)
    ledger = PrivacyLedger()
    with pytest.raises((ValueError, TypeError), match=message):
        ReleaseSearchCV(families(ledger=ledger), grid).fit(table())
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "search",
    [
        ReleaseSearchCV(families(), GRID, cv=21),
        ReleaseSearchCV(families(), GRID, cv=1),
        ReleaseSearchCV(families(), GRID, cv="five"),
        ReleaseSearchCV(families(), GRID, random_state="today"),
        ReleaseSearchCV(families(generator="auto"), {"generator__n_components": [3]}),
        ReleaseRandomizedSearchCV(families(), GRID, n_iter=0),
        ReleaseHalvingSearchCV(families(), {"n_steps": [5]}),
        ReleaseHalvingSearchCV(families(), GRID, resource="steps"),
        ReleaseHalvingSearchCV(families(), GRID, factor=0),
        ReleaseHalvingSearchCV(families(), GRID, max_resources=0),
    ],
)
def test_bad_searches_are_refused_before_anything_is_charged(search):
    ledger = PrivacyLedger()
    search.set_params(estimator__ledger=ledger)
    with pytest.raises(ValueError):  # noqa: PT011 - sklearn's own for some
        search.fit(table())
    assert ledger.entries == ()


def test_settings_of_nothing_are_named():
    with pytest.raises(InputError, match="generator = 'auto' has no parameters of its own"):
        ReleaseSearchCV(families(generator="auto"), {"generator__n_components": [3]}).fit(table())


def test_tables_without_numbers_have_no_frequencies_to_hold_out():
    with pytest.raises(InputError, match="this release has 0"):
        ReleaseSearchCV(frequencies(schema=SCHEMA.drop(["dose"])), GRID).fit(
            table().drop(columns="dose")
        )


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SlicedRowsSynthesizer(1.0, 1e-5), "one noisy line a row.*retrain it"),
        (LogisticRegression(), "LogisticRegression can't be searched"),
    ],
)
def test_other_estimators_are_refused_by_name(estimator, message):
    for fit in (lambda s: s.fit(table()), lambda s: s.fit_release("nowhere")):
        with pytest.raises(InputError, match=message):
            fit(ReleaseSearchCV(estimator, GRID))


def test_a_full_ledger_refuses_the_release():
    ledger = PrivacyLedger(1.0, 1e-5)
    with pytest.raises(BudgetExceededError):
        ReleaseSearchCV(families(ledger=ledger), GRID).fit(table())
    assert ledger.entries == ()


def test_every_search_clones_and_keeps_the_ledger():
    for search in (
        ReleaseSearchCV(families(), GRID),
        ReleaseHalvingSearchCV(families(), GRID),
        ReleaseRandomizedSearchCV(families(), GRID, n_iter=2),
    ):
        copied = clone(search)
        assert copied.get_params().keys() == search.get_params().keys()
        assert copied.estimator.get_params()["epsilon"] == 5.0
        copied.set_params(estimator__epsilon=0.5, cv=2).fit(table())
        search.set_params(cv=2).fit(table())
        assert len(search.ledger_.entries) == len(copied.ledger_.entries) == 2
        assert pickle.loads(pickle.dumps(search)).sample(3).shape == (3, 3)


def test_halving_spends_steps_on_the_better_candidates(made):
    grid = {"learning_rate": [1e-6, 1e-5, 1e-4, 0.1]}
    search = ReleaseHalvingSearchCV(families(), grid, factor=2, cv=2, random_state=0)
    search.fit_release(made)
    assert search.n_candidates_ == [4, 2, 1]
    assert search.n_resources_ == [10, 20, 40]
    assert search.best_params_ == {"learning_rate": 0.1, "n_steps": 40}
    assert search.best_estimator_.loss_curve_.size <= 40


def test_halving_by_the_number_of_frequencies(made):
    search = ReleaseHalvingSearchCV(
        families(), GRID, factor=2, cv=2, resource="n_samples", random_state=0
    ).fit_release(made)
    # 80 waves are 20 families of four.
    assert search.n_resources_ == [10, 20]
    assert search.best_params_ == {"learning_rate": 0.1}


def test_random_candidates_are_those_that_were_checked(made, monkeypatch):
    seen = []
    check = module.plan_candidates

    def watched(*args):
        seen.extend(args[-1])
        check(*args)

    monkeypatch.setattr(module, "plan_candidates", watched)
    search = ReleaseRandomizedSearchCV(
        families(), {"learning_rate": loguniform(1e-6, 1e-1)}, n_iter=3, cv=2
    ).fit_release(made)
    assert search.cv_results_["params"] == seen
    assert len({p["learning_rate"] for p in seen}) == 3


def test_folds_are_seeded_and_may_be_any_splitter(made):
    def scores(**params):
        search = ReleaseSearchCV(families(), GRID, **{"cv": 2, **params}).fit_release(made)
        return search.cv_results_["split0_test_score"].tolist()

    assert scores(random_state=1) == scores(random_state=1) != scores(random_state=2)
    state = np.random.RandomState(0)
    assert scores(random_state=state) != scores(random_state=state)
    splitter = ShuffleSplit(1, test_size=5, random_state=0)
    search = ReleaseSearchCV(families(), GRID, cv=splitter).fit_release(made)
    assert search.n_splits_ == 1
    assert np.isnan(search.cv_results_["sem_test_score"]).all()


def test_candidates_start_alike_from_a_random_state_object(made):
    synth = families(random_state=np.random.RandomState(0))
    search = ReleaseSearchCV(synth, {"learning_rate": [0.1, 0.1]}, cv=2).fit_release(made)
    first, second = search.cv_results_["mean_test_score"]
    assert first == second


def test_without_refit_the_release_and_the_parameters_are_left(made):
    search = ReleaseSearchCV(families(), GRID, cv=2, refit=False)
    with pytest.raises(NotFittedError):
        search.sample(1)
    search.fit_release(made)
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(InputError, match="refit=False"):
        search.sample(1)
    settings = {"n_steps": 5, **search.best_params_}
    trained = DPMERFSynthesizer.from_release(search.release_, **settings)
    assert trained.sample(2).shape == (2, 3)


class _Fragile(nn.Module):
    """Can be planned and rehearsed, and fails in the first real batch."""

    def __init__(self, fails):
        super().__init__()
        self.layer = nn.Linear(18, 4)
        self.fails = fails

    def forward(self, noise, labels):
        if self.fails and self.training and self.layer.weight.abs().max() > 0.5:
            raise RuntimeError("too long")
        return self.layer(torch.cat([noise, labels], dim=1))


def test_a_training_that_fails_gets_the_error_score():
    grid = {"generator": [_Fragile(True), _Fragile(False)], "learning_rate": [0.1]}
    search = ReleaseSearchCV(frequencies(), grid, cv=2, random_state=0)
    with pytest.warns((FitFailedWarning, UserWarning)):
        search.fit(table())
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    assert search.best_index_ == 1
    # A search that fails altogether leaves the release that was paid for.
    failing = ReleaseSearchCV(frequencies(), grid, cv=2, random_state=0, error_score="raise")
    with pytest.raises(RuntimeError, match="too long"):
        failing.fit(table())
    assert len(failing.ledger_.entries) == 1
    failing.set_params(param_grid=GRID).fit_release(failing.release_)


def test_workers_find_what_one_process_finds(made):
    alone = ReleaseSearchCV(families(), GRID, cv=2, random_state=0).fit_release(made)
    shared = ReleaseSearchCV(families(), GRID, cv=2, random_state=0, n_jobs=2).fit_release(made)
    assert shared.cv_results_["mean_test_score"] == pytest.approx(
        alone.cv_results_["mean_test_score"], rel=1e-4
    )


def test_the_score_ranks_candidates_as_the_true_error_does(made):
    rates = [1e-5, 3e-3, 2e-2, 0.1]
    search = ReleaseSearchCV(families(), {"learning_rate": rates}, cv=3, random_state=0)
    search.fit_release(made)
    with insecure_noise(scale=0):
        exact = families(n_steps=1).fit(table()).release_
    errors = []
    for rate in rates:
        generator = made.retrain(learning_rate=rate).generator_
        errors.append(_held_out.held_out_error(generator, exact, np.arange(20), 0))
    made.retrain(learning_rate=None)
    assert np.argsort(errors).tolist() == [3, 2, 1, 0]
    assert search.cv_results_["rank_test_score"].tolist() == [4, 3, 2, 1]
