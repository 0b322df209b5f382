"""The ledger: exact totals, a cap that holds, and no copy that loses a spend."""

import copy
import gc
import math
import os
import pickle
import threading
from dataclasses import replace

import pytest
from sklearn.base import BaseEstimator, clone

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy import ledger as ledger_module
from skdpgen.privacy import processes
from skdpgen.privacy.accounting import gaussian_epsilon, noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.processes import Process


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
    with pytest.raises(
        BudgetExceededError, match=r"the cap is 2 and 2 is spent\. Nothing was read"
    ):
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


def test_a_broken_entry_is_not_charged(storage):
    # LedgerEntry refuses NaN; should one get past it, no comparison may let it through.
    broken = entry()
    object.__setattr__(broken, "noise_stddev", math.nan)
    ledger = PrivacyLedger(**storage)
    with pytest.raises(PrivacyParameterError, match="out of range"):
        ledger.charge(broken)

    class Cheap(LedgerEntry):
        mu = 0.0

    for other in (Cheap("test", 4, 0.1, "replace-one", "row", 1, 1.0, 1e-5), None, "entry"):
        with pytest.raises(PrivacyParameterError, match="LedgerEntry"):
            ledger.charge(other)
    assert ledger.entries == ()


def test_charges_of_several_spends_are_whole_or_not_at_all(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    with pytest.raises(BudgetExceededError, match="these 2 spends would take the total to"):
        ledger.charge_all([entry(0.2), entry(0.2)])
    assert ledger.entries == ()
    ledger.charge_all(entry(mu) for mu in (0.1, 0.2))
    assert [e.mu for e in ledger.entries] == pytest.approx([0.1, 0.2])
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, math.hypot(0.1, 0.2)))
    with pytest.raises(PrivacyParameterError, match="one LedgerEntry or more"):
        ledger.charge_all([])


def test_the_cap_cannot_be_changed():
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="replace-one")
    for name in ("epsilon", "delta", "adjacency", "path"):
        with pytest.raises(AttributeError):
            setattr(ledger, name, None)


# -- what is left --------------------------------------------------------------------------------


def test_remaining_is_what_one_more_release_may_cost(storage):
    ledger = PrivacyLedger(2.0, 1e-5, **storage)
    assert ledger.remaining() == 2.0
    ledger.charge(entry(1 / noise_multiplier(1.0, 1e-5)))
    left = ledger.remaining()
    exact = math.sqrt(noise_multiplier(2.0, 1e-5) ** -2 - noise_multiplier(1.0, 1e-5) ** -2)
    assert left == pytest.approx(gaussian_epsilon(1e-5, exact), rel=1e-5)
    assert left > 1.6  # more than the difference
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1 / noise_multiplier(left * (1 + 1e-4), 1e-5)))
    ledger.charge(entry(1 / noise_multiplier(left, 1e-5)))
    assert ledger.remaining() < 0.01


def test_nothing_remains_once_the_cap_is_reached():
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge(entry(1 / noise_multiplier(1.0, 1e-5)))
    assert ledger.remaining() == 0.0
    assert PrivacyLedger().remaining() == math.inf


def test_remaining_counts_add_remove_as_such():
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="add-remove")
    assert ledger.remaining() == 1.0
    ledger.charge(entry(1 / noise_multiplier(0.5, 1e-5), **ADD_REMOVE))
    ledger.charge(entry(1 / noise_multiplier(ledger.remaining(), 1e-5), **ADD_REMOVE))
    assert 0.999 < ledger.spent(1e-5) <= 1.0


# -- reads without protection --------------------------------------------------------------------


def test_an_unprotected_read_makes_the_total_infinite_and_says_why(storage):
    ledger = PrivacyLedger(**storage)
    ledger.record_unprotected("read rows for selection")
    ledger.charge(entry(**ADD_REMOVE))
    assert ledger.spent(0.5) == math.inf
    first = ledger.entries[0]
    assert (first.reason, first.private, first.noise_stddev) == (
        "read rows for selection",
        False,
        0,
    )
    assert (first.epsilon, first.delta) == (math.inf, 1.0)
    assert "NOT PRIVATE: epsilon is infinite" in ledger.statement()
    assert "NOT PRIVATE" in repr(ledger)


