"""What the checks of synthesizers share: tables, estimators fitted on them, and errors."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdpgen.data.columns import Categorical
from skdpgen.data.numeric_columns import Numeric
from skdpgen.data.preprocessing import TabularPreprocessor
from skdpgen.data.schema import Schema
from skdpgen.privacy.archive import read_archive
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.utils.canaries import base_table

__all__ = [
    "LABELED",
    "N_ROWS",
    "arrays_of",
    "fitted_on",
    "fresh",
    "last_of",
    "plain_table",
    "quiet",
    "raised",
]

N_ROWS = 41
"""Rows of all tables."""
LABELED = Schema(
    {
        "height": Numeric((0, 250)),
        "visits": Numeric((0, 40), "int"),
        "color": Categorical(("red", "blue")),
        "label": Categorical(("no", "yes")),
    },
    target="label",
)
"""The public facts about :func:`plain_table`."""


def last_of(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def fresh(estimator: Any, schema: Schema | None = LABELED, **params: Any) -> Any:
    """A clone with a schema, a ledger of its own and a seed."""
    copy = clone(estimator)
    last = last_of(copy)
    last.set_params(schema=schema, **{"ledger": PrivacyLedger(), "random_state": 0, **params})
    for _, step in copy.steps[:-1] if isinstance(copy, Pipeline) else ():
        if isinstance(step, TabularPreprocessor):
            step.set_params(schema=schema)
            last.set_params(schema=None)
    return copy


def fitted_on(estimator: Any, schema: Schema = LABELED, **params: Any) -> Any:
    table = plain_table() if schema is LABELED else base_table(N_ROWS)
    return quiet(fresh(estimator, schema, **params).fit, table)


def quiet(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    # That noise hides everything in a table of 41 rows is no news.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **keywords)


def plain_table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "height": rng.uniform(150, 200, N_ROWS),
            "visits": rng.integers(0, 41, N_ROWS),
            "color": rng.choice(["red", "blue"], N_ROWS),
            "label": rng.choice(["no", "yes"], N_ROWS),
        }
    )


def arrays_of(release: Any) -> dict[str, npt.NDArray[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "release")
        return read_archive(Path(folder) / "release")[1]


def raised(kind: type[BaseException], function: Callable[..., Any], *args: Any, **kw: Any) -> str:
    """The text of the error that a call has to raise."""
    try:
        quiet(function, *args, **kw)
    except kind as error:
        return f"{error} {error!r}"
    raise AssertionError(f"{kind.__name__} wasn't raised")
