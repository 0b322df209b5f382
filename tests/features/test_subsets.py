"""Which small subsets of columns are chosen, with which weights."""

import itertools
import math

import numpy as np
import pytest

from skdpgen.features import subsets as subsets_module
from skdpgen.features.subsets import choose_subsets


def choose(n_codes, order, most, seed=0):
    return choose_subsets(n_codes, order, most, np.random.RandomState(seed))


def test_all_subsets_if_there_is_room_weighted_by_the_product_of_their_bits():
    chosen, weights = choose((2, 4, 16), 2, 3)
    assert chosen == [(0, 1), (0, 2), (1, 2)]
    assert weights.tolist() == [2, 4, 8]
    chosen, weights = choose((2, 4, 16), 3, 100)
    assert (chosen, weights.tolist()) == ([(0, 1, 2)], [8])


def test_too_many_are_drawn_by_weight_without_replacement():
    # One of three with weights 1 : 2 : 4 of 7; 3000 draws, six standard deviations: 2e-9.
    found = [choose((2, 4, 16), 1, 1, seed)[0][0][0] for seed in range(3000)]
    shares = np.bincount(found, minlength=3) / 3000
    expected = np.array([1, 2, 4]) / 7
    assert (np.abs(shares - expected) < 6 * np.sqrt(expected * (1 - expected) / 3000)).all()
    # Two of three: whichever goes first, the second is drawn from the rest by weight.
    left_out = [({0, 1, 2} - {c[0] for c in choose((2, 4, 16), 1, 2, s)[0]}) for s in range(3000)]
    shares = np.bincount([out.pop() for out in left_out], minlength=3) / 3000
    p = {
        out: sum(
            expected[a] * expected[b] / (1 - expected[a])
            for a, b in itertools.permutations({0, 1, 2} - {out})
        )
        for out in range(3)
    }
    for out in range(3):
        assert shares[out] == pytest.approx(p[out], abs=6 * math.sqrt(0.25 / 3000))


@pytest.mark.parametrize("listed", [True, False])
def test_both_ways_give_distinct_subsets_in_lexical_order(listed, monkeypatch):
    if not listed:
        monkeypatch.setattr(subsets_module, "_LISTED", 0)
    # 1140 triples are more than 4 * 40: without a list they are drawn one by one.
    chosen, weights = choose((2, 3, 4, 5) * 5, 3, 40)
    assert len(chosen) == 40
    assert chosen == sorted(set(chosen))
    assert all(a < b < c for a, b, c in chosen)
    bits = np.log2([2, 3, 4, 5] * 5)
    assert weights == pytest.approx([np.prod(bits[list(subset)]) for subset in chosen])
    assert all(isinstance(j, int) for subset in chosen for j in subset)
    again = choose((2, 3, 4, 5) * 5, 3, 40)
    assert again[0] == chosen
    assert choose((2, 3, 4, 5) * 5, 3, 40, seed=1)[0] != chosen


def test_drawn_one_by_one_wide_columns_come_more_often(monkeypatch):
    monkeypatch.setattr(subsets_module, "_LISTED", 0)
    # Columns of 8 bits beside columns of 1 bit: they are in most of the pairs.
    chosen, _ = choose((2,) * 20 + (256,) * 20, 2, 100)
    share = np.mean([j >= 20 for subset in chosen for j in subset])
    assert share > 0.75


def test_where_most_of_all_subsets_are_wanted_none_is_awaited(monkeypatch):
    class Listing(np.random.RandomState):
        def choice(self, *args):
            raise AssertionError("the last subsets would be drawn hardly ever")

    monkeypatch.setattr(subsets_module, "_LISTED", 0)
    for most in (12, 44, 45, 100):
        chosen, _ = choose_subsets((2,) * 9 + (2**20,), 2, most, Listing(0))
        assert len(set(chosen)) == min(most, 45)
    with pytest.raises(AssertionError, match="hardly ever"):
        choose_subsets((2,) * 9 + (2**20,), 2, 11, Listing(0))
