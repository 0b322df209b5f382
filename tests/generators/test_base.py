import pickle
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from skdpgen.exceptions import InputError
from skdpgen.generators import ConvGenerator, MLPGenerator, build_generator
from skdpgen.layout import EncodedLayout

LAYOUT = EncodedLayout(width=4, numeric=(0,), groups=((1, 4),))
IMAGE = EncodedLayout(12, tuple(range(12)), (), image_shape=(3, 4))


class Linear(nn.Module):
    """A user's module without a noise_dim."""

    def __init__(self, layout, n_classes, width=None):
        super().__init__()
        self.layer = nn.Linear(16 + n_classes, layout.width if width is None else width)

    def forward(self, noise, labels):
        return self.layer(torch.cat([noise, labels], dim=1))


class Normed(Linear):
    """Has batch normalization and dropout, which must be off when sampling."""

    def __init__(self, layout, n_classes):
        super().__init__(layout, n_classes)
        self.norm = nn.BatchNorm1d(layout.width)
        self.drop = nn.Dropout(0.5)

    def forward(self, noise, labels):
        return self.drop(self.norm(super().forward(noise, labels)))


@pytest.mark.parametrize(
    ("generator", "layout", "kind"),
    [
        ("auto", LAYOUT, MLPGenerator),
        ("auto", IMAGE, ConvGenerator),
        ("mlp", IMAGE, MLPGenerator),
        ("conv", IMAGE, ConvGenerator),
        (Linear, LAYOUT, Linear),
        (partial(MLPGenerator, hidden_sizes=(3,)), LAYOUT, MLPGenerator),
    ],
)
def test_every_way_to_name_a_generator(generator, layout, kind):
    built = build_generator(generator, layout, 2, seed=0)
    assert isinstance(built.backbone, kind)
    assert built.sample(np.array([0, 1]), seed=0).shape == (2, layout.width)


def test_a_module_is_copied_with_its_weights():
    module = Linear(LAYOUT, 2).double()
    before = module.layer.weight.clone()
    built = build_generator(module, LAYOUT, 2, seed=0)
    assert built.noise_dim == 16
    torch.testing.assert_close(built.backbone.layer.weight, before.float())
    with torch.no_grad():
        built.backbone.layer.weight.zero_()
    assert torch.equal(module.layer.weight, before)
    assert module.layer.weight.dtype == torch.float64


def test_weights_are_seeded_and_the_global_state_is_left_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, again, other = (build_generator("mlp", LAYOUT, 2, seed=s) for s in (1, 1, 2))
    first.sample(np.array([0, 1]), seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    assert _same_weights(first, again)
    assert not _same_weights(first, other)


def test_the_global_state_does_not_reach_the_weights():
    torch.manual_seed(5)
    first = build_generator("mlp", LAYOUT, 2, seed=1)
    torch.manual_seed(6)
    assert _same_weights(first, build_generator("mlp", LAYOUT, 2, seed=1))


@pytest.mark.parametrize("generator", [7, None, "gan"])
def test_an_unknown_generator_is_refused(generator):
    with pytest.raises(InputError, match="generator must be 'auto', 'mlp', 'conv'"):
        build_generator(generator, LAYOUT, 2, seed=0)


def test_a_callable_that_makes_no_module_is_refused():
    with pytest.raises(InputError, match=r"must return a torch\.nn\.Module; it returned dict"):
        build_generator(lambda layout, n_classes: {}, LAYOUT, 2, seed=0)


def test_a_wrong_width_is_refused():
    with pytest.raises(InputError, match=r"shape \(n_rows, 4\).*returned Tensor of shape \(2, 9\)"):
        build_generator(partial(Linear, width=9), LAYOUT, 2, seed=0)


def test_a_module_with_another_input_is_refused():
    with pytest.raises(InputError, match="failed when called as module"):
        build_generator(nn.Linear(3, 4), LAYOUT, 2, seed=0)


def test_rows_are_valid_and_seeded():
    built = build_generator("mlp", LAYOUT, 2, seed=0)
    labels = np.array([0, 1] * 300)
    rows = built.sample(labels, seed=4)
    assert rows.dtype == np.float32
    assert set(np.unique(rows[:, 1:])) == {0.0, 1.0}
    np.testing.assert_array_equal(rows[:, 1:].sum(axis=1), 1)
    np.testing.assert_array_equal(rows, built.sample(labels, seed=4))
    assert not np.array_equal(rows, built.sample(labels, seed=5))


def test_no_rows_keep_the_width():
    assert build_generator("mlp", LAYOUT, 2, seed=0).sample(np.array([], int), 0).shape == (0, 4)


def test_a_row_does_not_depend_on_how_many_are_drawn():
    built = build_generator(Normed, LAYOUT, 1, seed=0)
    many = built.sample(np.zeros(5000, dtype=np.int64), seed=1)[:, 0]
    assert not (many == 0.5).any()  # dropout is off
    ones = [built.sample(np.zeros(1, dtype=np.int64), seed=s)[0, 0] for s in range(400)]
    assert np.mean(ones) == pytest.approx(many.mean(), abs=5 * float(many.std()) / 20)
    assert np.std(ones) == pytest.approx(float(many.std()), rel=0.2)


def test_sampling_keeps_the_training_mode():
    built = build_generator("mlp", LAYOUT, 2, seed=0)
    assert built.training
    built.sample(np.array([0]), seed=0)
    assert built.training


def test_generators_pickle():
    built = build_generator("mlp", LAYOUT, 2, seed=0)
    loaded = pickle.loads(pickle.dumps(built))
    labels = np.array([1, 0])
    np.testing.assert_array_equal(loaded.sample(labels, seed=0), built.sample(labels, seed=0))


def _same_weights(first, second):
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)
