"""Train on synthetic, test on real (TSTR): what a synthetic table is worth for learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..exceptions import InputError
from ._columns import facts, is_number, levels, table
from ._estimators import chance_estimator, chosen_estimators
from ._learning import METRICS, encoded_rows, scores_of, without_scores
from ._plain import plain

if TYPE_CHECKING:
    from ..data.schema import Schema

__all__ = ["TSTRResult", "tstr"]


@dataclass(frozen=True, repr=False)
class TSTRResult:
    """What estimators trained on a synthetic table are worth on real rows. **Not private**.

    Made by :func:`tstr`.

    Attributes
    ----------
    scores : DataFrame
        One row a score: ``trained_on`` ("synthetic", "real" or "chance"), ``estimator``,
        ``metric``, ``score`` and ``note`` (why it is NaN, or what it leaves out).
    target : hashable
        The column that was predicted.
    task : {"classification", "regression"}
        What kind of target it is.
    metrics : tuple of str
        In order; larger is better in each.
    reads : str
        Which private rows the scores read.
    """

    scores: pd.DataFrame
    target: Any
    task: str
    metrics: tuple[str, ...]
    reads: str

    def table(self) -> pd.DataFrame:
        """One row for each estimator and table to learn from, one column a metric."""
        keys = ["trained_on", "estimator"]
        wide = self.scores.pivot(index=keys, columns="metric", values="score")
        order = pd.MultiIndex.from_frame(self.scores[keys].drop_duplicates())
        return wide.reindex(index=order, columns=list(self.metrics))

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON types; a score that is NaN becomes None."""
        return {
            "target": plain(self.target),
            "task": self.task,
            "metrics": list(self.metrics),
            "scores": plain(self.scores),
            "reads": self.reads,
        }

    def __str__(self) -> str:
        shown = self.table().to_string(float_format="{:.3f}".format, na_rep="-")
        scale = (
            "1 is perfect; the row 'chance' knows only how frequent each class is."
            if self.task == "classification"
            else "1 is perfect; the row 'chance' predicts the mean everywhere."
        )
        reasons = self.scores.loc[self.scores["note"] != "", "note"].unique()
        lines = [f"Predicting {self.target!r} on real rows, after training on ...", "", shown, ""]
        lines += [scale, *(f"Note: {reason}." for reason in reasons), self.reads]
        return "\n".join(lines)

    __repr__ = __str__


