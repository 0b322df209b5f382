"""How all pictures look: colors, fonts, labels, and the only import of matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "CYCLE",
    "EDGE",
    "MISSING_HATCH",
    "MUTED",
    "REAL",
    "SYNTHETIC",
    "apart",
    "figure_and_axes",
    "head",
    "pyplot",
    "number",
    "percent",
    "quiet",
    "say",
    "short",
    "styled",
    "wrapped",
]

# Okabe and Ito's colors, which people who see red and green alike can tell apart, too.
REAL, SYNTHETIC = "#0072B2", "#E69F00"
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#F0E442", "#000000")
MUTED, EDGE = "#767676", "#4D4D4D"
MISSING_HATCH = "////"
_HEAD = 12

_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "figure.titlesize": _HEAD,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": EDGE,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "xtick.color": EDGE,
    "ytick.color": EDGE,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # Names are data: a dollar sign in one is no formula.
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
}


def pyplot() -> Any:
    """The pyplot of matplotlib, imported where a picture is drawn.

    Raises
    ------
    ImportError
        If matplotlib isn't installed, with what to do.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which isn't installed: pip install skdpgen[plot]."
        ) from error
    return plt


def styled() -> Any:
    """A context in which new figures look alike; the settings of the user stay as they are."""
    return pyplot().rc_context(_SETTINGS)


def figure_and_axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The axes that a user gave and their figure, or new ones of a size in inches."""
    if ax is not None:
        figure = ax.get_figure(root=True)
        assert figure is not None
        return figure, ax
    figure, ax = pyplot().subplots(figsize=size, layout="constrained")
    return figure, ax


def short(name: object, length: int = 24) -> str:
    """A name on one line of at most so many characters; the middle goes first.

    Examples
    --------
    >>> short("a name that is longer than its place", 20)
    'a name tha\u2026its place'
    """
    text = " ".join(str(name).split()) or "(empty)"
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - tail :]}"


def apart(names: Sequence[object], length: int = 24) -> list[str]:
    """Short names, numbered where two of them would look alike.

    Examples
    --------
    >>> apart(["aaaaaaaaaa1zzzz", "aaaaaaaaaa2zzzz", "b"], 9)
    ['1 aaa\u2026zz', '2 aaa\u2026zz', 'b']
    """
    shown = [short(name, length) for name in names]
    counts: dict[str, int] = {}
    for text in shown:
        counts[text] = counts.get(text, 0) + 1
    seen: dict[str, int] = {}
    result = []
    for name, text in zip(names, shown, strict=True):
        if counts[text] > 1:
            seen[text] = seen.get(text, 0) + 1
            number = str(seen[text])
            text = f"{number} {short(name, max(4, length - len(number) - 2))}"
        result.append(text)
    return result


def wrapped(sentence: str, inches: float, size: float = 10) -> str:
    """A sentence on lines that fit a width at a font size in points."""
    # A character of the default font is little more than half as wide as high.
    return "\n".join(textwrap.wrap(sentence, max(12, int(inches * 72 / (0.58 * size)))))


def head(figure: Figure, sentence: str, second: str = "", handles: Sequence[Any] = ()) -> None:
    """Head a figure with a sentence, perhaps a second one, and one legend for all axes."""
    width = float(figure.get_size_inches()[0]) - 0.3
    lines = wrapped(sentence, width, _HEAD)
    if second:
        lines += "\n" + wrapped(second, width, _HEAD)
    # The layout reserves a line for the legend, which it doesn't know of.
    figure.suptitle(lines + ("\n" if handles else ""), x=0.01, ha="left", linespacing=1.2)
    if handles:
        below = (8 + 1.2 * _HEAD * (lines.count("\n") + 1)) / 72 / figure.get_size_inches()[1]
        figure.legend(
            handles=list(handles),
            loc="upper left",
            bbox_to_anchor=(0.01, 1 - below),
            borderaxespad=0.0,
            borderpad=0.0,
            ncols=len(handles),
        ).set_in_layout(False)


def percent(ax: Axes, axis: str) -> None:
    """Ticks of an axis of shares, in whole percents where that is enough."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    place = ax.xaxis if axis == "x" else ax.yaxis
    top = (ax.get_xlim() if axis == "x" else ax.get_ylim())[1]
    place.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    place.set_major_formatter(PercentFormatter(1.0, decimals=0 if top > 0.04 else None))


def quiet(ax: Axes, axis: str) -> None:
    """Light lines across an axis, to read values by."""
    ax.grid(axis=axis, color="#E5E5E5", linewidth=0.8)  # type: ignore[arg-type]
    ax.tick_params(length=0)


def say(ax: Axes, sentence: str) -> None:
    """Write a sentence where a picture would be: why there is none."""
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    width = ax.get_position().width * ax.figure.get_figure(root=True).get_size_inches()[0]  # type: ignore[union-attr]
    ax.text(
        0.5,
        0.5,
        wrapped(sentence, max(1.5, 0.9 * float(width)), 9),
        ha="center",
        va="center",
        color=EDGE,
        transform=ax.transAxes,
    )


def number(value: float) -> str:
    """A number as an axis has it: few digits, thousands and millions as k and M.

    Examples
    --------
    >>> number(12500), number(1999), number(2.5e6), number(0.012345), number(-30000.0)
    ('12.5k', '1999', '2.5M', '0.0123', '-30k')
    """
    for limit, letter in ((1e6, "M"), (1e4, "k")):
        if limit <= abs(value) < 1e9:
            return f"{value / (1e6 if letter == 'M' else 1e3):.4g}{letter}"
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"
