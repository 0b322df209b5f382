"""Searches over settings that never touch rows: one release, many trainings, no privacy cost."""

from __future__ import annotations

import copy
import math
import os
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
)
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from skdpgen.exceptions import InputError
from skdpgen.model_selection._candidates import (
    Candidate,
    Rehearsal,
    check_estimator,
    check_names,
    plan_candidates,
    with_settings,
)
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._feature_maps import FeatureMap, feature_map_of
from skdpgen.synthesizers._parameters import seed_sequence
from skdpgen.synthesizers._table import TableCodec

__all__ = ["ReleaseHalvingSearchCV", "ReleaseRandomizedSearchCV", "ReleaseSearchCV"]

# What a search of scikit-learn says about itself after fit.
_RESULTS = (
    "cv_results_",
    "best_params_",
    "best_score_",
    "best_index_",
    "n_splits_",
    "n_resources_",
    "n_candidates_",
    "n_iterations_",
    "n_possible_iterations_",
    "n_required_iterations_",
    "min_resources_",
    "max_resources_",
)


class _ReleaseSearch(BaseEstimator):
    """One release, then a search of scikit-learn over its parts.

    A subclass makes the search.
    """

    estimator: Any
    cv: Any
    n_jobs: int | None
    refit: bool
    verbose: int
    error_score: float | Literal["raise"]
    random_state: int | np.random.RandomState | None

    @property
    @abstractmethod
    def _space(self) -> Any:
        """The parameters and their values."""

    @abstractmethod
    def _search(self, candidate: Candidate, seed: int, n_steps: int, **common: Any) -> Any:
        """The search; ``n_steps`` is the number of steps of the estimator as it is."""

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, unit_id: Any = None) -> Self:
        """Make one noisy release of the rows, then search on it.

        The ledger is charged once, for the release. All candidates are checked before.

        Parameters
        ----------
        X, y, unit_id
            As in ``fit`` of the estimator.

        Returns
        -------
        self : the search itself

        Raises
        ------
        ValueError
            (:class:`~skdpgen.exceptions.InputError` and others) If a parameter of the search, of
            the estimator or of a candidate is wrong, or a privacy parameter is searched. Nothing
            is charged then.
        BudgetExceededError
            If the ledger has a cap that the release would exceed.
        """
        estimator = clone(check_estimator(self.estimator))
        check_names(estimator, self._space)
        seed = self._seed()
        n_steps = estimator._make_release(
            X, y, unit_id, lambda codec, maps: self._rehearse(estimator, codec, maps, seed)
        )
        return self._run(estimator, seed, n_steps)

    def fit_release(
        self,
        release: EmbeddingSynthesizer | Release | str | os.PathLike[str],
        *,
        template: Any = None,
    ) -> Self:
        """Search on a release that was made before; no rows anywhere, and nothing is charged.

        Parameters
        ----------
        release : synthesizer, Release or path
            A fitted synthesizer of the same class as the estimator, its release, or the file that
            the release was saved to. The privacy parameters are those of the release; the
            post-processing ones, where they aren't searched, those of the estimator.
        template : DataFrame, default=None
            For a release or a path: a frame, possibly without rows, with the names and dtypes that
            samples shall have.

        Returns
        -------
        self : the search itself

        Raises
        ------
        InputError
            If a parameter is wrong, as in :meth:`fit`.
        ReleaseError
            If the release doesn't verify or is that of another synthesizer.
        """
        own = check_estimator(self.estimator)
        check_names(own, self._space)
        if isinstance(release, type(own)):
            check_is_fitted(release, "release_")
            source = copy.copy(release)
        elif isinstance(release, BaseEstimator):
            raise InputError(
                f"the estimator is a {type(own).__name__} and can't be trained on the release of a "
                f"{type(release).__name__}."
            )
        else:
            source = type(own)._untrained(release, template)
        free = own.post_processing_parameters
        estimator = with_settings(source, {name: getattr(own, name) for name in free})
        seed = self._seed()
        assert isinstance(estimator.release_, Release)
        features = feature_map_of(estimator.release_)
        n_steps = self._rehearse(estimator, estimator._codec, features, seed)
        return self._run(estimator, seed, n_steps)

    # -- what comes of it -------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        y: Any = None,
    ) -> Any:
        """Draw synthetic rows from the best candidate, trained on the whole release.

        See ``sample`` of the estimator.
        """
        return self._best().sample(n_samples, random_state, y=y)

    def privacy_statement(self) -> str:
        """What the release promises, and what was spent in total, in plain words."""
        return self._best().privacy_statement()

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        tags.non_deterministic = own.non_deterministic
        return tags

    # -- internals --------------------------------------------------------------------------------

    def _best(self) -> EmbeddingSynthesizer:
        check_is_fitted(self, "cv_results_")
        if not self.refit:
            raise InputError(
                "the search has no synthesizer since refit=False: train one with retrain or "
                "from_release, on release_ and with best_params_, which is free."
            )
        best: EmbeddingSynthesizer = self.best_estimator_
        return best

    def _seed(self) -> int:
        """One seed for the rehearsal and the search: both must try the same candidates."""
        return int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)

    def _made(self, candidate: Candidate, seed: int, n_steps: int, **common: Any) -> Any:
        cv = self.cv
        if isinstance(cv, Integral):
            # Shuffled: neighboring frequencies look at the same columns.
            cv = KFold(int(cv), shuffle=True, random_state=seed)
        return self._search(candidate, seed, n_steps, cv=cv, refit=False, **common)

    def _rehearse(
        self, estimator: EmbeddingSynthesizer, codec: TableCodec, features: FeatureMap, seed: int
    ) -> int:
        """Run everything but the trainings: what is wrong shows before budget is spent.

        Returns the number of steps of the estimator as it is.
        """
        n_folds = int(self.cv) if isinstance(self.cv, Integral) else 2
        if features.n_parts < n_folds:
            raise InputError(
                f"a search holds out frequencies or slices in turn: it needs {n_folds} of them or "
                f"more, and this release has {features.n_parts}. Gaussian features have "
                f"frequencies for numbers only."
            )
        plan: Any = with_settings(estimator, {})._plan(codec, features)
        n_steps: int = plan.settings.n_steps
        rehearsal = self._made(Rehearsal(estimator), seed, n_steps, error_score="raise")
        rehearsal.fit(np.arange(features.n_parts))
        plan_candidates(estimator, codec, features, rehearsal.cv_results_["params"])
        return n_steps

    def _run(self, estimator: EmbeddingSynthesizer, seed: int, n_steps: int) -> Self:
        release = estimator.release_
        assert isinstance(release, Release)
        for name in ("best_estimator_", "refit_time_", *_RESULTS):
            self.__dict__.pop(name, None)
        for name in ("release_", "ledger_", "classes_", "feature_names_in_", "n_features_in_"):
            self.__dict__.pop(name, None)
            if hasattr(estimator, name):
                # Now: a search that fails keeps the release that was paid for.
                setattr(self, name, getattr(estimator, name))
        search = self._made(
            Candidate.of(estimator),
            seed,
            n_steps,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            error_score=self.error_score,
        )
        search.fit(np.arange(feature_map_of(release).n_parts))
        for name in _RESULTS:
            if hasattr(search, name):
                setattr(self, name, getattr(search, name))
        spread, n_folds = self.cv_results_["std_test_score"], self.n_splits_
        self.cv_results_["sem_test_score"] = (
            spread / math.sqrt(n_folds - 1) if n_folds > 1 else np.full_like(spread, np.nan)
        )
        if self.refit:
            started = time.perf_counter()
            self.best_estimator_ = estimator.retrain(**clone(self.best_params_, safe=False))
            self.refit_time_ = time.perf_counter() - started
        return self


