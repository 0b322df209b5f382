"""Results as JSON types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A value as JSON types: NaN as None, tables as lists of records, names as they are or texts.

    Examples
    --------
    >>> import pandas as pd
    >>> plain(pd.DataFrame({"columns": [("a", 1)], "distance": [float("nan")]}))
    [{'columns': ['a', 1], 'distance': None}]
    """
    if isinstance(value, pd.DataFrame):
        return [plain(record) for record in value.to_dict("records")]
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
