"""How the pictures of the gallery look."""

import matplotlib

STYLE = {
    "axes.grid": True,
    "axes.prop_cycle": matplotlib.cycler(
        color=["#0a7d91", "#b5542a", "#7c6a9c", "#8a8d4b", "#6b7280"]
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 110,
    "font.size": 10,
    "grid.alpha": 0.25,
    "image.cmap": "viridis",
}


# Unknown ones come last, by name.
ORDER = (
    "first_table",
    "epsilon",
    "pictures",
    "report",
    "search",
    "labels",
    "digits",
    "slices",
    "pipeline",
    "ledger",
    "small_table",
)


class ExampleOrder:
    """Sort examples from the first steps to the special cases."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        """Give the place of an example."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return ORDER.index(name) if name in ORDER else len(ORDER), name


def set_style(gallery_conf, fname):
    """Set the style before each example."""
    matplotlib.rcdefaults()
    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
