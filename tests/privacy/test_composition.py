"""What spends add up to: by hand, by quadrature, by dp_accounting; and no strategy beats a cap."""

import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy import composition
from skdpgen.privacy.accounting import (
    composed_delta,
    composed_epsilon,
    noise_multiplier,
)
from skdpgen.privacy.composition import fits, total_epsilon
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.slicing_accounting import (
    slicing_delta,
    slicing_epsilon,
    slicing_noise_stddev,
)


def entry(mu=0.25, **kwargs):
    fields = {"adjacency": "replace-one", "unit": "row", "rows_per_unit": 1}
    fields |= {"epsilon": 1.0, "delta": 1e-5} | kwargs
    return LedgerEntry("test", 4, 2 / mu, **fields)


ADD_REMOVE = {"adjacency": "add-remove"}


@pytest.fixture(params=["memory", "file"])
def storage(request, tmp_path):
    return {} if request.param == "memory" else {"path": tmp_path / "ledger.db"}


# -- spends that may fail to be Gaussian ---------------------------------------------------------


def fitted(epsilon, delta, extra):
    """Largest mu for which a release with this extra_delta is (epsilon, delta)-DP."""
    return 1 / noise_multiplier(epsilon, (delta - extra) / (1 - extra))


def test_totals_with_an_extra_delta(storage):
    ledger = PrivacyLedger(**storage)
    ledger.charge_all([entry(0.3, extra_delta=1e-6), entry(0.4)])
    ledger.charge(entry(1.2, extra_delta=2e-6))
    extra = 3e-6 - 2e-12  # 1 - (1 - 1e-6) * (1 - 2e-6)
    assert ledger.spent(1e-5) == pytest.approx(composed_epsilon(1e-5, 1.3, extra), rel=1e-9)
    assert ledger.spent(2.9e-6) == math.inf
    assert [e.extra_delta for e in ledger.entries] == [1e-6, 0.0, 2e-6]


def test_a_first_charge_with_an_extra_delta_may_use_up_the_cap(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    mu = fitted(1.0, 1e-5, 1e-6)
    learned = entry(mu * math.sqrt(0.1), extra_delta=1e-6)
    ledger.charge_all([learned, entry(mu * math.sqrt(0.9))])
    assert 1 - 1e-6 < ledger.spent(1e-5) <= 1.0
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1e-3))
    with pytest.raises(BudgetExceededError):
        PrivacyLedger(1.0, 1e-5).charge_all([learned, entry(mu)])


def test_half_of_delta_is_kept_for_learned_categories(storage):
    ledger = PrivacyLedger(2.0, 1e-5, **storage)
    learned = entry(0.05, extra_delta=1e-6)
    for _ in range(5):
        ledger.charge(learned)
    with pytest.raises(BudgetExceededError, match="learned categories need a part of delta"):
        ledger.charge(learned)
    # The rest is for Gaussian releases, whether the half was used or not.
    left = ledger.remaining()
    assert 0.9 < left < 2.0
    ledger.charge(entry(1 / noise_multiplier(left, 1e-5)))
    assert (
        composed_delta(2.0, math.hypot(1 / noise_multiplier(left, 1e-5), 0.05 * 5**0.5), 5e-6)
        <= 1e-5
    )


def test_what_is_kept_never_takes_away_from_the_first_charge():
    # Its own share is more than half, and so it is all there is.
    ledger = PrivacyLedger(2.0, 1e-5)
    ledger.charge(entry(0.2, extra_delta=8e-6))
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(0.01, extra_delta=1e-9))
    ledger.charge(entry(0.2))


@pytest.mark.parametrize("first", ["gaussian", "nothing"])
def test_in_a_capped_ledger_an_extra_delta_comes_first_or_not_at_all(first, storage):
    ledger = PrivacyLedger(10.0, 1e-5, **storage)
    if first == "gaussian":
        ledger.charge(entry())
        with pytest.raises(BudgetExceededError, match="come before all others"):
            ledger.charge(entry(extra_delta=1e-9))
        assert len(ledger.entries) == 1
    else:
        ledger.charge_all([entry(), entry(extra_delta=1e-9)])
        ledger.charge(entry(extra_delta=1e-9))


