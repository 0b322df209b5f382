"""Displays as inline SVG in the colors of the page.

Pictures are drawn in marker colors, which then become variables of the style sheet: they follow the
light and the dark scheme, and their texts use the fonts of the page. What Matplotlib wrote is
parsed and written anew, without anything that could reach out of the picture.
"""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import StringIO
from itertools import count
from typing import Any

from markupsafe import Markup

from ._format import clean

__all__ = ["Pictures"]

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_INK, _SOFT, _LINE = "#010203", "#010204", "#010205"
_COLORS = {
    _INK: "var(--ink)",
    _SOFT: "var(--soft)",
    _LINE: "var(--line)",
    "#010206": "var(--synthetic)",
}
_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _SOFT,
    "axes.titlecolor": _INK,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _SOFT,
    "ytick.labelcolor": _SOFT,
    "legend.labelcolor": _SOFT,
    "legend.frameon": False,
    "grid.color": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.02,
    "font.size": 9,
}

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", _LINK)


class Pictures:
    """Draws the pictures of one page; their ids don't clash."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def draw(self, plot: Callable[[Any], Any], size: tuple[float, float], words: str) -> Markup:
        """A picture as markup.

        Parameters
        ----------
        plot : callable
            Draws into the axes that it is given.
        size : (float, float)
            Width and height in inches; the page scales it.
        words : str
            What it shows, for those who can't see it.
        """
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        buffer = StringIO()
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            # A letter that Matplotlib's own font lacks: the fonts of the page have it.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure = Figure(figsize=size, layout="constrained")
            FigureCanvasSVG(figure)
            plot(figure.subplots())
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        return self._inline(buffer.getvalue(), words)

    def _inline(self, text: str, words: str) -> Markup:
        prefix = f"p{next(self._numbers)}-"
        root = ET.fromstring(clean(text).encode())
        references = set(re.findall(r"#([A-Za-z0-9_.-]+)", text))
        for parent in list(root.iter()):
            for child in list(parent):
                if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                    parent.remove(child)
        for element in root.iter():
            _tidy(element, prefix, references)
        root.attrib.pop("width", None), root.attrib.pop("height", None)
        box = root.get("viewBox", "0 0 1 1").split()
        root.set("style", f"max-width:{float(box[2]) * 1.3333:.0f}px")
        root.set("role", "img")
        root.set("aria-label", clean(words))
        return Markup(ET.tostring(root, encoding="unicode"))


def _tidy(element: ET.Element, prefix: str, references: set[str]) -> None:
    """Page colors and fonts, and ids that are unique on the page or gone."""
    for key, value in list(element.attrib.items()):
        if key == "id":
            if value in references:
                element.set(key, prefix + value)
            else:
                del element.attrib[key]
            continue
        if key.startswith("on"):
            del element.attrib[key]
            continue
        value = re.sub(r"url\(#", f"url(#{prefix}", value)
        if key == f"{{{_LINK}}}href" and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        if key == "style":
            for marker, variable in _COLORS.items():
                value = value.replace(marker, variable)
            value = re.sub(r"(font: [^;']*?px) [^;]*", r"\1 sans-serif", value)
        element.set(key, value)
