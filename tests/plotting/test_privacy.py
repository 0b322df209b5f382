"""Privacy curves: every point holds, the promised one is on the curve, and words are true."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from skdpgen import (
    DPMERFSynthesizer,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    SlicedRowsSynthesizer,
    insecure_noise,
)
from skdpgen.datasets import make_gaussian_grid
from skdpgen.exceptions import InputError, ReleaseError
from skdpgen.plotting import PrivacyCurveDisplay
from skdpgen.privacy import LedgerEntry, gaussian_delta, noise_multiplier
from skdpgen.privacy.ledger_report import up
from skdpgen.privacy.slicing_accounting import slicing_delta

POINTS, SCHEMA = make_gaussian_grid(200, random_state=0)
CHEAP = {
    "features": InteractionFeatures(60, n_bins=8),
    "generator": MixtureGenerator(8),
    "n_steps": 2,
}


def fitted(epsilon=1.0, delta=1e-5, **params):
    return DPMERFSynthesizer(epsilon, delta, **{"schema": SCHEMA, **CHEAP, **params}).fit(POINTS)


def entry(mu, mechanism="demo", **facts):
    return LedgerEntry(mechanism, 1, 1 / mu, "replace-one", "row", 1, 1.0, 1e-5, **facts)


@pytest.fixture(scope="module")
def release():
    return fitted().release_


def test_the_curve_is_the_exact_one_of_the_noise(release):
    (curve,) = PrivacyCurveDisplay.from_release(release).curves
    mu = math.sqrt(release.sensitivity_squared) / release.noise_stddev
    inside = curve.epsilon > 0
    assert inside.sum() > 40
    for epsilon, delta in zip(curve.epsilon[inside], curve.delta[inside], strict=True):
        assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-6)
    # It ends at the total variation distance, where nothing can be smaller than epsilon = 0.
    assert curve.epsilon[-1] == 0
    assert curve.delta[-1] == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-5)
    assert curve.delta[-1] >= 2 * norm.cdf(mu / 2) - 1
    assert curve.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-5)


def test_the_promised_point_is_on_the_curve(release):
    (curve,) = PrivacyCurveDisplay.from_release(release).curves
    assert curve.promise == (1.0, 1e-5)
    at = curve.epsilon[curve.delta == 1e-5].item()
    assert 0.999 < at <= 1.0


@pytest.mark.filterwarnings("ignore:the noisy projections")
def test_a_slicing_release_has_its_own_exact_curve():
    made = SlicedRowsSynthesizer(
        10.0, 1e-5, schema=SCHEMA, n_slices=4, n_steps=1, batch_size=16
    ).fit(POINTS)
    release = made.release_
    (curve,) = PrivacyCurveDisplay.from_release(release).curves
    facts = release.layout.entry(
        release.value_bits, release.noise_stddev, 10.0, 1e-5, True
    ).slicing  # fmt: skip
    for i in range(0, len(curve.delta) - 1, 10):
        exact = slicing_delta(curve.epsilon[i], release.noise_stddev, **facts)
        assert exact == pytest.approx(curve.delta[i], rel=1e-4)
    assert "epsilon = 10 at delta = 1e-05, as promised" in PrivacyCurveDisplay([curve]).caption()


def test_learned_bounds_are_in_the_curve():
    made = fitted(schema=None)
    assert made.release_.earlier
    (curve,) = PrivacyCurveDisplay.from_release(made.release_).curves
    assert 0.999 < curve.epsilon[curve.delta == 1e-5].item() <= 1.0
    own = math.sqrt(made.release_.sensitivity_squared) / made.release_.noise_stddev
    assert curve.guess > norm.cdf(own / 2) + 1e-3


def test_a_ledger_adds_up_what_its_entries_spend():
    ledger = PrivacyLedger()
    for mu in (0.3, 0.4):
        ledger.charge(entry(mu))
    display = PrivacyCurveDisplay.from_ledger(ledger)
    first, second, total = display.curves
    assert (first.name, second.name, total.name) == ("1: demo", "2: demo", "all 2 together")
    for curve, mu in ((first, 0.3), (second, 0.4), (total, 0.5)):
        assert curve.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-5)
    assert total.epsilon[total.delta == 1e-5].item() == pytest.approx(ledger.spent(1e-5))
    assert f"epsilon = {up(ledger.spent(1e-5))} at delta = 1e-05." in display.caption()


def test_the_cap_of_a_ledger_is_marked(overlaps):
    ledger = PrivacyLedger(2.0, 1e-6)
    ledger.charge(entry(0.1))
    display = PrivacyCurveDisplay.from_ledger(ledger).plot()
    assert display.curves[-1].promise == (2.0, 1e-6)
    spent = up(ledger.spent(1e-6))
    assert display.caption().startswith(
        f"One release: epsilon = {spent} at delta = 1e-06, of the 2 that the ledger allows."
    )
    assert "allowed: epsilon = 2" in display.ax_.texts[0].get_text()
    assert overlaps(display.figure_) == []


def test_many_spends_are_drawn_as_one():
    ledger = PrivacyLedger()
    for _ in range(9):
        ledger.charge(entry(0.1))
    (curve,) = PrivacyCurveDisplay.from_ledger(ledger).curves
    assert curve.guess == pytest.approx(norm.cdf(0.15), rel=1e-5)


def test_several_releases_are_compared_and_not_added_up(release, overlaps):
    other = fitted(3.0, 1e-6, adjacency="add-remove").release_
    for given, names in (
        ([release, other], ["release 1", "release 2"]),
        ({"one": release, "three": other}, ["one", "three"]),
    ):
        display = PrivacyCurveDisplay.from_release(given).plot()
        assert [c.name for c in display.curves] == names
        assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == names
        assert overlaps(display.figure_) == []
        assert display.caption() == (
            f"{names[0]}: epsilon = 1 at delta = 1e-05, as promised. "
            f"{names[1]}: epsilon = 3 at delta = 1e-06, as promised."
        )
    # A row replaced and a row added are different questions.
    assert display.protects == ""


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "which of two versions of one row the table holds"),
        ({"adjacency": "add-remove"}, "whether the table holds one row"),
        ({"rows_per_unit": 2}, "which of two versions of the rows of one unit the table holds"),
    ],
)
def test_words_name_what_is_protected(params, words):
    made = fitted(**params)
    caption = PrivacyCurveDisplay.from_release(made.release_).caption()
    mu = 1 / noise_multiplier(1.0, 1e-5)
    share = math.ceil(1000 * norm.cdf(mu / 2)) / 10
    assert f"Whoever guesses {words}" in caption
    assert f"at most {share:g}% (a coin: 50%)" in caption


def test_pictures_can_be_read(release, overlaps):
    display = PrivacyCurveDisplay.from_release(release)
    assert display.plot() is display
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_title(loc="left") == (
        "Release: epsilon = 1 at delta = 1e-05, as promised."
    )
    assert np.array_equal(display.lines_[0].get_xdata(), display.curves[0].epsilon)
    assert overlaps(display.figure_) == []


def test_what_is_not_private_has_words_and_no_curve(overlaps):
    with insecure_noise():
        made = fitted()
    for display, words in (
        (PrivacyCurveDisplay.from_release(made.release_), "NOT PRIVATE: made with insecure noise"),
        (PrivacyCurveDisplay.from_ledger(made.ledger_), "NOT PRIVATE"),
        (PrivacyCurveDisplay.from_ledger(PrivacyLedger()), "Nothing was spent"),
    ):
        assert display.curves == ()
        assert words in display.caption()
        shown = " ".join(display.plot().ax_.texts[0].get_text().split())
        assert words in shown
        assert overlaps(display.figure_) == []
    ledger = PrivacyLedger()
    ledger.charge(entry(0.1))
    ledger.record_unprotected("selection by a score on private rows")
    assert "selection by a score" in PrivacyCurveDisplay.from_ledger(ledger).caption()


def test_only_releases_that_hold_what_they_promise_are_drawn(release):
    from dataclasses import replace

    with pytest.raises(InputError, match="got a DPMERFSynthesizer: give release_"):
        PrivacyCurveDisplay.from_release(DPMERFSynthesizer(1.0, 1e-5))
    with pytest.raises(ReleaseError, match="too small"):
        PrivacyCurveDisplay.from_release(replace(release, noise_stddev=release.noise_stddev / 2))
