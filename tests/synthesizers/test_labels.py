"""Labels of synthetic rows: exact shares, no sampling noise, the same law for every row."""

import numpy as np
import pytest

from skdpgen.exceptions import InputError
from skdpgen.synthesizers._labels import choose_labels, label_array, stratified_labels

PROPORTIONS = np.array([0.7, 0.2, 0.1])
NAMES = ["a", "b", "c"]


def encode(labels):
    if any(label not in NAMES for label in labels):
        raise InputError("unknown label")
    return np.array([NAMES.index(label) for label in labels], dtype=np.int64)


def choose(y, n, seed=0):
    return choose_labels(y, n, PROPORTIONS, encode, np.random.default_rng(seed))


@pytest.mark.parametrize("n", [1, 10, 999])
def test_counts_are_within_one_of_their_shares(n):
    counts = np.bincount(choose(None, n), minlength=3)
    assert counts.sum() == n
    assert np.abs(counts - n * PROPORTIONS).max() < 1


def test_one_row_has_the_distribution_of_the_shares():
    draws = np.concatenate([choose(None, 1, seed) for seed in range(3000)])
    # Standard deviation at most 0.0092 a share: six of them; fixed seeds, so no false alarm.
    assert np.abs(np.bincount(draws) / 3000 - PROPORTIONS).max() < 0.055


def test_order_is_random():
    labels = choose(None, 1000)
    assert 300 < np.flatnonzero(labels == 0).mean() < 700


def test_balanced_shares_and_exact_labels():
    assert np.bincount(choose("balanced", 30)).tolist() == [10, 10, 10]
    assert np.bincount(choose({"c": 3, "a": 1}, 40)).tolist() == [10, 0, 30]
    assert choose(["c", "a"], 2).tolist() == [2, 0]
    assert choose(None, 0).tolist() == []


@pytest.mark.parametrize(
    "y",
    [
        "equal",
        7,
        {"a": "all"},
        {"a": -1, "b": 2},
        {"a": 0.0},
        {"a": np.nan},
        {"d": 1.0},
        ["a"],
        {},
    ],
)
def test_bad_choices_are_refused(y):
    with pytest.raises(InputError):
        choose(y, 2)


def test_rounding_never_reaches_beyond_the_last_class_with_a_share():
    shares = np.array([1 / 3, 1 / 3, 1 / 3, 0.0])
    labels = stratified_labels(shares, 100_000, np.random.default_rng(1))
    assert labels.max() == 2


def test_labels_keep_their_types_in_an_array():
    assert label_array([True, False]).dtype == bool
    assert label_array(["a", None]).tolist() == ["a", None]
    assert label_array([1, "a", 2.5]).tolist() == [1, "a", 2.5]
