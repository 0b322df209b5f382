"""PrivateSearchCV: one price, one outcome, and nothing of the other tries."""

import math
import pickle
import random
import re
import sys
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Release,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    insecure_noise,
)
from skdpgen.exceptions import (
    BudgetExceededError,
    InputError,
    PrivacyParameterError,
    PrivacyWarning,
    SchemaError,
    SkdpgenError,
    SkdpgenWarning,
)
from skdpgen.generators import MLPGenerator
from skdpgen.model_selection import PrivateSearchCV, _private_runs, private
from skdpgen.model_selection._private_runs import Trial, distance
from skdpgen.privacy.private_selection import PrivateSelection
from skdpgen.privacy.selection import Repetitions
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer

SCHEMA = {
    "target": "label",
    "columns": {
        "a": {"kind": "categorical", "values": [0, 1, 2]},
        "b": {"kind": "categorical", "values": [0, 1, 2]},
        "c": {"kind": "numeric", "bounds": [0, 15], "dtype": "int"},
        "label": {"kind": "label", "values": [0, 1]},
    },
}
GRID = {"features": [InteractionFeatures(n, orders=o) for n in (20, 60) for o in ((1,), (1, 2))]}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(private, "_N_FREQUENCIES", 200)
    monkeypatch.setattr(_private_runs, "_ROWS", 2**12)
    # The grids here are small, which is warned of.
    warnings.filterwarnings("ignore", message="releasing all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 2000)
    b = np.where(rng.random(2000) < 0.9, a, rng.integers(0, 3, 2000))
    c = rng.integers(0, 16, 2000)
    return pd.DataFrame({"a": a, "b": b, "c": c, "label": (a + c > 8).astype(int)})


def synth(**params):
    given = {"schema": SCHEMA, "n_steps": 5, "generator": MixtureGenerator(6, n_mixtures=1)}
    return DPMERFSynthesizer(1.0, 1e-5, **given | params)


def search(estimator=None, grid=GRID, epsilon=1.0, **params):
    return PrivateSearchCV(estimator or synth(), grid, epsilon, 1e-5, random_state=0, **params)


def tries(monkeypatch, k):
    monkeypatch.setattr(Repetitions, "draw", lambda self: k)


# -- what it costs -------------------------------------------------------------------------------


def test_one_search_is_one_selection_and_one_yardstick(table):
    ledger = PrivacyLedger(1.0, 1e-5)
    fitted = search(ledger=ledger).fit(table)
    assert [e.mechanism for e in ledger.entries] == ["private selection", "yardstick"]
    assert fitted.ledger_ is ledger
    assert 0.999 < ledger.spent(1e-5) <= 1.0
    with pytest.raises(BudgetExceededError):
        fitted.fit(table)
    assert len(ledger.entries) == 2


def test_what_is_published_states_the_total(table, tmp_path):
    fitted = search().fit(table)
    for release in (fitted.release_, fitted.best_estimator_.release_):
        assert (release.epsilon, release.delta) == (1.0, 1e-5)
        assert 0.999 < release.verify() <= 1.0
    release = fitted.release_
    release.save(tmp_path / "best.release")
    loaded = Release.load(tmp_path / "best.release")
    assert loaded.epsilon == 1.0
    assert loaded.verify() > 0.999
    assert fitted.best_estimator_.epsilon == 1.0
    statement = fitted.privacy_statement()
    assert statement.startswith("(1, 1e-05)-differentially private for replacing one row")
    assert "choice among 4 candidates" in statement
    assert "in its ledger" not in statement
    assert fitted.best_estimator_.privacy_statement() == fitted.release_.statement()
    PrivateSearchCV.fit(fitted, table)
    assert "one of 4 releases in its ledger" in fitted.privacy_statement()
    assert type(synth()).from_release(loaded, n_steps=2).privacy_statement() == loaded.statement()


def test_a_learned_schema_is_not_included_and_said_so(table):
    columns = {name: {**column, "learned": True} for name, column in SCHEMA["columns"].items()}
    fitted = search(synth(schema={**SCHEMA, "columns": columns})).fit(table)
    assert "together with private selection and yardstick; bounds" in fitted.privacy_statement()
    assert "whose cost is not included." in fitted.privacy_statement()
    assert "whose cost is not included." in fitted.yardstick_release_.statement()


def test_every_candidate_has_the_noise_of_a_run(table, monkeypatch):
    plan = PrivateSelection(1.0, 1e-5, Repetitions.with_mean(5, 0.0), 0.1)
    seen = []
    release = Trial.release

    def recorded(self, *args):
        made = release(self, *args)
        seen.append((made.noise_stddev / math.sqrt(made.sensitivity_squared), made.epsilon))
        return made

    monkeypatch.setattr(Trial, "release", recorded)
    tries(monkeypatch, 8)
    search().fit(table)
    assert len(seen) == 9
    assert seen[0] == pytest.approx((plan.yardstick_multiplier, plan.yardstick_epsilon), rel=1e-9)
    assert {round(m / plan.run_multiplier, 9) for m, _ in seen[1:]} == {1.0}
    assert {epsilon for _, epsilon in seen[1:]} == {1.0}


def test_the_spend_comes_before_the_rows(table, monkeypatch):
    read = []
    batches = EmbeddingSynthesizer._batches

    def recorded(self, *args):
        for batch in batches(self, *args):
            read.append(len(args[-1].entries))
            yield batch

    monkeypatch.setattr(EmbeddingSynthesizer, "_batches", recorded)
    with pytest.raises(BudgetExceededError):
        search(ledger=PrivacyLedger(0.9, 1e-5)).fit(table)
    assert read == []
    search(ledger=PrivacyLedger(1.0, 1e-5)).fit(table)
    assert set(read) == {2}


def test_searches_of_one_estimator_share_its_ledger(table):
    estimator = synth()
    first = search(estimator).fit(table)
    second = search(clone(estimator)).fit(table)
    assert first.ledger_ is second.ledger_
    assert len(first.ledger_.entries) == 4
    assert "one of 4 releases" in second.privacy_statement()
    # Fitting what it found again is charged there as well, and its first ledger says so.
    second.best_estimator_.fit(table)
    assert len(first.ledger_.entries) == 5
    assert "one of 5 releases" in first.privacy_statement()


def test_few_candidates_are_warned_of(table):
    few = {"features__n_frequencies": [20, 40]}
    with pytest.warns(PrivacyWarning, match=r"all 2 candidates would cost 1\.41 times"):
        search(synth(features=InteractionFeatures(orders=(2,))), few).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        search().fit(table)


# -- what comes out ------------------------------------------------------------------------------


def test_the_better_candidate_is_found(table, monkeypatch):
    # One that sees no pairs can't know that a and b agree. Never drawn: below 2^-30.
    tries(monkeypatch, 30)
    grid = {"features__orders": [(1,), (2,)]}
    estimator = synth(features=InteractionFeatures(60), n_steps=60)
    fitted = search(estimator, grid, epsilon=100.0).fit(table)
    assert fitted.best_params_ == {"features__orders": (2,)}
    assert fitted.best_estimator_.features.orders == (2,)
    sample = fitted.sample(2000, random_state=0)
    assert (sample["a"] == sample["b"]).mean() > 0.45  # 0.34 if independent
    assert list(sample.columns) == list(table.columns)


def test_nothing_of_the_other_tries_is_left(table, monkeypatch, capfd):
    tries(monkeypatch, 7)
    releases, scores = [], []
    release, judge = Trial.release, private.distance
    monkeypatch.setattr(
        Trial, "release", lambda self, *a: releases.append(release(self, *a)) or releases[-1]
    )
    monkeypatch.setattr(private, "distance", lambda *a: scores.append(judge(*a)) or scores[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="releasing all")
        fitted = search().fit(table)
    assert capfd.readouterr() == ("", "")
    losers = [r for r in releases[1:] if r is not fitted.release_]
    assert len(losers) == 6
    pickled = pickle.dumps(fitted)

    for loser in losers:
        for canary in (loser.noisy_sums.tobytes()[:64], loser.noisy_sums[1, :8].tobytes()):
            assert canary not in pickled
    assert fitted.release_.noisy_sums.tobytes()[:64] in pickled
    assert fitted.yardstick_release_.noisy_sums.tobytes()[:64] in pickled
    for score in scores:
        for canary in (np.float64(score).tobytes(), np.float64(score).byteswap().tobytes()):
            assert canary not in pickled
        assert f"{score:.6g}"[:8] not in repr(vars(fitted))


def test_the_number_of_tries_leaves_no_trace(table, monkeypatch):
    grid = {"features": [InteractionFeatures(20, orders=(2,))] * 4}

    def facts(k):
        tries(monkeypatch, k)
        fitted = search(grid=grid).fit(table)
        return (
            sorted(vars(fitted)),
            sorted(vars(fitted.best_estimator_)),
            fitted.ledger_.entries,
            fitted.privacy_statement(),
            len(pickle.dumps(fitted)),
            fitted.best_estimator_._sampling_rng.bit_generator.state,
        )

    once, often = facts(1), facts(9)
    assert once[:4] == often[:4]
    assert once[5] == often[5]
    # Noise of another size in digits, no more.
    assert abs(once[4] - often[4]) < 64


def counters():
    """What the process counts and the package remembers: caches, names of threads to come."""
    caches = {
        f"{module.__name__}.{name}": value.cache_info()
        for module in [m for n, m in sys.modules.items() if n.partition(".")[0] == "skdpgen"]
        for name, value in vars(module).items()
        if hasattr(value, "cache_info")
    }
    with ThreadPoolExecutor(1, "") as pool:
        worker = pool.submit(lambda: threading.current_thread().name).result()
    return caches, worker, threading.Thread().name


def test_no_counter_of_the_process_tells_how_often_or_what_was_tried(table, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    features = [InteractionFeatures(n, orders=(1,)) for n in (20, 30, 40, 60)]

    def fit(k):
        tries(monkeypatch, k)
        search(grid={"features": features}).fit(table)
        return counters()

    fit(1)
    caches, *names = fit(1)
    more, *later = fit(9)
    for name, info in caches.items():
        assert (info.misses, info.currsize) == (more[name].misses, more[name].currsize)
    numbers = [[int(re.findall(r"\d+", name)[0]) for name in each] for each in (names, later)]
    # One of each was made above, to look.
    assert numbers[1] == [number + 1 for number in numbers[0]]


def test_global_random_numbers_do_not_count_tries(table):
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    grid = {"features": [GaussianFeatures(8)], "generator": ["mlp"]}
    search(synth(generator="auto"), grid).fit(table)
    after = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    assert before == after


def test_trainings_that_fail_lose_and_say_nothing(table, monkeypatch):
    tries(monkeypatch, 25)
    trained = Trial.trained

    def failing(self, release):
        warnings.warn("canary", stacklevel=2)
        if self.settings["features"].orders == (1,):
            raise ValueError("canary")
        return trained(self, release)

    monkeypatch.setattr(Trial, "trained", failing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="releasing all")
        fitted = search().fit(table)
    assert fitted.best_params_["features"].orders == (1, 2)


def test_if_all_trainings_fail_one_is_published(table, monkeypatch):
    tries(monkeypatch, 3)
    monkeypatch.setattr(Trial, "trained", lambda self, release: 1 / 0)
    assert search().fit(table).sample(3).shape == (3, 4)


def test_a_failing_release_does_not_say_which(table, monkeypatch):
    tries(monkeypatch, 5)
    release, calls = Trial.release, []

    def failing(self, *args):
        calls.append(self)
        if len(calls) == 4:
            raise MemoryError("canary")
        return release(self, *args)

    monkeypatch.setattr(Trial, "release", failing)
    fitted = search().fit
    with pytest.raises(SkdpgenError, match="a release failed") as caught:
        fitted(table)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not hasattr(fitted.__self__, "release_")


@pytest.mark.parametrize("where", ["release", "trained"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_interrupts_a_search_carries_nothing(table, monkeypatch, where, kind):
    """Neither its traceback nor the one of the error that it stands for."""
    if (where, kind) == ("trained", MemoryError):
        kind = GeneratorExit  # a training that raises an Exception has lost
    tries(monkeypatch, 5)
    step, raised, calls = getattr(Trial, where), [], []

    def failing(self, *args):
        calls.append(self)
        if len(calls) == 4:
            raised.append(kind("canary"))
            raise raised[0]
        return step(self, *args)

    monkeypatch.setattr(Trial, where, failing)
    with pytest.raises(KeyboardInterrupt if kind is KeyboardInterrupt else SkdpgenError) as caught:
        search().fit(table)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None
    names = {frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)}
    assert "_best_of" in names
    assert "repeat_and_select" not in names
    ours = {"repeat_and_select", "run", "best", "release", "trained"}
    for frame, _ in traceback.walk_tb(raised[0].__traceback__):
        assert frame.f_code.co_name not in ours or not frame.f_locals


def test_divergence_of_the_published_candidate_is_warned_of(table):
    grid = {"features": [GaussianFeatures(n) for n in (20, 24, 28, 32)]}
    estimator = synth(generator="mlp", learning_rate=1e30)
    with pytest.warns(SkdpgenWarning, match="diverged"):
        search(estimator, grid).fit(table)


def test_tries_are_alike_whatever_was_tried_before(table, monkeypatch):
    # The same candidate, the same release: the same generator, in whichever try.
    generators = []
    trained = Trial.trained

    def twice(self, release):
        generators.append((trained(self, release), trained(self, release)))
        return generators[-1][0]

    monkeypatch.setattr(Trial, "trained", twice)
    tries(monkeypatch, 2)
    grid = {"features": [GaussianFeatures(8)], "generator": ["mlp"]}
    search(synth(generator="auto"), grid).fit(table)
    for one, other in generators:
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert a.detach().numpy() == pytest.approx(b.detach().numpy())


def test_a_callable_generator_is_called_once_a_candidate_before_rows_are_read(table, monkeypatch):
    calls = []

    def wider_each_time(layout, n_classes):
        calls.append(len(spent.entries))
        return MLPGenerator(layout, n_classes, hidden_sizes=(8 + len(calls),))

    spent = PrivacyLedger()
    tries(monkeypatch, 5)
    estimator = synth(generator=wider_each_time, features=GaussianFeatures(8))
    grid = {"learning_rate": [0.001, 0.01]}
    found = search(estimator, grid, ledger=spent).fit(table)
    assert calls == [0, 0]
    # What is published is what won, not one that was made later.
    assert found.best_estimator_.generator_.backbone.output.in_features in (9, 10)


# -- the score -----------------------------------------------------------------------------------


def test_the_distance_is_the_same_exactly_and_by_sampling(table, monkeypatch):
    monkeypatch.setattr(_private_runs, "_ROWS", 2**16)
    fitted = synth(features=InteractionFeatures(200, orders=(1, 2))).fit(table)
    yardstick = synth(features=InteractionFeatures(300, orders=(1, 2)), random_state=1).fit(table)
    exact = distance(fitted.generator_, yardstick.release_, 0)

    class Sampled:
        n_classes = 2
        sample = fitted.generator_.sample

    assert distance(Sampled(), yardstick.release_, 0) == pytest.approx(exact, rel=0.02, abs=1e-4)
    # Another binning of numbers is no mixture over the codes of the yardstick.
    other = synth(features=InteractionFeatures(200, n_bins=8), random_state=2).fit(table)
    assert other.generator_.atoms != fitted.generator_.atoms
    assert math.isfinite(distance(other.generator_, yardstick.release_, 0))


# -- other tables and estimators -----------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"adjacency": "add-remove"}, {"rows_per_unit": 2}], ids=str)
@pytest.mark.parametrize("units", [False, True])
def test_adjacencies_and_units(table, params, units):
    unit_id = np.arange(len(table)) // 2 if units else None
    fitted = search(synth(**params)).fit(table, unit_id=unit_id)
    release = fitted.release_
    assert release.adjacency == params.get("adjacency", "replace-one")
    assert release.unit == ("unit" if units or "rows_per_unit" in params else "row")
    assert (release.n_rows is None) == (units or "adjacency" in params)
    assert 0.999 < release.verify() <= 1.0
    assert 0.999 < fitted.ledger_.spent(1e-5) <= 1.0


def test_slices_and_a_target_apart(table):
    estimator = SlicedFDivSynthesizer(9.0, 0.5, schema=SCHEMA, n_steps=3)
    grid = [{"n_slices": [5, 10], "n_cells": [4, 8]}, {"directions": ["sparse"], "n_slices": [4]}]
    X, y = table.drop(columns="label"), table["label"]
    fitted = search(estimator, grid).fit(X, y)
    assert fitted.n_candidates_ == 5
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.n_features_in_ == 3
    X_syn, y_syn = fitted.sample(10)
    assert (X_syn.shape, y_syn.shape) == ((10, 3), (10,))


def test_parameters_are_stored_and_cloned(table):
    original = search(expected_tries=3, eta=1.0, yardstick_share=0.2)
    copied = clone(original)
    assert copied.get_params(deep=False).keys() == original.get_params(deep=False).keys()
    assert copied.expected_tries == 3
    assert original.estimator.epsilon == 1.0
    before = repr(original.estimator)
    original.fit(table)
    assert repr(original.estimator) == before


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "adjacency",
        "delta",
        "domain_budget",
        "epsilon",
        "ledger",
        "n_rows_hint",
        "random_state",
        "rows_per_unit",
        "schema",
        "schema__target",
    ],
)
def test_what_all_candidates_share_is_not_searched(table, name):
    with pytest.raises(InputError, match=f"'{name}' can't be searched"):
        search(grid=[{"features": ["auto"]}, {name: [1]}]).fit(table)


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"grid": {"bandwidth": [1]}}, InputError, "'bandwidth' isn't a parameter of DPMERF"),
        ({"grid": 3}, InputError, "param_grid must map"),
        ({"grid": {"features": "auto"}}, InputError, "param_grid must map"),
        ({"grid": {"features": []}}, InputError, "param_grid must map"),
        ({"grid": []}, InputError, "holds no candidate"),
        ({"grid": {"features": [3]}}, PrivacyParameterError, "isn't possible: features must"),
        ({"grid": {"n_steps": [-1]}}, InputError, "isn't possible"),
        ({"grid": {"generator": ["mlp"]}}, InputError, "isn't possible"),
        ({"grid": {"features__orders": [(2,)]}}, InputError, "no parameters of its own"),
        ({"grid": {"generator__colour": [2]}}, InputError, "isn't possible: Invalid parameter"),
        ({"epsilon": 0}, PrivacyParameterError, "epsilon"),
        ({"expected_tries": 1}, PrivacyParameterError, "expected number of tries"),
        ({"expected_tries": "5"}, InputError, "expected_tries must be a number"),
        ({"eta": -1.0}, PrivacyParameterError, "eta"),
        ({"eta": True}, InputError, "eta must be a number"),
        ({"yardstick_share": 1.0}, PrivacyParameterError, "share"),
        ({"ledger": 3}, PrivacyParameterError, "ledger must be"),
        ({"estimator": synth(schema=None)}, SchemaError, "\nPrivateSearchCV needs a complete"),
        ({"estimator": synth(adjacency="x")}, PrivacyParameterError, "adjacency"),
        ({"estimator": synth(rows_per_unit=0)}, PrivacyParameterError, "rows_per_unit"),
        ({"estimator": 3}, InputError, "int can't be searched privately"),
        (
            {"estimator": SlicedRowsSynthesizer(1.0, 1e-5)},
            InputError,
            "SlicedRowsSynthesizer can't be searched privately",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_before_the_charge(table, params, error, match):
    ledger = PrivacyLedger()
    with pytest.raises(error, match=match):
        search(**{"ledger": ledger} | params).fit(table)
    assert ledger.entries == ()


def test_insecure_noise_covers_no_choice(table):
    with insecure_noise(0):
        fitted = search().fit(table)
    assert fitted.privacy_statement().startswith("NOT PRIVATE")
    assert "is covered" not in fitted.privacy_statement()


def test_candidates_follow_no_seed(table, monkeypatch):
    """Of 24 tries among four candidates, and 24 again: alike with probability 4^-24."""
    tries(monkeypatch, 24)
    tried = []
    release = Trial.release

    def recorded(self, *args):
        tried.append(self.features.n_frequencies)
        return release(self, *args)

    monkeypatch.setattr(Trial, "release", recorded)
    monkeypatch.setattr(Trial, "trained", lambda self, release: 1 / 0)
    grid = {"features": [InteractionFeatures(n, orders=(1,)) for n in (20, 30, 40, 60)]}
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        torch.manual_seed(0)
        search(grid=grid).fit(table)
    assert len(tried) == 50
    assert tried[1:25] != tried[26:]


def test_without_a_fit_there_is_nothing(table):
    with pytest.raises(ValueError, match="not fitted"):
        search().sample(3)
    with pytest.raises(ValueError, match="not fitted"):
        search().privacy_statement()


def test_arrays_without_a_target(table):
    schema = {
        "columns": {i: c for i, (n, c) in enumerate(SCHEMA["columns"].items()) if n != "label"}
    }
    fitted = search(synth(schema=schema)).fit(table[["a", "b", "c"]].to_numpy())
    assert fitted.sample(4).shape == (4, 3)
    assert not hasattr(fitted, "classes_")
