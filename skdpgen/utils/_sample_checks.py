"""Checks of samples."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from skdpgen.data.columns import Boolean, Categorical
from skdpgen.data.numeric_columns import Numeric
from skdpgen.data.preprocessing import TabularPreprocessor
from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError
from skdpgen.utils._check_tools import (
    N_ROWS,
    fitted_on,
    fresh,
    last_of,
    plain_table,
    quiet,
    raised,
)

__all__ = [
    "check_dtypes_come_back",
    "check_numbers_of_samples",
    "check_samples_are_inside_the_schema",
    "check_samples_follow_their_seed",
    "check_y_is_a_column_like_others",
]


def check_numbers_of_samples(name: str, estimator: Any) -> None:
    """Sample gives exactly n rows, one by default, and none for 0."""
    raised(NotFittedError, fresh(estimator).sample)
    fitted = fitted_on(estimator)
    assert len(fitted.sample()) == 1
    for n in (0, 1, 7, np.int64(5)):
        sample = fitted.sample(n)
        assert len(sample) == n, f"{name} gives {len(sample)} rows instead of {n}"
        assert sample.dtypes.equals(plain_table().dtypes)
    for wrong in (-1, 1.5, "many", True):
        raised(ValueError, fitted.sample, wrong)


def check_samples_follow_their_seed(name: str, estimator: Any) -> None:
    """An int repeats a sample, None doesn't, and a copy goes on as the original does."""
    fitted = fitted_on(estimator)
    first, again = (fitted.sample(30, random_state=3) for _ in range(2))
    assert first.equals(again), f"random_state doesn't repeat a sample of {name}"
    assert not first.equals(fitted.sample(30, random_state=4))
    assert not fitted.sample(30).equals(fitted.sample(30)), f"{name} repeats itself"
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.sample(9, random_state=1).equals(fitted.sample(9, random_state=1))


def check_samples_are_inside_the_schema(name: str, estimator: Any) -> None:
    """Bounds and values of the schema hold for samples."""
    sample = fitted_on(estimator).sample(200)
    assert sample["height"].between(0, 250).all()
    assert sample["visits"].between(0, 40).all()
    assert set(sample["color"]) <= {"red", "blue"}
    assert set(sample["label"]) <= {"no", "yes"}


def check_dtypes_come_back(name: str, estimator: Any) -> None:
    """Columns, order, dtypes and frame type of samples are those of the table."""
    for frame in _typed_frames():
        names = list(frame.columns)
        schema = Schema({column: _TYPED[column] for column in names})
        fitted = quiet(fresh(estimator, schema).fit, frame)
        for n in (0, 3):
            sample = fitted.sample(n)
            assert type(sample) is type(frame), f"{name} gives a {type(sample).__name__}"
            assert list(sample.columns) == names
            found, expected = _dtypes(sample), _dtypes(frame)
            assert found == expected, f"{name} gives {found} where {expected} was fitted"


_TYPED = {
    "number": Numeric((0, 9)),
    "whole": Numeric((0, 9), "int"),
    "flag": Boolean(),
    "word": Categorical(("a", "b")),
    "code": Categorical(("01", "02")),
}


def _dtypes(frame: Any) -> list[str]:
    return [
        "category" if str(dtype).lower().startswith("categor") else str(dtype)
        for dtype in frame.dtypes
    ]


def _typed_frames() -> Iterator[Any]:
    rng = np.random.default_rng(0)
    plain = pd.DataFrame(
        {
            "code": pd.Series(rng.choice(["01", "02"], N_ROWS).tolist(), dtype=object),
            "number": rng.uniform(0, 9, N_ROWS),
            "whole": rng.integers(0, 10, N_ROWS),
            "flag": rng.random(N_ROWS) < 0.5,
            "word": pd.Series(rng.choice(["a", "b"], N_ROWS).tolist(), dtype=object),
        }
    )
    yield plain
    yield plain.astype({"number": "float32", "whole": "uint8", "word": "string"})
    yield plain.astype({"number": "Float64", "whole": "Int64", "flag": "boolean"})
    yield plain.astype({"word": "category", "code": "string"})
    if find_spec("polars") is not None:
        import polars as pl

        frame = pl.from_pandas(plain)
        yield frame
        yield frame.cast({"whole": pl.Int16, "number": pl.Float32, "word": pl.Enum(["a", "b"])})


def check_y_is_a_column_like_others(name: str, estimator: Any) -> None:
    """After fit(X, y) a sample is (X, y), of the same classes as after fit of one table."""
    df = plain_table()
    X, y = df.drop(columns="label"), df["label"]
    unfitted = fresh(estimator)
    for _, step in unfitted.steps[:-1] if isinstance(unfitted, Pipeline) else ():
        if isinstance(step, TabularPreprocessor):
            step.set_params(exclude_target=True)
    try:
        fitted = quiet(unfitted.fit, X, y)
    except InputError:
        # Some synthesizers take the target as a column only, and say so before they read it.
        assert len(last_of(unfitted).ledger.entries) == 0
        return
    X_sample, y_sample = fitted.sample(20)
    assert X_sample.dtypes.equals(X.dtypes)
    assert (y_sample.dtype, y_sample.name) == (y.dtype, "label")
    assert set(y_sample) <= {"no", "yes"}
    whole = fitted_on(estimator)
    assert np.asarray(fitted.classes_).tolist() == np.asarray(whole.classes_).tolist()
    asked = ["yes", "no", "yes"]
    assert fitted.sample(3, y=asked)[1].tolist() == asked
    assert whole.sample(3, y=asked)["label"].tolist() == asked
