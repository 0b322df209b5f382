"""Bounding how many rows one unit of privacy (a patient, say) contributes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError

__all__ = ["bounded_rows"]


def bounded_rows(unit_codes: npt.NDArray[np.int64], rows_per_unit: int) -> npt.NDArray[np.bool_]:
    """Which rows may contribute: the first ``rows_per_unit`` of each unit, in table order.

    Whether a row is kept depends on the rows of its own unit only, so changing all rows of one
    unit (to rows of a unit that isn't in the table) changes at most ``rows_per_unit`` contributions
    on either side.

    Parameters
    ----------
    unit_codes : ndarray of int64, shape (n,)
        Equal codes mean the same unit.
    rows_per_unit : int
        At least 1.

    Returns
    -------
    ndarray of bool, shape (n,)

    Raises
    ------
    PrivacyParameterError
        If the codes aren't a vector of integers (a NaN would be a unit of its own in every row), or
        ``rows_per_unit`` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> bounded_rows(np.array([7, 7, 3, 7]), 2).tolist()
    [True, True, True, False]
    """
    if unit_codes.ndim != 1 or not np.issubdtype(unit_codes.dtype, np.integer):
        raise PrivacyParameterError("unit codes must be a vector of integers.")
    if not rows_per_unit >= 1:
        raise PrivacyParameterError("rows_per_unit must be at least 1.")
    order = np.argsort(unit_codes, kind="stable")
    ordered = unit_codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
    keep = np.empty(len(ordered), dtype=np.bool_)
    keep[order] = rank < rows_per_unit
    return keep
