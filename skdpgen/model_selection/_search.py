"""What searches over one release have in common: rehearsal, release, search, last training."""

from __future__ import annotations

import copy
import math
import os
import time
from abc import abstractmethod
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
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
from skdpgen.synthesizers._callbacks import (
    CallbackSupport,
    inside,
    part_of,
    refuse_callbacks_inside,
    running,
)
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._feature_maps import FeatureMap, feature_map_of
from skdpgen.synthesizers._parameters import seed_sequence
from skdpgen.synthesizers._table import TableCodec

__all__ = ["ReleaseSearch"]

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


class ReleaseSearch(CallbackSupport, BaseEstimator):  # type: ignore[misc]
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
        refuse_callbacks_inside(estimator)
        seed = self._seed()
        with running(self, "fit", 3 if self.refit else 2):
            with part_of(self, "release"):
                n_steps = estimator._make_release(
                    X, y, unit_id, lambda codec, maps: self._rehearse(estimator, codec, maps, seed)
                )
                self._adopt(estimator)
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
        refuse_callbacks_inside(estimator)
        seed = self._seed()
        assert isinstance(estimator.release_, Release)
        features = feature_map_of(estimator.release_)
        with running(self, "fit_release", 2 if self.refit else 1):
            n_steps = self._rehearse(estimator, estimator._codec, features, seed)
            self._adopt(estimator)
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

    def _adopt(self, estimator: EmbeddingSynthesizer) -> None:
        """Keep what the estimator has: a search that fails keeps the release that was paid for."""
        for name in ("best_estimator_", "refit_time_", *_RESULTS):
            self.__dict__.pop(name, None)
        for name in ("release_", "ledger_", "classes_", "feature_names_in_", "n_features_in_"):
            self.__dict__.pop(name, None)
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))

    def _run(self, estimator: EmbeddingSynthesizer, seed: int, n_steps: int) -> Self:
        release = estimator.release_
        assert isinstance(release, Release)
        search = self._made(
            Candidate.of(estimator),
            seed,
            n_steps,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            error_score=self.error_score,
        )
        with inside(self, "search", search):
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
            with inside(self, "refit", estimator):
                estimator.retrain(**clone(self.best_params_, safe=False))
            self.best_estimator_ = estimator
            self.refit_time_ = time.perf_counter() - started
        return self
