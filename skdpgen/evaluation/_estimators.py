"""The estimators that a synthetic table has to teach: presets for :func:`tstr`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ..exceptions import InputError

__all__ = ["chance_estimator", "chosen_estimators"]

NO_XGBOOST = "XGBoost is not installed: pip install xgboost"


def chosen_estimators(
    estimators: str | Mapping[str, Any], task: str, random_state: int | None
) -> dict[str, Any]:
    """Unfitted estimators by name; a text in place of one says why it is not there.

    Parameters
    ----------
    estimators : {"fast", "paper"} or mapping of str to estimator
        As :func:`tstr` takes it.
    task : {"classification", "regression"}
        What the target asks for.
    random_state : int or None
        Seed of each.

    Raises
    ------
    InputError
        If the preset is unknown or has no regressors.
    """
    if isinstance(estimators, Mapping):
        return dict(estimators)
    if estimators == "fast":
        return _fast(random_state) if task == "classification" else _regressors(random_state)
    if estimators == "paper" and task == "classification":
        return _paper(random_state)
    if estimators == "paper":
        raise InputError(
            "estimators='paper' are classifiers and the target is a number; choose 'fast' or "
            "pass a mapping of names to regressors."
        )
    raise InputError(
        "estimators must be 'fast', 'paper' or a mapping of names to scikit-learn estimators, "
        f"got {estimators!r}."
    )


def chance_estimator(task: str) -> Any:
    """What knows only the shares of the classes, or the mean of the target."""
    return DummyClassifier(strategy="prior") if task == "classification" else DummyRegressor()


def _fast(seed: int | None) -> dict[str, Any]:
    boosting: Any
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        boosting = XGBClassifier(n_estimators=100, n_jobs=1, random_state=seed)
    else:
        boosting = HistGradientBoostingClassifier(max_iter=100, random_state=seed)
    return {
        "logistic regression": make_pipeline(
            _standardized_numbers(), LogisticRegression(max_iter=1000, random_state=seed)
        ),
        "gradient boosting": boosting,
        "random forest": RandomForestClassifier(
            n_estimators=100, min_samples_leaf=5, random_state=seed
        ),
    }


def _regressors(seed: int | None) -> dict[str, Any]:
    boosting: Any
    if find_spec("xgboost"):
        from xgboost import XGBRegressor

        boosting = XGBRegressor(n_estimators=100, n_jobs=1, random_state=seed)
    else:
        boosting = HistGradientBoostingRegressor(max_iter=100, random_state=seed)
    return {
        "ridge regression": make_pipeline(_standardized_numbers(), Ridge()),
        "gradient boosting": boosting,
        "random forest": RandomForestRegressor(
            n_estimators=100, min_samples_leaf=5, random_state=seed
        ),
    }


def _standardized_numbers() -> ColumnTransformer:
    """Numbers to mean 0 and variance 1; indicators of categories as they are.

    Scaled to variance 1, an indicator that is hardly ever 1 in the synthetic table would be
    enormous in the test rows where it is, and a penalty on coefficients would hardly hold it.
    """
    return ColumnTransformer([("numbers", StandardScaler(), _numbers)], remainder="passthrough")


def _numbers(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Columns that hold anything but 0 and 1."""
    found: npt.NDArray[np.int64] = np.flatnonzero(((x != 0) & (x != 1)).any(axis=0))
    return found


def _paper(seed: int | None) -> dict[str, Any]:
    """Settings of the authors' code for tables (DP-MERF, code_tab/single_generator_priv_all.py).

    All at scikit-learn's defaults but the iterations of logistic regression and the smoothing of
    Bernoulli naive Bayes; scikit-learn's defaults have changed since (AdaBoost's algorithm).
    """
    xgboost: Any = NO_XGBOOST
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        xgboost = XGBClassifier(n_jobs=1, random_state=seed)
    return {
        "logistic regression": LogisticRegression(solver="lbfgs", max_iter=2000, random_state=seed),
        "Gaussian naive Bayes": GaussianNB(),
        "Bernoulli naive Bayes": BernoulliNB(alpha=0.02),
        "linear SVM": LinearSVC(random_state=seed),
        "decision tree": DecisionTreeClassifier(random_state=seed),
        "linear discriminant": LinearDiscriminantAnalysis(),
        "AdaBoost": AdaBoostClassifier(random_state=seed),
        "bagging": BaggingClassifier(random_state=seed),
        "random forest": RandomForestClassifier(random_state=seed),
        "gradient boosting": GradientBoostingClassifier(random_state=seed),
        "multi-layer perceptron": MLPClassifier(random_state=seed),
        "XGBoost": xgboost,
    }
