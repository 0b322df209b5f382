import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import Schema
from skdpgen.data import Numeric
from skdpgen.evaluation import marginal_distances
from skdpgen.evaluation._marginals import Cells, joint
from skdpgen.exceptions import InputError, SchemaError

SCHEMA = Schema.from_dict(
    {
        "target": None,
        "columns": {
            "id": {"kind": "id"},
            "amount": {"kind": "numeric", "bounds": [0, 16], "dtype": "float", "missing": [""]},
            "color": {"kind": "categorical", "values": ["red", "green"]},
            "grade": {"kind": "ordinal", "values": [1, 2, 3]},
            "day": {
                "kind": "datetime",
                "format": "%Y-%m-%d",
                "bounds": ["2020-01-01", "2020-12-31"],
            },
        },
    }
)
REAL = pd.DataFrame(
    {
        "id": range(4),
        "amount": [0.5, 1.5, 1.5, np.nan],
        "color": ["red", "red", "green", "green"],
        "grade": [1, 1, 2, 3],
        "day": pd.to_datetime(["2020-01-02", "2020-01-03", "2020-12-30", None]),
    }
)


def distances(synthetic, real=REAL, **options):
    result = marginal_distances(synthetic, real, SCHEMA, **options)
    return result.set_index("columns")["distance"].to_dict()


def test_a_table_has_no_distance_to_itself_and_ids_do_not_count():
    found = distances(REAL.sample(frac=1, random_state=0))
    assert len(found) == 4 + 6
    assert set(found.values()) == {0.0}


def test_distances_by_hand():
    found = distances(REAL.assign(color=["red"] * 4, amount=[15.0, 1.5, 1.5, np.nan]))
    assert found[("color",)] == 0.5
    assert found[("amount",)] == 0.25
    assert found[("grade",)] == found[("day",)] == 0.0
    # Cells (amount bin, color): two of four rows have moved, and one more in the first.
    assert found[("amount", "color")] == 0.75
    assert found[("color", "grade")] == 0.5


def test_missing_and_undeclared_values_are_cells_of_their_own():
    other = REAL.assign(amount=1.5, color=["red", "red", "blue", "blue"])
    found = distances(other)
    assert found[("amount",)] == 0.5
    assert found[("color",)] == 0.5


def test_a_column_without_any_value_still_gets_a_distance():
    empty = REAL.assign(amount=np.nan)
    for binning in ("uniform", "quantile"):
        assert distances(REAL, empty, binning=binning)[("amount",)] == 0.75


def test_quantile_bins_see_what_uniform_bins_do_not():
    schema = Schema.from_dict(
        {
            "target": None,
            "columns": {"x": {"kind": "numeric", "bounds": [0, 1e6], "dtype": "float"}},
        }
    )
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.exponential(10.0, 2000)})
    synthetic = pd.DataFrame({"x": rng.exponential(30.0, 2000)})
    assert marginal_distances(synthetic, real, schema)["distance"].item() == 0.0
    quantile = marginal_distances(synthetic, real, schema, binning="quantile")["distance"].item()
    # Total variation of exponentials with scales 10 and 30 is 2 / 3**1.5.
    assert quantile == pytest.approx(2 / 3**1.5, abs=0.04)


def test_types_of_a_column_do_not_matter():
    as_text = REAL.assign(grade=["1", "1", "2", "3"], amount=["0.5", "1.5", "1.5", ""])
    as_float = REAL.assign(grade=[1.0, 1.0, 2.0, 3.0], color=REAL["color"].astype("category"))
    dates = REAL.assign(day=["2020-01-02", "2020-01-03", "2020-12-30", None])
    as_objects = REAL.assign(grade=pd.Series([1, 1, 2, 3], dtype=object))
    for same in (as_text, as_float, as_objects, dates, pl.from_pandas(REAL)):
        assert set(distances(same).values()) == {0.0}


def test_an_empty_table_gives_nan_and_a_reason():
    result = marginal_distances(REAL[:0], REAL, SCHEMA)
    assert result["distance"].isna().all()
    assert set(result["note"]) == {"the synthetic table has no rows"}


def test_observed_facts_stand_in_for_a_schema():
    real, synthetic = REAL.drop(columns="id"), REAL.assign(color="red")
    found = marginal_distances(synthetic, real).set_index("columns")["distance"]
    assert len(found) == 4 + 6
    assert found[("color",)] == 0.5
    assert found[("day",)] == 0.0


def test_arrays_are_tables_too():
    cells = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    found = marginal_distances(np.array([[0, 1]] * 4), cells).set_index("columns")["distance"]
    assert found.to_dict() == {(0,): 0.5, (1,): 0.5, (0, 1): 0.75}


def test_the_cross_of_many_categories_keeps_only_cells_that_occur():
    rng = np.random.default_rng(0)
    columns = [Cells(rng.integers(0, 9000, 50), rng.integers(0, 9000, 60), 9000) for _ in range(3)]
    cross = joint(columns)
    assert cross.size <= 110
    keys = zip(*(c.real.tolist() for c in columns), strict=True)
    assert len(set(cross.real)) == len(set(keys))
    assert cross.distance == pytest.approx(1.0)
    same = joint([Cells(c.real, c.real, c.size) for c in columns])
    assert same.distance == 0


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="synthetic table lacks column 'grade'"):
        marginal_distances(REAL.drop(columns="grade"), REAL, SCHEMA)
    with pytest.raises(InputError, match="binning"):
        marginal_distances(REAL, REAL, SCHEMA, binning="log")
    with pytest.raises(InputError, match="n_bins"):
        marginal_distances(REAL, REAL, SCHEMA, n_bins=0)
    open_ended = Schema.from_dict(
        {"target": None, "columns": {"c": {"kind": "categorical", "values": None}}}
    )
    with pytest.raises(SchemaError, match="'c' can't be evaluated without its values"):
        marginal_distances(pd.DataFrame({"c": ["a"]}), pd.DataFrame({"c": ["a"]}), open_ended)


def test_quantile_bins_end_between_values():
    # Spikes, and the same spikes a hair to the right: nobody would call that another table.
    rng = np.random.default_rng(0)
    spikes = rng.choice([-1.8, 1.1, 1.4], 3000)
    schema = Schema({"rate": Numeric((-10, 10))})
    real, near = pd.DataFrame({"rate": spikes}), pd.DataFrame({"rate": spikes + 0.01})
    found = marginal_distances(near, real, schema, binning="quantile")["distance"].item()
    assert found == 0
