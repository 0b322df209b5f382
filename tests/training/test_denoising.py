from itertools import pairwise, product

import numpy as np
import pytest

from skdpgen.training.denoising import piecewise_constant


def pieces(smooth):
    return 1 + int((np.diff(smooth) != 0).sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stddev", [0.1, 0.3, 1.0])
def test_no_partition_is_better(seed, stddev):
    rng = np.random.default_rng(seed)
    noisy = rng.choice([0.0, 1.0], 9) + rng.normal(0, stddev, 9)

    def cost(ends):
        parts = [noisy[a:b] for a, b in pairwise([0, *ends, 9])]
        apart = sum(((part - part.mean()) ** 2).sum() for part in parts)
        return apart + 2 * stddev**2 * np.log(9) * len(parts), parts

    cuts = product([False, True], repeat=8)
    best = min((cost(np.flatnonzero(cut) + 1) for cut in cuts), key=lambda found: found[0])[1]
    expected = np.concatenate([np.full(len(part), part.mean()) for part in best])
    assert piecewise_constant(noisy, stddev) == pytest.approx(expected, abs=1e-12)


def test_noise_is_one_piece_and_its_mean_is_kept():
    # Seeded: of such draws one in twenty has a second piece.
    noisy = np.random.default_rng(0).normal(3.0, 1.0, 128)
    smooth = piecewise_constant(noisy, 1.0)
    assert pieces(smooth) == 1
    assert smooth[0] == pytest.approx(noisy.mean())


def test_spikes_and_steps_stay():
    rng = np.random.default_rng(1)
    clean = np.where(np.arange(128) < 40, 20.0, 5.0)
    clean[100] = 30.0
    smooth = piecewise_constant(clean + rng.normal(0, 1.0, 128), 1.0)
    assert np.abs(smooth - clean).max() < 2
    assert np.flatnonzero(np.diff(smooth)).tolist() == [39, 99, 100]


def test_without_noise_nothing_changes():
    noisy = np.random.default_rng(2).normal(size=50)
    assert piecewise_constant(noisy, 0.0) == pytest.approx(noisy, abs=1e-12)
    assert piecewise_constant(np.empty(0), 1.0).shape == (0,)
    assert piecewise_constant(np.array([4.0]), 1.0).tolist() == [4.0]