class ReleaseSearchCV(_ReleaseSearch):
    """Grid search over settings that never touch rows: one release, no further privacy cost.

    The release is a table of means: one line a frequency (or slice), with its coordinates in all
    classes. Each candidate is trained on some lines and scored on others by its squared error, from
    which the known variance of the noise is subtracted. Nothing but the release is used, so the
    choice is post-processing: it costs no privacy, however many candidates there are. The best one
    is then trained on the whole release.

    Parameters
    ----------
    estimator : DPMERFSynthesizer or SlicedFDivSynthesizer
        Makes the release. It is cloned, and the clone spends from the same ledger.
    param_grid : mapping or list of mappings
        Values of ``estimator.post_processing_parameters``, or of their own parameters
        (``generator__n_components``). A privacy parameter is refused.
    cv : int or splitter, default=5
        Number of folds, of frequencies or slices taken at random, or a splitter of scikit-learn.
        The waves of a family of harmonics stay together.
    n_jobs : int, default=None
        Trainings at a time. Worker processes get the release, never rows.
    refit : bool, default=True
        Whether to train the best candidate on the whole release.
    verbose : int, default=0
        How much to print.
    error_score : "raise" or float, default=nan
        Score of a training that fails.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds. Training is seeded by the estimator's own ``random_state``: with an int,
        all candidates start alike.

    Attributes
    ----------
    best_estimator_ : synthesizer
        With the best parameters, trained on the whole release (``refit=True``).
    best_params_, best_score_, best_index_, n_splits_
        As in :class:`~sklearn.model_selection.GridSearchCV`.
    cv_results_ : dict of str to array
        As there. ``mean_test_score`` is minus the error, see Notes; ``sem_test_score`` is its
        standard error over the folds.
    release_ : Release
        The release that was searched on.
    ledger_ : PrivacyLedger
        Where the release was charged; after ``fit_release`` only where that is known.
    refit_time_ : float
        Seconds of the last training.

    See Also
    --------
    ReleaseHalvingSearchCV : Gives up on bad candidates early.
    ReleaseRandomizedSearchCV : Tries random candidates.

    Notes
    -----
    The score is an unbiased estimate of minus the mean over frequencies of
    ``sum_c |p_c m_c - t_c|^2``: ``t_c`` is the mean of ``exp(i theta(x))`` over the rows of class
    c, times their share, before noise; ``p_c m_c`` is that of the rows that the candidate samples.
    For slices it is the sum over classes and cells of the squared difference of their shares.
    Being unbiased, it can be positive. For networks the mean of their rows is estimated from 2^15
    of them, without bias.

    The best of many scores is the largest of many noisy numbers, so ``best_score_`` flatters; and
    candidates within a standard error or two of each other are a draw.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.model_selection import ReleaseSearchCV
    >>> points, schema = make_gaussian_grid(2000, random_state=0)
    >>> synth = DPMERFSynthesizer(
    ...     1.0, 1e-5, schema=schema, n_steps=50, random_state=0,
    ...     features=InteractionFeatures(200, n_bins=16), generator=MixtureGenerator(n_mixtures=1))
    >>> grid = {"generator__n_components": [1, 100]}
    >>> search = ReleaseSearchCV(synth, grid, cv=3, random_state=0).fit(points)
    >>> search.best_params_
    {'generator__n_components': 100}
    >>> len(search.ledger_.entries), search.sample(5).shape
    (1, (5, 3))
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
        refit: bool = True,
        verbose: int = 0,
        error_score: float | Literal["raise"] = np.nan,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.error_score = error_score
        self.random_state = random_state

    @property
    def _space(self) -> Any:
        return self.param_grid

    def _search(self, candidate: Candidate, seed: int, n_steps: int, **common: Any) -> Any:
        return GridSearchCV(candidate, self.param_grid, **common)


class ReleaseRandomizedSearchCV(_ReleaseSearch):
    """Random search over settings that never touch rows: one release, no further privacy cost.

    Like :class:`ReleaseSearchCV`, with candidates drawn at random.

    Parameters
    ----------
    estimator : DPMERFSynthesizer or SlicedFDivSynthesizer
        Makes the release.
    param_distributions : mapping or list of mappings
        Lists of values, or distributions of scipy, as in
        :class:`~sklearn.model_selection.RandomizedSearchCV`.
    n_iter : int, default=10
        Number of candidates.
    cv, n_jobs, refit, verbose, error_score
        See :class:`ReleaseSearchCV`.
    random_state : int, RandomState instance or None, default=None
        Seeds the candidates and the folds.

    Notes
    -----
    Attributes and score are those of :class:`ReleaseSearchCV`.
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_iter: int = 10,
        cv: Any = 5,
        n_jobs: int | None = None,
        refit: bool = True,
        verbose: int = 0,
        error_score: float | Literal["raise"] = np.nan,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.cv = cv
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.error_score = error_score
        self.random_state = random_state

    @property
    def _space(self) -> Any:
        return self.param_distributions

    def _search(self, candidate: Candidate, seed: int, n_steps: int, **common: Any) -> Any:
        return RandomizedSearchCV(
            candidate, self.param_distributions, n_iter=self.n_iter, random_state=seed, **common
        )


