"""Neighboring tables look the same from outside, whatever the cell that differs."""

import io
import logging
import pickle
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from skdpgen.data import (
    Categorical,
    Datetime,
    Id,
    Numeric,
    Schema,
    TabularPreprocessor,
    Text,
)
from skdpgen.exceptions import InputError, SchemaError
from skdpgen.synthesizers._parameters import unit_codes

MARKER = "Anne's only value"
NUMBER = 987654321.123
HUGE = MARKER + "x" * 10_000_000

SCHEMA = Schema(
    {
        "number": Numeric((0, 100)),
        "count": Numeric((0, 100), "int", missing=True),
        "city": Categorical(["Rome", "Oslo"]),
        "level": Categorical(["low", "high"], missing=True),
        "day": Datetime(("2020-01-01", "2020-12-31"), missing=True),
        "written": Datetime(("2020-01-01", "2020-12-31"), format="%Y-%m-%d"),
        "cell": Categorical(["a"], other="b"),
        "key": Id(),
        "remark": Text(),
    },
    target="city",
)


def table(**changes):
    """A table of three rows; ``changes`` are the cells of the second one."""
    row = {
        "number": 1.5,
        "count": 2.0,
        "city": "Rome",
        "level": "low",
        "day": pd.Timestamp("2020-05-05"),
        "written": "2020-05-05",
        "cell": "a",
        "key": "k",
        "remark": "r",
    }
    frame = pd.DataFrame([row, {**row, **changes}, row])
    return frame.astype(
        {
            "number": "float64",
            "count": "float64",
            "city": "str",
            "level": "category",
            "day": "datetime64[us]",
            "written": "str",
            "cell": object,
            "key": "str",
            "remark": "str",
        }
    )


NEIGHBORS = [
    {"number": 1e9},
    {"number": np.inf},
    {"number": np.nan},
    {"count": -np.inf},
    {"count": np.nan},
    {"count": NUMBER},
    {"city": MARKER},
    {"city": ""},
    {"city": None},
    {"city": HUGE},
    {"level": MARKER},
    {"level": None},
    {"day": pd.NaT},
    {"day": pd.Timestamp("1923-04-05 06:07:08.9")},
    {"written": MARKER},
    {"written": None},
    {"written": HUGE},
    {"cell": [MARKER]},
    {"cell": None},
    {"cell": 10**1000},
    {"key": MARKER},
    {"remark": HUGE},
]


def observed(frame):
    """All that fitting and using a preprocessor shows, but for the encoded rows."""
    out, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            preprocessor = TabularPreprocessor.from_schema(SCHEMA).fit(frame)
            rows = preprocessor.transform(frame)
            preprocessor.inverse_transform(rows)
    finally:
        logging.getLogger().removeHandler(handler)
    return {
        "pickle": pickle.dumps(preprocessor),
        "repr": repr(preprocessor),
        "layout": preprocessor.layout_,
        "names": preprocessor.get_feature_names_out().tolist(),
        "rest": [rows.shape, rows[0].tobytes(), rows[2].tobytes()],
        "messages": (out.getvalue(), log.getvalue(), [str(x.message) for x in w]),
        "draft": Schema.draft(frame),
    }


@pytest.mark.parametrize("changes", NEIGHBORS, ids=lambda c: f"{next(iter(c))}")
def test_neighbors_look_the_same(changes):
    seen, base = observed(table(**changes)), observed(table())
    assert seen == base
    assert seen["messages"] == ("", "", [])
    assert MARKER.encode() not in seen["pickle"]


def test_the_template_of_the_canary_pickle_is_not_vacuous():
    assert b"Rome" in observed(table())["pickle"]
    assert MARKER.encode() in pickle.dumps(table(city=MARKER))


