"""Sampling mixtures of products: exact distributions, stratified counts, labels as asked."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skdpgen.atoms import AtomColumn, AtomLayout
from skdpgen.generators import MixtureGenerator, ProductMixture

BINS = 4


def layout():
    edges = np.linspace(0, 1, BINS + 1)
    upper = (*np.nextafter(edges[1:-1], 0), 1.0)
    number = AtomColumn(0, None, tuple(edges[:-1]), tuple(upper), (0,) * BINS)
    return AtomLayout((number, AtomColumn(None, (1, 4))), width=4)


@pytest.fixture
def mixture():
    rng = np.random.default_rng(0)
    probabilities = tuple(rng.dirichlet(np.ones(n), size=5).astype(np.float32) for n in (BINS, 3))
    shares = rng.dirichlet(np.ones(10)).reshape(2, 5)
    return ProductMixture(layout(), probabilities, shares)


def joint(mixture, label):
    """Distribution of both codes given a label."""
    share = mixture.shares[label] / mixture.shares[label].sum()
    a, b = (p.astype(float) for p in mixture.probabilities)
    return np.einsum("k,ka,kb->ab", share, a, b)


def test_rows_have_the_distribution_of_their_label(mixture):
    # Single rows of independent calls: the strata play no part. False alarm: 1e-6.
    rng = np.random.default_rng(1)
    codes = np.concatenate(
        [mixture.sample_codes(np.array([label]), rng) for label in (0, 1) for _ in range(3000)]
    )
    for label in (0, 1):
        part = codes[3000 * label : 3000 * (label + 1)]
        counts = np.bincount(part[:, 0] * 3 + part[:, 1], minlength=BINS * 3)
        expected = 3000 * joint(mixture, label).ravel()
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 5e-7


def test_many_rows_have_it_too_with_less_spread(mixture):
    labels = np.repeat([0, 1], 20_000)
    codes = mixture.sample_codes(labels, np.random.default_rng(2))
    for label in (0, 1):
        part = codes[labels == label]
        for column in (0, 1):
            counts = np.bincount(part[:, column], minlength=mixture.probabilities[column].shape[1])
            expected = 20_000 * joint(mixture, label).sum(axis=1 - column)
            # Within each of 5 components a count is within 2 of its expectation, and a component's
            # number of rows within 1 of its own: independent draws would be off by 70.
            assert np.abs(counts - expected).max() < 5 * 3 + 1
        # Pairs are as random as independence within a component makes them (6 sd: 2e-9 each).
        pairs = np.bincount(part[:, 0] * 3 + part[:, 1], minlength=BINS * 3)
        expected = 20_000 * joint(mixture, label).ravel()
        assert (np.abs(pairs - expected) < 6 * np.sqrt(expected) + 20).all()


def test_the_order_of_rows_is_random(mixture):
    codes = mixture.sample_codes(np.zeros(20_000, dtype=np.int64), np.random.default_rng(3))
    # Neighbors are independent: 6 standard deviations of a correlation, false alarm 2e-9.
    assert abs(np.corrcoef(codes[:-1, 0], codes[1:, 0])[0, 1]) < 6 / np.sqrt(20_000)


def test_encoded_rows(mixture):
    labels = np.array([0, 1, 1])
    rows = mixture.sample(labels, seed=0)
    assert rows.shape == (3, 4)
    assert ((rows[:, 0] >= 0) & (rows[:, 0] <= 1)).all()
    assert np.array_equal(rows[:, 1:].sum(axis=1), np.ones(3))
    assert np.array_equal(rows, mixture.sample(labels, seed=0))
    assert not np.array_equal(rows, mixture.sample(labels, seed=1))
    assert mixture.sample(labels[:0], seed=0).shape == (0, 4)


def test_marginals_and_averages(mixture):
    for column in (0, 1):
        expected = [
            mixture.shares[y].sum() * joint(mixture, y).sum(axis=1 - column) for y in (0, 1)
        ]
        assert mixture.marginal(column) == pytest.approx(np.array(expected), abs=1e-6)
    shares = np.random.default_rng(0).dirichlet(np.ones(6), size=2).reshape(2, 3, 2)
    both = ProductMixture.average(layout(), (np.ones((4, 1)), np.ones((4, 1))), shares)
    assert (both.n_classes, both.n_components) == (3, 4)
    assert both.shares.sum() == pytest.approx(1)
    assert both.shares[:, 2:] == pytest.approx(shares[1] / 2)


def test_a_component_of_weight_zero_makes_no_rows(mixture):
    shares = mixture.shares.copy()
    shares[:, 3] = 0
    probabilities = mixture.probabilities[0].copy()
    probabilities[:, 0] = 0
    probabilities[3] = [1, 0, 0, 0]
    only = ProductMixture(mixture.atoms, (probabilities, mixture.probabilities[1]), shares)
    codes = only.sample_codes(np.zeros(5000, dtype=np.int64), np.random.default_rng(0))
    assert (codes[:, 0] > 0).all()


def test_settings_are_stored_untouched():
    generator = MixtureGenerator(10, n_mixtures=2, spread=0.5, floor_ratio=0.9)
    assert clone(generator).get_params() == {
        "n_components": 10,
        "n_mixtures": 2,
        "spread": 0.5,
        "floor_ratio": 0.9,
    }


def test_expectations_of_products_are_those_over_all_combinations(mixture):
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(n, 6, 2)) @ [1, 1j] for n in (BINS, 3))
    shares = mixture.shares.sum(axis=1)
    both = [np.einsum("ab,am,bm->m", joint(mixture, c), first, second) for c in (0, 1)]
    found = mixture.expectation((0, 1), (first, second))
    # The columns' probabilities are in float32, and sum to 1 as well as that allows.
    assert found == pytest.approx(shares[:, None] * np.array(both), rel=1e-6)
    alone = [joint(mixture, c).sum(axis=0) @ second for c in (0, 1)]
    assert mixture.expectation((1,), (second,)) == pytest.approx(
        shares[:, None] * np.array(alone), rel=1e-6
    )
