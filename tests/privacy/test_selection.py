"""Private selection: the price against dp_accounting, the law of K, and the loop."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy import stats
from scipy.optimize import minimize_scalar

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import gaussian_delta, noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.renyi import RENYI_ORDERS
from skdpgen.privacy.selection import (
    Repetitions,
    repeat_and_select,
    selection_epsilon,
    selection_noise_multiplier,
    selection_renyi,
)

MEANS_AND_SHAPES = [(1.1, 0.0), (2, 0.0), (5, 0.0), (5, 0.5), (5, 1.0), (20, 1.0), (50, 0.25)]
ALL_SHAPES = [*MEANS_AND_SHAPES, (5, -0.5), (2, -0.9)]


def second_term(mu, law):
    """Theorem 2's terms of the second order, minimized numerically over it."""

    def second(log_excess):
        other = 1 + math.exp(log_excess)
        return (1 - 1 / other) * other * mu * mu / 2 - math.log(law.gamma) / other

    found = minimize_scalar(second, bounds=(-40, 25), method="bounded", options={"xatol": 1e-10})
    return (1 + law.shape) * min(found.fun, second(-40.0))


def by_definition(order, mu, law):
    return order * mu * mu / 2 + second_term(mu, law) + math.log(law.mean) / (order - 1)


def oracle(mu, mean, shape, orders, gaussian_mu=0.0):
    accountant = RdpAccountant(orders)
    accountant.compose(
        dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(1 / mu), mean, shape)
    )
    if gaussian_mu:
        accountant.compose(dp_event.GaussianDpEvent(1 / gaussian_mu))
    return accountant


# -- the curve -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "shape"), ALL_SHAPES)
@pytest.mark.parametrize("mu", [0.01, 0.3, 4.0])
def test_the_curve_is_theorem_2(mean, shape, mu):
    law = Repetitions.with_mean(mean, shape)
    turn = 1 + math.sqrt(2 * math.log(law.mean)) / mu
    for order in (turn, 1.5 * turn, 40 * turn):
        assert selection_renyi(order, mu, law) == pytest.approx(
            by_definition(order, mu, law), rel=1e-8
        )


@pytest.mark.parametrize(("mean", "shape"), MEANS_AND_SHAPES)
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.5])
def test_dp_accounting_agrees_with_the_curve(mean, shape, mu):
    law = Repetitions.with_mean(mean, shape)
    # Its accountant takes the best second order among its orders, so it needs the optimal one, and
    # the one at which the curve turns.
    optimal = max(1.0, math.sqrt(-2 * math.log(law.gamma)) / mu)
    turn = 1 + math.sqrt(2 * math.log(law.mean)) / mu
    orders = sorted({1.01, 1.5, 2.0, 8.0, 64.0, 1000.0, optimal, turn})
    accountant = oracle(mu, mean, shape, orders)
    for order, expected in zip(orders, accountant._rdp, strict=True):
        if order > 1:
            assert selection_renyi(order, mu, law) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("mean", "shape"), MEANS_AND_SHAPES)
def test_dp_accounting_agrees_with_epsilon(mean, shape):
    law = Repetitions.with_mean(mean, shape)
    for mu, gaussian_mu, delta in [(0.15, 0.1, 1e-5), (0.8, 0.5, 1e-9), (0.5, 0.0, 1e-3)]:
        optimal = max(1.0, math.sqrt(-2 * math.log(law.gamma)) / mu)
        accountant = oracle(mu, mean, shape, sorted({*RENYI_ORDERS, optimal}), gaussian_mu)
        epsilon = selection_epsilon(delta, mu, law, gaussian_mu=gaussian_mu)
        # Among orders only: theirs lack the one at which the curve turns.
        assert epsilon <= accountant.get_epsilon(delta) * (1 + 1e-6)
        assert epsilon == pytest.approx(accountant.get_epsilon(delta), rel=1e-3)


def test_the_curve_never_falls_and_is_above_that_of_one_run():
    law = Repetitions.with_mean(5, 0.0)
    curve = [selection_renyi(order, 0.3, law) for order in RENYI_ORDERS]
    assert np.all(np.diff(curve) >= 0)
    assert all(r > order * 0.3**2 / 2 for r, order in zip(curve, RENYI_ORDERS, strict=True))


