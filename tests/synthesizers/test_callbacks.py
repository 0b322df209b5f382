"""scikit-learn's callbacks hear how far a fit is, and never see a row; ``verbose`` prints it."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
)
from skdpgen.datasets import make_gaussian_grid
from skdpgen.exceptions import InputError, PrivacyLeakError
from skdpgen.model_selection import PrivateSearchCV, ReleaseHalvingSearchCV, ReleaseSearchCV
from skdpgen.utils.canaries import SCHEMA, findings, marked_table, reachable

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:
    HAS_CALLBACKS = False
else:
    HAS_CALLBACKS = True

with_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason="callbacks came with 1.9")
POINTS, GRID = make_gaussian_grid(200, random_state=0)
MIXTURE = {
    "features": InteractionFeatures(60, n_bins=8),
    "generator": MixtureGenerator(8, n_mixtures=2, floor_ratio=0.0),
    "n_steps": 4,
    "random_state": 0,
}
# Ends after the first pass over the frequencies: the loss starts within a thousand noise floors.
SOON = MixtureGenerator(8, floor_ratio=1000.0)


def synthesizer(**params):
    return DPMERFSynthesizer(1.0, 1e-5, schema=GRID, **{**MIXTURE, **params})


class Recorder:
    """A callback that writes down what it is told, and calls a function with it."""

    max_propagation_depth = None

    def __init__(self, then=lambda event, task, estimator: None):
        self.events = []
        self.then = then

    def _tell(self, event, estimator, context):
        self.events.append((event, context.task_name))
        return self.then(event, context.task_name, estimator)

    def setup(self, estimator, context):
        self._tell("setup", estimator, context)

    def teardown(self, estimator, context):
        self._tell("teardown", estimator, context)

    def on_fit_task_begin(self, estimator, context):
        self._tell("begin", estimator, context)

    def on_fit_task_end(self, estimator, context):
        return self._tell("end", estimator, context)


def steps(n):
    return [
        ("begin", "train"),
        *[(event, "steps") for _ in range(n) for event in ("begin", "end")],
        ("end", "train"),
    ]


RELEASE = [("begin", "release"), ("end", "release")]


def run(name, *parts):
    return [("setup", name), ("begin", name), *parts, ("end", name), ("teardown", name)]


@pytest.mark.skipif(HAS_CALLBACKS, reason="of older versions")
def test_without_callbacks_in_scikit_learn_there_is_no_method():
    assert not hasattr(synthesizer(), "set_callbacks")
    assert not hasattr(ReleaseSearchCV(synthesizer(), {}), "set_callbacks")


@with_callbacks
@pytest.mark.parametrize(
    "made",
    [
        synthesizer(),
        synthesizer(features=GaussianFeatures(8), generator="auto"),
        SlicedFDivSynthesizer(
            1.0, 1e-5, schema=GRID, n_slices=4, n_steps=4, generator=MIXTURE["generator"]
        ),
        SlicedRowsSynthesizer(400.0, 1e-5, schema=GRID, n_slices=4, n_steps=4, batch_size=16),
    ],
    ids=["mixture", "network", "slices", "noisy rows"],
)
def test_a_fit_tells_of_its_release_and_of_each_step(made):
    recorder = Recorder()
    made.set_callbacks(recorder).fit(POINTS)
    assert recorder.events == run("fit", *RELEASE, *steps(4))
    recorder.events.clear()
    made.retrain(n_steps=2)
    assert recorder.events == run("retrain", *steps(2))
    assert [name for name in vars(made) if "callback" in name] == ["_skl_callbacks"]


@with_callbacks
@pytest.mark.parametrize(("n_steps", "n_hooks"), [(100, 100), (101, 100), (350, 100), (7, 7)])
def test_long_trainings_tell_a_hundred_times(n_steps, n_hooks):
    recorder = Recorder()
    synthesizer(n_steps=n_steps).set_callbacks(recorder).fit(POINTS)
    assert recorder.events.count(("end", "steps")) == n_hooks


@with_callbacks
def test_a_training_that_ends_at_the_noise_floor_tells_its_end():
    recorder = Recorder()
    made = synthesizer(n_steps=50, generator=SOON).set_callbacks(recorder).fit(POINTS)
    done = len(made.loss_curve_)
    assert 1 <= done < 50
    assert recorder.events.count(("end", "steps")) == done
    assert recorder.events[-3:] == run("fit", ("end", "train"))[-3:]


@with_callbacks
def test_no_hook_sees_anything_of_the_rows():
    places = {}

    def look(event, task, estimator):
        content = pickle.dumps({k: v for k, v in vars(estimator).items() if "callback" not in k})
        places[event, task, len(places)] = findings(content)
        for path, thing in reachable(vars(estimator)):
            assert not isinstance(thing, pd.DataFrame | pd.Series), path

    made = DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, **MIXTURE)
    for _ in range(2):
        made.set_callbacks(Recorder(look)).fit(marked_table())
    assert len(places) == 2 * 16
    assert [place for place, found in places.items() if found] == []


@with_callbacks
def test_hooks_are_given_no_data_and_the_fitted_synthesizer_at_the_end():
    given = []

    class Greedy(Recorder):
        def on_fit_task_end(self, estimator, context, *, metadata=None, fitted_estimator=None):
            given.append((context.task_name, metadata, fitted_estimator))

    synthesizer(n_steps=1).set_callbacks(Greedy()).fit(POINTS)
    names, metadata, fitted = zip(*given, strict=True)
    assert names == ("release", "steps", "train", "fit")
    assert metadata == (None,) * 4
    assert fitted[:3] == (None,) * 3
    assert fitted[3].sample(5).shape == (5, 3)


@with_callbacks
def test_callbacks_that_want_rows_are_refused():
    class Nosy(Recorder):
        def on_fit_task_begin(self, estimator, context, *, X=None):
            pass

    for made in (synthesizer(), ReleaseSearchCV(synthesizer(), {"n_steps": [1]})):
        for callback in (Nosy(), ScoringMonitor(scoring="accuracy")):
            with pytest.raises(PrivacyLeakError, match=f"{type(callback).__name__} asks for"):
                made.set_callbacks(callback)
        with pytest.raises(TypeError, match="FitCallback protocol"):
            made.set_callbacks("bar")


@with_callbacks
def test_a_callback_that_got_past_the_check_is_given_no_rows_either():
    given = []

    class Sneaky(Recorder):
        def on_fit_task_end(self, estimator, context, *, X=None, y=None):
            given.append((X, y))

    made = synthesizer()
    made._skl_callbacks = [Sneaky()]
    made.fit(POINTS)
    assert given == [(None, None)] * 7


@with_callbacks
@pytest.mark.parametrize(
    ("moment", "charged"),
    [
        (("setup", "fit"), 0),
        (("begin", "fit"), 0),
        (("begin", "release"), 0),
        (("end", "release"), 1),
        (("begin", "train"), 1),
        (("end", "steps"), 1),
        (("end", "fit"), 1),
        (("teardown", "fit"), 1),
    ],
)
def test_a_callback_that_fails_loses_no_spend_and_no_release(moment, charged):
    def fail(event, task, estimator):
        if (event, task) == moment:
            raise RuntimeError("no more")

    ledger = PrivacyLedger()
    first = synthesizer(ledger=ledger).fit(POINTS)
    before = first.release_
    recorder = Recorder(fail)
    with pytest.raises(RuntimeError, match="no more"):
        first.set_callbacks(recorder).fit(POINTS)
    assert len(ledger.entries) == 1 + charged
    assert (first.release_ is before) == (charged == 0)
    assert recorder.events[-1] == ("teardown", "fit")
    trained = moment[1] == "fit" or not charged
    if not trained:
        with pytest.raises(NotFittedError):
            first.sample()
    assert first.set_callbacks().retrain().sample(3).shape == (3, 3)
    assert len(ledger.entries) == 1 + charged


@with_callbacks
@pytest.mark.parametrize("params", [{}, {"features": GaussianFeatures(8), "generator": "auto"}])
def test_a_callback_can_end_the_training(params):
    recorder = Recorder(lambda event, task, estimator: (event, task) == ("end", "steps"))
    made = synthesizer(**params).set_callbacks(recorder).fit(POINTS)
    assert len(made.loss_curve_) == 1
    assert recorder.events == run("fit", *RELEASE, *steps(1))
    assert made.sample(5).shape == (5, 3)


@with_callbacks
def test_clones_share_callbacks_and_pickles_have_copies():
    recorder = Recorder()
    made = synthesizer().set_callbacks(recorder)
    assert clone(made)._skl_callbacks == [recorder]
    bar = synthesizer().set_callbacks(ProgressBar()).fit(POINTS)
    again = pickle.loads(pickle.dumps(bar))
    assert [type(callback) for callback in again._skl_callbacks] == [ProgressBar]
    again.retrain()
    assert not hasattr(made.set_callbacks(), "_skl_callbacks")


@with_callbacks
def test_a_search_hands_its_callbacks_on():
    recorder = Recorder()
    search = ReleaseSearchCV(synthesizer(), {"n_steps": [1, 2]}, cv=2).set_callbacks(recorder)
    search.fit(POINTS)
    own = [e for e in recorder.events if e[1] in ("release", "fit", "train", "retrain")]
    # A fit that isn't the outermost has no setup; four candidates on two folds, then the best.
    fit = [("begin", "fit"), ("end", "fit")]
    last = [("begin", "retrain"), ("begin", "train"), ("end", "train"), ("end", "retrain")]
    inner = [fit[0], *fit * 4, fit[1]]
    assert own == run("fit", *RELEASE, *inner, *last)
    recorder.events.clear()
    search.fit_release(search.release_)
    assert recorder.events[0] == ("setup", "fit_release")
    assert len(search.ledger_.entries if hasattr(search, "ledger_") else ()) == 0


@with_callbacks
def test_progress_bars_show_searches(capsys):
    for search in (
        ReleaseSearchCV(synthesizer(), {"n_steps": [1, 2]}, cv=2),
        ReleaseHalvingSearchCV(synthesizer(n_steps=9), {"learning_rate": [0.1, 0.2]}, cv=2),
    ):
        search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(POINTS)
        shown = capsys.readouterr().out
        assert [word in shown for word in ("fit", "search", "retrain", "train #0")] == [True] * 4


@with_callbacks
def test_a_bar_on_the_estimator_of_a_search_is_refused_before_the_charge():
    ledger = PrivacyLedger()
    inner = synthesizer(ledger=ledger).set_callbacks(ProgressBar())
    with pytest.raises(InputError, match="ProgressBar is set on the estimator of a search"):
        ReleaseSearchCV(inner, {"n_steps": [1]}, cv=2).fit(POINTS)
    assert ledger.entries == ()


@with_callbacks
def test_a_search_interrupted_by_a_callback_keeps_its_release():
    def fail(event, task, estimator):
        if task == "search":
            raise RuntimeError("no more")

    search = ReleaseSearchCV(synthesizer(), {"n_steps": [1]}, cv=2).set_callbacks(Recorder(fail))
    with pytest.raises(RuntimeError, match="no more"):
        search.fit(POINTS)
    assert len(search.ledger_.entries) == 1
    assert DPMERFSynthesizer.from_release(search.release_, n_steps=1).sample(2).shape == (2, 3)


@with_callbacks
@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.PrivacyWarning")
def test_a_private_search_tells_nothing_but_what_it_publishes(capsys):
    recorder = Recorder()
    inner = synthesizer(verbose=2).set_callbacks(recorder)
    grid = {"features__n_frequencies": [20, 30, 40, 50]}
    search = PrivateSearchCV(inner, grid, 1.0, 1e-5)
    assert not hasattr(search, "set_callbacks")
    search.fit(POINTS)
    assert recorder.events == []
    assert len(capsys.readouterr().out.splitlines()) == 4, "the steps of the published training"


# -- verbose ---------------------------------------------------------------------------------------


def printed(capsys, made):
    made.fit(POINTS)
    return capsys.readouterr().out.splitlines()


def test_nothing_is_printed_by_default(capsys):
    assert printed(capsys, synthesizer()) == []


@pytest.mark.parametrize(("n_steps", "expected"), [(4, [1, 2, 3, 4]), (35, None)])
def test_verbose_prints_ten_lines_a_training(capsys, n_steps, expected):
    expected = expected or [4, 7, 11, 14, 18, 21, 25, 28, 32, 35]
    made = synthesizer(n_steps=n_steps, verbose=1)
    lines = printed(capsys, made)
    losses = made.loss_curve_ + made.noise_floor_
    assert lines == [
        f"[DPMERFSynthesizer] step {step} of {n_steps}, loss {losses[step - 1]:.4g}"
        for step in expected
    ]


def test_more_verbose_prints_each_step(capsys):
    assert len(printed(capsys, synthesizer(n_steps=35, verbose=2))) == 35


def test_an_early_end_is_printed(capsys):
    made = synthesizer(n_steps=50, verbose=True, generator=SOON)
    lines = printed(capsys, made)
    assert re.fullmatch(
        rf"\[DPMERFSynthesizer\] ended after {len(made.loss_curve_)} of 50 steps, loss \S+",
        lines[-1],
    )


def test_printing_can_be_changed_without_a_new_release(capsys):
    made = synthesizer().fit(POINTS)
    release = made.release_
    made.retrain(verbose=1)
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert made.release_ is release


@pytest.mark.parametrize("verbose", [-1, 1.5, "yes", None, np.nan])
@pytest.mark.parametrize("kind", [DPMERFSynthesizer, SlicedFDivSynthesizer, SlicedRowsSynthesizer])
def test_a_bad_verbose_is_refused_before_the_charge(kind, verbose):
    ledger = PrivacyLedger()
    made = kind(1.0, 1e-5, schema=GRID, ledger=ledger, verbose=verbose)
    with pytest.raises(InputError, match="verbose must be"):
        made.fit(POINTS)
    assert ledger.entries == ()
