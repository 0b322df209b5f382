"""The ledger: exact totals, a cap that holds, and no copy that loses a spend."""

import contextlib
import copy
import gc
import json
import math
import multiprocessing
import pickle
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy import composition
from skdpgen.privacy.accounting import gaussian_epsilon, noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.slicing_accounting import slicing_epsilon, slicing_noise_stddev

STARTS = [
    pytest.param(
        method, marks=pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"), id=method
    )
    for method in ("spawn", "fork")
    if method in multiprocessing.get_all_start_methods()
]


def entry(mu=0.25, **kwargs):
    fields = {"adjacency": "replace-one", "unit": "row", "rows_per_unit": 1}
    fields |= {"epsilon": 1.0, "delta": 1e-5} | kwargs
    return LedgerEntry("test", 4, 2 / mu, **fields)


ADD_REMOVE = {"adjacency": "add-remove"}
UNIT = {"unit": "unit", "rows_per_unit": 3}


@pytest.fixture(params=["memory", "file"])
def storage(request, tmp_path):
    return {} if request.param == "memory" else {"path": tmp_path / "ledger.db"}


# -- totals --------------------------------------------------------------------------------------


def test_totals_are_exact(storage):
    ledger = PrivacyLedger(**storage)
    assert ledger.entries == ()
    assert ledger.spent(1e-5) == 0.0
    for mu in (0.3, 0.4, 1.2):
        ledger.charge(entry(mu))
    assert [e.mu for e in ledger.entries] == pytest.approx([0.3, 0.4, 1.2], rel=1e-15)
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 1.3), rel=1e-12)
    assert ledger.spent(1e-9) == pytest.approx(gaussian_epsilon(1e-9, 1.3), rel=1e-12)


def test_the_total_beats_adding_up_epsilons():
    ledger = PrivacyLedger()
    for _ in range(4):
        ledger.charge(entry(1 / noise_multiplier(1.0, 1e-5)))
    assert ledger.spent(1e-5) < 2.2


def test_entries_survive_storage_exactly(storage):
    ledger = PrivacyLedger(**storage)
    odd = entry(0.1, epsilon=math.inf, private=False, **UNIT)
    odd = replace(odd, sensitivity_squared=3**60, noise_stddev=1 / 3)
    ledger.charge(odd)
    assert ledger.entries == (odd,)


def test_an_insecure_spend_makes_the_total_infinite(storage):
    ledger = PrivacyLedger(**storage)
    ledger.charge(entry())
    ledger.charge(entry(private=False, epsilon=math.inf))
    assert ledger.spent(1e-5) == math.inf


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_spent_refuses_a_delta_without_meaning(delta):
    with pytest.raises(PrivacyParameterError, match="delta"):
        PrivacyLedger().spent(delta)


# -- the cap -------------------------------------------------------------------------------------


def test_the_cap_holds(storage):
    # Ten spends of mu / sqrt(10) fit exactly; noise multipliers keep a relative slack of 1e-8.
    mu = 1 / noise_multiplier(2.0, 1e-6)
    ledger = PrivacyLedger(2.0, 1e-6, **storage)
    for _ in range(10):
        ledger.charge(entry(mu / math.sqrt(10)))
    with pytest.raises(BudgetExceededError, match=r"epsilon = 2, delta = 1e-06; nothing was read"):
        ledger.charge(entry(1e-3))
    assert len(ledger.entries) == 10
    assert ledger.spent(1e-6) <= 2.0


def test_a_smaller_spend_still_fits_after_a_refusal(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1.0))
    ledger.charge(entry(0.1))
    assert len(ledger.entries) == 1


def test_an_insecure_spend_never_fits_under_a_cap(storage):
    ledger = PrivacyLedger(500.0, 0.999, **storage)
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(private=False))
    with pytest.raises(BudgetExceededError):
        ledger.charge(replace(entry(), noise_stddev=0.0))
    assert ledger.entries == ()


def test_a_total_that_is_no_number_does_not_pass_the_cap(storage):
    # LedgerEntry refuses NaN; should one get past it, no comparison may let it through.
    broken = entry()
    object.__setattr__(broken, "noise_stddev", math.nan)
    with pytest.raises(BudgetExceededError):
        PrivacyLedger(1.0, 1e-5, **storage).charge(broken)


@pytest.mark.parametrize(
    "cap",
    [(1.0, None), (None, 1e-5), (0.0, 1e-5), (math.inf, 1e-5), (1.0, 0.0), (math.nan, 1e-5)],
)
def test_bad_caps(cap):
    with pytest.raises(PrivacyParameterError):
        PrivacyLedger(*cap)


