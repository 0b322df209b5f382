"""Loss curves: raw losses with the noise in them, the floor, and a sentence."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdpgen import DPMERFSynthesizer, GaussianFeatures, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import make_gaussian_grid
from skdpgen.plotting import LossDisplay

POINTS, SCHEMA = make_gaussian_grid(200, random_state=0)


def synthesizer(floor_ratio=0.0, n_steps=30):
    return DPMERFSynthesizer(
        1.0, 1e-5, schema=SCHEMA, features=InteractionFeatures(60, n_bins=8), n_steps=n_steps,
        generator=MixtureGenerator(8, floor_ratio=floor_ratio),
    )  # fmt: skip


def test_the_curve_is_that_of_the_training(overlaps):
    made = synthesizer().fit(POINTS)
    display = LossDisplay.from_synthesizer(made).plot()
    thin, thick = display.ax_.lines[:2]
    assert thin.get_ydata() == pytest.approx(made.loss_curve_ + made.noise_floor_)
    assert display.lines_ == [thick]
    assert display.ax_.lines[2].get_ydata() == pytest.approx([made.noise_floor_] * 2)
    assert display.ax_.get_yscale() == "log"
    assert overlaps(display.figure_) == []


def test_several_trainings_are_compared(overlaps):
    mixture = synthesizer().fit(POINTS)
    network = DPMERFSynthesizer(
        1.0, 1e-5, schema=SCHEMA, n_steps=5, batch_size=20, features=GaussianFeatures(8)
    ).fit(POINTS)
    for given, names in (
        ([mixture, network], ["1: DPMERFSynthesizer", "2: DPMERFSynthesizer"]),
        ({"mixture": mixture, "network": network}, ["mixture", "network"]),
    ):
        display = LossDisplay.from_synthesizer(given).plot()
        assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == names
        assert display.ax_.get_title(loc="left") == "Loss of 2 trainings."
        assert overlaps(display.figure_) == []


@pytest.mark.parametrize(
    ("loss", "floor", "sentence"),
    [
        ([4.0, 2.0], 1.0, "Training took 2 steps and ended at 2.00 times the noise floor."),
        ([4.0, 1.0], 1.0, "Training reached the noise floor after 2 steps"),
        ([4.0, 1.0], 0.0, "the distance to the release went from 4 to 1."),
        ([4.0], 8.0, "after 1 step: there was no more to learn."),
        ([], 1.0, "Training made no step."),
    ],
)
def test_how_it_went_in_words(loss, floor, sentence, overlaps):
    display = LossDisplay({"a": (loss, floor)})
    assert sentence in display.summary()
    assert overlaps(display.plot().figure_) == []


def test_the_thick_line_is_a_running_mean():
    loss = np.arange(1.0, 501.0)
    display = LossDisplay({"a": (loss, 0.0)}).plot()
    assert display.lines_[0].get_ydata()[-1] == np.mean(loss[-10:])
    assert display.lines_[0].get_ydata()[0] == 1.0


def test_losses_below_zero_have_a_linear_axis():
    assert LossDisplay({"a": ([1.0, -0.5], 0.0)}).plot().ax_.get_yscale() == "linear"


def test_untrained_ones_are_refused_and_none_are_said():
    with pytest.raises(NotFittedError):
        LossDisplay.from_synthesizer(synthesizer())
    assert LossDisplay({}).plot().ax_.get_title(loc="left") == "There is no training."
