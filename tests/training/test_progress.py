"""Listeners hear every step of a training and its end, and nothing of the trainings of others."""

import contextvars
import threading

import numpy as np
import pytest

from skdpgen import DPMERFSynthesizer, GaussianFeatures, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import make_gaussian_grid
from skdpgen.generators import build_generator
from skdpgen.layout import EncodedLayout
from skdpgen.model_selection import PrivateSearchCV
from skdpgen.synthesizers.sliced import SlicedFDivSynthesizer
from skdpgen.synthesizers.sliced_rows import SlicedRowsSynthesizer
from skdpgen.training import TrainingSettings, train, watching
from skdpgen.training.mixture_objective import frequency_groups
from skdpgen.training.mixture_trainer import MixtureSettings, MixtureTarget, fit_mixture
from skdpgen.training.progress import Progress, unwatched

LAYOUT = EncodedLayout(width=2, numeric=(0, 1), groups=())
POINTS, SCHEMA = make_gaussian_grid(200, random_state=0)
# A mixture that goes on below the noise floor: how many steps it takes doesn't depend on the noise.
SMALL = {
    "features": InteractionFeatures(40, n_bins=8),
    "generator": MixtureGenerator(8, floor_ratio=0.0),
}


def heard(run):
    """Everything a listener is told during a call, and what the call returns."""
    calls = []
    with watching(lambda *call: calls.append(call)):
        result = run()
    return calls, result


def network(n_steps=7, embed=lambda rows: rows):
    built = build_generator("mlp", LAYOUT, 1, seed=0)
    settings = TrainingSettings(n_steps, 20, device="cpu")
    return train(built, embed, np.full((1, 2), 0.3), np.ones(1), 0.0, settings)


def mixture(stddev=0.0, n_steps=50):
    """One binary column, known by one frequency: fitted in a few steps."""
    phase = [[np.array([[0, 0], [2**15, 2**15]], dtype=np.uint16)]]
    target = MixtureTarget(
        groups=frequency_groups([(0,)], phase, np.zeros((1, 4)), np.ones(2), 1,
                                np.random.default_rng(0)),
        n_codes=(2,), n_ordered=(0,), one_way=None, proportions=np.ones(1),
        feature_stddev=stddev, one_way_stddev=0.0, class_weights=np.ones(1), one_way_weight=0.0,
    )  # fmt: skip
    return fit_mixture(target, MixtureSettings(2, 1, n_steps, device="cpu"))


def test_every_step_of_a_network_is_told_with_its_loss():
    calls, result = heard(network)
    assert [call[:2] for call in calls] == [(step, 7) for step in range(1, 8)]
    assert [call[2] for call in calls] == result.loss_curve.tolist()


def test_every_step_of_a_mixture_is_told_with_its_loss():
    calls, result = heard(lambda: mixture(n_steps=5))
    assert result.status == "finished"
    assert [call[:2] for call in calls] == [(step, 5) for step in range(1, 6)]
    assert [call[2] for call in calls] == result.loss_curve.tolist()


def test_the_end_is_told_where_the_noise_floor_ends_it():
    calls, result = heard(lambda: mixture(stddev=10.0))
    done = len(result.loss_curve)
    assert result.status == "floor"
    assert done < 50
    assert [call[:2] for call in calls] == [*((i, 50) for i in range(1, done + 1)), (done, done)]


def test_the_end_is_told_where_training_diverges():
    steps = iter([1.0, 1.0, np.nan])
    calls, result = heard(lambda: network(embed=lambda rows: rows * next(steps)))
    assert result.status == "diverged"
    assert [call[:2] for call in calls] == [(1, 7), (2, 7), (3, 7), (3, 3)]
    assert np.isnan([call[2] for call in calls]).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    "synthesizer",
    [
        DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, n_steps=3, **SMALL),
        DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, n_steps=3, features=GaussianFeatures(8)),
        SlicedFDivSynthesizer(
            1.0, 1e-5, schema=SCHEMA, n_steps=3, n_slices=4, generator=SMALL["generator"]
        ),
        SlicedFDivSynthesizer(
            1.0, 1e-5, schema=SCHEMA, n_steps=3, n_slices=4, directions="sparse", batch_size=16
        ),
        SlicedRowsSynthesizer(400.0, 1e-5, schema=SCHEMA, n_steps=3, n_slices=4, batch_size=16),
    ],
    ids=["mixture", "network", "wrapped slices", "slices", "noisy rows"],
)
def test_all_synthesizers_tell_and_their_dress_rehearsals_do_not(synthesizer):
    fitted, _ = heard(lambda: synthesizer.fit(POINTS))
    # Nothing ends early: no mixture stops at the noise floor here.
    assert [call[:2] for call in fitted] == [(1, 3), (2, 3), (3, 3)]
    again, _ = heard(lambda: synthesizer.retrain(n_steps=2))
    assert again[0][:2] == (1, 2)


@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.PrivacyWarning")
def test_nobody_hears_the_tries_of_a_private_search():
    estimator = DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, n_steps=3, **SMALL)
    grid = {"features__n_frequencies": [20, 30, 40, 50]}
    calls, _ = heard(lambda: PrivateSearchCV(estimator, grid, 1.0, 1e-5).fit(POINTS))
    # The published one, trained once more; the search itself trains at least once.
    assert [call[:2] for call in calls] == [(1, 3), (2, 3), (3, 3)]


def test_what_a_listener_raises_ends_the_training():
    def stop(step, n_steps, loss):
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watching(stop):
        network()
    assert heard(network)[0][-1][:2] == (7, 7), "nobody listens after the block, new ones do"


@pytest.mark.parametrize("training", [network, mixture])
def test_a_listener_that_returns_true_ends_the_training(training):
    calls = []

    def stop(*call):
        calls.append(call)
        return call[0] == 3

    with watching(stop):
        result = training()
    assert result.status == "stopped"
    assert len(result.loss_curve) == 3
    assert [call[0] for call in calls] == [1, 2, 3, 3]
    assert calls[-1][:2] == (3, 3)
    # Nothing but True does: a listener may return whatever it likes.
    with watching(lambda *call: "go on"):
        assert training().status != "stopped"


def test_listeners_nest_and_can_be_kept_out():
    outer, inner = [], []
    with watching(lambda *call: outer.append(call)):
        with watching(lambda *call: inner.append(call)):
            Progress(2).step(0.5)
        with unwatched():
            Progress(2).step(0.25)
        Progress(1).step(0.125)
    Progress(1).step(1.0)
    assert inner == [(1, 2, 0.5)]
    assert outer == [(1, 2, 0.5), (1, 1, 0.125)]


def test_threads_have_listeners_of_their_own():
    calls = []
    with watching(lambda *call: calls.append(call)):
        thread = threading.Thread(target=lambda: Progress(1).step(0.5))
        thread.start()
        thread.join()
    assert calls == []


def test_a_thread_that_runs_in_the_context_is_heard():
    calls = []
    with watching(lambda *call: calls.append(call)):
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: Progress(1).step(0.5),))
        thread.start()
        thread.join()
    assert calls == [(1, 1, 0.5)]
