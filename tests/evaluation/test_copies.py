import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from skdpgen import Schema
from skdpgen.evaluation import copy_check
from skdpgen.exceptions import InputError

SCHEMA = Schema.from_dict(
    {
        "target": None,
        "columns": {
            "id": {"kind": "id"},
            "amount": {"kind": "numeric", "bounds": [0, 8], "dtype": "float", "missing": [""]},
            "color": {"kind": "categorical", "values": ["red", "green", "blue"]},
            "height": {"kind": "numeric", "bounds": [100, 200], "dtype": "float"},
        },
    }
)
SURE = 1 - 1e-6


def rows(n, seed, *, distinct=True):
    rng = np.random.default_rng(seed)
    amount = rng.uniform(0, 8, n) if distinct else rng.integers(0, 3, n).astype(float)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "amount": np.where(rng.uniform(size=n) < 0.1, np.nan, amount),
            "color": rng.choice(["red", "green", "blue"], n),
            "height": rng.uniform(100, 200, n) if distinct else np.full(n, 150.0),
        }
    )


def gower(a, b):
    """By the formula, cell by cell."""
    if math.isnan(a.amount) or math.isnan(b.amount):
        known = a.amount if math.isnan(b.amount) else b.amount
        amount = 0.0 if math.isnan(known) else 0.5 + abs(known / 8 - 0.5)
    else:
        amount = abs(a.amount - b.amount) / 8
    return (amount + (a.color != b.color) + abs(a.height - b.height) / 100) / 3


def test_share_and_quantiles_by_hand():
    made, train, held_out = rows(30, 0), rows(25, 1), rows(25, 2)
    result = copy_check(made, train, held_out, schema=SCHEMA)
    closest = [
        [min(gower(a, b) for b in other.itertuples()) for a in made.itertuples()]
        for other in (train, held_out)
    ]
    assert result.share == np.mean(np.less(*closest))
    for name, values in zip(("train", "held_out"), closest, strict=True):
        expected = np.quantile(values, result.quantiles["quantile"])
        assert result.quantiles[name].to_numpy() == pytest.approx(expected, abs=1e-6)
    assert result.exact == {"train": 0.0, "held_out": 0.0}
    assert result.n_rows == {"synthetic": 30, "train": 25, "held_out": 25}


def test_copied_rows_are_caught_and_fresh_ones_pass():
    train, held_out, fresh = rows(400, 0), rows(400, 1), rows(400, 2)
    copied = copy_check(train, train, held_out, schema=SCHEMA, confidence=SURE)
    assert (copied.copying, copied.share, copied.exact["train"]) == (True, 1.0, 1.0)
    assert "CLOSER" in copied.summary()
    # A third is copied: the share is about two thirds.
    third = pd.concat([train[:140], fresh[:260]])
    assert copy_check(third, train, held_out, schema=SCHEMA, confidence=0.99).copying
    noisy = train.assign(height=(train["height"] + 1e-3).clip(upper=200))
    close = copy_check(noisy, train, held_out, schema=SCHEMA, confidence=SURE)
    assert close.copying
    assert close.exact["train"] == 0.0
    # False alarm at most 5e-7, by Hoeffding's inequality.
    passed = copy_check(fresh, train, held_out, schema=SCHEMA, confidence=SURE)
    assert passed.copying is False
    assert passed.false_alarm_rate == pytest.approx(5e-7)
    assert "not evidence of privacy" in passed.summary()
    # Rows that are closer to what was never seen are no copies.
    assert copy_check(held_out, train, held_out, schema=SCHEMA).copying is False


def test_false_alarms_are_as_rare_as_stated_and_a_binomial_interval_would_raise_more():
    # Many synthetic rows, few real ones: their votes are far from independent.
    alarms = binomial = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        made, train, held_out = (pd.DataFrame({"x": rng.uniform(size=n)}) for n in (500, 20, 20))
        result = copy_check(made, train, held_out, confidence=0.8)
        alarms += result.copying
        binomial += stats.binom.sf(round(result.share * 500) - 1, 500, 0.5) < 0.1
        assert 5 < result.n_votes < 40
    # Fixed seeds. At most 10 percent were allowed: Hoeffding's inequality leaves some of it unused.
    assert alarms < 10
    assert binomial > 30


def test_rows_that_tie_share_their_votes():
    same = rows(60, 0, distinct=False).dropna().assign(amount=1.0, color="red")
    result = copy_check(same, same, same, schema=SCHEMA)
    assert result.share == pytest.approx(0.5)
    assert result.n_votes == pytest.approx(2 * len(same))
    # One closest row in training, four held out: a fifth of the vote each.
    made, train = same[:1], same[:4]
    other = train.assign(color=["red", "blue", "blue", "blue"])
    assert copy_check(made, other, train, schema=SCHEMA).share == pytest.approx(1 / 5)


def test_tables_are_cut_down_to_the_same_number_of_rows():
    made, train, held_out = rows(90, 0), rows(500, 1), rows(70, 2)
    result = copy_check(made, train, held_out, schema=SCHEMA)
    assert result.n_rows == {"synthetic": 90, "train": 70, "held_out": 70}
    assert "70 training rows and 70 held-out rows" in result.reads
    few = copy_check(made, train, held_out, schema=SCHEMA, max_rows=10, random_state=3)
    assert set(few.n_rows.values()) == {10}
    again = copy_check(made, train, held_out, schema=SCHEMA, max_rows=10, random_state=3)
    assert few.to_dict() == again.to_dict()