def adaptive_delta(epsilon, mu_first, mu_then, extra):
    """Hockey-stick divergence of the best strategy, by quadrature.

    It makes a Gaussian release, looks at the privacy loss L ~ N(mu^2 / 2, mu^2), and spends on
    another one or on a coin that shows the table, whichever helps.
    """
    loss = mu_first**2 / 2 + mu_first * np.linspace(-9, 9, 20_001)
    weight = np.exp(-np.square(np.linspace(-9, 9, 20_001)) / 2)
    weight /= weight.sum()
    done = np.maximum(-np.expm1(epsilon - loss), 0.0)
    coin = extra + (1 - extra) * done
    more = np.array([float(_delta(e, mu_then)) for e in epsilon - loss])
    return float(weight @ np.maximum(coin, more))


def _delta(epsilon, mu):
    from scipy.special import ndtr

    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def test_a_boundary_instead_of_a_box_could_be_fooled():
    """All of delta for either kind of spend, chosen late, is almost twice as much."""
    epsilon, delta = 1.0, 1e-5
    mu = 1 / noise_multiplier(epsilon, delta)
    first = mu * math.sqrt(0.5)
    extra = (delta - composed_delta(epsilon, first, 0.0)) / (1 - delta)
    planned = composed_delta(epsilon, first, extra)
    assert planned == pytest.approx(delta, rel=1e-4)
    assert adaptive_delta(epsilon, first, first, extra) > 1.5 * delta
    # So the ledger refuses the coin after the release, and fixes its share before.
    ledger = PrivacyLedger(epsilon, delta)
    ledger.charge(entry(first))
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1e-9, extra_delta=extra))


def test_within_the_box_no_strategy_helps():
    epsilon, delta, extra = 1.0, 1e-5, 5e-6
    mu = fitted(epsilon, delta, extra)
    for share in (0.1, 0.5, 0.9):
        first, then = mu * math.sqrt(share), mu * math.sqrt(1 - share)
        assert adaptive_delta(epsilon, first, then, extra) <= delta


def test_an_extra_delta_does_not_change_its_relation():
    ledger = PrivacyLedger(adjacency="replace-one")
    with pytest.raises(PrivacyParameterError, match="one adjacency for all fits"):
        ledger.charge(entry(extra_delta=1e-6, **ADD_REMOVE))
    ledger = PrivacyLedger()
    ledger.charge(entry(0.3, extra_delta=1e-6, **ADD_REMOVE))
    assert ledger.spent(1e-5) == pytest.approx(composed_epsilon(1e-5, 0.3, 1e-6), rel=1e-12)
    with pytest.raises(PrivacyParameterError, match="one adjacency for all fits"):
        ledger.charge(entry())


# -- slicing releases ------------------------------------------------------------------------------


FACTS = {"n_directions": 50, "dimension": 10, "diameter": 2.0**20, "value_step": 1.5}


def slicing(epsilon=1.0, delta=1e-5, **kwargs):
    stddev = slicing_noise_stddev(epsilon, delta, **FACTS)
    fields = {"n_directions": 50, "dimension": 10, "value_step": 1.5} | kwargs
    return LedgerEntry("slicing", 4**20, stddev, "replace-one", "row", 1, epsilon, delta, **fields)


def converted(curve, delta):
    """Renyi curve to epsilon on a dense grid, by hand (arXiv 2004.00010, Prop. 12)."""
    order = 1 + np.logspace(-3, 4, 20001)
    rest = np.log1p(-1 / order) - np.log(delta * order) / (order - 1)
    return np.nanmin(curve(order) + rest)


def slicing_curve(order, spend):
    """Exact for the Gaussian directions; a step of 1.5 in 2^20 changes nothing to speak of."""
    x = order * (order - 1) * spend.sensitivity_squared / (10 * spend.noise_stddev**2)
    with np.errstate(invalid="ignore"):
        return -25 / (order - 1) * np.log(np.where(x < 1, 1 - x, np.nan))