def test_the_bound_holds_for_a_selection_that_can_be_computed():
    # Runs are one Gaussian number, which is its own score: the best of K has a density in closed
    # form.
    law = Repetitions.with_mean(5, 0.0)
    mu = 0.4
    x = np.linspace(-12, 12, 20_001)
    k = np.arange(1, 2000)
    weights = np.exp(k * math.log1p(-law.gamma) - np.log(k) - math.log(-math.log(law.gamma)))

    def density(shift):
        tail = stats.norm.sf(x, shift)
        return stats.norm.pdf(x, shift) * np.polynomial.polynomial.polyval(tail, k * weights)

    p, q = density(0.0), density(mu)
    assert np.trapezoid(p, x) == pytest.approx(1.0, abs=1e-6)
    for order in (1.5, 3.0, 10.0):
        for one, other in ((p, q), (q, p)):
            inside = (one > 1e-250) & (other > 1e-250)
            ratio = one[inside] ** order * other[inside] ** (1 - order)
            divergence = math.log(np.trapezoid(ratio, x[inside])) / (order - 1)
            assert divergence <= selection_renyi(order, mu, law)


# -- calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("mean", "shape"), [(5, 0.0), (5, 1.0), (3, -0.5)])
@pytest.mark.parametrize("delta", [1e-5, 1e-12])
def test_the_calibrated_noise_gives_the_total_and_no_more(epsilon, mean, shape, delta):
    law = Repetitions.with_mean(mean, shape)
    yardstick = math.sqrt(0.1) / noise_multiplier(epsilon, delta)
    multiplier = selection_noise_multiplier(epsilon, delta, law, gaussian_mu=yardstick)
    mu = 1 / multiplier

    def epsilon_of(mu):
        # Theorem 2 once more, with its own minima over both orders, and Proposition 12.
        orders = 1 + np.logspace(-2, 5, 1_000_000)
        totals = orders * (mu**2 + yardstick**2) / 2 + second_term(mu, law)
        totals += (math.log(law.mean) - math.log(delta) - np.log(orders)) / (orders - 1)
        return (totals + np.log1p(-1 / orders)).min()

    assert epsilon_of(mu) <= epsilon
    assert epsilon_of(mu) == pytest.approx(epsilon, rel=1e-3)
    assert epsilon_of(1.01 * mu) > epsilon
    assert multiplier > noise_multiplier(epsilon, delta)


def test_halved_noise_would_not_do():
    law = Repetitions.with_mean(5, 0.0)
    mu = 1 / selection_noise_multiplier(1.0, 1e-5, law)
    assert selection_epsilon(1e-5, 2 * mu, law) > 2
    # Not even for one run: what is calibrated for isn't out of reach.
    assert gaussian_delta(1.0, 2 * mu) > 1e-5


def test_the_price_of_five_expected_tries():
    prices = [
        selection_noise_multiplier(1.0, 1e-5, Repetitions.with_mean(5, shape))
        / noise_multiplier(1.0, 1e-5)
        for shape in (-0.5, 0.0, 1.0)
    ]
    assert prices == pytest.approx([1.54, 1.74, 2.06], abs=0.005)


def test_few_tries_cost_little_more_than_the_renyi_conversion():
    law = Repetitions.with_mean(1.001, 0.0)
    price = selection_noise_multiplier(1.0, 1e-5, law) / noise_multiplier(1.0, 1e-5)
    assert 1.0 < price < 1.1


def test_a_yardstick_that_leaves_nothing_is_refused():
    law = Repetitions.with_mean(5, 0.0)
    with pytest.raises(PrivacyParameterError, match="yardstick uses up"):
        selection_noise_multiplier(1.0, 1e-5, law, gaussian_mu=1 / noise_multiplier(1.0, 1e-5))


# -- K -------------------------------------------------------------------------------------------


def probabilities(law, n):
    """P[K = k], k = 1 .. n, by the paper's Definition 1."""
    shape, gamma = law.shape, law.gamma
    k = np.arange(1, n + 1)
    if shape == 0:
        return (1 - gamma) ** k / (k * -math.log(gamma))
    products = np.cumprod([(j + shape) / (j + 1) for j in range(n)])
    return (1 - gamma) ** k * products / (gamma**-shape - 1)


@pytest.mark.parametrize(("mean", "shape"), ALL_SHAPES)
def test_the_mean_is_that_of_the_distribution(mean, shape):
    law = Repetitions.with_mean(mean, shape)
    p = probabilities(law, 200_000)
    assert p.sum() == pytest.approx(1.0, rel=1e-9)
    assert law.mean == pytest.approx(p @ np.arange(1, len(p) + 1), rel=1e-7)
    assert law.mean == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize(("mean", "shape"), [(3, 0.0), (3, 0.5), (3, 1.0), (3, -0.5)])
def test_draws_follow_the_distribution(mean, shape):
    # Chi-square at a false-alarm rate of 2.5e-7 each, 1e-6 together.
    law = Repetitions.with_mean(mean, shape)
    draws = np.array([law.draw() for _ in range(10_000)])
    assert draws.min() == 1
    p = probabilities(law, 1000)
    n = int(np.flatnonzero(p * len(draws) >= 20)[-1]) + 1
    expected = np.r_[p[:n], 1 - p[:n].sum()] * len(draws)
    observed = np.bincount(np.minimum(draws, n + 1), minlength=n + 2)[1:]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.isf(2.5e-7, n)


