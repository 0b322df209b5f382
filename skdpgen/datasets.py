"""Data sets for examples and benchmarks, each with its public schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from .data.schema import Schema

__all__ = ["gaussian_grid_centers", "load_fair", "make_gaussian_grid"]

_OCCUPATIONS = {
    1: "student",
    2: "farming or unskilled",
    3: "white-collar",
    4: "skilled or teaching",
    5: "managerial",
    6: "professional",
}

# Codes and categories are those of the codebook that statsmodels prints. It gives none for age,
# years of marriage and children ("interval approximations"), so their bounds are the round
# figures that anybody would write down for married women of the 1970s without seeing a row.
_FAIR: dict[str, Any] = {
    "target": "affair",
    "notes": "R. C. Fair, A Theory of Extramarital Affairs, J. Political Economy 86 (1978).",
    "columns": {
        "rate_marriage": {"kind": "ordinal", "values": [1, 2, 3, 4, 5]},
        "age": {"kind": "numeric", "bounds": [15, 50], "dtype": "float"},
        "yrs_married": {"kind": "numeric", "bounds": [0, 30], "dtype": "float"},
        "children": {"kind": "numeric", "bounds": [0, 6], "dtype": "int"},
        "religious": {"kind": "ordinal", "values": [1, 2, 3, 4]},
        "educ": {"kind": "ordinal", "values": [9, 12, 14, 16, 17, 20]},
        "occupation": {"kind": "categorical", "values": list(_OCCUPATIONS.values())},
        "occupation_husb": {"kind": "categorical", "values": list(_OCCUPATIONS.values())},
        "affair": {"kind": "label", "values": ["no", "yes"]},
    },
}


def load_fair() -> tuple[pd.DataFrame, Schema]:
    """Load Fair's survey of 6,366 married women, a table one would want to keep private.

    The data ships inside statsmodels (the ``demo`` extra). Three changes make it a table of
    plain types: ``affairs``, the time spent in extramarital affairs, becomes the label
    ``affair`` ("yes" if it is positive); the two occupations get the names of their codes; and
    codes are integers. ``children`` is rounded down: its top code, 5.5, stands for five or more.

    Returns
    -------
    frame : DataFrame of shape (6366, 9)
        ``rate_marriage`` (1 very poor .. 5 very good), ``age`` and ``yrs_married`` (years, middles
        of intervals), ``children``, ``religious`` (1 not .. 4 strongly), ``educ`` (years of
        school: 9, 12, 14, 16, 17, 20), ``occupation``, ``occupation_husb``, ``affair``.
    schema : Schema
        The codebook: bounds, codes and categories, written without looking at the rows.

    Raises
    ------
    ImportError
        If statsmodels is not installed.

    References
    ----------
    .. [1] R. C. Fair, "A Theory of Extramarital Affairs", Journal of Political Economy 86 (1),
       1978, pp. 45-61.

    Examples
    --------
    >>> from skdpgen.datasets import load_fair
    >>> frame, schema = load_fair()
    >>> frame.shape, schema.target
    ((6366, 9), 'affair')
    """
    from .data.schema import Schema

    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise ImportError("load_fair needs statsmodels: pip install 'skdpgen[demo]'.") from None
    raw = fair.load_pandas().data
    frame = pd.DataFrame(
        {
            "rate_marriage": raw["rate_marriage"].astype("int64"),
            "age": raw["age"],
            "yrs_married": raw["yrs_married"],
            "children": np.floor(raw["children"]).astype("int64"),
            "religious": raw["religious"].astype("int64"),
            "educ": raw["educ"].astype("int64"),
            "occupation": raw["occupation"].astype("int64").map(_OCCUPATIONS),
            "occupation_husb": raw["occupation_husb"].astype("int64").map(_OCCUPATIONS),
            "affair": np.where(raw["affairs"] > 0, "yes", "no"),
        }
    )
    return frame, Schema.from_dict(_FAIR)


def gaussian_grid_centers(grid: int = 5, spacing: float = 1.0) -> np.ndarray:
    """Centers of the Gaussians of :func:`make_gaussian_grid`, column by column.

    Parameters
    ----------
    grid : int, default=5
        Number of columns and of rows of the grid.
    spacing : float, default=1.0
        Distance of neighboring centers.

    Returns
    -------
    ndarray of shape (grid * grid, 2)
        The x and y of each center; the grid is centered at the origin.

    Examples
    --------
    >>> from skdpgen.datasets import gaussian_grid_centers
    >>> gaussian_grid_centers(2)
    array([[-0.5, -0.5],
           [-0.5,  0.5],
           [ 0.5, -0.5],
           [ 0.5,  0.5]])
    """
    positions = spacing * (np.arange(grid) - (grid - 1) / 2)
    return np.stack([np.repeat(positions, grid), np.tile(positions, grid)], axis=1)


def make_gaussian_grid(
    n_samples: int = 100_000,
    *,
    grid: int = 5,
    spacing: float = 1.0,
    noise: float = 0.2,
    random_state: int | np.random.Generator | None = None,
) -> tuple[pd.DataFrame, Schema]:
    """Draw the benchmark of Gaussians on a grid, labeled by the column they stand in.

    A generator that drops modes is caught here at a glance; the original DP-MERF paper [1]_ shows
    the 5 x 5 grid.

    Parameters
    ----------
    n_samples : int, default=100_000
        Number of points; every Gaussian is equally likely.
    grid : int, default=5
        Number of columns and of rows of the grid.
    spacing : float, default=1.0
        Distance of neighboring centers.
    noise : float, default=0.2
        Standard deviation of each Gaussian in each direction.
    random_state : int, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    frame : DataFrame of shape (n_samples, 3)
        ``x``, ``y`` and the integer ``label``, which is the number of the column of the grid.
    schema : Schema
        Bounds that reach five standard deviations beyond the outer centers, and the labels.

    References
    ----------
    .. [1] F. Harder, K. Adamczewski, M. Park, "DP-MERF: Differentially Private Mean Embeddings
       with Random Features for Practical Privacy-Preserving Data Generation", AISTATS 2021,
       arXiv 2002.11603.

    Examples
    --------
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> frame, schema = make_gaussian_grid(1000, random_state=0)
    >>> list(frame.columns), sorted(set(frame["label"]))
    (['x', 'y', 'label'], [0, 1, 2, 3, 4])
    """
    from .data.schema import Schema

    rng = np.random.default_rng(random_state)
    mode = rng.integers(grid * grid, size=n_samples)
    points = gaussian_grid_centers(grid, spacing)[mode]
    points = points + noise * rng.standard_normal((n_samples, 2))
    frame = pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "label": mode // grid})
    reach = spacing * (grid - 1) / 2 + 5 * noise
    axis = {"kind": "numeric", "bounds": [-reach, reach], "dtype": "float"}
    label = {"kind": "label", "values": list(range(grid))}
    schema = Schema.from_dict(
        {"target": "label", "columns": {"x": axis, "y": axis, "label": label}}
    )
    return frame, schema
