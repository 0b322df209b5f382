"""Bounding how many rows one unit of privacy (a patient, say) contributes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["bounded_rows"]


def bounded_rows(unit_codes: npt.NDArray[np.int64], rows_per_unit: int) -> npt.NDArray[np.bool_]:
    """Which rows may contribute: the first ``rows_per_unit`` of each unit, in table order.

    Whether a row is kept depends on the rows of its own unit only, so changing all rows of one
    unit changes at most ``rows_per_unit`` contributions on either side.

    Parameters
    ----------
    unit_codes : ndarray of int64, shape (n,)
        Equal codes mean the same unit.
    rows_per_unit : int
        At least 1.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> bounded_rows(np.array([7, 7, 3, 7]), 2).tolist()
    [True, True, True, False]
    """
    order = np.argsort(unit_codes, kind="stable")
    ordered = unit_codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
    keep = np.empty(len(ordered), dtype=np.bool_)
    keep[order] = rank < rows_per_unit
    return keep
