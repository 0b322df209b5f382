"""Whatever the tables hold: a figure, or NaN and a reason, and never a crash or a warning."""

import json
import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from skdpgen import Schema
from skdpgen.data import Boolean, Categorical, Datetime, Numeric, Ordinal
from skdpgen.evaluation import fidelity, tstr

SCHEMA = Schema(
    {
        "x": Numeric((0, 1), missing=True),
        "k": Numeric((3, 3)),
        "c": Categorical(["a", "b"], missing=True),
        "o": Ordinal([1, 2, 3]),
        "b": Boolean(),
        "t": Datetime(("2020-01-01", "2020-12-31")),
    }
)
CELLS = {
    "x": st.one_of(st.none(), st.floats(-1, 2), st.sampled_from([np.nan, np.inf])),
    "k": st.sampled_from([3.0, 4.0]),
    "c": st.sampled_from(["a", "b", "elsewhere", None]),
    "o": st.sampled_from([1, 2, 3, 9]),
    "b": st.booleans(),
    "t": st.one_of(st.none(), st.datetimes(datetime(2019, 1, 1), datetime(2021, 1, 1))),
}
DTYPES = {
    "x": (float, pl.Float64),
    "k": (float, pl.Float64),
    "c": (object, pl.String),
    "o": ("int64", pl.Int64),
    "b": (bool, pl.Boolean),
    "t": ("datetime64[ns]", pl.Datetime("us")),
}


@st.composite
def tables(draw, polars):
    n = draw(st.sampled_from([0, 1, 2, 3, 7, 60]))
    columns = {}
    for name, cell in CELLS.items():
        few = draw(st.lists(cell, min_size=1, max_size=4))  # often constant, often all missing
        columns[name] = [few[i % len(few)] for i in draw(st.permutations(range(n)))]
    if polars:
        return pl.DataFrame(columns, schema={name: DTYPES[name][1] for name in columns})
    return pd.DataFrame({n: pd.Series(c, dtype=DTYPES[n][0]) for n, c in columns.items()})


@settings(max_examples=40, deadline=None, derandomize=True, phases=[Phase.generate])
@given(st.data(), st.booleans(), st.booleans(), st.sampled_from([*CELLS]))
def test_odd_tables(data, polars, declared, target):
    synthetic, real = data.draw(tables(polars)), data.draw(tables(polars))
    schema = SCHEMA if declared else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = fidelity(synthetic, real, schema=schema)
        is_number = declared and target in ("x", "k", "t")
        models = {"m": Ridge() if is_number else LogisticRegression(max_iter=20)}
        learned = tstr(synthetic, real, target, real, models, schema=schema)
    for result in (compared, learned):
        json.dumps(result.to_dict(), allow_nan=False)
        assert "no epsilon covers" in str(result)
    scores = learned.scores
    assert ((scores["note"] != "") | scores["score"].notna()).all()
    assert set(scores["trained_on"]) == {"synthetic", "real", "chance"}
    marginals = compared.marginals
    assert ((marginals["note"] != "") == marginals["distance"].isna()).all()
    assert marginals["distance"].dropna().between(0, 1).all()
    assert bool(compared.dependence_note) == np.isnan(compared.dependence_kept)
    for role in ("real", "synthetic"):
        strengths = compared.associations[role]
        undefined = [name for name in strengths if np.isnan(strengths.loc[name, name])]
        assert set(undefined) <= set(compared.notes)
        assert not (strengths.to_numpy() < 0).any()
        for square in (strengths, compared.correlations[role]):
            assert not (abs(square.to_numpy()) > 1).any()


def test_cells_of_a_wrong_kind_count_as_missing():
    real = pd.DataFrame({"x": [0.1, 0.9] * 30, "c": ["a", "b"] * 30})
    odd = pd.DataFrame({"x": [[1], {}] * 30, "c": [["a"], {"b": 1}] * 30})
    schema = Schema({"x": SCHEMA.columns["x"], "c": SCHEMA.columns["c"]})
    result = fidelity(odd, real, schema=schema)
    assert (result.marginals["distance"] == 1).all()
    assert set(result.notes) == {"x", "c"}


def test_texts_of_arrow_that_are_not_utf8_are_undeclared_values():
    arrow = pytest.importorskip("pyarrow")
    texts = arrow.array([b"a", b"Z\xfcrich", None, b"b"] * 10).view(arrow.string())
    read = pd.DataFrame(
        {
            "c": pd.Series(pd.arrays.ArrowExtensionArray(arrow.chunked_array([texts]))),
            "b": [True, False] * 20,
        }
    )
    plain = read.assign(c=["a", "elsewhere", None, "b"] * 10)
    schema = Schema({"c": SCHEMA.columns["c"], "b": Boolean()}, target="b")
    dtype = read["c"].dtype
    found = fidelity(read, plain, schema=schema)
    assert found.to_dict() == fidelity(plain, plain, schema=schema).to_dict()
    # Read off the rows, what isn't UTF-8 is a value like any other.
    assert "c" in str(fidelity(plain, read).marginals["columns"].tolist())
    scores = tstr(read, plain, estimators={"lr": LogisticRegression()}, schema=schema).scores
    assert scores["score"].notna().all()
    # What was passed stays what it was.
    assert read["c"].dtype == dtype
