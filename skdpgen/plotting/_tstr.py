"""What models that learn from synthetic rows are worth on real ones, as dots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from skdpgen.exceptions import InputError
from skdpgen.plotting._style import (
    MUTED,
    REAL,
    SYNTHETIC,
    apart,
    figure_and_axes,
    head,
    pyplot,
    quiet,
    say,
    short,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from skdpgen.evaluation import TSTRResult

__all__ = ["METRICS", "TSTRDisplay"]

#: Names of metrics for people.
METRICS = {
    "roc_auc": "ROC AUC",
    "pr_auc": "average precision",
    "accuracy": "accuracy",
    "f1_macro": "F1, mean of the classes",
    "r2": "R\N{SUPERSCRIPT TWO}",
    "spearman": "rank correlation",
}


class TSTRDisplay:
    """Scores on real rows of estimators that learned from synthetic and from real ones.

    One line an estimator: the closer its two dots, the less is lost by learning from synthetic
    rows. A dashed line is chance.

    Make it with :meth:`from_result`.

    Parameters
    ----------
    scores : DataFrame
        As :attr:`skdpgen.evaluation.TSTRResult.scores`.
    target : hashable
        The column that is predicted.
    metrics : sequence of str
        The metrics that can be drawn.

    Attributes
    ----------
    axes_ : ndarray of Axes, shape (n_metrics,)
        One for each metric.
    figure_ : Figure
        The figure that holds them.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.plotting import TSTRDisplay
    >>> scores = pd.DataFrame(
    ...     [("synthetic", "forest", "roc_auc", 0.8, ""), ("real", "forest", "roc_auc", 0.9, ""),
    ...      ("chance", "chance", "roc_auc", 0.5, "")],
    ...     columns=["trained_on", "estimator", "metric", "score", "note"])
    >>> print(TSTRDisplay(scores, "income", ["roc_auc"]).summary("roc_auc"))
    Predicting income: synthetic rows teach 0.80 where real rows teach 0.90
    (ROC AUC, mean over models; chance is 0.50).
    """

    def __init__(self, scores: pd.DataFrame, target: Any, metrics: Iterable[str]) -> None:
        self.scores = scores.reset_index(drop=True)
        self.target = target
        self.metrics = tuple(metrics)

    @classmethod
    def from_result(cls, result: TSTRResult) -> Self:
        """Take the scores of a result.

        Parameters
        ----------
        result : TSTRResult
            Of :func:`skdpgen.evaluation.tstr`.

        Returns
        -------
        TSTRDisplay
        """
        return cls(result.scores, result.target, result.metrics)

    def summary(self, metric: str) -> str:
        """What the picture of a metric says, as a sentence.

        Parameters
        ----------
        metric : str
            One of :attr:`metrics`.

        Returns
        -------
        str
        """
        means = {who: self._of(metric, who).mean() for who in ("synthetic", "real", "chance")}
        name = METRICS.get(metric, metric)
        start = f"Predicting {short(self.target, 40)}: "
        if np.isnan(means["synthetic"]):
            return f"{start}synthetic rows have no score ({name})."
        end = "" if np.isnan(means["chance"]) else f"; chance is {means['chance']:z.2f}"
        real = "" if np.isnan(means["real"]) else f" where real rows teach {means['real']:z.2f}"
        return (
            f"{start}synthetic rows teach {means['synthetic']:z.2f}{real} "
            f"({name}, mean over models{end})."
        )

    def plot(self, ax: Axes | None = None, *, metrics: Iterable[str] | None = None) -> Self:
        """Draw one panel of dots a metric.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw a single metric. None makes a figure.
        metrics : iterable of str, default=None
            Which metrics. None: the first two, or with ``ax`` the first.

        Returns
        -------
        self : TSTRDisplay

        Raises
        ------
        InputError
            If a metric has no scores, or ``ax`` is given for several metrics.
        """
        chosen = list(self.metrics[: 1 if ax is not None else 2] if metrics is None else metrics)
        unknown = [metric for metric in chosen if metric not in self.metrics]
        if unknown or not chosen:
            raise InputError(f"metrics must be among {', '.join(self.metrics)}; got {chosen!r}.")
        if ax is not None and len(chosen) > 1:
            raise InputError("ax holds one metric: choose it with metrics=[name], or give no ax.")
        estimators = list(
            self.scores.loc[self.scores["trained_on"] != "chance", "estimator"].unique()
        )
        height = 1.7 + 0.32 * max(1, len(estimators))
        with styled():
            if ax is not None:
                self.figure_, _ = figure_and_axes(ax, (4.0, height))
                self.axes_ = np.array([ax])
            else:
                self.figure_, axes = pyplot().subplots(
                    1,
                    len(chosen),
                    figsize=(2.0 + 3.6 * len(chosen), height),
                    sharey=True,
                    squeeze=False,
                    layout="constrained",
                )
                self.axes_ = axes.ravel()
                head(self.figure_, self.summary(chosen[0]), handles=self._handles())
            for axes, metric in zip(self.axes_, chosen, strict=True):
                self._draw(axes, metric, estimators)
        return self

    def _of(self, metric: str, trained_on: str) -> pd.Series[float]:
        chosen = (self.scores["metric"] == metric) & (self.scores["trained_on"] == trained_on)
        found: pd.Series[float] = self.scores[chosen].set_index("estimator")["score"]
        return found

    def _handles(self) -> list[Any]:
        from matplotlib.lines import Line2D

        look: dict[str, Any] = {"linestyle": "none", "markersize": 7}
        handles = [Line2D([], [], marker="o", color=SYNTHETIC, label="synthetic rows", **look)]
        who = set(self.scores["trained_on"])
        if "real" in who:
            handles.append(Line2D([], [], marker="D", color=REAL, label="real rows", **look))
        if "chance" in who:
            handles.append(Line2D([], [], color=MUTED, linestyle="--", label="chance"))
        return handles

    def _draw(self, ax: Axes, metric: str, estimators: list[str]) -> None:
        synthetic, real = (
            self._of(metric, who).reindex(estimators).to_numpy(dtype=float)
            for who in ("synthetic", "real")
        )
        chance = self._of(metric, "chance").dropna()
        known = np.concatenate([synthetic, real, chance.to_numpy(dtype=float)])
        known = known[np.isfinite(known)]
        if not known.size:
            reasons = self.scores.loc[self.scores["metric"] == metric, "note"]
            say(ax, f"No score: {next((r for r in reasons if r), 'no estimator has one')}.")
            return
        rows = np.arange(len(estimators))
        ax.hlines(rows, synthetic, real, color="#CFCFCF", linewidth=3, zorder=1)
        ax.scatter(real, rows, s=45, color=REAL, marker="D", zorder=3)
        ax.scatter(synthetic, rows, s=50, color=SYNTHETIC, zorder=4)
        for value in chance:
            ax.axvline(value, color=MUTED, linestyle="--", linewidth=1.2)
        low, high = float(known.min()), float(known.max())
        room = 0.06 * max(high - low, 0.05)
        ax.set_xlim(low - room, max(high + room, min(1.0, high + 2 * room)))
        for row in rows[np.isnan(synthetic)]:
            ax.annotate(
                "no score", (0.02, row), xycoords=("axes fraction", "data"), va="center",
                color=MUTED, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )  # fmt: skip
        ax.set_yticks(rows, apart([name.replace("_", " ") for name in estimators], 28))
        ax.set_ylim(len(estimators) - 0.4, -0.6)
        ax.set_xlabel(f"{METRICS.get(metric, metric)} on real rows (1 is perfect)")
        ax.spines["left"].set_visible(False)
        quiet(ax, "x")