def test_repr_shows_no_more_than_it_should(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    where = "in a file" if storage else "in memory"
    assert repr(ledger) == f"PrivacyLedger(0 entries, cap (1, 1e-05), {where})"
    assert repr(PrivacyLedger()) == "PrivacyLedger(0 entries, no cap, in memory)"


# -- adjacency and unit --------------------------------------------------------------------------


def test_add_remove_counts_double_under_replace_one(storage):
    ledger = PrivacyLedger(adjacency="replace-one", **storage)
    ledger.charge(entry(0.3, **ADD_REMOVE))
    ledger.charge(entry(0.8))
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 1.0), rel=1e-12)


def test_a_total_without_a_relation_takes_the_stricter_one(storage):
    ledger = PrivacyLedger(**storage)
    ledger.charge(entry(0.3, **ADD_REMOVE))
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 0.3), rel=1e-12)
    ledger.charge(entry(0.8))
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 1.0), rel=1e-12)


def test_the_stricter_relation_counts_for_the_cap(storage):
    # Either spend alone fits; together they count as replace-one: (2 * 0.2)^2 + 0.2^2.
    mu = math.hypot(0.4, 0.2) * 0.999
    ledger = PrivacyLedger(gaussian_epsilon(1e-5, mu), 1e-5, **storage)
    ledger.charge(entry(0.2, **ADD_REMOVE))
    ledger.charge(entry(0.2, **ADD_REMOVE))
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(0.2))
    assert len(ledger.entries) == 2


def test_replace_one_is_refused_under_add_remove(storage):
    ledger = PrivacyLedger(adjacency="add-remove", **storage)
    ledger.charge(entry(**ADD_REMOVE))
    with pytest.raises(PrivacyParameterError, match="says nothing about adding or removing"):
        ledger.charge(entry())
    assert len(ledger.entries) == 1


def test_units_do_not_mix(storage):
    ledger = PrivacyLedger(**storage)
    ledger.charge(entry(**UNIT))
    ledger.charge(entry(unit="unit", rows_per_unit=7))
    with pytest.raises(PrivacyParameterError, match="same unit"):
        ledger.charge(entry())
    assert len(ledger.entries) == 2


def test_bad_adjacency():
    with pytest.raises(PrivacyParameterError, match="adjacency"):
        PrivacyLedger(adjacency="both")


# -- copies within the process -------------------------------------------------------------------


class Estimator(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        clone,
        lambda ledger: pickle.loads(pickle.dumps(ledger)),
        lambda ledger: clone(Estimator(ledger)).ledger,
        lambda ledger: copy.deepcopy(Estimator(ledger)).ledger,
        lambda ledger: pickle.loads(pickle.dumps(Estimator(ledger))).ledger,
    ],
)
def test_a_copy_is_the_same_accountant(duplicate):
    ledger = PrivacyLedger(1.0, 1e-5)
    twin = duplicate(ledger)
    assert twin is ledger
    twin.charge(entry(0.2))
    assert len(ledger.entries) == 1


def test_a_copy_of_a_ledger_that_is_gone_refuses():
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="replace-one")
    ledger.charge(entry(0.2))
    text = pickle.dumps(ledger)
    del ledger
    gc.collect()
    ghost = pickle.loads(text)
    assert ghost.detached
    assert [e.mu for e in ghost.entries] == [pytest.approx(0.2)]
    with pytest.raises(BudgetExceededError, match="give PrivacyLedger a path"):
        ghost.charge(entry(1e-3))


def test_a_later_copy_knows_more():
    ledger = PrivacyLedger()
    early = pickle.dumps(ledger)
    ledger.charge(entry(0.2))
    late = pickle.dumps(ledger)
    del ledger
    gc.collect()
    ghosts = pickle.loads(early), pickle.loads(late)
    assert [len(ghost.entries) for ghost in ghosts] == [0, 1]


def test_continued_takes_over_history_and_cap():
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="replace-one")
    ledger.charge(entry(0.25))
    other = ledger.continued()
    assert (other.epsilon, other.delta, other.adjacency) == (1.0, 1e-5, "replace-one")
    assert other.entries == ledger.entries
    assert not other.detached
    with pytest.raises(BudgetExceededError):
        other.charge(entry(0.25))
    other.charge(entry(0.05))
    assert (len(other.entries), len(ledger.entries)) == (2, 1)


def test_threads_share_the_cap(storage):
    # 20 threads, room for exactly 5.
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    mu = 1 / noise_multiplier(1.0, 1e-5) / math.sqrt(5)
    refused = []

    def spend():
        try:
            ledger.charge(entry(mu))
        except BudgetExceededError:
            refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ledger.entries), len(refused)) == (5, 15)


