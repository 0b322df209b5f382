import math
from functools import partial

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
from skdpgen.exceptions import ReleaseError
from skdpgen.privacy.accounting import gaussian_delta, gaussian_epsilon
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.release import Release
from skdpgen.privacy.slicing_accounting import slicing_delta
from skdpgen.reporting._promise import _profile_of_pair, odds, promise_of

FAST = {
    "features": InteractionFeatures(200, n_bins=16),
    "generator": MixtureGenerator(16),
    "n_steps": 2,
    "random_state": 0,
}


def entry(mu: float, **changes) -> LedgerEntry:
    facts = {
        "mechanism": "test",
        "sensitivity_squared": 10**12,
        "noise_stddev": 10**6 / mu,
        "adjacency": "replace-one",
        "unit": "row",
        "rows_per_unit": 1,
        "epsilon": 1.0,
        "delta": 1e-5,
    }
    return LedgerEntry(**{**facts, **changes})


@pytest.fixture(scope="module")
def table():
    return make_gaussian_grid(300, random_state=0)


@pytest.mark.parametrize("mu", [0.01, 0.268, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("false_alarms", [0.001, 0.01, 0.3])
def test_odds_of_a_gaussian_release_are_its_closed_form(mu, false_alarms):
    # Dong, Roth, Su, arXiv 1905.02383, eq. 6: power Phi(Phi^-1(alpha) + mu).
    found = odds(partial(gaussian_delta, mu=mu), false_alarms)
    assert found.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-12)
    exact = norm.cdf(norm.ppf(false_alarms) + mu)
    assert exact * (1 - 1e-12) <= found.caught <= exact * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_odds_of_a_single_pair_are_those_of_randomized_response(epsilon):
    # The mechanism that attains a pair (epsilon, 0): says the truth with odds e^epsilon.
    found = odds(lambda other: _profile_of_pair(other, epsilon, 0.0))
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert found.guess == pytest.approx(truth, rel=1e-12)
    # Its most powerful test of level alpha: on "yes" as often as alpha allows, then beyond.
    lie = 1 - truth
    power = 0.01 / lie * truth if lie >= 0.01 else truth + (0.01 - lie) / (1 - lie) * lie
    # At a kink the search stops a little short of it, on the safe side.
    assert power * (1 - 1e-12) <= found.caught <= power * (1 + 1e-5)


def test_a_profile_of_a_pair_goes_through_that_pair():
    assert _profile_of_pair(1.0, 1.0, 1e-3) == 1e-3
    assert _profile_of_pair(2.0, 1.0, 1e-3) == 1e-3
    assert _profile_of_pair(0.0, 1.0, 0.0) == pytest.approx((math.e - 1) / (math.e + 1))


def test_nothing_given_nothing_promised():
    assert promise_of(None, None) is None


def test_a_release_alone(table):
    frame, schema = table
    synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, **FAST).fit(frame)
    promise = promise_of(synth.release_, None)
    mu = math.sqrt(synth.release_.sensitivity_squared) / synth.release_.noise_stddev
    assert promise.private
    assert (promise.epsilon, promise.delta) == (1.0, 1e-5)
    assert promise.statement == synth.release_.statement()
    assert promise.verified == pytest.approx(1.0, rel=1e-5)
    assert promise.odds.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-9)
    assert promise.n_rows == len(frame)
    assert promise.spent is promise.cap is promise.remaining is None


def test_the_ledger_counts_what_the_release_does_not(table):
    frame, schema = table
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)
    synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, ledger=ledger, **FAST).fit(frame)
    synth.fit(frame)
    promise = promise_of(synth.release_, ledger)
    mu = math.sqrt(2 * synth.release_.sensitivity_squared) / synth.release_.noise_stddev
    assert promise.epsilon == pytest.approx(gaussian_epsilon(1e-5, mu), rel=1e-9)
    assert promise.odds.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-9)
    assert len(promise.entries) == 2
    assert promise.cap == (2.0, 1e-5)
    assert promise.remaining == ledger.remaining()


