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


def set_style(gallery_conf, fname):
    """Set the style before each example."""
    matplotlib.rcdefaults()
    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
