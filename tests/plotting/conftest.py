"""Pictures without a screen, closed after each test, and a look at whether texts overlap."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import matplotlib
import pytest
from matplotlib.transforms import Bbox

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No figure of one test is left for the next."""
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def overlaps() -> Callable[[Any], list[tuple[str, str]]]:
    """Pairs of texts of a figure that overlap once it is drawn, and texts outside of it."""

    def extent(text: Any, renderer: Any) -> Any:
        box = text.get_window_extent(renderer)
        lines = text.get_text().split("\n")
        if len(lines) > 1 and not lines[-1]:  # an empty last line is room for a legend
            box = Bbox.from_extents(box.x0, box.y0 + box.height / len(lines), box.x1, box.y1)
        return box

    def find(figure: Any) -> list[tuple[str, str]]:
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        boxes = []
        for ax in figure.axes:
            for axis in (ax.xaxis, ax.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
                boxes += [t for place, t in ticks if low <= place <= high]
                boxes.append(axis.label)
            boxes += [ax.title, ax._left_title, *ax.texts]
        boxes += [figure._suptitle, *(t for box in figure.legends for t in box.get_texts())]
        texts = [t for t in boxes if t is not None and t.get_visible() and t.get_text().strip()]
        found = []
        extents = {text: extent(text, renderer) for text in texts}
        for a, b in combinations(texts, 2):
            if extents[a].padded(-1).overlaps(extents[b].padded(-1)):
                found.append((a.get_text(), b.get_text()))
        whole = figure.bbox.padded(1)
        for text, box in extents.items():
            if not (whole.contains(*box.min) and whole.contains(*box.max)):
                found.append((text.get_text(), "the edge"))
        return found

    return find
