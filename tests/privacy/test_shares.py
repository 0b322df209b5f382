"""What earlier releases leave of one guarantee, and a spend that was charged ahead."""

import copy
import math
import pickle
from dataclasses import replace

import pytest

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import composed_delta, noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.shares import (
    ReservedSpend,
    earlier_spend,
    multiplier_beside,
    nominal_mu,
)

ENTRY = LedgerEntry("demo", 4, 8.0, "replace-one", "row", 1, 1.0, 1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("share", [1e-3, 0.1, 0.9])
def test_the_rest_completes_the_total(epsilon, share):
    extra = share * 1e-5
    total = noise_multiplier(epsilon, (1e-5 - extra) / (1 - extra))
    mu = math.sqrt(share) / total
    rest = 1 / multiplier_beside(epsilon, 1e-5, mu, extra)
    assert rest**2 == pytest.approx((1 - share) / total**2, rel=1e-6)
    assert 1e-5 * (1 - 1e-6) < composed_delta(epsilon, math.hypot(mu, rest), extra) <= 1e-5


def test_without_earlier_releases_it_is_the_noise_multiplier():
    assert multiplier_beside(1.0, 1e-5, 0.0, 0.0) == noise_multiplier(1.0, 1e-5)


def test_a_rest_of_delta_that_underflows_is_nothing():
    with pytest.raises(PrivacyParameterError, match="leave nothing"):
        multiplier_beside(1.0, 1e-200, 0.0, 1e-201)


@pytest.mark.parametrize(("mu", "extra"), [(0.3, 0.0), (0.2681, 0.0), (0.0, 1e-5), (0.0, 0.1)])
def test_nothing_left_is_refused(mu, extra):
    with pytest.raises(PrivacyParameterError, match="leave nothing"):
        multiplier_beside(1.0, 1e-5, mu, extra)


def test_earlier_spends_add_up():
    other = replace(ENTRY, sensitivity_squared=9, noise_stddev=10.0, extra_delta=1e-6)
    insecure = replace(other, private=False, epsilon=math.inf)
    assert earlier_spend((), "replace-one", "row") == (0.0, 0.0)
    for second in (other, insecure):
        mu, extra = earlier_spend((ENTRY, second), "replace-one", "row")
        assert mu == pytest.approx(math.hypot(0.25, 0.3))
        assert extra == pytest.approx(1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        replace(ENTRY, noise_stddev=0.0),
        replace(ENTRY, adjacency="add-remove"),
        replace(ENTRY, unit="unit"),
        replace(ENTRY, n_directions=5, dimension=5),
        "entry",
    ],
)
def test_spends_that_cannot_be_earlier_ones_are_refused(bad):
    with pytest.raises(PrivacyParameterError, match="same adjacency and unit"):
        earlier_spend((bad,), "replace-one", "row")


def test_a_reserve_is_used_once():
    reserved = ReservedSpend(ENTRY)
    reserved.charge(replace(ENTRY, sensitivity_squared=16, noise_stddev=16.0))
    with pytest.raises(BudgetExceededError, match="charged ahead"):
        reserved.charge(ENTRY)


def test_copies_are_the_same_reserve():
    reserved = ReservedSpend(ENTRY)
    copies = copy.copy(reserved), copy.deepcopy([reserved])[0]
    reserved.charge(ENTRY)
    for copied in copies:
        with pytest.raises(BudgetExceededError, match="the charge stands, and this"):
            copied.charge(ENTRY)
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(reserved)


@pytest.mark.parametrize(
    "larger",
    [
        replace(ENTRY, noise_stddev=7.999),
        replace(ENTRY, sensitivity_squared=5),
        replace(ENTRY, noise_stddev=0.0),
        replace(ENTRY, adjacency="add-remove"),
        replace(ENTRY, unit="unit"),
        replace(ENTRY, unit="unit", rows_per_unit=2),
        replace(ENTRY, private=False),
        replace(ENTRY, extra_delta=1e-9),
        replace(ENTRY, n_directions=5, dimension=5),
    ],
)
def test_a_reserve_covers_no_more_than_was_charged(larger):
    reserved = ReservedSpend(ENTRY)
    with pytest.raises(BudgetExceededError, match="charged ahead"):
        reserved.charge(larger)
    reserved.charge(ENTRY)
    assert nominal_mu(ENTRY) == 0.25