def test_add_remove_publishes_no_number_of_rows(table):
    frame, schema = table
    synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, adjacency="add-remove", **FAST).fit(frame)
    promise = promise_of(synth.release_, synth.ledger_)
    assert promise.n_rows is None
    assert promise.adjacency == "add-remove"


def test_learned_categories_count():
    ledger = PrivacyLedger()
    ledger.charge(entry(0.3, extra_delta=1e-6))
    promise = promise_of(None, ledger)
    expected = 1e-6 + (1 - 1e-6) * gaussian_delta(0.0, 0.3)
    assert promise.odds.guess == pytest.approx((1 + expected) / 2, rel=1e-12)


def test_a_slicing_release_has_its_exact_odds(table):
    frame, schema = table
    synth = SlicedRowsSynthesizer(
        50.0, 1e-5, schema=schema, n_slices=2, n_steps=1, random_state=0
    ).fit(frame)
    release = synth.release_
    promise = promise_of(release, None)
    facts = release.layout.entry(release.value_bits, release.noise_stddev, 50.0, 1e-5, True)
    total_variation = slicing_delta(0.0, release.noise_stddev, **facts.slicing)
    assert promise.odds.guess == pytest.approx((1 + total_variation) / 2, rel=1e-6)


def test_slicing_beside_other_charges_uses_the_pair(table):
    frame, schema = table
    ledger = PrivacyLedger()
    SlicedRowsSynthesizer(
        50.0, 1e-5, schema=schema, n_slices=2, n_steps=1, random_state=0, ledger=ledger
    ).fit(frame)
    ledger.charge(entry(0.1))
    promise = promise_of(None, ledger)
    bound = _profile_of_pair(0.0, promise.epsilon, promise.delta)
    assert promise.odds.guess == pytest.approx((1 + bound) / 2)


def test_insecure_noise_promises_nothing(table):
    frame, schema = table
    with insecure_noise(seed=0):
        synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, **FAST).fit(frame)
    promise = promise_of(synth.release_, None)
    assert not promise.private
    assert promise.epsilon == math.inf
    assert promise.odds is None


def test_rows_read_without_protection_end_the_promise():
    ledger = PrivacyLedger()
    ledger.charge(entry(0.2))
    ledger.record_unprotected("a look")
    promise = promise_of(None, ledger)
    assert not promise.private
    assert promise.epsilon == math.inf
    assert promise.spent.startswith("NOT PRIVATE")


def test_an_empty_ledger_spent_nothing():
    promise = promise_of(None, PrivacyLedger(epsilon=1.0, delta=1e-6))
    assert (promise.epsilon, promise.delta) == (0.0, 1e-6)
    assert promise.odds.guess == 0.5
    assert promise.spent == "Nothing was spent."


def test_a_release_that_contradicts_itself_is_not_verified(table):
    frame, schema = table
    release = DPMERFSynthesizer(1.0, 1e-5, schema=schema, **FAST).fit(frame).release_
    facts = {name: getattr(release, name) for name in release.__dataclass_fields__}
    lying = Release(**{**facts, "noise_stddev": release.noise_stddev / 2})
    with pytest.raises(ReleaseError):
        lying.verify()
    promise = promise_of(lying, None)
    assert promise.verified is None
    assert "too small" in promise.refusal
    # The odds are those of the noise that there is.
    mu = 2 * np.sqrt(release.sensitivity_squared) / release.noise_stddev
    assert promise.odds.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-9)


def test_the_ledger_of_another_table_is_noticed(table):
    frame, schema = table
    synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, **FAST).fit(frame)
    assert not promise_of(synth.release_, synth.ledger_).foreign
    other = PrivacyLedger()
    other.charge(entry(0.1))
    assert promise_of(synth.release_, other).foreign
    assert promise_of(synth.release_, PrivacyLedger()).foreign


def test_a_ledger_that_paid_for_a_learned_domain_is_the_right_one(table):
    frame, _ = table
    synth = DPMERFSynthesizer(1.0, 1e-5, **FAST).fit(frame)
    assert len(synth.release_.spends) > 1
    assert not promise_of(synth.release_, synth.ledger_).foreign
