"""One estimator, trained on one table and scored on another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    r2_score,
    roc_auc_score,
)

from ..data.columns import Column
from ._columns import codes, is_number, levels, unit_values

__all__ = ["METRICS", "Rows", "Scores", "encoded_rows", "scores_of", "without_scores"]

METRICS = {
    "classification": ("roc_auc", "pr_auc", "accuracy", "f1_macro"),
    "regression": ("r2", "spearman"),
}
"""Of each task; the first is the one to look at."""

Scores = dict[str, tuple[float, str]]
"""Score and reason by metric: the reason says why it is NaN, or what it leaves out."""


@dataclass(frozen=True)
class Rows:
    """Features (n, d) and target (n,) of the rows that have one: class codes, or 0 to 1."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[Any]


def encoded_rows(
    data: pd.DataFrame, columns: Mapping[Any, Column], target: Any, label: Column | None
) -> Rows:
    """Features and target of a table.

    Categories are one-hot, numbers stand in their bounds, missing ones in the middle with an
    indicator where values may be missing. Without a target there are no rows.
    """
    if label is None:
        return Rows(np.empty((0, 0)), np.empty(0))
    blocks = []
    for name, column in columns.items():
        if is_number(column):
            values = unit_values(data[name], column)
            blocks.append(np.nan_to_num(values, nan=0.5)[:, None])
            if getattr(column, "missing", None):
                blocks.append(np.isnan(values)[:, None])
        else:
            blocks.append(codes(data[name], column)[:, None] == np.arange(len(levels(column))))
    y: npt.NDArray[Any]
    if is_number(label):
        y = unit_values(data[target], label)
        known = ~np.isnan(y)
    else:
        y = codes(data[target], label)
        known = y >= 0
    x = np.concatenate(blocks, axis=1, dtype=np.float64) if blocks else np.empty((len(y), 0))
    return Rows(x[known], y[known])


def scores_of(
    estimator: Any, train: Rows, test: Rows, classes: list[Any] | None, roles: tuple[str, str]
) -> Scores:
    """Scores of an estimator by metric; NaN and a reason where there is none.

    Parameters
    ----------
    estimator : estimator
        Cloned.
    train, test : Rows
        What to learn from and what to be tested on.
    classes : list or None
        Declared values of the target; None for a number.
    roles : (str, str)
        What the tables are called in a reason.

    Returns
    -------
    dict of str to (float, str)
        Score and note of each metric of the task.
    """
    metrics = METRICS["regression" if classes is None else "classification"]
    for rows, role in zip((train, test), roles, strict=True):
        if not len(rows.y):
            return without_scores(metrics, f"no row of the {role} table has a known target")
    if not train.x.shape[1]:
        return without_scores(metrics, "there is no column to learn from")
    with warnings.catch_warnings():
        # Convergence and the like: a warning of a library may quote what it saw.
        warnings.simplefilter("ignore")
        try:
            if classes is None:
                return _regression(estimator, train, test)
            return _classification(estimator, train, test, classes, roles)
        except Exception as error:
            # Odd tables break estimators in many ways; the text of an error may quote cells.
            return without_scores(metrics, f"the estimator failed with {type(error).__name__}")


def without_scores(metrics: tuple[str, ...], reason: str) -> Scores:
    """NaN and the reason for each metric."""
    return dict.fromkeys(metrics, (np.nan, reason))


def _regression(estimator: Any, train: Rows, test: Rows) -> Scores:
    predicted = np.asarray(clone(estimator).fit(train.x, train.y).predict(test.x), dtype=float)
    if len(set(test.y)) < 2:
        return without_scores(
            METRICS["regression"], "the target has one value only in the test table"
        )
    rank = (np.nan, "the same prediction for all rows has no rank correlation")
    if np.ptp(predicted) > 0:
        rank = (float(spearmanr(test.y, predicted).statistic), "")
    return {"r2": (float(r2_score(test.y, predicted)), ""), "spearman": rank}


def _classification(
    estimator: Any, train: Rows, test: Rows, classes: list[Any], roles: tuple[str, str]
) -> Scores:
    # Some classifiers insist on labels 0..k-1: train on ranks of the classes that occur.
    present, ranks = np.unique(train.y, return_inverse=True)
    if len(present) < 2:
        only = f"{classes[present[0]]!r} is the only class in the {roles[0]} table"
        return without_scores(METRICS["classification"], only)
    fitted = clone(estimator).fit(train.x, ranks)
    predicted = present[np.asarray(fitted.predict(test.x), dtype=np.int64)]
    return {
        **_areas(_class_scores(fitted, test.x), present, test.y, classes, roles),
        "accuracy": (float(accuracy_score(test.y, predicted)), ""),
        "f1_macro": (
            float(f1_score(test.y, predicted, average="macro", zero_division=0)),
            "",
        ),
    }


def _class_scores(fitted: Any, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """One column of scores a class, larger for a likelier one; None if there are none."""
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(x), dtype=float)
    if not hasattr(fitted, "decision_function"):
        return None
    found = np.asarray(fitted.decision_function(x), dtype=float)
    return np.stack([-found, found], axis=1) if found.ndim == 1 else found


def _areas(
    scores: npt.NDArray[np.float64] | None,
    present: npt.NDArray[np.int64],
    y: npt.NDArray[np.int64],
    classes: list[Any],
    roles: tuple[str, str],
) -> Scores:
    metrics = ("roc_auc", "pr_auc")
    tested = np.unique(y)
    if scores is None:
        return without_scores(
            metrics, "the estimator has neither predict_proba nor decision_function"
        )
    if len(tested) < 2:
        return without_scores(
            metrics, f"{classes[tested[0]]!r} is the only class in the {roles[1]} table"
        )
    for code in tested:
        if code not in present:
            reason = f"class {classes[code]!r} is absent from the {roles[0]} table"
            return without_scores(metrics, reason)
    # Of two classes the last declared one; a declared class without test rows has no area.
    positives = tested[-1:] if len(classes) == 2 else tested
    column = {code: scores[:, position] for position, code in enumerate(present)}
    truth = [(y == code, column[code]) for code in positives]
    left_out = [repr(classes[code]) for code in range(len(classes)) if code not in tested]
    note = f"mean without {', '.join(left_out)}: absent from the {roles[1]} table"
    return {
        "roc_auc": (float(np.mean([roc_auc_score(*t) for t in truth])), note if left_out else ""),
        "pr_auc": (
            float(np.mean([average_precision_score(*t) for t in truth])),
            note if left_out else "",
        ),
    }