def test_draws_follow_no_seed():
    # The same 40 draws twice: below 1e-6 by far (K = 1 has probability 0.11).
    law = Repetitions.with_mean(10, 1.0)
    np.random.seed(0)  # noqa: NPY002
    first = [law.draw() for _ in range(40)]
    np.random.seed(0)  # noqa: NPY002
    assert [law.draw() for _ in range(40)] != first


def test_how_often_there_is_a_single_try():
    single = [probabilities(Repetitions.with_mean(5, eta), 1)[0] for eta in (-0.5, 0.0, 1.0)]
    assert single == pytest.approx([0.56, 0.35, 0.20], abs=0.005)


def test_tiny_shapes_meet_the_limit():
    assert Repetitions(1e-12, 0.1).mean == pytest.approx(Repetitions(0.0, 0.1).mean, rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "gamma"),
    [(-1.0, 0.5), (1.5, 0.5), (math.nan, 0.5), (0, 0.0), (0, 1.0), (0, math.nan)],
)
def test_parameters_out_of_range_are_refused(shape, gamma):
    with pytest.raises(PrivacyParameterError):
        Repetitions(shape, gamma)


@pytest.mark.parametrize("mean", [1.0, 0.0, math.nan, math.inf, 1e5, -5])
def test_means_out_of_range_are_refused(mean):
    with pytest.raises(PrivacyParameterError, match="tries"):
        Repetitions.with_mean(mean, 0.0)


def test_the_largest_mean_is_accepted():
    largest = Repetitions(0.0, 1e-4).mean
    assert Repetitions.with_mean(largest, 0.0).gamma == pytest.approx(1e-4)


# -- the loop ------------------------------------------------------------------------------------


class FixedLaw(Repetitions):
    def draw(self):
        return 5


def test_the_lowest_score_wins_and_the_first_of_equals():
    scores = iter([(3.0, "a"), (math.nan, "b"), (1.0, "c"), (1.0, "d"), (2.0, "e")])
    assert repeat_and_select(lambda: next(scores), FixedLaw(0.0, 0.5)) == "c"
    assert next(scores, None) is None


def test_scores_that_are_no_number_lose():
    scores = iter([(math.nan, "a"), (math.inf, "b"), (math.nan, "c"), (5.0, "d"), (math.nan, "e")])
    assert repeat_and_select(lambda: next(scores), FixedLaw(0.0, 0.5)) == "d"
    scores = iter([(math.nan, None)] * 5)
    assert repeat_and_select(lambda: next(scores), FixedLaw(0.0, 0.5)) is None


def test_the_best_of_a_random_number_of_runs_has_the_distribution_of_the_theorem():
    # P[best <= x] = 1 - sum_k p_k (1 - x)^k for uniform scores; Kolmogorov-Smirnov at 1e-6.
    law = Repetitions.with_mean(4, 1.0)
    rng = np.random.default_rng(0)

    def run():
        score = rng.random()
        return score, score

    best = [repeat_and_select(run, law) for _ in range(3000)]

    def cdf(x):
        return 1 - law.gamma * (1 - x) / (1 - (1 - law.gamma) * (1 - x))

    assert stats.kstest(best, cdf).pvalue > 1e-6


# -- in the ledger -------------------------------------------------------------------------------

LAW = Repetitions.with_mean(5, 0.0)


def gaussian(mu, **changes):
    fields = {"adjacency": "replace-one", "unit": "row", "rows_per_unit": 1}
    fields |= {"epsilon": 1.0, "delta": 1e-5} | changes
    return LedgerEntry("test", 1, 1 / mu, **fields)


def selection(mu, **changes):
    law = {"repetition_shape": LAW.shape, "repetition_gamma": LAW.gamma}
    return gaussian(mu, **law | changes)


def calibrated(epsilon, delta):
    yardstick = math.sqrt(0.1) / noise_multiplier(epsilon, delta)
    return 1 / selection_noise_multiplier(epsilon, delta, LAW, gaussian_mu=yardstick), yardstick


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("path", [None, "ledger.db"])
def test_a_calibrated_selection_and_its_yardstick_use_up_a_cap(epsilon, path, tmp_path):
    path = path and tmp_path / path
    mu, yardstick = calibrated(epsilon, 1e-5)
    ledger = PrivacyLedger(epsilon, 1e-5, path=path)
    with pytest.raises(BudgetExceededError, match="cap"):
        ledger.charge_all([selection(1.001 * mu), gaussian(yardstick)])
    assert ledger.entries == ()
    ledger.charge_all([selection(mu), gaussian(yardstick)])
    assert ledger.entries == (selection(mu), gaussian(yardstick))
    assert 0.999 * epsilon < ledger.spent(1e-5) <= epsilon
    # What only its best order certifies lets nothing follow.
    with pytest.raises(BudgetExceededError, match="cap"):
        ledger.charge(gaussian(1e-3))


