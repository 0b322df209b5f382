"""Every column of a synthetic table beside the real one, in small pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from skdpgen.evaluation._columns import facts, table
from skdpgen.exceptions import InputError
from skdpgen.plotting._shares import Marginal, marginal_of
from skdpgen.plotting._style import (
    EDGE,
    MISSING_HATCH,
    MUTED,
    REAL,
    SYNTHETIC,
    apart,
    figure_and_axes,
    head,
    number,
    percent,
    pyplot,
    quiet,
    say,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from skdpgen.data.schema import Schema

__all__ = ["MarginalsDisplay"]

_MOST_PANELS = 60
_PANEL = (3.3, 2.3)
# Room for the bar of missing values, in widths of the histogram.
_GAP, _BAR = 0.05, 0.06
_TICKS_APART = 0.16
# Characters that fit above a panel.
_TITLE = 28


class MarginalsDisplay:
    """Shares of every column, synthetic beside real: bars for categories, histograms for numbers.

    Categories are drawn most common first, long lists cut to the most common values and one bar
    for all others; values with an order keep it. Numbers are drawn where there are any, whole ones
    in bins of whole numbers, on a logarithmic axis where the schema has one. Missing values have a
    hatched bar of their own.

    Make it with :meth:`from_tables`.

    Parameters
    ----------
    marginals : sequence of Marginal
        What is drawn, a column each.
    left_out : mapping of name to str, default=None
        Why other columns are not.
    reads : str, default=""
        Which private rows were read.

    Attributes
    ----------
    axes_ : ndarray of Axes, shape (n_columns,)
        One for each column, in order.
    figure_ : Figure
        The figure that holds them.

    See Also
    --------
    skdpgen.evaluation.fidelity : The same as numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.plotting import MarginalsDisplay
    >>> real = pd.DataFrame({"age": [20, 30, 30, 50] * 9, "sex": ["f", "m", "m", None] * 9})
    >>> synthetic = pd.DataFrame({"age": [20, 20, 30, 40], "sex": ["m", "m", None, "f"]})
    >>> display = MarginalsDisplay.from_tables(synthetic, real)
    >>> [(m.name, m.labels, m.real.tolist()) for m in display.marginals]
    [('age', ('20', '30', '50'), [0.25, 0.5, 0.25]), ('sex', ('m', 'f'), [0.5, 0.25])]
    >>> [ax.get_title(loc="left") for ax in display.plot().axes_]
    ['age', 'sex']
    """

    def __init__(
        self,
        marginals: Iterable[Marginal],
        *,
        left_out: dict[Any, str] | None = None,
        reads: str = "",
    ) -> None:
        self.marginals = tuple(marginals)
        self.left_out = dict(left_out or {})
        self.reads = reads

    @classmethod
    def from_tables(
        cls,
        synthetic: Any,
        real: Any = None,
        *,
        schema: Schema | None = None,
        columns: Iterable[Any] | None = None,
    ) -> Self:
        """Count what is to be drawn.

        Parameters
        ----------
        synthetic : DataFrame
            pandas or polars table.
        real : DataFrame, default=None
            Real rows to compare with. Their shares are exact: no epsilon covers the picture then.
        schema : Schema, default=None
            Column facts; id and text columns are left out. None reads them off the real rows, or
            off the synthetic ones where there are no real ones.
        columns : iterable of names, default=None
            Which columns, in this order. None takes all, but at most the first 60.

        Returns
        -------
        MarginalsDisplay

        Raises
        ------
        InputError
            If a table lacks a column, or a name in ``columns`` can't be drawn.
        SchemaError
            If a column of the schema lacks its bounds or its list of values.
        """
        known = facts(schema, [synthetic if real is None else real], {"synthetic": synthetic})
        chosen, left_out = dict(known.columns), dict(known.left_out)
        if columns is not None:
            names = list(columns)
            for name in names:
                if name not in chosen:
                    reason = left_out.get(name, "no table has it")
                    raise InputError(f"column {name!r} can't be drawn: {reason}.")
            chosen = {name: chosen[name] for name in names}
        elif len(chosen) > _MOST_PANELS:
            rest = list(chosen)[_MOST_PANELS:]
            left_out.update(dict.fromkeys(rest, f"only the first {_MOST_PANELS} are drawn"))
            chosen = {name: chosen[name] for name in list(chosen)[:_MOST_PANELS]}
        names = list(chosen)
        a = table(synthetic, names, "synthetic")
        b = None if real is None else table(real, names, "real")
        marginals = [
            marginal_of(
                name,
                column,
                a.iloc[:, i],
                None if b is None else b.iloc[:, i],
                declared=schema is not None,
            )
            for i, (name, column) in enumerate(chosen.items())
        ]
        reads = ""
        if real is not None:
            reads = "The real shares are exact: no epsilon covers this picture."
        return cls(marginals, left_out=left_out, reads=reads)

    def plot(self, ax: Axes | None = None, *, n_columns: int | None = None) -> Self:
        """Draw one small picture a column.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw, for a display of a single column. None makes a figure.
        n_columns : int, default=None
            Pictures in a row. None: 3, or fewer where there are fewer.

        Returns
        -------
        self : MarginalsDisplay

        Raises
        ------
        InputError
            If ``ax`` is given for several columns.
        """
        if ax is not None and len(self.marginals) != 1:
            raise InputError("ax holds one column: choose it with columns=[name], or give no ax.")
        with styled():
            if ax is not None:
                self.figure_, _ = figure_and_axes(ax, _PANEL)
                self.axes_ = np.array([ax])
            else:
                self._make_axes(n_columns)
            names = apart([m.name for m in self.marginals], _TITLE)
            for axes, marginal, name in zip(self.axes_, self.marginals, names, strict=False):
                _draw(axes, marginal)
                axes.set_title(name)
        return self

    def _make_axes(self, n_columns: int | None) -> None:
        plt = pyplot()
        n = max(1, len(self.marginals))
        across = min(n, n_columns or (2 if n in (2, 4) else 3))
        down = -(-n // across)
        size = max(5.0, _PANEL[0] * across), 0.9 + _PANEL[1] * down
        self.figure_, grid = plt.subplots(
            down, across, figsize=size, squeeze=False, layout="constrained"
        )
        self.axes_ = grid.ravel()[:n]
        for unused in grid.ravel()[n:]:
            unused.remove()
        if not self.marginals:
            say(self.axes_[0], "No column can be drawn: all are ids, texts or empty.")
        both = any(m.real is not None for m in self.marginals)
        whose = "in the synthetic and in the real rows" if both else "in the synthetic rows"
        sentence = f"How often each value occurs, {whose}."
        head(self.figure_, sentence, self.reads, _handles(self.marginals) if self.marginals else ())


def _handles(marginals: tuple[Marginal, ...]) -> list[Any]:
    from matplotlib.patches import Patch

    handles = [Patch(color=SYNTHETIC, label="synthetic")]
    if any(m.real is not None for m in marginals):
        handles.append(Patch(color=REAL, label="real"))
    if any(m.missing is not None for m in marginals):
        label = " or ".join(dict.fromkeys(m.missing_label for m in marginals if m.missing))
        handles.append(Patch(facecolor="white", edgecolor=EDGE, hatch=MISSING_HATCH, label=label))
    return handles


def _draw(ax: Axes, marginal: Marginal) -> None:
    if np.isnan(marginal.synthetic).all() and (
        marginal.real is None or np.isnan(marginal.real).all()
    ):
        say(ax, "no rows")
    elif marginal.kind == "bars":
        _draw_bars(ax, marginal)
    else:
        _draw_histogram(ax, marginal)


def _draw_bars(ax: Axes, marginal: Marginal) -> None:
    n = len(marginal.labels)
    rows = np.arange(n, dtype=float)
    height = 0.38 if marginal.real is not None else 0.7
    shift = height / 2 if marginal.real is not None else 0.0
    ax.barh(rows - shift, marginal.synthetic, height, color=SYNTHETIC)
    if marginal.real is not None:
        ax.barh(rows + shift, marginal.real, height, color=REAL)
    labels = apart(marginal.labels, 18)
    if marginal.missing is not None:
        for share, sign, color in _missing_bars(marginal):
            ax.barh(
                n + sign * shift, share, height, color="white", edgecolor=color, hatch=MISSING_HATCH
            )
        labels.append(marginal.missing_label)
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    # Room on the right: a bar that ends at the edge looks cut off.
    ax.set_xlim(0, 1.05 * max(ax.dataLim.x1, 0.01))
    percent(ax, "x")
    ax.spines["bottom"].set_visible(False)
    quiet(ax, "x")


def _missing_bars(marginal: Marginal) -> list[tuple[float, int, str]]:
    """Share, side and color of the bars of missing values."""
    assert marginal.missing is not None
    synthetic, real = marginal.missing
    bars = [(synthetic, -1, SYNTHETIC)]
    return bars if marginal.real is None else [*bars, (real, 1, REAL)]


def _draw_histogram(ax: Axes, marginal: Marginal) -> None:
    places = _placed(marginal.edges, marginal)
    if marginal.real is not None:
        ax.stairs(marginal.real, places, fill=True, color=REAL, alpha=0.55)
        ax.stairs(marginal.synthetic, places, color=SYNTHETIC, linewidth=2)
    else:
        ax.stairs(marginal.synthetic, places, fill=True, color=SYNTHETIC)
    left, right = float(places[0]), float(places[-1])
    width = right - left
    _set_ticks(ax, marginal, left, right)
    if marginal.missing is not None:
        bar = _BAR * width
        center = right + (_GAP + _BAR) * width
        for share, sign, color in _missing_bars(marginal):
            ax.bar(
                center + sign * bar / 2 * (marginal.real is not None),
                share,
                bar,
                color="white",
                edgecolor=color,
                hatch=MISSING_HATCH,
            )
        right = center + 1.5 * bar
    ax.set_xlim(left - 0.02 * width, right + 0.02 * width)
    ax.set_ylim(bottom=0)
    percent(ax, "y")
    ax.spines["left"].set_visible(False)
    quiet(ax, "y")


def _placed(values: npt.NDArray[np.float64], marginal: Marginal) -> npt.NDArray[np.float64]:
    """Where numbers are drawn: on a logarithmic axis by log(1 + distance to the first edge)."""
    if not marginal.log:
        return values
    # The first edge of whole numbers is half a step below the smallest.
    start = marginal.edges[0] + 0.5 * marginal.whole
    return np.asarray(np.log1p(np.maximum(values - start, -0.5)))


def _set_ticks(ax: Axes, marginal: Marginal, left: float, right: float) -> None:
    """Few ticks, none of them below the bar of missing values."""
    from matplotlib.ticker import MaxNLocator

    if marginal.kind == "dates":
        ax.set_xticks(*_date_ticks(ax, left, right, single=len(marginal.edges) == 2))
        return
    if marginal.log:
        values = _log_ticks(marginal)
    else:
        values = np.asarray(MaxNLocator(4, integer=marginal.whole).tick_values(left, right))
    values = values[(values >= marginal.edges[0]) & (values <= marginal.edges[-1])]
    if len(marginal.edges) == 2 or not len(values):
        values = np.array([(marginal.edges[0] + marginal.edges[-1]) / 2])
    places = _placed(values, marginal)
    # Labels must not touch: a logarithmic axis crowds the smallest numbers.
    kept = [0]
    for i in range(1, len(places)):
        if places[i] - places[kept[-1]] >= _TICKS_APART * (right - left):
            kept.append(i)
    ax.set_xticks(places[kept], [number(float(v)) for v in values[kept]])
    if marginal.log:
        ax.set_xlabel("logarithmic axis", color=MUTED)


def _date_ticks(
    ax: Axes, left: float, right: float, *, single: bool
) -> tuple[list[float], list[str]]:
    """A few dates; what they have in common stands below the first."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date

    if single:
        middle = (left + right) / 2
        return [middle], [num2date(middle).strftime("%Y-%m-%d")]
    locator = AutoDateLocator(minticks=2, maxticks=4)
    locator.axis = ax.xaxis
    found = locator.tick_values(num2date(left), num2date(right))
    ticks = [float(tick) for tick in found if left <= tick <= right]
    formatter = ConciseDateFormatter(locator)
    labels = formatter.format_ticks(ticks)
    if labels and formatter.get_offset():
        labels[0] += f"\n{formatter.get_offset()}"
    return ticks, labels


def _log_ticks(marginal: Marginal) -> npt.NDArray[np.float64]:
    """The smallest number and round ones above it."""
    start = float(marginal.edges[0] + 0.5 * marginal.whole)
    stop = float(marginal.edges[-1])
    if stop <= start:
        return np.array([start])
    # From zero on there is a place for 1; from larger numbers on, for round ones above.
    first = 0 if start < 1 else math.floor(math.log10(start))
    powers = 10.0 ** np.arange(first, math.floor(math.log10(max(stop, 1.0))) + 1)
    between = np.sort(np.outer(powers, [1, 2, 5]).ravel())
    found, powers = (v[(v > start) & (v <= stop)] for v in (between, powers))
    return np.array([start, *(found if len(found) <= 4 else powers[:: -(-len(powers) // 4) or 1])])
