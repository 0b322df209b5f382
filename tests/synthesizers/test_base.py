"""What all synthesizers share: sampling, retraining, the ledger, scikit-learn's conventions."""

import gc
import os
import pickle
import threading
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdpgen import (
    PrivacyLedger,
    Schema,
)
from skdpgen.data import Numeric
from skdpgen.exceptions import (
    BudgetExceededError,
    InputError,
    PrivacyParameterError,
    PrivacyWarning,
)
from skdpgen.privacy import processes
from skdpgen.privacy.processes import Process


def weights(synthesizer):
    state = synthesizer.generator_.state_dict()
    return np.concatenate([value.numpy().ravel() for value in state.values()])


# -- sampling --------------------------------------------------------------------------------------


@pytest.fixture
def fitted(make, schema, table):
    return make(schema).fit(table)


@pytest.mark.parametrize("n", [0, 1, 7, np.int64(5)])
def test_exact_numbers_of_rows_with_the_fitted_dtypes(fitted, table, n):
    sample = fitted.sample(n)
    assert len(sample) == n
    assert sample.dtypes.equals(table.dtypes)
    assert isinstance(sample.index, pd.RangeIndex)


def test_one_row_is_the_default(fitted):
    assert len(fitted.sample()) == 1


def test_calls_differ_and_seeded_calls_do_not(fitted):
    # Incomes and ages of 50 rows: equal by chance only if the generator were constant.
    assert not fitted.sample(50).equals(fitted.sample(50))
    pd.testing.assert_frame_equal(
        fitted.sample(50, random_state=4), fitted.sample(50, random_state=4)
    )
    assert not fitted.sample(50, random_state=4).equals(fitted.sample(50, random_state=5))
    state = np.random.RandomState(0)
    assert not fitted.sample(50, random_state=state).equals(fitted.sample(50, random_state=state))


def test_seeded_calls_leave_the_stream_alone(make, schema, table):
    released = make(schema).fit(table)
    twin = pickle.loads(pickle.dumps(released))
    twin.sample(9, random_state=0)
    pd.testing.assert_frame_equal(released.sample(20), twin.sample(20))


def test_shares_are_those_of_the_release_up_to_one_row(fitted):
    shares = fitted.release_.class_proportions()
    counts = fitted.sample(997)["smoker"].value_counts().reindex(["no", "yes"], fill_value=0)
    assert np.abs(counts.to_numpy() - 997 * shares).max() < 1


def test_conditional_and_balanced_sampling(fitted):
    asked = ["yes", "no", "yes", "yes"]
    for y in (asked, tuple(asked), np.array(asked), pd.Series(asked, index=[5, 5, 1, 0])):
        assert fitted.sample(4, y=y)["smoker"].tolist() == asked
    assert (fitted.sample(30, y="balanced")["smoker"] == "yes").sum() == 15
    assert (fitted.sample(40, y={"yes": 3, "no": 1})["smoker"] == "yes").sum() == 30
    assert set(fitted.sample(9, y={"yes": 0.2})["smoker"]) == {"yes"}
    assert fitted.sample(0, y=[]).empty


def test_labels_are_asked_for_as_samples_show_them(make):
    # The schema declares texts and the table holds integers: integers come out and go in.
    schema = Schema.from_dict(
        {
            "columns": {
                "a": {"kind": "numeric", "bounds": [0, 1]},
                "c": {"kind": "label", "values": ["0", "1"]},
            }
        }
    )
    synthesizer = make(schema).fit(pd.DataFrame({"a": [0.1, 0.9], "c": [0, 1]}))
    assert synthesizer.classes_.tolist() == [0, 1]
    assert synthesizer.sample(2, y=synthesizer.classes_)["c"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("n", "keywords", "message"),
    [
        (-1, {}, "at least 0"),
        (2.0, {}, "n_samples must be an integer"),
        ("2", {}, "n_samples must be an integer"),
        (True, {}, "n_samples must be an integer"),
        (2, {"random_state": -1}, "random_state"),
        (2, {"random_state": "0"}, "random_state"),
        (2, {"y": ["yes"]}, "1 labels for n_samples = 2"),
        (1, {"y": ["maybe"]}, "'maybe' is not one of the classes"),
        (1, {"y": [["yes"]]}, "is not one of the classes"),
        (1, {"y": [None]}, "is not one of the classes"),
        (1, {"y": 7}, "y must be"),
        (1, {"y": "equal"}, "y must be 'balanced'"),
        (1, {"y": {"yes": "all"}}, "must be numbers"),
        (1, {"y": {"yes": -1, "no": 2}}, "nonnegative"),
        (1, {"y": {}}, "nonnegative"),
    ],
)
def test_bad_requests_are_refused(fitted, n, keywords, message):
    with pytest.raises(InputError, match=message):
        fitted.sample(n, **keywords)


