"""Checks of what a fit leaves behind, and of what its errors say."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from skdpgen.exceptions import SchemaError
from skdpgen.utils._check_tools import (
    N_ROWS,
    arrays_of,
    fresh,
    last_of,
    quiet,
    raised,
)
from skdpgen.utils.canaries import MARK, SCHEMA, base_table, findings, marked_table, reachable

__all__ = [
    "check_bad_input_is_refused",
    "check_neighbors_look_alike",
    "check_no_row_survives_a_fit",
]


def check_no_row_survives_a_fit(name: str, estimator: Any) -> None:
    """Markers in the rows are in no pickle, text or attribute afterwards.

    Without a schema a marker may be learned as a category: with a probability below delta.
    """
    for schema, frame in product((SCHEMA, None), _marked_frames()):
        try:
            fitted = quiet(fresh(estimator, schema).fit, frame)
        except SchemaError:
            assert schema is None, f"{name} refuses a complete schema"
            continue
        fitted.sample(3)
        places = {
            "pickle": pickle.dumps(fitted),
            "old pickle": pickle.dumps(fitted, protocol=0),
            "repr": (repr(fitted) + repr(fitted.release_) + repr(fitted.ledger_)).encode(),
            "statement": fitted.privacy_statement().encode(),
            "ledger": repr(fitted.ledger_.entries).encode(),
            "release": b"".join(a.tobytes() for a in arrays_of(fitted.release_).values()),
        }
        found = {place: marks for place, text in places.items() if (marks := findings(text))}
        assert not found, f"{name} keeps private cells: {found}"
        for path, thing in reachable(fitted):
            content = thing.tobytes() if isinstance(thing, np.ndarray) else repr(thing).encode()
            if isinstance(thing, np.ndarray | str | bytes | int | float):
                assert not findings(content), f"{name} keeps a private cell in {path}"
            rows = hasattr(thing, "columns") and hasattr(thing, "shape") and len(thing) > 0
            assert not rows, f"{name} keeps a table in {path}"


def _marked_frames() -> Iterator[Any]:
    df = marked_table()
    yield df
    if find_spec("polars") is not None:
        import polars as pl

        yield pl.from_pandas(df.astype({"visits": str, "level": str}))


_HOSTILE: tuple[tuple[str, Any], ...] = (
    ("height", np.inf),
    ("height", np.nan),
    ("visits", None),
    ("visits", "a word"),
    ("visits", 10**400),
    ("word", [1, 2]),
    ("label", None),
    ("label", "a label of its own"),
    ("key", b"bytes"),
)


def check_neighbors_look_alike(name: str, estimator: Any) -> None:
    """All but the noise is the same if one row is replaced, whatever is in it."""
    plain = _appearance(estimator, base_table(N_ROWS))
    for column, cell in _HOSTILE:
        df = base_table(N_ROWS)
        if column == "height":
            df.loc[7, column] = cell
        else:
            cells = np.empty(N_ROWS, dtype=object)
            for i, value in enumerate(df[column]):
                cells[i] = cell if i == 7 else value
            df[column] = pd.Series(cells, dtype=object)
        found = _appearance(estimator, df)
        differ = [key for key in plain if found[key] != plain[key]]
        assert not differ, f"{name}: one strange cell of {column!r} shows in the {differ}"


def _appearance(estimator: Any, table: pd.DataFrame) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = fresh(estimator, SCHEMA).fit(table)
        sample = fitted.sample(5)
    last = last_of(fitted)
    return {
        "attributes": {key: type(value).__name__ for key, value in vars(last).items()},
        "classes": np.asarray(getattr(last, "classes_", [])).tolist(),
        "release": {
            key: (value.dtype, value.shape) if isinstance(value, np.ndarray) else repr(value)
            for key, value in vars(fitted.release_).items()
        },
        "ledger": fitted.ledger_.entries,
        "dtypes": [str(dtype) for dtype in sample.dtypes],
        "warnings": [(w.category, str(w.message)) for w in caught],
    }


def check_bad_input_is_refused(name: str, estimator: Any) -> None:
    """Tables that don't fit the schema are refused: nothing is charged, and no cell quoted."""
    df = marked_table()
    wrong: list[tuple[Any, ...]] = [
        (df.drop(columns="height"),),
        (df.assign(more=f"{MARK}"),),
        (df.head(0),),
        (df[[]],),
        (df.assign(height=df["level"]),),
        (df.assign(height=df["when"]),),
        (df.assign(height=df["height"] + 1j),),
        (pd.concat([df, df[["word"]]], axis=1),),
        (df["height"],),
        (df["height"].to_numpy(),),
        ([f"{MARK}"],),
        ([[f"{MARK}", 1], [2]],),
        (f"{MARK}.csv",),
        (None,),
        (df, df["label"]),
        (df.drop(columns="label"), df["label"].head(3)),
    ]
    unfitted = fresh(estimator, SCHEMA)
    for arguments in wrong:
        text = raised(ValueError, unfitted.fit, *arguments)
        assert not findings(text.encode()), f"{name} quotes a private cell: see its fit"
        assert not hasattr(unfitted, "release_")
    assert len(last_of(unfitted).ledger.entries) == 0, f"{name} charges for input that it refuses"
    for parameters in ({"epsilon": -1.0}, {"epsilon": np.nan}, {"delta": 0.0}, {"delta": 1.0}):
        strange = fresh(estimator, SCHEMA)
        last_of(strange).set_params(**parameters)
        raised(ValueError, strange.fit, base_table(N_ROWS))