def tstr(
    synthetic: Any,
    test: Any,
    target: Any = None,
    real_train: Any = None,
    estimators: str | Mapping[str, Any] = "fast",
    *,
    schema: Schema | None = None,
    random_state: int | None = 0,
) -> TSTRResult:
    """Train estimators on a synthetic table and score them on real rows. **Not private**.

    This is the usual figure of what a synthetic table is worth. Two more make it readable: the
    same estimators trained on the real training rows, and chance, which knows only the shares of
    the classes (or the mean of the target) in the synthetic table.

    Categories are one-hot encoded over the values of the schema, and a value that it does
    not declare is ignored (all zeros); numbers and dates are placed in their bounds, a missing one
    in the middle, with an indicator where the schema says that values may be missing.

    Parameters
    ----------
    synthetic : DataFrame
        pandas or polars table to learn from.
    test : DataFrame
        Real rows that no training has seen. The scores read them and add no noise, so no epsilon
        covers the result. Rows without a value of the target are left out.
    target : hashable, default=None
        Which column to predict; the target of the schema if None. A categorical, ordinal or
        boolean one makes a classification, a number or a date a regression.
    real_train : DataFrame, default=None
        Real training rows, for comparison.
    estimators : {"fast", "paper"} or mapping of str to estimator, default="fast"
        ``"fast"``: logistic (or ridge) regression on one-hot categories and standardized numbers,
        gradient boosting of 100 trees (XGBoost where it is installed, scikit-learn's histogram
        boosting elsewhere) and a random forest of 100 trees with leaves of five rows or more.
        ``"paper"``: the twelve classifiers of [1]_ with the settings of its code for tables; its
        figures come from hard labels and can't be compared. A mapping names scikit-learn
        estimators, which are cloned.
    schema : Schema, default=None
        Column facts; id and text columns are left out. Without one, they are read off the real
        rows (the result says so) and ``target`` must be given.
    random_state : int or None, default=0
        Seed of the presets.

    Returns
    -------
    TSTRResult
        Classification: ``roc_auc`` and ``pr_auc`` (average precision) of the last declared class
        where there are two, else the mean over the classes of the test table, one against the
        rest; ``accuracy``; ``f1_macro``; all 0 to 1. Areas come from probabilities or decision
        values, not from labels. Regression: ``r2`` (1 at best, 0 for the mean of the test rows,
        without a lower end) and ``spearman``, the rank correlation (-1 to 1), which doesn't mind
        outliers. What has no score has NaN and a reason.

    Raises
    ------
    InputError
        If there is no target, a table lacks a column, or ``estimators`` is unknown.
    SchemaError
        If a column of the schema lacks its bounds or its list of values.

    Notes
    -----
    A class that the synthetic table lacks makes both areas NaN, and a training table with one
    class makes every score NaN: a small synthetic table can lose a rare class.

    References
    ----------
    .. [1] F. Harder, K. Adamczewski, M. Park, "DP-MERF: Differentially Private Mean Embeddings
       with Random Features for Practical Privacy-Preserving Data Generation", AISTATS 2021,
       arXiv 2002.11603.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.evaluation import tstr
    >>> real, schema = make_gaussian_grid(500, random_state=0)
    >>> test, _ = make_gaussian_grid(500, random_state=1)
    >>> result = tstr(
    ...     real, test, estimators={"logistic": LogisticRegression()}, schema=schema)
    >>> result.table().round(2)
    metric                roc_auc  pr_auc  accuracy  f1_macro
    trained_on estimator
    synthetic  logistic      0.99    0.97      0.73      0.68
    chance     chance        0.50    0.20      0.21      0.07
    """
    target = schema.target if target is None and schema is not None else target
    if target is None:
        raise InputError("tstr needs a target: name a column, or give a schema that has one.")
    real = {"test": test} if real_train is None else {"test": test, "real training": real_train}
    for role, frame in {"synthetic": synthetic, **real}.items():
        table(frame, [target], role, "it is the target: spell it as there")
    known = facts(schema, list(real.values()), {"synthetic": synthetic})
    columns = dict(known.columns)
    label = columns.pop(target, None)
    if label is None and schema is not None:
        reason = known.left_out.get(target, "the schema doesn't have it")
        raise InputError(f"the target {target!r} can't be predicted: {reason}.")
    task = "regression" if label is not None and is_number(label) else "classification"
    classes = None if label is None or is_number(label) else levels(label)
    models = chosen_estimators(estimators, task, random_state)
    chance = {"chance": chance_estimator(task)}
    if label is None:
        reason = known.left_out[target]
        models, chance = dict.fromkeys(models, reason), dict.fromkeys(chance, reason)
    frames = {"synthetic": synthetic, **real}
    encoded = {
        role: encoded_rows(table(frame, [*columns, target], role), columns, target, label)
        for role, frame in frames.items()
    }
    plan = [("synthetic", "synthetic", models), ("chance", "synthetic", chance)]
    if real_train is not None:
        plan.insert(1, ("real", "real training", models))
    rows = []
    for trained_on, role, candidates in plan:
        for name, model in candidates.items():
            scores = (
                without_scores(METRICS[task], model)
                if isinstance(model, str)
                else scores_of(model, encoded[role], encoded["test"], classes, (role, "test"))
            )
            rows += [(trained_on, name, metric, *found) for metric, found in scores.items()]
    names = ["trained_on", "estimator", "metric", "score", "note"]
    rows_read = "the real test rows" if real_train is None else "the real training and test rows"
    reads = f"Not private: reads {rows_read} without noise, so no epsilon covers these scores."
    return TSTRResult(
        pd.DataFrame(rows, columns=names), target, task, METRICS[task], reads + known.reads
    )