class ReleaseHalvingSearchCV(_ReleaseSearch):
    """Successive halving over settings that never touch rows, on one release, free of privacy cost.

    Like :class:`ReleaseSearchCV`, but all candidates are first trained for a few steps, and only
    the better ones go on to a next round with more.

    Parameters
    ----------
    estimator : DPMERFSynthesizer or SlicedFDivSynthesizer
        Makes the release.
    param_grid : mapping or list of mappings
        See :class:`ReleaseSearchCV`; without the resource.
    factor : float, default=3
        One in so many candidates goes on, with so many times the resource.
    resource : str, default="n_steps"
        What grows from round to round: a parameter with integers as values, or "n_samples", the
        number of frequencies or slices.
    max_resources : int or "auto", default="auto"
        The resource of the last round at most. "auto" is the number of steps of the estimator, or
        all frequencies or slices.
    min_resources : int, "exhaust" or "smallest", default="exhaust"
        The resource of the first round; "exhaust" lets the last one use as much as there is.
    aggressive_elimination : bool, default=False
        See :class:`~sklearn.model_selection.HalvingGridSearchCV`.
    cv, n_jobs, refit, verbose, error_score, random_state
        See :class:`ReleaseSearchCV`.

    Notes
    -----
    Attributes and score are those of :class:`ReleaseSearchCV`, and the rounds' those of
    :class:`~sklearn.model_selection.HalvingGridSearchCV`. A short training has a whole schedule of
    learning rates of its own, so it is not the beginning of a long one.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        factor: float = 3,
        resource: str = "n_steps",
        max_resources: int | Literal["auto"] = "auto",
        min_resources: int | Literal["exhaust", "smallest"] = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        n_jobs: int | None = None,
        refit: bool = True,
        verbose: int = 0,
        error_score: float | Literal["raise"] = np.nan,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.factor = factor
        self.resource = resource
        self.max_resources = max_resources
        self.min_resources = min_resources
        self.aggressive_elimination = aggressive_elimination
        self.cv = cv
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.error_score = error_score
        self.random_state = random_state

    @property
    def _space(self) -> Any:
        return self.param_grid

    def _search(self, candidate: Candidate, seed: int, n_steps: int, **common: Any) -> Any:
        most = self.max_resources
        if self.resource == "n_steps" and isinstance(most, str) and most == "auto":
            most = n_steps
        return HalvingGridSearchCV(
            candidate,
            self.param_grid,
            factor=self.factor,
            resource=self.resource,
            max_resources=most,
            min_resources=self.min_resources,
            aggressive_elimination=self.aggressive_elimination,
            random_state=seed,
            **common,
        )
