"""Checks of parameters, budget and releases."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from skdpgen.exceptions import BudgetExceededError, SkdpgenError
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.utils._check_tools import (
    LABELED,
    arrays_of,
    fitted_on,
    fresh,
    last_of,
    plain_table,
    quiet,
    raised,
)
from skdpgen.utils.canaries import SCHEMA, findings, marked_table

__all__ = [
    "check_a_seed_does_not_fix_the_noise",
    "check_budget_is_checked_before_rows_are_read",
    "check_clone_keeps_the_budget",
    "check_fit_leaves_parameters_alone",
    "check_ledger_grows_on_refit",
    "check_nothing_reads_rows_for_free",
    "check_parameters_say_what_they_are",
    "check_release_round_trip",
    "check_retrain_is_post_processing",
]

_PRIVACY_PARAMETERS = {"epsilon", "delta", "schema", "ledger", "adjacency", "rows_per_unit"}
# What a synthesizer must not have: it would read rows for free.
_READERS = ("score", "predict", "predict_proba", "transform", "fit_transform", "score_samples")


def check_parameters_say_what_they_are(name: str, estimator: Any) -> None:
    """The class names its post-processing parameters, none of which decides the release."""
    last = last_of(estimator)
    free = getattr(last, "post_processing_parameters", None)
    assert isinstance(free, tuple), f"{name} lacks the tuple post_processing_parameters"
    unknown = set(free) - set(last.get_params(deep=False))
    assert not unknown, f"{name} has no parameters {sorted(unknown)}"
    private = set(free) & _PRIVACY_PARAMETERS
    assert not private, f"{name} calls {sorted(private)} post-processing: they decide the release"


def check_fit_leaves_parameters_alone(name: str, estimator: Any) -> None:
    """Fit, twice, sets attributes and no parameters; init sets parameters and no attributes."""
    unfitted = fresh(estimator)
    last = last_of(unfitted)
    own = set(vars(last)) - set(last.get_params(deep=False)) - {"_own_ledger"}
    assert not own, f"{name} has the attributes {sorted(own)} before fit"
    before = _described(unfitted)
    quiet(quiet(unfitted.fit, plain_table()).fit, plain_table())
    after = _described(unfitted)
    changed = [key for key in before if before[key] != after[key]]
    assert not changed, f"fit of {name} changes its parameters {changed}"


def _described(estimator: Any) -> dict[str, str]:
    """All parameters but steps, which get fitted, and ledgers, which grow."""
    return {
        key: repr(value)
        for key, value in estimator.get_params().items()
        if key != "steps" and not isinstance(value, PrivacyLedger | BaseEstimator)
    }


def check_ledger_grows_on_refit(name: str, estimator: Any) -> None:
    """Every fit is charged, and nothing else is."""
    unfitted = fresh(estimator)
    ledger = last_of(unfitted).ledger
    quiet(unfitted.fit, plain_table())
    first = len(ledger.entries)
    assert first > 0, f"a fit of {name} isn't charged"
    assert unfitted.ledger_ is ledger, f"{name} doesn't spend from its ledger"
    unfitted.sample(3)
    unfitted.privacy_statement()
    unfitted.retrain()
    assert len(ledger.entries) == first, f"{name} charges for post-processing"
    quiet(unfitted.fit, plain_table())
    assert len(ledger.entries) == 2 * first, f"a second fit of {name} isn't charged"


def check_clone_keeps_the_budget(name: str, estimator: Any) -> None:
    """A clone reads the same rows, so it spends from the same ledger, given or not."""
    for ledger in (None, PrivacyLedger()):
        unfitted = fresh(estimator, ledger=ledger)
        before = 0 if ledger is None else len(ledger.entries)
        quiet(unfitted.fit, plain_table())
        spent = unfitted.ledger_.entries
        other = quiet(clone(unfitted).fit, plain_table())
        assert other.ledger_ is unfitted.ledger_, f"a clone of {name} has a ledger of its own"
        assert len(other.ledger_.entries) > len(spent) > before


def check_budget_is_checked_before_rows_are_read(name: str, estimator: Any) -> None:
    """A capped ledger refuses a fit, of which nothing is left then."""
    unfitted = fresh(estimator, SCHEMA, ledger=PrivacyLedger(epsilon=1e-4, delta=1e-9))
    text = raised(BudgetExceededError, unfitted.fit, marked_table())
    assert not findings(text.encode()), f"{name} quotes cells where the budget is too small"
    assert not hasattr(unfitted, "release_"), f"{name} made a release that it wasn't charged for"
    assert len(last_of(unfitted).ledger.entries) == 0


def check_a_seed_does_not_fix_the_noise(name: str, estimator: Any) -> None:
    """Two fits with one random_state make two releases."""
    first, second = (arrays_of(fitted_on(estimator).release_) for _ in range(2))
    assert set(first) == set(second)
    # Even a single noisy number is hundreds of steps wide; there are many.
    same = all(np.array_equal(first[key], second[key]) for key in first)
    assert not same, f"the noise of {name} follows random_state"


def check_release_round_trip(name: str, estimator: Any) -> None:
    """A release is saved, loaded, verified, and trains another synthesizer."""
    last = last_of(fitted_on(estimator))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release"
        last.release_.save(path)
        loaded = type(last.release_).load(path)
        loaded.verify()
        settings = {"random_state": 0} | {
            key: getattr(last, key)
            for key in ("n_steps", "batch_size", "generator")
            if key in last.post_processing_parameters
        }
        others = [type(last).from_release(source, **settings) for source in (loaded, path)]
    for key, array in arrays_of(last.release_).items():
        np.testing.assert_array_equal(arrays_of(loaded)[key], array)
    for other in others:
        sample = other.sample(5)
        assert list(sample.columns) == list(LABELED.columns)
        assert len(sample) == 5
    pd.testing.assert_frame_equal(*(o.sample(9, random_state=1) for o in others))
    assert loaded.statement() == last.release_.statement()


def check_retrain_is_post_processing(name: str, estimator: Any) -> None:
    """Retraining keeps the release and refuses parameters that would need another."""
    fitted = fitted_on(estimator)
    release, entries = fitted.release_, fitted.ledger_.entries
    fitted.retrain(random_state=7)
    assert fitted.release_ is release, f"retrain of {name} makes another release"
    assert fitted.ledger_.entries == entries
    for parameter in {"epsilon", "delta", "schema"}:
        raised(SkdpgenError, fitted.retrain, **{parameter: 0.5})
    signature = inspect.signature(last_of(fitted).retrain)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    assert kinds <= {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}, (
        f"retrain of {name} takes arguments that could be rows"
    )


def check_nothing_reads_rows_for_free(name: str, estimator: Any) -> None:
    """There is no method beside fit that takes rows."""
    fitted = fitted_on(estimator)
    readers = [method for method in _READERS if hasattr(fitted, method)]
    assert not readers, f"{name} has {readers}, which read rows without being charged"