# -- several processes ---------------------------------------------------------------------------


@pytest.mark.parametrize("start", STARTS)
def test_a_copy_in_another_process_refuses(start):
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge(entry(0.1))
    with multiprocessing.get_context(start).Pool(1) as pool:
        with pytest.raises(BudgetExceededError, match="copy from another process"):
            pool.apply(PrivacyLedger.charge, (ledger, entry(0.1)))
        # It knows its history, and comes home to the one it is a copy of.
        assert pool.apply(PrivacyLedger.spent, (ledger, 1e-5)) == ledger.spent(1e-5)
        assert pool.apply(copy.copy, (ledger,)) is ledger
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("start", STARTS)
def test_processes_share_the_cap_of_a_file(start, tmp_path):
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "ledger.db")
    mu = 1 / noise_multiplier(1.0, 1e-5) / math.sqrt(5)
    with multiprocessing.get_context(start).Pool(3) as pool:
        jobs = [pool.apply_async(PrivacyLedger.charge, (ledger, entry(mu))) for _ in range(12)]
        refused = 0
        for job in jobs:
            try:
                job.get(timeout=60)
            except BudgetExceededError:
                refused += 1
    assert (len(ledger.entries), refused) == (5, 7)
    assert ledger.spent(1e-5) <= 1.0


def test_a_program_that_comes_later_finds_the_file(tmp_path):
    path = tmp_path / "ledger.db"
    PrivacyLedger(path=path).charge(entry(0.3))
    code = (
        "import sys; from skdpgen.privacy import PrivacyLedger\n"
        "print(repr(PrivacyLedger(path=sys.argv[1]).entries[0].mu))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == entry(0.3).mu


# -- files ---------------------------------------------------------------------------------------


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger(path="ledger.db")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    ledger.charge(entry())
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / "ledger.db").exists()
    assert pickle.loads(pickle.dumps(ledger)).entries == ledger.entries


def test_a_file_that_cannot_be_written_refuses_the_spend(tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "missing" / "ledger.db")
    with pytest.raises(sqlite3.OperationalError):
        ledger.charge(entry())


def test_a_damaged_file_refuses_the_spend(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        PrivacyLedger(path=path).charge(entry())


@pytest.mark.parametrize(
    "text", ['{"mechanism": "x"}', "[]", "no json", '{"noise_stddev": NaN}'], ids=str
)
def test_an_entry_that_cannot_be_read_refuses_the_next_spend(tmp_path, text):
    path = tmp_path / "ledger.db"
    PrivacyLedger(path=path).charge(entry())
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO entries (entry) VALUES (?)", (text,))
    with pytest.raises((TypeError, ValueError)):
        PrivacyLedger(path=path).charge(entry())


def test_a_refused_spend_leaves_the_file_unlocked(tmp_path):
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "ledger.db")
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1.0))
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db", timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []


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
    with pytest.raises(BudgetExceededError, match="nothing was read"):
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
    assert refused > 0
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
    with pytest.raises(BudgetExceededError):
        capped.charge(broken)


def test_slicing_is_refused_under_add_remove(storage):
    ledger = PrivacyLedger(adjacency="add-remove", **storage)
    with pytest.raises(PrivacyParameterError, match="says nothing about adding or removing"):
        ledger.charge(slicing())
    assert ledger.entries == ()


def test_entries_of_an_older_file_still_load(tmp_path):
    path = tmp_path / "ledger.db"
    old = {
        "mechanism": "mean embedding",
        "sensitivity_squared": 4,
        "noise_stddev": 8.0,
        "adjacency": "replace-one",
        "unit": "row",
        "rows_per_unit": 1,
        "epsilon": 1.0,
        "delta": 1e-5,
        "private": True,
    }
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE entries (entry TEXT NOT NULL)")
        connection.execute("INSERT INTO entries (entry) VALUES (?)", (json.dumps(old),))
    ledger = PrivacyLedger(path=path)
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 0.25), rel=1e-12)
    ledger.charge(slicing())
    assert [e.n_directions for e in ledger.entries] == [0, 50]


def test_in_a_capped_ledger_a_slicing_release_comes_first_or_not_at_all(storage):
    """Else earlier Gaussian releases could decide which of two accountings gets all of delta."""
    ledger = PrivacyLedger(10.0, 1e-5, **storage)
    ledger.charge(entry())
    with pytest.raises(BudgetExceededError, match="come before all others"):
        ledger.charge(replace(slicing(), noise_stddev=1e9 * 2.0**20))
    assert len(ledger.entries) == 1
    ledger.charge(entry())
