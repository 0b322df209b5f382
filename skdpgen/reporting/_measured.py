"""What is measured for a page, on private rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from ..data.frames import as_table
from ..evaluation import fidelity, tstr

if TYPE_CHECKING:
    from ..data.schema import Schema

__all__ = ["Measured", "as_pandas", "measure"]


@dataclass(frozen=True)
class Measured:
    """Results on private rows, None where none were given."""

    fidelity: Any = None
    tstr: Any = None
    privacy_check: Any = None

    @property
    def reads(self) -> list[str]:
        """Which private rows were read, in sentences."""
        return [result.reads for result in self._results.values()]

    @property
    def _results(self) -> dict[str, Any]:
        results = {name: getattr(self, name) for name in ("fidelity", "tstr", "privacy_check")}
        return {name: result for name, result in results.items() if result is not None}

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values."""
        return {name: result.to_dict() for name, result in self._results.items()}


def as_pandas(frame: Any) -> pd.DataFrame:
    """A table of any supported kind as pandas; columns of arrays are numbered.

    Raises
    ------
    InputError
        If it is none.
    """
    table = as_table(frame)
    if isinstance(table, np.ndarray):
        return pd.DataFrame(table)
    return nw.from_native(table, eager_only=True).to_pandas().reset_index(drop=True)


def measure(
    synthetic: pd.DataFrame,
    real: Any,
    test: Any,
    target: Hashable,
    schema: Schema | None,
    estimators: Any,
    privacy_check: Any,
    random_state: int | None,
) -> Measured:
    """Compare with the private rows that are there."""
    compared = scored = None
    if real is not None:
        compared = fidelity(synthetic, real, schema=schema, random_state=random_state)
    if target is None and schema is not None:
        target = schema.target
    if test is not None and target is not None:
        scored = tstr(
            synthetic, test, target, real, estimators, schema=schema, random_state=random_state
        )
    return Measured(compared, scored, privacy_check)
