"""Train on synthetic, test on real (TSTR): what a synthetic table is worth for learning."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..data.columns import Column
from ..exceptions import InputError
from ._columns import PRIVACY, codes, features, is_number, levels, table, unit_values

if TYPE_CHECKING:
    from ..data.schema import Schema

__all__ = ["default_classifiers", "tstr_scores"]

METRICS = ("roc_auc", "pr_auc", "accuracy", "f1_macro")


def default_classifiers(random_state: int | None = 0) -> dict[str, Any]:
    """The three classifiers of :func:`tstr_scores`, unfitted.

    Parameters
    ----------
    random_state : int or None, default=0
        Seed of each.

    Returns
    -------
    dict of str to estimator
        Logistic regression on standardized columns; gradient boosting of 100 trees (XGBoost where
        it is installed, scikit-learn's histogram boosting elsewhere); a random forest of 100
        trees with leaves of five rows or more.

    Examples
    --------
    >>> from skdpgen.evaluation import default_classifiers
    >>> list(default_classifiers())
    ['logistic regression', 'gradient boosting', 'random forest']
    """
    boosting: Any
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        boosting = XGBClassifier(n_estimators=100, n_jobs=1, random_state=random_state)
    else:
        boosting = HistGradientBoostingClassifier(max_iter=100, random_state=random_state)
    return {
        "logistic regression": make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000, random_state=random_state)
        ),
        "gradient boosting": boosting,
        "random forest": RandomForestClassifier(
            n_estimators=100, min_samples_leaf=5, random_state=random_state
        ),
    }


def tstr_scores(
    train: Any,
    test: Any,
    schema: Schema,
    *,
    target: Any = None,
    classifiers: Mapping[str, Any] | None = None,
    random_state: int | None = 0,
) -> pd.DataFrame:
    """Train classifiers on one table and score them on another. **Not private**.

    With a synthetic ``train`` and held-out real rows as ``test`` this is the usual utility figure
    of a synthetic table; with the real training rows as ``train`` it is what to compare it to.

    Categories are one-hot encoded over the values of the public schema, and a value that it does
    not declare is ignored (all zeros); numbers are placed in their public bounds, a missing one in
    the middle, with an indicator where the schema says that values may be missing.

    Parameters
    ----------
    train, test : DataFrame
        pandas or polars tables with the columns of the schema. The scores read private held-out
        rows and add no noise, so no epsilon covers them. Rows without a declared class are left
        out.
    schema : Schema
        Public column facts; id and text columns are left out.
    target : hashable, default=None
        Name of the label; the target of the schema if None.
    classifiers : mapping of str to estimator, default=None
        What to train; :func:`default_classifiers` if None. Each is cloned.
    random_state : int or None, default=0
        Seed of the default classifiers.

    Returns
    -------
    DataFrame
        One row for each classifier and metric: ``classifier``, ``metric``, ``score``, ``note``
        (why a score is NaN) and ``privacy``. Metrics, all 0 to 1: ``roc_auc`` and ``pr_auc``
        (average precision) of the last declared class where there are two, else the mean over
        all classes, one against the rest; ``accuracy``; ``f1_macro``.

    Raises
    ------
    InputError
        If there is no target, it has no declared values, or a table lacks a column.
    SchemaError
        If a column lacks its bounds or its list of values.

    Notes
    -----
    A class that one of the tables lacks makes both areas NaN, and a training table with one
    class makes every score NaN: a small synthetic table can lose a rare class.

    Examples
    --------
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import tstr_scores
    >>> train, schema = make_gaussian_grid(500, random_state=0)
    >>> test, _ = make_gaussian_grid(500, random_state=1)
    >>> scores = tstr_scores(train, test, schema)
    >>> scores.query("metric == 'roc_auc'")[["classifier", "score"]].round(2)
                classifier  score
    0  logistic regression    1.0
    4    gradient boosting    1.0
    8        random forest    1.0
    """
    target = schema.target if target is None else target
    columns = features(schema)
    if target is None or target not in columns or is_number(columns[target]):
        raise InputError(
            "scores need a target with declared values; name one of the schema's categorical "
            "columns as target."
        )
    label = columns.pop(target)
    classes = levels(label)
    x_train, y_train = _split(train, "training", columns, target, label)
    x_test, y_test = _split(test, "test", columns, target, label)
    absent = [
        f"class {value!r} is absent from the {role} table"
        for role, y in (("training", y_train), ("test", y_test))
        for code, value in enumerate(classes)
        if code not in y
    ]
    rows = []
    for name, classifier in (classifiers or default_classifiers(random_state)).items():
        if len(set(y_train)) < 2 or not len(y_test):
            scores, note = dict.fromkeys(METRICS, np.nan), absent[0]
        else:
            scores = _scores(classifier, x_train, y_train, x_test, y_test, len(classes))
            note = absent[0] if absent else ""
        for metric, score in scores.items():
            reason = note if np.isnan(score) else ""
            rows.append((name, metric, score, reason, PRIVACY))
    return pd.DataFrame(rows, columns=["classifier", "metric", "score", "note", "privacy"])


def _split(
    frame: Any, role: str, columns: Mapping[Any, Column], target: Any, label: Column
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Feature matrix and class codes of the rows that have a class."""
    data = table(frame, [*columns, target], role)
    blocks = []
    for name, column in columns.items():
        if is_number(column):
            values = unit_values(data[name], column)
            blocks.append(np.nan_to_num(values, nan=0.5)[:, None])
            if getattr(column, "missing", None):
                blocks.append(np.isnan(values)[:, None])
        else:
            blocks.append(codes(data[name], column)[:, None] == np.arange(len(levels(column))))
    y = codes(data[target], label)
    x = np.concatenate(blocks, axis=1, dtype=np.float64) if blocks else np.empty((len(y), 0))
    return x[y >= 0], y[y >= 0]


def _scores(
    classifier: Any,
    x_train: npt.NDArray[np.float64],
    y_train: npt.NDArray[np.int64],
    x_test: npt.NDArray[np.float64],
    y_test: npt.NDArray[np.int64],
    n_classes: int,
) -> dict[str, float]:
    # Some classifiers insist on labels 0..k-1: train on ranks of the classes that occur.
    present, ranks = np.unique(y_train, return_inverse=True)
    fitted = clone(classifier).fit(x_train, ranks)
    probability = fitted.predict_proba(x_test)
    predicted = present[probability.argmax(axis=1)]
    roc = pr = np.nan
    if len(present) == n_classes == len(np.unique(y_test)):
        positives = [1] if n_classes == 2 else range(n_classes)
        truth = [(y_test == c, probability[:, c]) for c in positives]
        roc = float(np.mean([roc_auc_score(y, p) for y, p in truth]))
        pr = float(np.mean([average_precision_score(y, p) for y, p in truth]))
    return {
        "roc_auc": roc,
        "pr_auc": pr,
        "accuracy": float(accuracy_score(y_test, predicted)),
        "f1_macro": float(f1_score(y_test, predicted, average="macro", zero_division=0)),
    }
