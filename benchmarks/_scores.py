"""How good a table is: what classifiers learn from it, and how far its marginals are off."""

from __future__ import annotations

from typing import Any

import pandas as pd
from _sets import Prepared
from xgboost import XGBClassifier

from skdpgen.evaluation import fidelity, tstr
from skdpgen.evaluation._estimators import chosen_estimators

# Enough for figures to three digits, and a big set takes a minute rather than an hour.
MOST_TRAINING, MOST_TEST = 30_000, 20_000
DEPTHS = (1, 3, 6)
BINARY, SEVERAL = ("roc_auc", "pr_auc"), ("accuracy", "f1_macro")
SHORT = {"logistic regression": "LR", "gradient boosting": "XGB", "random forest": "RF"}


def classifiers() -> dict[str, Any]:
    """The package's three classifiers, and boosted trees of other depths (theirs have 6)."""
    fast = chosen_estimators("fast", "classification", 0)
    found = {SHORT[name]: model for name, model in fast.items()}
    for depth in DEPTHS[:-1]:
        found[f"depth {depth}"] = XGBClassifier(
            n_estimators=100, max_depth=depth, n_jobs=1, random_state=0
        )
    return found


def metrics(prepared: Prepared) -> tuple[str, str]:
    """Areas under curves for two classes, accuracy and macro-F1 for more."""
    return BINARY if prepared.n_classes == 2 else SEVERAL


def score(table: pd.DataFrame, prepared: Prepared, *, real: bool = False) -> dict[str, float]:
    """All scores of a synthetic table, by name.

    ``LR roc_auc`` and so on: trained on at most 30,000 of its rows, tested on at most 20,000 real
    test rows. ``TV1 uniform`` and so on: mean total variation distance to the training rows over
    all one- and two-way marginals, all rows. Where the table *is* the training rows (``real``),
    the distance is that of the test rows: what fresh rows of the same kind would have.
    """
    few, test = _some(table, MOST_TRAINING), _some(prepared.test, MOST_TEST)
    kept = metrics(prepared)
    found = {}
    scores = tstr(few, test, estimators=classifiers(), schema=prepared.schema).scores
    scores = scores[scores["trained_on"] == "synthetic"]
    for row in scores[scores["metric"].isin(kept)].itertuples():
        found[f"{row.estimator} {row.metric}"] = float(row.score)
    for metric in kept:
        found[f"depth {DEPTHS[-1]} {metric}"] = found[f"XGB {metric}"]
    compared = prepared.test if real else table
    for row in fidelity(compared, prepared.train, schema=prepared.schema).summary.itertuples():
        found[f"TV{row.order} {row.binning}"] = float(row.mean)
    return found


def _some(table: pd.DataFrame, most: int) -> pd.DataFrame:
    return table if len(table) <= most else table.sample(most, random_state=0)