@pytest.mark.parametrize("terms", [{}, {"adjacency": "add-remove"}, {"adjacency": "replace-one"}])
@pytest.mark.parametrize("kind", [ADD_REMOVE, {}, UNIT, ADD_REMOVE | UNIT])
def test_an_unprotected_read_stands_beside_entries_of_every_kind(terms, kind):
    if terms == ADD_REMOVE and kind.get("adjacency") != "add-remove":
        kind = kind | ADD_REMOVE
    before, after = PrivacyLedger(**terms), PrivacyLedger(**terms)
    before.record_unprotected("a look")
    before.charge(entry(**kind))
    after.charge(entry(**kind))
    after.record_unprotected("a look")
    for ledger in (before, after):
        assert len(ledger.entries) == 2
        assert ledger.spent(1e-5) == math.inf


def test_under_a_cap_an_unprotected_read_is_refused(storage):
    ledger = PrivacyLedger(500.0, 0.999, **storage)
    with pytest.raises(BudgetExceededError, match=r"infinite.* Nothing was read"):
        ledger.record_unprotected("read rows for selection")
    assert ledger.entries == ()


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "x" * 201, None, 3, b"bytes"])
def test_a_reason_is_a_short_text(reason):
    ledger = PrivacyLedger()
    with pytest.raises(PrivacyParameterError, match="reason"):
        ledger.record_unprotected(reason)
    assert ledger.entries == ()


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


def test_a_copy_finds_its_ledger_though_all_else_forgot_it():
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="replace-one")
    early = pickle.dumps(ledger)
    ledger.charge(entry(0.2))
    del ledger
    gc.collect()
    twin = pickle.loads(early)
    assert not twin.detached
    assert len(twin.entries) == 1
    twin.charge(entry(0.01))
    assert len(pickle.loads(early).entries) == 2


def test_a_ledger_without_a_pickle_leaves_no_trace():
    before = len(ledger_module._live), len(ledger_module._kept)
    ledger = PrivacyLedger()
    copy.deepcopy(ledger)
    del ledger
    gc.collect()
    assert (len(ledger_module._live), len(ledger_module._kept)) == before


# -- copies that come from elsewhere ---------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch):
    """Call it, and this is another process, days later: of the ledgers nothing but pickles."""

    def move():
        monkeypatch.setattr(ledger_module, "_kept", {})
        monkeypatch.setattr(ledger_module, "_live", {})
        monkeypatch.setattr(ledger_module, "_going_on", {})
        later = Process("later", os.getpid(), "")
        monkeypatch.setitem(processes._state, "current", later)

    return move


def test_a_copy_from_elsewhere_refuses(elsewhere):
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge(entry(0.2))
    text = pickle.dumps(ledger)
    elsewhere()
    ghost = pickle.loads(text)
    assert ghost.detached
    assert [e.mu for e in ghost.entries] == [pytest.approx(0.2)]
    assert pickle.loads(pickle.dumps(ghost)).entries == copy.copy(ghost).entries == ghost.entries
    with pytest.raises(BudgetExceededError, match=r"PrivacyLedger\(path=\.\.\.\)"):
        ghost.charge(entry(1e-3))
    with pytest.raises(BudgetExceededError, match="copy from another process"):
        ghost.record_unprotected("a look")
    assert ledger.detached  # what a fork would inherit


def test_what_goes_on_from_a_copy_has_its_history_and_cap(elsewhere):
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="replace-one")
    assert ledger.continued() is ledger
    ledger.charge(entry(0.25))
    text = pickle.dumps(ledger)
    elsewhere()
    other = pickle.loads(text).continued()
    assert (other.epsilon, other.delta, other.adjacency) == (1.0, 1e-5, "replace-one")
    assert other.entries == ledger.entries
    assert not other.detached
    with pytest.raises(BudgetExceededError):
        other.charge(entry(0.25))
    other.charge(entry(0.05))
    assert (len(other.entries), len(ledger.entries)) == (2, 1)


def test_in_a_worker_no_copy_goes_on(elsewhere, monkeypatch):
    text = pickle.dumps(PrivacyLedger())
    elsewhere()
    monkeypatch.setattr(ledger_module, "in_worker_of", lambda owner: True)
    with pytest.raises(BudgetExceededError, match=r"worker process.*PrivacyLedger\(path="):
        pickle.loads(text).continued()


def test_all_copies_of_a_ledger_go_on_as_one(elsewhere):
    ledger = PrivacyLedger()
    early = pickle.dumps(ledger)
    ledger.charge(entry(0.2))
    late = pickle.dumps(ledger)
    elsewhere()
    one = pickle.loads(early).continued()
    one.charge(entry(0.3))
    other = pickle.loads(late).continued()
    assert other is one is pickle.loads(early).continued()
    assert sorted(e.mu for e in one.entries) == pytest.approx([0.2, 0.3])


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