REFUSALS = [
    # structure that is wrong, in tables full of marked cells
    (lambda f: f.drop(columns="number"), SCHEMA, InputError),
    (lambda f: f.assign(more=MARKER), SCHEMA, InputError),
    (lambda f: f.assign(number=f["level"]), SCHEMA, InputError),
    (lambda f: f.assign(number=f["day"]), SCHEMA, InputError),
    (lambda f: f.assign(day=f["number"]), SCHEMA, InputError),
    (lambda f: f.assign(number=1j), SCHEMA, InputError),
    (lambda f: pd.concat([f, f], axis=1), SCHEMA, InputError),
    (lambda f: f, SCHEMA.with_columns({"city": {"values": None}}), SchemaError),
    (lambda f: f, SCHEMA.with_columns({"number": {"bounds": None}}), SchemaError),
    (lambda f: f.to_numpy(), SCHEMA, InputError),
    (lambda f: f.to_numpy()[0], SCHEMA, InputError),
    (lambda f: f.to_dict(), SCHEMA, InputError),
    (lambda f: [[MARKER], [MARKER, 1]], SCHEMA, InputError),
    (lambda f: pl.DataFrame({"city": [[MARKER]]}), SCHEMA, InputError),
    (lambda f: pl.from_pandas(f[["city"]]).lazy(), SCHEMA, InputError),
]


@pytest.mark.parametrize(("change", "schema", "error"), REFUSALS)
def test_errors_quote_no_cell_and_count_no_row(change, schema, error):
    frame = table(city=MARKER, level=MARKER, written=MARKER, cell=MARKER, number=NUMBER)
    many = pd.concat([frame] * 101, ignore_index=True)
    messages = []
    for rows in (frame, many):
        with pytest.raises(error) as caught:
            TabularPreprocessor.from_schema(schema).fit(change(rows))
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert MARKER not in messages[0]
    assert "98765" not in messages[0]


def test_errors_of_transform_quote_no_cell():
    frame = table(city=MARKER)
    preprocessor = TabularPreprocessor.from_schema(SCHEMA).fit(frame)
    for change in (
        frame.drop(columns="city"),
        frame[frame.columns[::-1]],
        frame.assign(number=frame["level"]),
        frame.assign(day=frame["city"].astype("category")),
    ):
        with pytest.raises(InputError) as caught:
            preprocessor.transform(change)
        assert MARKER not in str(caught.value)


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_dtypes_that_remember_rows_are_forgotten(library):
    schema = Schema({"x0": Categorical(["Rome", "Oslo"])})
    make = {
        "pandas": lambda c: pd.DataFrame({"x0": pd.Series(c, dtype="category")}),
        "polars": lambda c: pl.DataFrame({"x0": pl.Series(c, dtype=pl.Categorical)}),
        "numpy": lambda c: np.array(c)[:, np.newaxis],
    }[library]
    a, b = (
        TabularPreprocessor(schema=schema).fit(make(cells))
        for cells in (["Rome", "Rome"], ["Rome", MARKER])
    )
    assert pickle.dumps(a) == pickle.dumps(b)
    rows = a.transform(make(["Oslo", MARKER]))
    assert rows.tolist() == [[0, 1], [1, 0]]
    built = a.inverse_transform(rows)
    if library == "pandas":
        assert built["x0"].cat.categories.tolist() == ["Rome", "Oslo"]


@pytest.mark.parametrize("kind", ["parquet", "string", "large_string", "pandas"])
def test_bytes_that_are_no_text_raise_nothing_in_frames_either(kind, tmp_path):
    """pandas.read_parquet checks no bytes; numpy's conversion raised, and quoted the cell."""
    cells = [b"a", b"\xff" + MARKER.encode(), None]
    texts = pa.chunked_array([pa.array(cells).view(pa.string())])
    if kind == "parquet":
        pa.parquet.write_table(pa.table({"cell": texts}), tmp_path / "cells.parquet")
        frame = pd.read_parquet(tmp_path / "cells.parquet", dtype_backend="pyarrow")
        native = frame["cell"]
    elif kind == "pandas":
        native = pd.Series(pd.arrays.ArrowStringArray(texts))
    else:
        native = pd.Series(pd.arrays.ArrowExtensionArray(texts.cast(getattr(pa, kind)())))
    schema = Schema(
        {
            "cell": Categorical(["a"], other="b", missing=True),
            "number": Numeric((0, 1), missing=True),
            "written": Datetime(("2020-01-01", "2020-12-31"), "%Y-%m-%d", missing=True),
        }
    )
    frame = pd.DataFrame(dict.fromkeys(schema.columns, native))
    clean = pd.DataFrame(dict.fromkeys(schema.columns, pd.Series(["a", "?", None], dtype=object)))
    rows, expected = (
        TabularPreprocessor.from_schema(schema).fit_transform(f) for f in (frame, clean)
    )
    np.testing.assert_array_equal(np.asarray(rows), np.asarray(expected))
    assert unit_codes(native).tolist() == [1, 2, 0]
