"""Plans of training: whatever can fail fails in a rehearsal, before budget is spent."""

import numpy as np
import pytest
import torch
from torch import nn

from skdpgen.exceptions import InputError
from skdpgen.layout import EncodedLayout
from skdpgen.synthesizers._training import plan_training

LAYOUT = EncodedLayout(width=3, numeric=(0,), groups=((1, 3),))


def plan(seed=0, **changes):
    settings = {
        "generator": "mlp",
        "n_steps": 5,
        "batch_size": 8,
        "learning_rate": 0.1,
        "objective": "joint",
        "device": "cpu",
    }
    return plan_training(LAYOUT, 2, seeds=np.random.SeedSequence(seed), **{**settings, **changes})


def test_seeds_decide_weights_training_and_sampling():
    first, again, other = plan(), plan(), plan(seed=1)
    assert first.sampling_seed == again.sampling_seed != other.sampling_seed
    assert first.settings == again.settings != other.settings
    pairs = zip(first.generator.parameters(), again.generator.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert len({first.sampling_seed, first.settings.seed}) == 2


def test_the_rehearsal_leaves_the_weights_alone():
    planned = plan(generator=_Line())
    assert torch.equal(planned.generator.backbone.layer.weight, torch.ones(3, 18))


class _Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(18, 3)
        nn.init.ones_(self.layer.weight)

    def forward(self, noise, labels):
        return self.layer(torch.cat([noise, labels], dim=1))


class _NoWeights(nn.Module):
    def forward(self, noise, labels):
        return noise[:, :3]


class _NoGradient(_Line):
    def forward(self, noise, labels):
        return super().forward(noise, labels).detach()


class _NotANumber(_Line):
    def forward(self, noise, labels):
        return super().forward(noise, labels) * float("nan")


class _NoLargeBatch(_Line):
    def forward(self, noise, labels):
        if len(noise) > 2:
            raise RuntimeError("out of memory")
        return super().forward(noise, labels)


@pytest.mark.parametrize("module", [_NoWeights, _NoGradient, _NotANumber, _NoLargeBatch])
def test_generators_that_cannot_be_trained_are_refused(module):
    with pytest.raises(InputError, match="can't be trained"):
        plan(generator=module())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_steps": 0}, "n_steps"),
        ({"n_steps": 2.5}, "n_steps must be an integer"),
        ({"n_steps": "5"}, "n_steps must be an integer"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size must be an integer"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
        ({"objective": "sum"}, "objective"),
        ({"device": "gpu7"}, "device"),
        ({"device": 1.5}, "device"),
        ({"device": "meta"}, "can't be trained"),
        ({"generator": "gan"}, "generator"),
        ({"generator": None}, "generator"),
        ({"generator": "conv"}, "image"),
        ({"generator": lambda layout, n_classes: "mlp"}, "Module"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        plan(**changes)