def test_labels_of_unlabeled_tables_are_refused(make):
    synthesizer = make(Schema({"a": Numeric((0, 1))})).fit(pd.DataFrame({"a": [0.2, 0.4]}))
    with pytest.raises(InputError, match="listed values"):
        synthesizer.sample(2, y="balanced")


def test_nothing_works_before_fit(make, schema):
    for call in ("sample", "retrain", "privacy_statement"):
        with pytest.raises(NotFittedError):
            getattr(make(schema), call)()


def test_there_is_no_score(fitted):
    # It would read private rows for free.
    assert not hasattr(fitted, "score")


# -- retraining ------------------------------------------------------------------------------------


def test_retraining_is_free_and_exact(fitted):
    release, entries, before = fitted.release_, fitted.ledger_.entries, weights(fitted)
    assert fitted.retrain() is fitted
    assert np.array_equal(weights(fitted), before)
    fitted.retrain(n_steps=6, learning_rate=0.05)
    assert len(fitted.loss_curve_) == 6
    assert (fitted.n_steps, fitted.learning_rate) == (6, 0.05)
    assert not np.array_equal(weights(fitted), before)
    fitted.retrain(n_steps=3, learning_rate=0.003, random_state=0)
    assert np.array_equal(weights(fitted), before)
    assert fitted.release_ is release
    assert fitted.ledger_.entries == entries


def test_every_post_processing_parameter_can_be_retrained(fitted):
    fitted.retrain(
        class_weight="balanced",
        generator="mlp",
        n_steps=2,
        batch_size=7,
        learning_rate=1e-3,
        device="cpu",
        random_state=9,
    )
    assert len(fitted.sample(3)) == 3


def test_privacy_parameters_are_those_that_retraining_refuses(fitted):
    privacy = set(fitted.get_params(deep=False)) - set(fitted.post_processing_parameters)
    assert privacy == {
        "epsilon",
        "delta",
        "schema",
        "adjacency",
        "rows_per_unit",
        "features",
        "n_rows_hint",
        "count_weight",
        "domain_budget",
        "ledger",
    }
    for name in [*privacy, "X", "typo"]:
        with pytest.raises(InputError, match=f"'{name}' isn't a post-processing parameter"):
            fitted.retrain(**{name: 1})


@pytest.mark.parametrize(
    "bad",
    [
        {"n_steps": -1},
        {"n_steps": 5, "batch_size": 2.5},
        {"n_steps": 5, "learning_rate": "fast"},
        {"n_steps": 5, "generator": "gan"},
        {"n_steps": 5, "class_weight": "inverse"},
        {"n_steps": 5, "device": "gpu7"},
        {"n_steps": 5, "random_state": -3},
    ],
)
def test_refused_values_do_not_stay_behind(fitted, bad):
    params, before = fitted.get_params(), weights(fitted)
    with pytest.raises(InputError):
        fitted.retrain(**bad)
    assert fitted.get_params() == params
    assert np.array_equal(weights(fitted), before)


# -- parameters, copies, the ledger ----------------------------------------------------------------


