"""Rows as bins and keys: structure checked, counts exact."""

import math

import numpy as np
import pytest

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.domain_batches import DomainBatch, KeyColumn, count_rows, key_order
from skdpgen.privacy.domains import DomainMechanism
from skdpgen.privacy.ledger import PrivacyLedger


def mechanism(n_bins=(4, 3), n_key_columns=2, epsilon=1.0, delta=1e-5, **kwargs):
    return DomainMechanism(n_bins, n_key_columns, epsilon, delta, **kwargs)


def batch(bins, keys=(), keep=None):
    """Rows: a tuple of bins each; a list of keys for each key column."""
    n = len(bins) if bins else len(keys[0])
    columns = []
    for cells in keys:
        distinct = tuple(dict.fromkeys(cells))
        codes = np.array([distinct.index(cell) for cell in cells], dtype=np.int64)
        columns.append(KeyColumn(codes, distinct))
    return DomainBatch(
        bins=np.array(bins, dtype=np.int64).reshape(n, -1 if bins else 0),
        keys=tuple(columns),
        keep=None if keep is None else np.array(keep, dtype=np.bool_),
    )


def counts(mech, batches):
    """The exact counts that the mechanism adds noise to."""
    bins, keys = count_rows(batches, mech.n_bins, mech.n_key_columns, mech.rows_bounded)
    return [b.tolist() for b in bins], keys


# -- counts --------------------------------------------------------------------------------------


def test_a_row_adds_one_to_at_most_one_count_of_each_column():
    mech = mechanism()
    rows = batch([(0, 2), (3, -1), (4, 1), (0, 7)], [["a", "b", "a", None], [1, 1, 2, "1"]])
    assert counts(mech, [rows]) == (
        [[2, 0, 0, 1], [0, 1, 1]],
        [{"a": 2, "b": 1, None: 1}, {1: 2, 2: 1, "1": 1}],
    )


def test_what_is_no_key_is_not_counted():
    class Text(str):
        __hash__ = str.__hash__

    odd = [True, Text("x"), b"x", math.nan, math.inf, 2**64, 2.0**64, "x" * 401, "\ud800", (), 1j]
    found = counts(mechanism((), 1), [batch([], [odd])])[1]
    assert found == [{}]
    edge = ["x" * 400, 2**64 - 1, -(2**64) + 1, 0.5, "", None]
    assert counts(mechanism((), 1), [batch([], [edge])])[1] == [dict.fromkeys(edge, 1)]


def test_equal_numbers_are_one_key_of_one_type_in_any_order():
    for cells in ([2, 2.0, -0.0], [2.0, 2, 0]):
        found = counts(mechanism((), 1), [batch([], [[c]]) for c in cells])[1][0]
        assert found == {2: 2, 0: 1}
        assert {type(key) for key in found} == {int}


def test_a_listed_category_that_no_row_has_is_not_there():
    column = KeyColumn(np.array([1, 1, 5, -1]), ("unused", "used"))
    rows = DomainBatch(np.empty((4, 0), dtype=np.int64), (column,))
    assert counts(mechanism((), 1), [rows])[1] == [{"used": 2}]


def test_chunks_and_order_do_not_matter():
    rng = np.random.default_rng(0)
    bins = rng.integers(-1, 5, (60, 2)).tolist()
    keys = [rng.choice(["a", "b", "c"], 60).tolist() for _ in range(2)]
    whole = counts(mechanism(), [batch(bins, keys)])
    order = rng.permutation(60).tolist()
    parts = [
        batch([bins[i] for i in part], [[k[i] for i in part] for k in keys])
        for part in (order[:7], order[7:8], order[8:])
    ]
    assert counts(mechanism(), parts) == whole


def test_rows_beyond_the_limit_of_their_unit_do_not_count():
    mech = mechanism((3,), 1, rows_per_unit=2, rows_bounded=True)
    rows = batch([(0,), (1,), (2,)], [["a", "b", "c"]], keep=[True, False, True])
    assert counts(mech, [rows]) == ([[1, 0, 1]], [{"a": 1, "c": 1}])


def test_keys_in_order():
    assert sorted(["b", 2, None, "a", 0.5, -1, ""], key=key_order) == [
        -1,
        0.5,
        2,
        "",
        "a",
        "b",
        None,
    ]


class Subclass(np.ndarray):
    pass


GOOD = batch([(0, 0)], [["a"], ["b"]])
KEYS = GOOD.keys


@pytest.mark.parametrize(
    "bad",
    [
        (GOOD.bins, KEYS),
        DomainBatch(GOOD.bins, list(KEYS)),
        DomainBatch(GOOD.bins, KEYS, np.array([True])),
        DomainBatch(GOOD.bins, KEYS[:1]),
        DomainBatch(GOOD.bins, (*KEYS, KEYS[0])),
        DomainBatch(GOOD.bins, (KEYS[0], "b")),
        DomainBatch(GOOD.bins, (KEYS[0], KeyColumn(KEYS[0].codes, ["a"]))),
        DomainBatch(GOOD.bins, (KEYS[0], KeyColumn(KEYS[0].codes.astype(float), ("a",)))),
        DomainBatch(GOOD.bins, (KEYS[0], KeyColumn(KEYS[0].codes[:, None], ("a",)))),
        DomainBatch(GOOD.bins, (KEYS[0], KeyColumn(np.zeros(2, np.int64), ("a",)))),
        DomainBatch(GOOD.bins.astype(np.int32), KEYS),
        DomainBatch(GOOD.bins.view(Subclass), KEYS),
        DomainBatch(GOOD.bins[:, :1], KEYS),
    ],
)
def test_batches_with_the_wrong_structure_are_refused(bad):
    with pytest.raises(PrivacyParameterError, match=r"batch|mechanism takes"):
        mechanism().release([bad], PrivacyLedger())


@pytest.mark.parametrize("keep", [None, np.array([1]), np.array([True, True]), [True]])
def test_keep_masks_with_the_wrong_structure_are_refused(keep):
    mech = mechanism(rows_bounded=True)
    with pytest.raises(PrivacyParameterError, match=r"keep|shape"):
        mech.release([DomainBatch(GOOD.bins, KEYS, keep)], PrivacyLedger())
