"""Keys of cells, and the categories that released keys become."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Categorical, Ordinal, make_encoder
from skdpgen.data.dtypes import backend_of, describe_dtype
from skdpgen.data.frames import as_series
from skdpgen.data.keys import KeyReader
from skdpgen.privacy.domain_batches import DomainBatch, KeyColumn, count_rows


def reader(column, spec=None, count_missing=True):
    dtype = describe_dtype(column.dtype, backend_of(column))
    return KeyReader(spec or Categorical(None), dtype, count_missing)


def keys_of(column, *args, **kwargs):
    codes, keys = reader(column, *args, **kwargs).keys(column)
    assert codes.dtype == np.int64
    return [keys[code] for code in codes]


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        (np.array(["a", "b", "a"]), ["a", "b", "a"]),
        (
            np.array(["a", None, 1, 1.0, True, 0.5, Decimal(2)], dtype=object),
            ["a", None, 1, 1, 1, 0.5, 2],
        ),
        (pd.Series(["a", None], dtype="string"), ["a", None]),
        (pd.Series(["a", None]), ["a", None]),
        (pd.Series(["a", None], dtype="string[pyarrow]"), ["a", None]),
        (pd.Series(["a", None, "b"], dtype="category"), ["a", None, "b"]),
        (pd.Series([3, 1, 3], dtype="category"), [3, 1, 3]),
        (pl.Series(["a", None]), ["a", None]),
        (pl.Series(["a", None]).cast(pl.Categorical), ["a", None]),
        (np.array([3, 1, 3]), [3, 1, 3]),
        (np.array([True, False]), [1, 0]),
        (np.array([0.5, np.nan, 2.0]), [0.5, None, 2.0]),
        (pd.Series([3, None], dtype="Int64"), [3, None]),
        (pd.Series([True, None], dtype="boolean"), [1, None]),
        (pl.Series([3, None]), [3, None]),
    ],
)
def test_keys(column, keys):
    found = keys_of(column)
    assert found == keys
    ignoring = [() if key is None else key for key in keys]
    assert keys_of(column, count_missing=False) == ignoring


def test_no_cell_can_fail_and_each_stands_for_itself(hostile_cells):
    column = as_series([*hostile_cells, b"x", datetime.date(2020, 1, 1), {}, 1j])
    read = reader(column)
    codes, keys = read.keys(column)
    for i in range(len(column)):
        alone_codes, alone = read.keys(column[i : i + 1])
        key = keys[codes[i]]
        assert type(key) is type(alone[alone_codes[0]])
        assert key == alone[alone_codes[0]]
        assert type(key) in (str, int, float, type(None), tuple)
    # The mechanism counts them without asking any for anything, and leaves out what is no key.
    batch = DomainBatch(np.empty((len(column), 0), dtype=np.int64), (KeyColumn(codes, keys),))
    (found,) = count_rows([batch], (), 1, False)[1]
    assert all(type(key) in (str, int, float, type(None)) for key in found)


def test_tokens_for_missing_have_no_key():
    spec = Categorical(None, missing=("?", -9))
    column = np.array(["?", "-9", -9, -9.0, "a"], dtype=object)
    assert keys_of(column, spec, count_missing=False) == [(), (), (), (), "a"]
    assert keys_of(np.array([-9, 1]), spec, count_missing=False) == [(), 1]


TEXTS = pd.Series(["x"])
OBJECTS = pd.Series(["x"], dtype=object)
LEVELS = pd.Series(["x"], dtype="category")


@pytest.mark.parametrize(
    ("column", "keys", "values", "missing"),
    [
        # Texts get "other".
        (TEXTS, ["a", "b"], ("a", "b", "other"), False),
        (TEXTS, ["a", "other"], ("a", "other"), False),
        (TEXTS, ["a", None], ("a", "other"), True),
        (TEXTS, [], ("other",), True),
        (np.array(["x"]), [], ("other", ""), False),
        (np.array(["x"]), ["a"], ("a", "other"), False),
        (LEVELS, ["a"], ("a", "other"), False),
        # Numbers can't hold it: missing where there is such a thing, else the first value.
        (LEVELS, [1, 2], (1, 2), True),
        (OBJECTS, [1, 2], (1, 2), True),
        (OBJECTS, [1, "a"], (1, "a"), True),
        (OBJECTS, [1, 2, "1", "a"], (2, "1", "a"), True),
        (pd.Series([1], dtype="Int64"), [1], (1,), True),
        (pd.Series([0.5]), [0.5], (0.5,), True),
        (pd.Series([0.5]), [], (0,), True),
        (np.array([1]), [3, 4], (3, 4), False),
        (np.array([1]), [3], (3, 0), False),
        (np.array([1]), [0], (0, 1), False),
        (np.array([1]), [], (0, 1), False),
    ],
)
def test_declared_categories(column, keys, values, missing):
    found = reader(column).declared(keys)
    assert (found.categories, found.missing) == (values, missing)
    # It can be encoded: at least two categories, in this dtype.
    encoder = make_encoder(found, column)
    assert encoder.n_codes >= 2
    assert (
        encoder.decode_codes(np.arange(encoder.n_codes)).dtype == column.dtype
        or (column is LEVELS)
        or column.dtype.kind == "U"
    )


def test_a_target_may_have_one_class():
    assert reader(np.array([1])).declared([], is_target=True).categories == (0,)
    assert reader(TEXTS).declared([], is_target=True).categories == ("other",)
    assert not reader(TEXTS).declared([], is_target=True).missing


def test_what_is_declared_stays():
    spec = Categorical(None, other="rest", missing=("?",), metadata={"note": "x"})
    found = reader(OBJECTS, spec, count_missing=False).declared(["a"])
    assert found == Categorical(("a",), other="rest", missing=("?",), metadata={"note": "x"})
    # The number 3 and the text "3" would be one category.
    numbered = Categorical(None, other=3)
    assert reader(OBJECTS, numbered).declared(["3", "a"]).categories == ("a", 3)
    assert reader(OBJECTS, numbered).declared([]).categories == (3,)
    tokens = Categorical(None, missing=("other", ""))
    assert reader(OBJECTS, tokens, False).declared(["a"]).categories == ("a", "2 others")
    ordered = reader(TEXTS, Ordinal(None)).declared(["a", "b"])
    assert (type(ordered), ordered.categories) == (Ordinal, ("a", "b"))


def test_unlisted_cells_are_encoded_as_the_rest():
    column = pd.Series(["a", "b", "rare", None, "a"])
    found = reader(column).declared(["a", "b"])
    assert make_encoder(found, column).codes(column).tolist() == [0, 1, 2, 2, 0]
    whole = pd.Series([1, 2, 9, 1])
    found = reader(whole).declared([1, 2])
    assert make_encoder(found, whole).codes(whole).tolist() == [0, 1, 0, 0]


def levels(cells):
    return pd.Series(as_series(cells), dtype=object).astype("category")


def counted(codes, keys):
    batch = DomainBatch(np.empty((len(codes), 0), dtype=np.int64), (KeyColumn(codes, keys),))
    return count_rows([batch], (), 1, False)[1][0]


@pytest.mark.parametrize("last", [0.5, 1j, "x", None, True, 2**64 - 1, -1, math.inf, 10**30])
@pytest.mark.parametrize(
    "usual", [2**53 + 1, 2**63 + 1, 7, True, 0.1, np.float32(0.1), Decimal("0.1"), "7", 1 + 0j]
)
def test_the_dtype_that_pandas_finds_for_levels_changes_no_other_row(usual, last):
    # One cell decides whether all others become floats: what they are read as mustn't change.
    first, second = (levels([usual] * 3 + [cell]) for cell in (usual, last))
    (key,) = counted(*reader(first).keys(first))
    assert counted(*reader(second).keys(second))[key] >= 3
    assert key == (usual if usual == "7" else abs(complex(usual)))
    spec = Categorical((key, "rest"), other="rest")
    codes = [make_encoder(spec, column).codes(column)[:3].tolist() for column in (first, second)]
    assert codes == [[0] * 3] * 2


def test_time_differences_are_no_keys_among_any_levels():
    for last in (np.timedelta64(5, "ns"), "x"):
        column = levels([np.timedelta64(5, "ns"), last])
        assert keys_of(column)[0] not in (5, 5.0)


def test_levels_beyond_all_floats_are_no_keys():
    column = levels([1, 10**400, "x"])
    assert counted(*reader(column).keys(column)) == {1: 1, "x": 1}