@pytest.mark.parametrize(
    ("made", "train", "held_out", "note"),
    [
        (5, 5, None, "no held-out rows"),
        (0, 5, 5, "the synthetic table has no rows"),
        (5, 0, 5, "table has no rows"),
        (5, 5, 0, "table has no rows"),
    ],
)
def test_what_cannot_be_judged_says_why(made, train, held_out, note):
    tables = [None if n is None else rows(n, n) for n in (made, train, held_out)]
    result = copy_check(*tables, schema=SCHEMA)
    assert result.copying is None
    assert math.isnan(result.share)
    assert note in result.note
    assert note in result.summary()
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["share"] is None
    str(result)


def test_degenerate_columns_are_left_out_or_tie():
    table = pd.DataFrame({"nothing": [None] * 5, "same": [1] * 5, "list": [[1]] * 5})
    result = copy_check(table, table, table)
    assert result.share == pytest.approx(0.5)
    assert "'nothing' is left out" in result.reads
    none = copy_check(table[["nothing"]], table[["nothing"]], table[["nothing"]])
    assert "no column" in none.note


def test_polars_and_facts_observed_on_the_real_rows():
    made, train, held_out = (rows(40, seed).drop(columns="id") for seed in range(3))
    ours = copy_check(made, train, held_out)
    theirs = copy_check(*(pl.from_pandas(t) for t in (made, train, held_out)))
    assert ours.share == theirs.share
    assert "come from the real rows" in ours.reads
    assert "no epsilon" in ours.reads


def test_errors():
    table = rows(5, 0)
    with pytest.raises(InputError, match="confidence"):
        copy_check(table, table, schema=SCHEMA, confidence=1.0)
    with pytest.raises(InputError, match="max_rows"):
        copy_check(table, table, schema=SCHEMA, max_rows=0)
    with pytest.raises(InputError, match="held-out table lacks column 'color'"):
        copy_check(table, table, table.drop(columns="color"), schema=SCHEMA)


def test_so_few_rows_that_copies_could_not_be_found_are_not_judged():
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    few = copy_check(real[:5], real[:100], real[100:])
    assert few.copying is None
    assert few.summary().startswith("Copying was not judged: there are too few rows to tell.")
    assert copy_check(real[:100], real[:100], real[100:]).copying


def test_a_copy_of_all_rows_is_not_called_free_of_copies():
    # Half of the copies are of held-out rows, so the share alone says nothing.
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=600), "y": rng.normal(size=600)})
    copied = copy_check(real, real[:300], real[300:])
    assert copied.share == pytest.approx(0.5)
    assert (copied.copying, copied.repeating, copied.coincidence) == (False, True, 0.0)
    assert "No sign" not in copied.summary()
    fresh = pd.DataFrame({"x": rng.normal(size=600), "y": rng.normal(size=600)})
    assert not copy_check(fresh, real[:300], real[300:]).repeating


def test_rows_that_are_alike_by_nature_are_no_copies():
    rng = np.random.default_rng(0)
    real, fresh = (pd.DataFrame(rng.integers(0, 2, (600, 4))) for _ in range(2))
    found = copy_check(fresh, real[:300], real[300:])
    keys = set(map(tuple, real[:300].to_numpy()))
    expected = np.mean([tuple(row) in keys for row in real[300:].to_numpy()])
    assert found.coincidence == pytest.approx(expected)
    assert not found.repeating
    assert copy_check(fresh, real).repeating is False


def test_few_rows_are_no_reason_to_speak_of_repeated_ones():
    # A quarter of the rows have an equal one: of two, both do by chance every fourth time.
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.integers(0, 2, (600, 10)))
    keys = {tuple(row) for row in real[:300].to_numpy()}
    alike = real[300:][[tuple(row) in keys for row in real[300:].to_numpy()]]
    assert not copy_check(alike[:2], real[:300], real[300:]).repeating
    # Nor are few held-out rows, none of which happens to equal a training row.
    apart = real[300:][[tuple(row) not in keys for row in real[300:].to_numpy()]]
    synthetic = pd.DataFrame(rng.integers(0, 2, (600, 10)))
    assert not copy_check(synthetic, real[:3], apart[:3]).repeating
    repeated = pd.concat([alike[:1]] * 600)
    found = copy_check(repeated, real[:300], real[300:])
    assert (found.copying, found.repeating) == (None, True)
    assert "MANY synthetic rows equal real rows" in found.summary()


def test_rows_without_distance_equal_each_other():
    # Else real rows would seem to equal each other less often than they do.
    schema = {"columns": {"x": {"kind": "numeric", "bounds": [0, 9]}}}
    zeros = pd.DataFrame({"x": [0.0, 0.0]})
    found = copy_check(zeros, zeros, -zeros, schema=Schema.from_dict(schema))
    assert found.exact == {"train": 1.0, "held_out": 1.0}
    assert found.coincidence == 1.0
