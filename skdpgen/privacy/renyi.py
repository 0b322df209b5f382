"""Renyi curves: among which orders a total is optimized, and what an order costs in epsilon."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RENYI_ORDERS", "renyi_conversion"]

#: Renyi orders among which a total is optimized.
RENYI_ORDERS: tuple[float, ...] = tuple((1 + np.logspace(-2, 5, 701)).tolist())

# Half of the slack in delta that calibration keeps; the other half is for what formulas leave out.
_SLACK = 5e-9


def renyi_conversion(order: float, delta: float) -> float:
    """What is added to a Renyi divergence to give epsilon (arXiv 2004.00010, Prop. 12).

    Parameters
    ----------
    order : float
        Above 1.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(5.0 * 0.25**2 / 2 + renyi_conversion(5.0, 1e-5), 4)
    2.409
    """
    delta *= 1 - _SLACK
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
