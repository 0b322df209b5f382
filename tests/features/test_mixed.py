"""The feature map: both sides of the boundary compute the same features."""

import numpy as np
import pytest

from skdpgen.exceptions import InputError, PrivacyParameterError
from skdpgen.features import MixedFeatureMap
from skdpgen.layout import EncodedLayout

LAYOUT = EncodedLayout(width=7, numeric=(0, 4), groups=((1, 4), (5, 7)))


def encoded_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, LAYOUT.width))
    rows[:, list(LAYOUT.numeric)] = rng.random((n, 2))
    for start, stop in LAYOUT.groups:
        rows[np.arange(n), rng.integers(start, stop, n)] = 1.0
    return rows


def feature_map(**kwargs):
    settings = {"n_features": 2000, "bandwidth": 0.3, "random_state": 0} | kwargs
    return MixedFeatureMap.draw(LAYOUT, **settings)


def test_torch_embedding_and_integer_features_agree():
    import torch

    features, rows = feature_map(), encoded_rows(50)
    signed, codes = features.integers(rows)
    soft = features.embedding()(torch.as_tensor(rows, dtype=torch.float32)).numpy()
    one = 2.0 ** features.spec(1, 0.0).lattice_bits
    n_signed = signed.shape[1]
    # Phases are rounded to 2^-16 of a turn: an error of at most 4.8e-5 rad times 1 / sqrt(F).
    assert np.abs(signed / one - soft[:, :n_signed]).max() < 1e-4 / np.sqrt(n_signed / 2)
    assert np.array_equal(codes, np.stack([rows[:, 1:4].argmax(1), rows[:, 5:7].argmax(1)], 1))
    assert np.allclose(soft[:, n_signed:], rows[:, [1, 2, 3, 5, 6]] / np.sqrt(5))


def test_inner_products_approximate_the_gaussian_kernel():
    rows = encoded_rows(30)
    signed, _ = feature_map(n_features=40_000).integers(rows)
    approximate = (signed @ signed.T) / 4.0 ** feature_map(n_features=40_000).spec(
        1, 0
    ).lattice_bits
    x = rows[:, list(LAYOUT.numeric)]
    squared = ((x[:, None] - x[None]) ** 2).sum(-1)
    # Standard deviation 1 / sqrt(2 F) = 0.005 an entry: six of them.
    assert np.abs(approximate - np.exp(-squared / (2 * 0.3**2))).max() < 0.03


def test_several_bandwidths_average_their_kernels():
    rows = encoded_rows(30)
    features = feature_map(n_features=40_000, bandwidth=[0.1, 1.0])
    signed, _ = features.integers(rows)
    approximate = (signed @ signed.T) / 4.0 ** features.spec(1, 0).lattice_bits
    x = rows[:, list(LAYOUT.numeric)]
    squared = ((x[:, None] - x[None]) ** 2).sum(-1)
    expected = (np.exp(-squared / 0.02) + np.exp(-squared / 2)) / 2
    assert np.abs(approximate - expected).max() < 0.03


def test_features_of_a_row_ignore_its_position_and_the_chunking():
    features, rows = feature_map(), encoded_rows(300)
    whole = features.integers(rows)
    alone = [features.integers(row[None]) for row in rows]
    assert np.array_equal(whole[0], np.concatenate([a for a, _ in alone]))
    assert np.array_equal(whole[1], np.concatenate([b for _, b in alone]))
    backwards = features.integers(rows[::-1])
    assert np.array_equal(whole[0], backwards[0][::-1])


def test_total_on_hostile_floats():
    rows = np.full((1, LAYOUT.width), np.nan)
    rows[0, 0] = np.inf
    signed, codes = feature_map().integers(rows)
    expected = np.zeros((1, LAYOUT.width))
    expected[0, [0, 4]] = 1.0, 0.5
    assert np.array_equal(signed, feature_map().integers(expected)[0])
    assert codes.tolist() == [[0, 0]]


def test_without_numbers_there_are_no_frequencies():
    layout = EncodedLayout(width=2, numeric=(), groups=((0, 2),))
    features = MixedFeatureMap.draw(layout, n_features=100, bandwidth=1.0)
    assert features.width == 2
    assert features.integers(np.eye(2))[0].shape == (2, 0)


def test_same_seed_same_frequencies():
    assert np.array_equal(feature_map().frequencies, feature_map().frequencies)
    assert not np.array_equal(feature_map().frequencies, feature_map(random_state=1).frequencies)


@pytest.mark.parametrize("n_features", [0, -2, 3, 2.5, "many"])
def test_n_features_must_be_even_and_positive(n_features):
    with pytest.raises(PrivacyParameterError, match="n_features"):
        feature_map(n_features=n_features)


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.inf, np.nan, [], [0.1, 0.0], 1e-9])
def test_bandwidth_must_be_positive_and_not_tiny(bandwidth):
    with pytest.raises(PrivacyParameterError, match="bandwidth"):
        feature_map(bandwidth=bandwidth)


def test_wrong_width_is_refused():
    with pytest.raises(InputError, match="7 columns"):
        feature_map().integers(np.zeros((2, 3)))


def test_embedding_has_the_gradient_of_its_formula():
    import torch

    features = feature_map(n_features=20).embedding().double()
    rows = torch.as_tensor(encoded_rows(3), dtype=torch.float64).requires_grad_()
    # Analytic against numerical derivatives, in double precision.
    assert torch.autograd.gradcheck(features, rows)


def test_a_part_of_the_embedding_has_the_coordinates_of_the_whole():
    import torch

    features, rows = feature_map(n_features=20), torch.as_tensor(encoded_rows(5)).float()
    whole = features.embedding()(rows)
    parts = np.array([7, 2])
    assert features.n_parts == 10
    assert features.coordinates(parts).tolist() == [7, 2, 17, 12]
    found = features.embedding(parts)(rows)
    assert torch.equal(found[:, 4:], whole[:, 20:])
    # Products of other shapes round otherwise.
    assert found[:, :4].numpy() == pytest.approx(whole[:, [7, 2, 17, 12]].numpy(), abs=1e-6)
