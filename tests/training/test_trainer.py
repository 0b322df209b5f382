import pickle

import numpy as np
import pytest
import torch
from torch import nn

from skdpgen.exceptions import InputError
from skdpgen.generators import build_generator
from skdpgen.layout import EncodedLayout
from skdpgen.training import TrainingSettings, train
from skdpgen.training.trainer import resolve_device

LAYOUT = EncodedLayout(width=4, numeric=(0,), groups=((1, 4),))
SHARES = np.array([0.75, 0.25])
# Features are the encoded rows themselves: class means of a number and of three categories.
MEANS = np.array([[0.3, 0.6, 0.3, 0.1], [0.9, 0.1, 0.2, 0.7]])
TARGET = SHARES[:, None] * MEANS
FAST = TrainingSettings(n_steps=150, batch_size=100, learning_rate=1e-2, device="cpu")


def _identity(rows):
    return rows


def _train(settings=FAST, generator="mlp", embed=_identity, noise_stddev=0.0):
    built = build_generator(generator, LAYOUT, 2, seed=0)
    return train(built, embed, TARGET, SHARES, noise_stddev, settings)


@pytest.mark.parametrize("objective", ["joint", "reweighted"])
def test_training_reaches_the_released_means(objective):
    settings = TrainingSettings(400, 100, 2e-2, objective, device="cpu")
    result = _train(settings)
    assert result.status == "finished"
    assert len(result.loss_curve) == 400
    assert abs(result.loss_curve[-20:].mean()) < 1e-3 < result.loss_curve[0]
    labels = np.repeat([0, 1], 4000)
    rows = result.generator.sample(labels, seed=0)
    np.testing.assert_allclose(rows[labels == 0].mean(axis=0), MEANS[0], atol=0.05)
    np.testing.assert_allclose(rows[labels == 1].mean(axis=0), MEANS[1], atol=0.05)


def test_the_start_is_not_changed():
    built = build_generator("mlp", LAYOUT, 2, seed=0)
    before = {k: v.clone() for k, v in built.state_dict().items()}
    train(built, _identity, TARGET, SHARES, 0.0, FAST)
    assert all(torch.equal(before[k], v) for k, v in built.state_dict().items())


def test_same_seed_same_weights_whatever_the_global_state():
    class Dropping(nn.Module):
        def __init__(self, layout, n_classes):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(), nn.Linear(32, layout.width))

        def forward(self, noise, labels):
            return self.net(noise)

    results = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        state = torch.get_rng_state()
        results.append(_train(generator=Dropping).generator.state_dict())
        assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(results[0][k], results[1][k]) for k in results[0])
    other = _train(TrainingSettings(150, 100, device="cpu", seed=1), Dropping)
    weight = "backbone.net.0.weight"
    assert not torch.equal(results[0][weight], other.generator.state_dict()[weight])


def test_training_works_while_gradients_are_off():
    with torch.no_grad():
        assert _train(TrainingSettings(3, 10, device="cpu")).status == "finished"


def test_noise_floor_is_subtracted():
    result = _train(TrainingSettings(3, 10, objective="reweighted", device="cpu"), noise_stddev=0.1)
    energy = 4 * 0.1**2
    weights = 1 / (0.75**2 + energy) + 1 / (0.25**2 + energy)
    assert result.noise_floor == pytest.approx(energy * weights)
    np.testing.assert_allclose(result.debiased_loss_curve, result.loss_curve - result.noise_floor)


def test_divergence_keeps_the_last_finite_weights():
    calls = 0

    def breaks_at_the_fifth_step(rows):
        nonlocal calls
        calls += 1
        return rows * (torch.nan if calls == 5 else 1.0)

    broken = _train(embed=breaks_at_the_fifth_step)
    assert broken.status == "diverged"
    assert len(broken.loss_curve) == 4
    assert np.isfinite(broken.loss_curve).all()
    assert all(torch.isfinite(p).all() for p in broken.generator.parameters())
    assert broken.generator.sample(np.array([0, 1]), seed=0).shape == (2, 4)


def test_an_infinite_gradient_stops_before_the_weights_move():
    def finite_with_bad_gradient(rows):
        return rows + (rows - rows.detach()).abs().sqrt()

    broken = _train(embed=finite_with_bad_gradient)
    assert broken.status == "diverged"
    assert len(broken.loss_curve) == 0
    assert all(torch.isfinite(p).all() for p in broken.generator.parameters())


def test_every_class_is_in_every_batch_however_small():
    seen = []

    def watch(rows):
        seen.append(len(rows))
        return rows

    _train(TrainingSettings(2, batch_size=1, device="cpu"), embed=watch)
    _train(TrainingSettings(1, batch_size=7, device="cpu"), embed=watch)
    assert seen == [4, 4, 8]


def test_result_is_on_the_cpu_in_evaluation_mode_and_pickles():
    result = pickle.loads(pickle.dumps(_train(TrainingSettings(2, 10))))
    assert not result.generator.training
    assert {p.device.type for p in result.generator.parameters()} == {"cpu"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"batch_size": -3}, "batch_size must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive"),
        ({"objective": "wasserstein"}, "objective must be 'joint' or 'reweighted'"),
    ],
)
def test_settings_out_of_range_are_named(parameters, message):
    with pytest.raises(InputError, match=message):
        TrainingSettings(**parameters)


def test_unknown_device_is_refused():
    with pytest.raises(InputError, match="device 'abacus'"):
        resolve_device("abacus")


def test_a_part_of_the_features_is_weighted_like_the_whole():
    settings = TrainingSettings(20, 100, 1e-2, "reweighted", device="cpu")
    built = build_generator("mlp", LAYOUT, 2, seed=0)

    def floor(n_features, noise=0.2):
        part = train(
            built,
            lambda rows: rows[:, :2],
            TARGET[:, :2],
            SHARES,
            noise,
            settings,
            n_features=n_features,
        )
        return part.noise_floor

    # Weights 1 / (p_c^2 + D s^2), with D that of the whole; two features are compared.
    expected = 2 * 0.04 * (1 / (SHARES**2 + 4 * 0.04)).sum()
    assert floor(4) == pytest.approx(expected, rel=1e-6)
    assert floor(None) == floor(2) != floor(4)