def test_totals_add_up_as_renyi_curves():
    mu, yardstick = calibrated(1.0, 1e-5)
    ledger = PrivacyLedger()
    for spend in (gaussian(0.3), selection(mu), gaussian(yardstick), gaussian(0.4)):
        ledger.charge(spend)
    together = math.hypot(0.3, 0.4, yardstick)
    expected = selection_epsilon(1e-5, mu, LAW, gaussian_mu=together)
    assert ledger.spent(1e-5) == pytest.approx(expected, rel=1e-12)
    ledger.charge(selection(mu))
    orders = np.array(RENYI_ORDERS)
    curve = 2 * np.array([selection_renyi(order, mu, LAW) for order in orders])
    curve += orders * together**2 / 2 + np.log1p(-1 / orders)
    curve -= np.log(1e-5 * orders) / (orders - 1)
    assert ledger.spent(1e-5) == pytest.approx(curve.min(), rel=1e-7)


def test_a_cap_holds_with_room_for_more():
    mu, yardstick = calibrated(1.0, 1e-5)
    ledger = PrivacyLedger(2.0, 1e-5)
    ledger.charge_all([selection(mu), gaussian(yardstick)])
    spends = 0
    with pytest.raises(BudgetExceededError, match="cap"):  # noqa: PT012
        while True:
            ledger.charge(gaussian(0.02))
            spends += 1
    assert spends > 10
    assert 1.9 < ledger.spent(1e-5) < 2.0


def test_in_a_capped_ledger_a_selection_comes_first():
    ledger = PrivacyLedger(10.0, 1e-5)
    ledger.charge(gaussian(0.1))
    with pytest.raises(BudgetExceededError, match="private selection has to come before"):
        ledger.charge_all([selection(0.1), gaussian(0.1)])
    assert len(ledger.entries) == 1


def test_two_removals_make_a_replacement_of_each_run():
    ledger = PrivacyLedger(adjacency="replace-one")
    ledger.charge(selection(0.1, adjacency="add-remove"))
    assert ledger.spent(1e-5) == pytest.approx(selection_epsilon(1e-5, 0.2, LAW), rel=1e-12)
    with pytest.raises(PrivacyParameterError, match="says nothing"):
        PrivacyLedger(adjacency="add-remove").charge(selection(0.1))


def test_an_insecure_selection_makes_the_total_infinite():
    ledger = PrivacyLedger()
    ledger.charge(selection(0.1, private=False))
    assert ledger.spent(1e-5) == math.inf
    with pytest.raises(BudgetExceededError, match="cap"):
        PrivacyLedger(10.0, 0.1).charge(selection(0.1, private=False))


def test_no_mu_describes_a_selection():
    assert selection(0.1).mu == math.inf
    assert selection(0.1).run_mu == pytest.approx(0.1)
    assert gaussian(0.1).repetitions is None
    assert selection(0.1).repetitions == LAW


@pytest.mark.parametrize(
    "changes",
    [
        {"repetition_gamma": 0.0, "repetition_shape": 0.5},
        {"repetition_gamma": 1.0},
        {"repetition_gamma": math.nan},
        {"repetition_shape": 2.0},
        {"n_directions": 3, "dimension": 3},
    ],
)
def test_entries_without_meaning_are_refused(changes):
    with pytest.raises(PrivacyParameterError):
        selection(0.1, **changes)


def test_an_entry_from_before_there_were_selections_reads():
    old = {k: v for k, v in asdict(gaussian(0.1)).items() if not k.startswith("repetition")}
    assert LedgerEntry(**old) == gaussian(0.1)


def test_the_report_of_a_ledger_knows_selections():
    ledger = PrivacyLedger()
    ledger.charge_all([selection(0.1), gaussian(0.1)])
    records = ledger.to_records()
    assert [record["mu"] for record in records] == [None, pytest.approx(0.1)]
    # What is recorded is enough to compute the total again.
    run_mu = records[0]["sensitivity"] / records[0]["noise_stddev"]
    law = Repetitions(records[0]["repetition_shape"], records[0]["repetition_gamma"])
    total = selection_epsilon(1e-5, run_mu, law, gaussian_mu=records[1]["mu"])
    assert ledger.spent(1e-5) == pytest.approx(total, rel=1e-9)