def test_three_fits_are_three_spends_and_leave_parameters_untouched(make, schema, table):
    synthesizer = make(schema)
    params = synthesizer.get_params()
    for _ in range(3):
        synthesizer.fit(table)
    assert all(synthesizer.get_params()[name] is value for name, value in params.items())
    assert len(synthesizer.ledger_.entries) == 3
    assert synthesizer.ledger_.spent(1e-5) > 1.7
    assert "one of 3 releases" in synthesizer.privacy_statement()
    # Rounded up, as the ledger's own statement is.
    total = synthesizer.privacy_statement().partition("together spend epsilon = ")[2].split()[0]
    assert synthesizer.ledger_.spent(1e-5) <= float(total)
    assert f"({total}, 1e-05)" in synthesizer.ledger_.statement()


def test_attributes_of_another_fit_do_not_stay_behind(make, schema, table):
    synthesizer = make(schema).fit(table)
    synthesizer.set_params(schema=Schema({}, default=Numeric((0, 1))))
    synthesizer.fit(np.random.default_rng(0).random((20, 2)))
    assert synthesizer.n_features_in_ == 2
    assert not hasattr(synthesizer, "classes_")
    assert not hasattr(synthesizer, "feature_names_in_")


def test_clones_spend_from_the_same_ledger(make, schema, table):
    synthesizer = make(schema)
    copies = [clone(synthesizer), clone(clone(synthesizer))]
    synthesizer.fit(table)
    for copy in copies:
        assert not hasattr(copy, "release_")
        copy.fit(table)
    assert len(synthesizer.ledger_.entries) == 3
    shared = PrivacyLedger()
    clone(make(schema, ledger=shared)).fit(table)
    assert len(shared.entries) == 1


def test_pickled_synthesizers_sample_and_retrain_alike(fitted):
    twin = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(twin.sample(20), fitted.sample(20))
    assert np.array_equal(weights(twin.retrain(n_steps=4)), weights(fitted.retrain(n_steps=4)))
    assert twin.ledger_ is fitted.ledger_


def test_a_copy_from_another_process_goes_on_with_the_history_and_says_so(
    make, schema, table, monkeypatch
):
    content = pickle.dumps(make(schema).fit(table))
    gc.collect()
    # As if it were loaded days later: nothing of this process is left but the pickle.
    monkeypatch.setattr("skdpgen.privacy.ledger_storage._kept", {})
    monkeypatch.setattr("skdpgen.privacy.ledger_storage._live", {})
    later = Process("later", os.getpid(), "")
    monkeypatch.setitem(processes._state, "current", later)
    loaded = pickle.loads(content)
    assert len(loaded.ledger_.entries) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.retrain()
    with pytest.warns(PrivacyWarning, match="comes from another process"):
        loaded.fit(table)
    assert len(loaded.ledger_.entries) == 2


