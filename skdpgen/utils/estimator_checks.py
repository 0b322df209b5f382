"""Checks that every synthesizer passes, in the manner of scikit-learn's.

Each check takes the name and an instance of an estimator, which is cloned and gets a schema, a
ledger and a seed of the check's own, and raises an ``AssertionError`` that says what is wrong. The
tables are made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

from skdpgen.utils._budget_checks import (
    check_a_seed_does_not_fix_the_noise,
    check_budget_is_checked_before_rows_are_read,
    check_clone_keeps_the_budget,
    check_fit_leaves_parameters_alone,
    check_ledger_grows_on_refit,
    check_nothing_reads_rows_for_free,
    check_parameters_say_what_they_are,
    check_release_round_trip,
    check_retrain_is_post_processing,
)
from skdpgen.utils._privacy_checks import (
    check_bad_input_is_refused,
    check_neighbors_look_alike,
    check_no_row_survives_a_fit,
)
from skdpgen.utils._sample_checks import (
    check_dtypes_come_back,
    check_numbers_of_samples,
    check_samples_are_inside_the_schema,
    check_samples_follow_their_seed,
    check_y_is_a_column_like_others,
)

__all__ = ["check_synthesizer", "parametrize_with_checks", "synthesizer_checks"]

Check: TypeAlias = Callable[[str, Any], None]

_CHECKS: tuple[Check, ...] = (
    check_parameters_say_what_they_are,
    check_fit_leaves_parameters_alone,
    check_ledger_grows_on_refit,
    check_clone_keeps_the_budget,
    check_budget_is_checked_before_rows_are_read,
    check_a_seed_does_not_fix_the_noise,
    check_release_round_trip,
    check_retrain_is_post_processing,
    check_nothing_reads_rows_for_free,
    check_no_row_survives_a_fit,
    check_neighbors_look_alike,
    check_bad_input_is_refused,
    check_numbers_of_samples,
    check_samples_follow_their_seed,
    check_samples_are_inside_the_schema,
    check_dtypes_come_back,
    check_y_is_a_column_like_others,
)


def check_synthesizer(estimator: Any) -> None:
    """Run all checks of a synthesizer.

    Parameters
    ----------
    estimator : synthesizer, or SynthesisPipeline
        Not fitted; cheap to fit, with few steps. It stays as it is. The steps of a pipeline have to
        take all the tables of the checks.

    Raises
    ------
    AssertionError
        If a check fails; the message says which rule was broken.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures
    >>> from skdpgen.utils import check_synthesizer
    >>> features = InteractionFeatures(20, n_bins=8)
    >>> check_synthesizer(DPMERFSynthesizer(1.0, 1e-5, features=features, n_steps=2))
    """
    for instance, check in synthesizer_checks(estimator):
        check(instance)


def synthesizer_checks(estimator: Any) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """All checks of a synthesizer, like scikit-learn's ``estimator_checks_generator``.

    Parameters
    ----------
    estimator : synthesizer, or SynthesisPipeline
        As for :func:`check_synthesizer`.

    Yields
    ------
    estimator : synthesizer
        The same.
    check : callable
        To be called with it.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer
    >>> _, check = next(synthesizer_checks(DPMERFSynthesizer(1.0, 1e-5)))
    >>> check.func.__name__
    'check_parameters_say_what_they_are'
    """
    name = type(estimator).__name__
    for check in _CHECKS:
        yield estimator, partial(check, name)


def parametrize_with_checks(estimators: Iterable[Any]) -> Any:
    """A pytest decorator that runs each check on each synthesizer as a test of its own.

    Parameters
    ----------
    estimators : iterable of synthesizers
        As for :func:`check_synthesizer`.

    Returns
    -------
    pytest mark
        For a test with the arguments ``estimator`` and ``check``.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer
    >>> @parametrize_with_checks([DPMERFSynthesizer(1.0, 1e-5, n_steps=2)])
    ... def test_my_synthesizer(estimator, check):
    ...     check(estimator)
    """
    import pytest

    pairs = [pair for estimator in estimators for pair in synthesizer_checks(estimator)]
    ids = [f"{type(estimator).__name__}-{check.func.__name__}" for estimator, check in pairs]  # type: ignore[attr-defined]
    return pytest.mark.parametrize(("estimator", "check"), pairs, ids=ids)
