"""Which atoms a column has: values of its own for few, a grid of bins for many.

The grid is half evenly spaced, half even in ``sign(x) log(1 + |x|)``: the first half serves
numbers that fill their bounds, the second one long tails and bounds that are far too wide, and
nobody has to know which it is. A declared log scale is evenly spaced on that scale.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np

from ..atoms import AtomColumn, AtomLayout
from .encoder_base import ColumnEncoder
from .scaled import RealEncoder, ScaledEncoder, WholeEncoder
from .scaling import offsets_to_unit, reals_to_unit, unit_to_offsets, unit_to_reals
from .times import TimeEncoder

__all__ = ["atom_layout"]

# The logarithmic half of a grid of reals resolves this fraction of the bounds around zero.
_FINEST = 2.0**-14


def atom_layout(encoders: Iterable[ColumnEncoder], n_bins: int) -> AtomLayout:
    """The atoms of encoded rows.

    Parameters
    ----------
    encoders : iterable of ColumnEncoder
        In the order of the encoded features.
    n_bins : int
        Most atoms of a number, at least 4. Whole numbers with fewer values have one each; reals
        have up to three more, their bounds and zero.

    Returns
    -------
    AtomLayout
        Columns with a single atom are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.data import Numeric
    >>> from skdpgen.data.encoders import make_encoder
    >>> age = make_encoder(Numeric((17, 90), "int"), pd.Series([33]))
    >>> atom_layout([age], n_bins=128).n_codes
    (74,)
    """
    columns: list[AtomColumn] = []
    width = 0
    for encoder in encoders:
        group = None
        if encoder.groups:
            group = (width + encoder.groups[0][0], width + encoder.groups[0][1])
        if isinstance(encoder, ScaledEncoder) and not encoder.is_constant:
            lower, upper, steps = _atoms(encoder, n_bins)
            column = AtomColumn(width, group, tuple(lower), tuple(upper), tuple(steps))
            if column.n_codes > 1:
                columns.append(column)
        elif group is not None:
            columns.append(AtomColumn(None, group))
        width += encoder.width
    return AtomLayout(tuple(columns), width)


def _atoms(encoder: ScaledEncoder, n_bins: int) -> tuple[list[float], list[float], list[int]]:
    if isinstance(encoder, RealEncoder):
        return _real_atoms(encoder, n_bins)
    # Whole numbers, times and ranks: offsets 0 .. span, of which a narrow dtype may hold fewer.
    span, (least, most) = encoder.span, encoder.allowed
    log = isinstance(encoder, WholeEncoder) and encoder.column.scale == "log1p"
    if most - least < n_bins:
        starts = np.arange(least, most + 1)
    else:
        if isinstance(encoder, TimeEncoder) or log:
            ends = offsets_to_unit(np.array([least, most]), span, log)
            even = np.linspace(ends[0], ends[1], n_bins + 1)
            edges = unit_to_offsets(even, span, log).astype(np.float64)
        else:
            zero = (
                min(max(-encoder.lower, least), most)
                if isinstance(encoder, WholeEncoder)
                else least
            )
            edges = _hybrid(float(least), float(most), float(zero), 1.0, n_bins)
            # An edge between two whole numbers belongs to the one above.
            edges = np.ceil(edges - 0.5)
        starts = np.unique(np.clip(edges, least, most)).astype(np.int64)
        # A sentinel such as 999 is often the upper bound: both ends are atoms of their own.
        starts = np.unique(np.append(starts, [least, least + 1, most]))
    ends = np.append(starts[1:] - 1, most)
    lower = offsets_to_unit(starts, span, log)
    upper = offsets_to_unit(ends, span, log)
    # A step of many values is as good as continuous; below, each has the same probability.
    counts = ends - starts + 1
    steps = np.where((counts < 2**31) & ((counts == 1) | (not log)), counts, 0)
    return lower.tolist(), upper.tolist(), steps.tolist()


def _real_atoms(encoder: RealEncoder, n_bins: int) -> tuple[list[float], list[float], list[int]]:
    low, high = map(float, encoder.allowed)
    log = encoder.column.scale == "log1p"
    bounds = encoder.lower, encoder.upper

    def scaled(values: np.ndarray) -> np.ndarray:
        return reals_to_unit(values, *bounds, log)

    if log:
        ends = scaled(np.array([low, high]))
        edges = unit_to_reals(np.linspace(ends[0], ends[1], n_bins + 1), *bounds, log)
    else:
        zero = min(max(0.0, low), high)
        # Bounds may be so close that this fraction of them is no float.
        unit = max((high - low) * _FINEST, math.ulp(0.0))
        edges = _hybrid(low, high, zero, unit, n_bins)
    points = np.unique(scaled(np.array([low, *([0.0] if low < 0 < high else []), high])))
    inner = np.setdiff1d(scaled(np.clip(edges, low, high)), points)
    # Intervals between neighboring edges, without the points, which are atoms of their own.
    lower, upper, steps = [], [], []
    edges = np.sort(np.concatenate([points, inner]))
    for left, right in itertools.pairwise(edges.tolist()):
        if left in points:
            lower.append(left)
            upper.append(left)
            steps.append(1)
        start = math.nextafter(left, 1.0) if left in points else left
        stop = math.nextafter(right, 0.0)
        if start < stop:
            lower.append(start)
            upper.append(stop)
            steps.append(0)
    lower.append(edges[-1])
    upper.append(edges[-1])
    steps.append(1)
    return [float(x) for x in lower], [float(x) for x in upper], steps


def _hybrid(low: float, high: float, zero: float, unit: float, n_bins: int) -> np.ndarray:
    """Edges, half of them even, half even in the signed logarithm around ``zero``."""
    half = max(1, n_bins // 2)
    even = np.linspace(low, high, half + 1)
    ends = [math.copysign(math.log1p(abs(x - zero) / unit), x - zero) for x in (low, high)]
    logs = np.linspace(ends[0], ends[1], n_bins - half + 1)
    signed = zero + np.sign(logs) * unit * np.expm1(np.abs(logs))
    return np.unique(np.clip(np.concatenate([even, signed]), low, high))
