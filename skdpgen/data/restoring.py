"""Tables of computed columns, given back in the dtypes that they had."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import build_numbers, read_numbers
from .dtypes import ColumnDtype
from .frames import FrameTemplate, as_table, column_at, n_rows

__all__ = ["restored"]

_NUMBERS = ("int", "float", "bool")


def restored(table: Any, template: FrameTemplate) -> Any:
    """A table in the dtypes and the type of frame of a template.

    Parameters
    ----------
    table : DataFrame or ndarray of shape (n, k)
        Synthetic rows: dtypes and cells may be looked at.
    template : FrameTemplate
        What they shall look like.

    Returns
    -------
    DataFrame or ndarray of shape (n, k)
        Numbers are rounded and clipped to what the dtype can hold; columns of other dtypes stay
        as they are. A table with other columns than the template's comes back unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> template = FrameTemplate.from_frame(pd.DataFrame({"age": [17, 90]}))
    >>> restored(np.array([[17.9]]), template)
       age
    0   18
    """
    table = as_table(table)
    found = FrameTemplate.from_frame(table)
    names = template.names if "numpy" in (found.backend, template.backend) else found.names
    if len(names) != len(found.names) or not set(names) <= set(template.names):
        return table
    dtypes = list(found.dtypes.values())
    columns = {
        name: _cast(column_at(table, i), dtypes[i], template.dtypes[name])
        for i, name in enumerate(names)
    }
    return template.select(names).build(columns, n=n_rows(table))


def _cast(column: Any, found: ColumnDtype, dtype: ColumnDtype) -> Any:
    if found == dtype or found.family not in _NUMBERS or dtype.family not in _NUMBERS:
        return column
    values, nulls = read_numbers(column, found)
    if dtype.family == "float":
        return build_numbers(dtype, values.astype(np.float64), nulls)
    nulls = nulls | ~np.isfinite(values.astype(np.float64))
    whole = _clipped(np.where(nulls, 0, values), *dtype.limits)
    return build_numbers(dtype, whole, nulls if dtype.nullable else None)


def _clipped(values: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Rounded to integers of 64 bits within limits."""
    if values.dtype.kind == "f":
        # Integers beyond 2^53 aren't floats of their own: the largest float below is taken.
        top = float(upper) if int(float(upper)) <= upper else float(np.nextafter(upper, 0))
        values = np.clip(np.rint(values), float(lower), top)
        return values.astype(np.uint64 if lower == 0 else np.int64)
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    limits = np.iinfo(values.dtype)
    return np.clip(values, max(lower, limits.min), min(upper, limits.max))
