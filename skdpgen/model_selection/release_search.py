"""Searches over settings that never touch rows: one release, many trainings, no privacy cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV

from skdpgen.model_selection._candidates import Candidate
from skdpgen.model_selection._search import ReleaseSearch

__all__ = ["ReleaseHalvingSearchCV", "ReleaseRandomizedSearchCV", "ReleaseSearchCV"]


class ReleaseSearchCV(ReleaseSearch):
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


class ReleaseRandomizedSearchCV(ReleaseSearch):
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

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.model_selection import ReleaseRandomizedSearchCV
    >>> points, schema = make_gaussian_grid(500, random_state=0)
    >>> synth = DPMERFSynthesizer(
    ...     1.0, 1e-5, schema=schema, n_steps=20, features=InteractionFeatures(50, n_bins=8),
    ...     generator=MixtureGenerator(10, n_mixtures=1))
    >>> rates = {"learning_rate": loguniform(0.001, 0.3)}
    >>> search = ReleaseRandomizedSearchCV(synth, rates, n_iter=3, cv=2, random_state=0).fit(points)
    >>> len(search.cv_results_["params"]), len(search.ledger_.entries)
    (3, 1)
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


class ReleaseHalvingSearchCV(ReleaseSearch):
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

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.model_selection import ReleaseHalvingSearchCV
    >>> points, schema = make_gaussian_grid(500, random_state=0)
    >>> synth = DPMERFSynthesizer(
    ...     1.0, 1e-5, schema=schema, n_steps=40, features=InteractionFeatures(50, n_bins=8),
    ...     generator=MixtureGenerator(10, n_mixtures=1))
    >>> grid = {"learning_rate": [0.001, 0.01, 0.1, 0.3]}
    >>> search = ReleaseHalvingSearchCV(synth, grid, factor=2, cv=2, random_state=0).fit(points)
    >>> search.n_resources_, len(search.ledger_.entries)
    ([10, 20, 40], 1)
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