def test_a_slicing_release_alone_has_its_exact_profile(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    spend = slicing()
    ledger.charge(spend)
    assert ledger.entries == (spend,)
    assert 1 - 1e-6 < ledger.spent(1e-5) <= 1.0
    exact = slicing_epsilon(1e-8, spend.noise_stddev, **FACTS)
    assert ledger.spent(1e-8) == exact > 1.0
    with pytest.raises(BudgetExceededError, match="Nothing was read"):
        ledger.charge(entry(1e-6))
    for more in (slicing(), entry(private=False)):
        with pytest.raises(BudgetExceededError):
            ledger.charge(more)


@pytest.mark.parametrize("cap", [(1 - 1e-6, 1e-5), (1.0, 1e-5 * (1 - 1e-6))])
def test_a_slicing_release_beyond_the_cap_is_refused(cap, storage):
    ledger = PrivacyLedger(*cap, **storage)
    with pytest.raises(BudgetExceededError):
        ledger.charge(slicing())
    assert ledger.entries == ()


def test_several_spends_add_up_as_renyi_curves(storage):
    ledger, spends = PrivacyLedger(**storage), [slicing(0.5), slicing(1.5)]
    for spend in spends:
        ledger.charge(spend)
    by_hand = converted(lambda order: sum(slicing_curve(order, s) for s in spends), 1e-5)
    assert ledger.spent(1e-5) == pytest.approx(by_hand, rel=1e-3)
    ledger.charge(entry(0.2))
    ledger.charge(entry(0.1, **ADD_REMOVE))  # counts double
    by_hand = converted(
        lambda order: sum(slicing_curve(order, s) for s in spends) + order * 0.08 / 2, 1e-5
    )
    assert ledger.spent(1e-5) == pytest.approx(by_hand, rel=1e-3)
    # An upper bound of what is exact for noise that is fixed beforehand, by not too much.
    exact = slicing_epsilon(1e-5, spends[0].noise_stddev, gaussian_mu=math.hypot(0.2, 0.2), **FACTS)
    both = PrivacyLedger()
    both.charge(spends[0])
    both.charge(entry(math.hypot(0.2, 0.2)))
    assert exact < both.spent(1e-5) < 1.2 * exact
    with pytest.raises(PrivacyParameterError, match="delta"):
        ledger.spent(0.0)


def test_the_sum_of_gaussian_curves_agrees_with_dp_accounting():
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    # A slicing spend too small to matter, so that the Gaussian part is what is compared.
    ledger = PrivacyLedger()
    tiny = replace(slicing(), noise_stddev=1e9 * 2.0**20)
    ledger.charge(tiny)
    ledger.charge(entry(0.3))
    ledger.charge(entry(0.4))
    accountant = RdpAccountant(
        (1 + np.logspace(-2, 4, 2001)).tolist(), accounting.NeighboringRelation.REPLACE_ONE
    )
    accountant.compose(accounting.GaussianDpEvent(1 / 0.3))
    accountant.compose(accounting.GaussianDpEvent(1 / 0.4))
    assert ledger.spent(1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


def test_a_spend_too_small_to_see_costs_nothing_negative():
    ledger = PrivacyLedger()
    for _ in range(2):
        ledger.charge(replace(slicing(), noise_stddev=1e9 * 2.0**20))
    assert ledger.spent(0.5) == 0.0


def test_the_cap_of_several_spends_holds_and_wastes_little(storage):
    ledger = PrivacyLedger(2.0, 1e-5, **storage)
    refused = 0
    for _ in range(40):
        try:
            ledger.charge(slicing(0.5))
        except BudgetExceededError:
            refused += 1
            if refused == 3:
                break
    assert refused == 3
    assert ledger.spent(1e-5) <= 2.0
    spent = PrivacyLedger()
    for _ in range(len(ledger.entries) + 2):
        spent.charge(slicing(0.5))
    assert spent.spent(1e-5) > 2.0


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 20.0])
def test_every_total_under_the_cap_is_certified_by_a_share_of_delta(epsilon, monkeypatch):
    """However later spends are chosen, the shares of delta add up to no more than delta."""
    asked = {}

    def recorded(order, share):
        asked.setdefault(order, set()).add(share)
        return conversion(order, share)

    conversion = composition._conversion
    monkeypatch.setattr(composition, "_conversion", recorded)
    ledger = PrivacyLedger(epsilon, 1e-5)
    ledger.charge(slicing(epsilon / 2))
    composition._own_order.cache_clear()
    monkeypatch.setattr(
        "skdpgen.privacy.ledger_rules.refusal", lambda *_: ""
    )  # totals of all orders
    for factor in (0.1, 1.0, 100.0):  # the orders don't depend on what is spent
        with contextlib.suppress(BudgetExceededError):
            ledger.charge(entry(factor / noise_multiplier(epsilon, 1e-5)))
    spare = [shares for shares in asked.values() if min(shares) < 0.5e-5]
    assert len(spare) == len(composition._SPARE_ORDERS)
    assert sum(min(shares) for shares in spare) == pytest.approx(0.1e-5)
    assert all(max(shares) <= 0.9e-5 * (1 + 1e-12) for shares in asked.values())
    assert ledger.spent(1e-5) <= epsilon


def test_an_insecure_slicing_spend_makes_the_total_infinite(storage):
    ledger = PrivacyLedger(**storage)
    ledger.charge(slicing())
    ledger.charge(slicing(private=False))
    assert ledger.spent(1e-5) == math.inf
    capped = PrivacyLedger(500.0, 0.999)
    for spend in (slicing(private=False), replace(slicing(), noise_stddev=0.0)):
        with pytest.raises(BudgetExceededError):
            capped.charge(spend)
    broken = slicing()
    object.__setattr__(broken, "noise_stddev", math.nan)
    with pytest.raises(PrivacyParameterError):
        capped.charge(broken)


