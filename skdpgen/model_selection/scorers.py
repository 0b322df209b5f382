"""Scores for scikit-learn's own searches, which compare synthetic rows to rows that they are given.

Such a score reads rows and adds no noise. Where the rows are private, a choice that depends on it
isn't covered by any epsilon, and the ledger says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from skdpgen.data.frames import as_series, as_table
from skdpgen.evaluation import tstr
from skdpgen.evaluation._learning import METRICS
from skdpgen.exceptions import InputError
from skdpgen.privacy.release import Release
from skdpgen.synthesizers.base import ReleaseSynthesizer

__all__ = ["TSTRScorer", "make_tstr_scorer"]

_REASON = "read rows for selection"


@dataclass(frozen=True)
class TSTRScorer:
    """Trains estimators on synthetic rows and tests them on the rows given.

    Made by :func:`make_tstr_scorer`, which describes the parameters.
    """

    target: Hashable
    estimators: str | Mapping[str, Any]
    metric: str
    n_samples: int | None
    random_state: int | None
    public: bool

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Score a fitted synthesizer.

        Parameters
        ----------
        estimator : synthesizer
            Fitted.
        X, y
            The rows to test on, as ``fit`` takes them.

        Returns
        -------
        float
            The mean over the estimators; NaN where one has no score, as for lack of a class.

        Raises
        ------
        InputError
            If the estimator is no fitted synthesizer, has no ledger while the rows aren't public,
            it has no target, or the metric isn't one of the target's task.
        BudgetExceededError
            If the rows aren't public and the ledger has a cap. Nothing was read then.
        """
        if not isinstance(estimator, ReleaseSynthesizer) or not hasattr(estimator, "generator_"):
            raise InputError("the scorer needs a fitted synthesizer of skdpgen.")
        if not self.public:
            ledger = getattr(estimator, "ledger_", None)
            if ledger is None:
                raise InputError(
                    "the synthesizer has no ledger, as after from_release, and reading private "
                    "rows has to be recorded: make_tstr_scorer(public=True) is for public rows."
                )
            # First of all: with a cap this raises, and no row has been read.
            ledger.record_unprotected(_REASON)
        codec = estimator._codec
        release = estimator.release_
        usual = release.row_count if isinstance(release, Release) else release.n_rows
        n_samples = max(1, round(usual)) if self.n_samples is None else self.n_samples
        names = list(codec.preprocessor.template_.names)
        target = codec.schema.target if self.target is None else self.target
        sample = estimator.sample(n_samples, self.random_state)
        rows, labels = sample if isinstance(sample, tuple) else (sample, None)
        result = tstr(
            _joined(rows, labels, names, target),
            _joined(X, y, names, target),
            target,
            estimators=self.estimators,
            schema=codec.schema,
            random_state=self.random_state,
        )
        if self.metric not in result.metrics:
            raise InputError(
                f"{self.metric} is no metric of {result.task}; choose one of "
                f"{', '.join(result.metrics)}."
            )
        kept = (result.scores["trained_on"] == "synthetic") & (
            result.scores["metric"] == self.metric
        )
        return float(result.scores.loc[kept, "score"].mean(skipna=False))


def make_tstr_scorer(
    target: Hashable = None,
    *,
    estimators: str | Mapping[str, Any] = "fast",
    metric: str = "roc_auc",
    n_samples: int | None = None,
    random_state: int | None = 0,
    public: bool = False,
) -> TSTRScorer:
    """A scorer for scikit-learn: train on synthetic, test on the rows given. **Not private**.

    ``GridSearchCV(synthesizer, grid, scoring=make_tstr_scorer())`` fits a synthesizer for each
    candidate and fold, and charges each fit. Its choice looks at held-out rows without noise:
    before the scorer reads them it records in the synthesizer's ledger that the result is not
    private, and the total there turns infinite.

    Parameters
    ----------
    target : hashable, default=None
        Which column to predict; the target of the schema if None.
    estimators : {"fast", "paper"} or mapping of str to estimator, default="fast"
        What to train; see :func:`~skdpgen.evaluation.tstr`.
    metric : str, default="roc_auc"
        "roc_auc", "pr_auc", "accuracy" or "f1_macro" for classes, "r2" or "spearman" for a
        number; see :func:`~skdpgen.evaluation.tstr`.
    n_samples : int, default=None
        Synthetic rows; None takes as many as the release was made of.
    random_state : int or None, default=0
        Seeds sampling and the estimators of a preset.
    public : bool, default=False
        True says that the rows which are scored are public: nothing is recorded. In a grid search
        that is every row that it is given.

    Returns
    -------
    callable
        With the signature ``scorer(estimator, X, y=None)``.

    Raises
    ------
    InputError
        If a parameter is wrong.

    See Also
    --------
    skdpgen.model_selection.ReleaseSearchCV : Chooses by the release, free of privacy cost.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> points, schema = make_gaussian_grid(500, random_state=0)
    >>> elsewhere, _ = make_gaussian_grid(500, random_state=1)
    >>> synth = DPMERFSynthesizer(
    ...     1.0, 1e-5, schema=schema, n_steps=20, random_state=0,
    ...     features=InteractionFeatures(200, n_bins=16)).fit(points)
    >>> scorer = make_tstr_scorer(estimators={"chance": DummyClassifier()}, public=True)
    >>> scorer(synth, elsewhere)
    0.5
    """
    known = [name for metrics in METRICS.values() for name in metrics]
    if metric not in known:
        raise InputError(f"metric must be one of {', '.join(known)}, got {metric!r}.")
    if not isinstance(public, bool):
        raise InputError(f"public must be True or False, got {public!r}.")
    return TSTRScorer(target, estimators, metric, n_samples, random_state, public)


def _joined(X: Any, y: Any, names: list[Any], target: Hashable) -> pd.DataFrame:
    """A table with its target, as a pandas frame."""
    table = as_table(X)
    if isinstance(table, np.ndarray):
        frame = pd.DataFrame(table, columns=names)
    else:
        frame = nw.from_native(table, eager_only=True).to_pandas()
    if y is None:
        return frame
    joined = frame.copy()
    joined[target] = np.asarray(as_series(y))
    return joined
