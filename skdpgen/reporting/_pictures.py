"""Pictures as inline SVG in the colors and fonts of the page.

The colors of :mod:`skdpgen.plotting` become variables of the style sheet, so a picture follows the
light and the dark scheme. What Matplotlib wrote is parsed and written anew, without anything that
could reach out of the picture.
"""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import StringIO
from itertools import count
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..plotting._style import EDGE, MUTED, REAL, SYNTHETIC, pyplot, styled
from ._format import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Pictures"]

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_VARIABLES = {
    REAL.lower(): "var(--real)",
    SYNTHETIC.lower(): "var(--synthetic)",
    MUTED.lower(): "var(--soft)",
    EDGE.lower(): "var(--soft)",
    "#e5e5e5": "var(--line)",
    "#000000": "var(--ink)",
    "#ffffff": "var(--surface)",
}
_COLOR = re.compile("|".join(_VARIABLES))
# The fonts of the page take their place. Before Matplotlib 3.10 size and fonts are one property.
_FAMILY = re.compile(r"font-family: [^;]*(; )?")
_FONT = re.compile(r"font: [^;]*?([\d.]+px)[^;]*")
_POINTS_TO_PIXELS = 4 / 3
# In pixels.
_WIDE, _LEAST_WIDE = 600, 820

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", _LINK)


class Pictures:
    """The pictures of one page, whose ids don't clash."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def small(self, plot: Callable[[Axes], Any], size: tuple[float, float], words: str) -> Markup:
        """A picture of one pair of axes.

        Parameters
        ----------
        plot : callable
            Draws into the axes that it is given; the page says the title.
        size : (float, float)
            Width and height in inches; the page scales it.
        words : str
            What it shows, for those who can't see it.
        """
        with styled():
            figure, axes = pyplot().subplots(figsize=size, layout="constrained")
        plot(axes)
        axes.set_title("", loc="left")
        return self.whole(figure, words)

    def whole(self, figure: Figure, words: str) -> Markup:
        """The figure of a display, which is closed; title and legend are for the page to give."""
        figure.suptitle("")
        for legend in list(figure.legends):
            legend.remove()
        buffer = StringIO()
        plt = pyplot()
        try:
            with plt.rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
                # A letter that Matplotlib's own font lacks: the fonts of the page may have it.
                warnings.filterwarnings("ignore", message="(?s)Glyph .* missing from")
                figure.savefig(buffer, format="svg", metadata={"Date": None})
        finally:
            plt.close(figure)
        return self._inline(buffer.getvalue(), words)

    def _inline(self, text: str, words: str) -> Markup:
        prefix = f"p{next(self._numbers)}-"
        # The declaration and the document type, which HTML has no place for.
        text = clean(text[text.index("<svg") :])
        root = ET.fromstring(text)
        references = set(re.findall(r"#([A-Za-z][\w.-]*)", text))
        for parent in list(root.iter()):
            for child in list(parent):
                if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                    parent.remove(child)
        for element in root.iter():
            for key, value in list(element.attrib.items()):
                del element.attrib[key]
                if key == "id" and value not in references:
                    continue
                element.set(key, _tidy(key, value, prefix))
        width = float(root.get("viewBox", "0 0 1 1").split()[2])
        for key in ("width", "height", "version"):
            root.attrib.pop(key, None)
        natural = width * _POINTS_TO_PIXELS
        # On a narrow screen a wide picture scrolls, so that its texts can still be read.
        least = min(natural, _LEAST_WIDE) if natural > _WIDE else 0
        root.set("style", f"max-width:{natural:.0f}px;--least:{least:.0f}px")
        root.set("role", "img")
        root.set("aria-label", clean(words))
        return Markup(ET.tostring(root, encoding="unicode"))


def _tidy(key: str, value: str, prefix: str) -> str:
    """An attribute with the colors and fonts of the page, and ids that are its own."""
    if key == "id":
        return prefix + value
    if key == f"{{{_LINK}}}href" and value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    value = value.replace("url(#", f"url(#{prefix}")
    if key == "style":
        value = _COLOR.sub(lambda found: _VARIABLES[found[0]], value)
        value = _FAMILY.sub("", _FONT.sub(r"font-size: \1", value))
    return value
