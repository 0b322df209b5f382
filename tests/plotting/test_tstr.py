"""Dots for each estimator: the scores, chance, and words for what has no score."""

import numpy as np
import pandas as pd
import pytest

from skdpgen.exceptions import InputError
from skdpgen.plotting import TSTRDisplay

METRICS = ("roc_auc", "pr_auc", "accuracy", "f1_macro")


def scores(n_estimators=3, real=True, missing=()):
    rng = np.random.default_rng(0)
    rows = []
    for metric in METRICS:
        for i in range(n_estimators):
            name = f"estimator_{i}"
            value = np.nan if name in missing else rng.uniform(0.6, 0.9)
            note = "only one class" if name in missing else ""
            rows.append(("synthetic", name, metric, value, note))
            if real:
                rows.append(("real", name, metric, rng.uniform(0.7, 0.95), ""))
        rows.append(("chance", "chance", metric, 0.5, ""))
    return pd.DataFrame(rows, columns=["trained_on", "estimator", "metric", "score", "note"])


@pytest.mark.parametrize("n", [1, 3, 12])
@pytest.mark.parametrize("metrics", [None, METRICS[:1], METRICS])
def test_pictures_can_be_read(n, metrics, overlaps):
    display = TSTRDisplay(scores(n), "income", METRICS).plot(metrics=metrics)
    assert len(display.axes_) == (2 if metrics is None else len(metrics))
    assert overlaps(display.figure_) == []


def test_dots_are_where_the_scores_are():
    table = scores(2)
    (ax,) = TSTRDisplay(table, "income", METRICS).plot(metrics=["accuracy"]).axes_
    real, synthetic = (points.get_offsets() for points in ax.collections[1:])
    wide = table[table["metric"] == "accuracy"].set_index(["trained_on", "estimator"])["score"]
    assert synthetic[:, 0].tolist() == wide["synthetic"].tolist()
    assert real[:, 0].tolist() == wide["real"].tolist()
    assert ax.lines[0].get_xdata() == [0.5, 0.5]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["estimator 0", "estimator 1"]


def test_the_title_is_a_sentence():
    table = pd.DataFrame(
        [("synthetic", "a", "r2", -0.001, ""), ("chance", "chance", "r2", -0.004, "")],
        columns=["trained_on", "estimator", "metric", "score", "note"],
    )
    display = TSTRDisplay(table, "age", ["r2"])
    assert display.summary("r2") == (
        "Predicting age: synthetic rows teach 0.00 (R\u00b2, mean over models; chance is 0.00)."
    )
    legend = display.plot().figure_.legends[0].get_texts()
    assert [text.get_text() for text in legend] == ["synthetic rows", "chance"]


def test_what_has_no_score_says_so():
    (ax,) = (
        TSTRDisplay(scores(missing={"estimator_1"}), "y", METRICS).plot(metrics=["f1_macro"]).axes_
    )
    assert [t.get_text() for t in ax.texts] == ["no score"]
    nothing = scores().assign(score=np.nan, note="only one class")
    display = TSTRDisplay(nothing, "y", METRICS).plot()
    assert "No score: only one" in display.axes_[0].texts[0].get_text()
    assert "have no score" in display.figure_.get_suptitle()


def test_metrics_and_axes_are_checked():
    from matplotlib import pyplot as plt

    display = TSTRDisplay(scores(), "y", METRICS)
    for wrong in (["recall"], []):
        with pytest.raises(InputError, match="metrics must be among roc_auc"):
            display.plot(metrics=wrong)
    figure, ax = plt.subplots()
    with pytest.raises(InputError, match="ax holds one metric"):
        display.plot(ax, metrics=METRICS)
    assert display.plot(ax).figure_ is figure
    assert display.axes_.tolist() == [ax]