def test_a_spend_that_was_interrupted_is_on_record(make, schema, table, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("skdpgen.synthesizers._table.TableCodec.encode", interrupted)
    synthesizer = make(schema)
    with pytest.raises(KeyboardInterrupt):
        synthesizer.fit(table)
    assert len(synthesizer.ledger_.entries) == 1
    assert not hasattr(synthesizer, "release_")


def test_interrupted_training_leaves_the_release_and_no_old_generator(fitted, table, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("skdpgen.synthesizers._training.TrainingPlan.train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(table)
    with pytest.raises(NotFittedError):
        fitted.sample()
    assert len(fitted.ledger_.entries) == 2
    assert len(fitted.retrain().sample(3)) == 3


def test_a_refused_spend_leaves_the_ledger_of_the_release_in_place(fitted, table):
    ledger = fitted.ledger_
    fitted.set_params(ledger=PrivacyLedger(epsilon=0.1, delta=1e-5))
    with pytest.raises(BudgetExceededError):
        fitted.fit(table)
    assert fitted.ledger_ is ledger


def test_caps_refuse_before_rows_are_read(make, schema, table, noise_calls):
    ledger = PrivacyLedger(epsilon=1.2, delta=1e-5)
    synthesizer = make(schema, ledger=ledger).fit(table)
    release = synthesizer.release_
    with pytest.raises(BudgetExceededError):
        synthesizer.fit(table)
    assert len(noise_calls) == len(ledger.entries) == 1
    assert synthesizer.release_ is release


def test_processes_share_a_ledger_file_and_its_cap(make, schema, table, tmp_path):
    # Room for two spends of epsilon = 1, not for three.
    cap = {"epsilon": 1.6, "delta": 1e-5, "path": tmp_path / "ledger.sqlite"}
    synthesizer = make(schema, ledger=PrivacyLedger(**cap))
    with joblib.Parallel(n_jobs=2, backend="multiprocessing") as parallel:
        tasks = [joblib.delayed(clone(synthesizer).fit)(table) for _ in range(2)]
        first, second = parallel(tasks)
        # An in-memory ledger would lose what workers spend.
        in_memory = make(schema, ledger=PrivacyLedger())
        with pytest.raises(BudgetExceededError, match="copy from another process"):
            parallel([joblib.delayed(in_memory.fit)(table)])
    assert not (first.release_.noisy_sums == second.release_.noisy_sums).any()
    assert len(synthesizer.ledger.entries) == 2
    with pytest.raises(BudgetExceededError):
        synthesizer.fit(table)
    assert len(PrivacyLedger(**cap).entries) == 2


def test_workers_do_not_spend_from_a_ledger_of_a_synthesizer(make, schema, table, noise_calls):
    """Clones in a grid search, the same object twice: their spends would end with the worker."""
    synthesizer = make(schema)
    with joblib.Parallel(n_jobs=2, backend="multiprocessing") as parallel:
        for fit in (clone(synthesizer).fit, synthesizer.fit):
            with pytest.raises(BudgetExceededError, match=r"PrivacyLedger\(path=\.\.\.\)"):
                parallel([joblib.delayed(fit)(table) for _ in range(2)])
    synthesizer.fit(table)
    assert len(synthesizer.ledger_.entries) == len(noise_calls) == 1


def test_a_template_loaded_elsewhere_goes_on_and_says_so(make, schema, table, monkeypatch):
    content = pickle.dumps(make(schema))
    monkeypatch.setattr("skdpgen.privacy.ledger_storage._kept", {})
    monkeypatch.setattr("skdpgen.privacy.ledger_storage._live", {})
    monkeypatch.setitem(processes._state, "current", Process("later", os.getpid(), ""))
    loaded = pickle.loads(content)
    twin = clone(loaded)
    # Nothing was spent yet; but other copies may be spending elsewhere.
    for copy in (loaded, twin):
        with pytest.warns(PrivacyWarning, match=r"comes from another process.*nor copies"):
            copy.fit(table)
    assert twin.ledger_ is loaded.ledger_
    assert len(twin.ledger_.entries) == 2


def test_threads_that_clone_or_fit_one_synthesizer_share_its_ledger(make, schema, monkeypatch):
    """Two that find none at the same time: the second must not forget that of the first."""
    made = []

    def slow():
        time.sleep(0.1)
        made.append(PrivacyLedger())
        return made[-1]

    monkeypatch.setattr("skdpgen.synthesizers.base.PrivacyLedger", slow)
    synthesizer, seen = make(schema), []
    uses = (synthesizer._ledger_in_use, lambda: clone(synthesizer)._own_ledger)
    threads = [threading.Thread(target=lambda use=use: seen.append(use())) for use in uses * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert [ledger is made[0] for ledger in seen] == [True] * 4


def test_the_statement_says_why_a_total_is_infinite(fitted):
    fitted.ledger_.record_unprotected("read rows for selection")
    statement = fitted.privacy_statement()
    assert statement.startswith("(1, 1e-05)-differentially private")
    assert "releases" not in statement  # the look was none
    assert statement.endswith(f" {fitted.ledger_.statement()}")
    assert "epsilon is infinite. Rows were read without protection: read rows for s" in statement


def test_a_ledger_file_left_behind_does_not_stop_the_statement(make, schema, table, tmp_path):
    path = tmp_path / "ledger.db"
    synthesizer = make(schema, ledger=PrivacyLedger(path=path)).fit(table)
    statement = synthesizer.privacy_statement()
    path.unlink()
    assert synthesizer.privacy_statement() == f"{statement} Its ledger can't be read here."
    with pytest.raises(PrivacyParameterError, match="is gone"):
        synthesizer.fit(table)