def test_slicing_is_refused_under_add_remove(storage):
    ledger = PrivacyLedger(adjacency="add-remove", **storage)
    with pytest.raises(PrivacyParameterError, match="says nothing about adding or removing"):
        ledger.charge(slicing())
    assert ledger.entries == ()


def test_in_a_capped_ledger_a_slicing_release_comes_first_or_not_at_all(storage):
    """Else earlier Gaussian releases could decide which of two accountings gets all of delta."""
    ledger = PrivacyLedger(10.0, 1e-5, **storage)
    ledger.charge(entry())
    with pytest.raises(BudgetExceededError, match="come before all others"):
        ledger.charge(replace(slicing(), noise_stddev=1e9 * 2.0**20))
    assert len(ledger.entries) == 1
    ledger.charge(entry())


def test_in_one_charge_gaussian_spends_and_a_slicing_release_have_their_joint_profile(storage):
    stddev = slicing_noise_stddev(1.0, 1e-5, gaussian_mu=0.1, **FACTS)
    spend = replace(slicing(), noise_stddev=stddev)
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    ledger.charge_all([entry(0.06), entry(0.08), spend])
    assert ledger.entries[2] == spend
    assert 1 - 1e-6 < ledger.spent(1e-5) <= 1.0
    # One after the other they would be added up as curves, and under a cap not at all.
    planned = PrivacyLedger()
    for one in ledger.entries:
        planned.charge(one)
    assert 1.01 < planned.spent(1e-5) < 1.2
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1e-6))
    with pytest.raises(BudgetExceededError):
        PrivacyLedger(1.0, 1e-5).charge_all([entry(0.11), spend])


def test_an_extra_delta_beside_a_slicing_release():
    extra = 1e-6
    spend = slicing(1.0, 0.9e-5)
    learned = entry(0.01, extra_delta=extra)
    total = PrivacyLedger()
    total.charge_all([learned, spend])
    exact = slicing_epsilon(
        (1e-5 - extra) / (1 - extra), spend.noise_stddev, gaussian_mu=0.01, **FACTS
    )
    assert total.spent(1e-5) == pytest.approx(exact, rel=1e-9)
    assert total.spent(1e-6) == math.inf  # nothing of delta is left
    profile = slicing_delta(exact, spend.noise_stddev, gaussian_mu=0.01, **FACTS)
    assert extra + (1 - extra) * profile <= 1e-5
    capped = PrivacyLedger(exact, 1e-5)
    capped.charge_all([learned, spend])
    assert len(capped.entries) == 2
    with pytest.raises(BudgetExceededError):
        PrivacyLedger(exact * (1 - 1e-6), 1e-5).charge_all([learned, spend])


def test_what_follows_a_slicing_release_with_an_extra_delta_is_certified_by_what_is_left():
    ledger = PrivacyLedger(3.0, 1e-5)
    ledger.charge_all([entry(0.01, extra_delta=1e-6), slicing(0.5)])
    ledger.charge(entry(0.05, extra_delta=3e-6))
    left = ledger.remaining()
    ledger.charge(entry(1 / noise_multiplier(left, 1e-5)))
    assert 2.0 < left < 3.0
    assert ledger.spent(1e-5) <= 3.0
    # All of delta is kept by a first charge that leaves nothing.
    wasteful = PrivacyLedger(3.0, 1e-5)
    wasteful.charge_all(
        [
            entry(1e-7, extra_delta=1e-5),
            replace(slicing(), noise_stddev=1e12 * 2.0**20),
        ]
    )
    with pytest.raises(BudgetExceededError):
        wasteful.charge(entry(1e-7))


def test_several_slicing_releases_of_one_charge_take_the_best_order():
    charge = (slicing(0.5), slicing(0.5), slicing(0.5))
    epsilon = total_epsilon([charge], "replace-one", 1e-5)
    assert fits([charge], "replace-one", epsilon * (1 + 1e-6), 1e-5)
    assert not fits([charge], "replace-one", epsilon * (1 - 1e-6), 1e-5)
    # In three charges a tenth of delta is for orders that suit other histories.
    charges = [(one,) for one in charge]
    assert not fits(charges, "replace-one", epsilon * (1 + 1e-6), 1e-5)
    assert fits(charges, "replace-one", epsilon * 1.02, 1e-5)
