"""The ledger: exact totals, a cap that holds, and no copy that loses a spend."""

import contextlib
import copy
import gc
import math
import os
import pickle
import signal
import threading
import time
from dataclasses import replace

import pytest
from sklearn.base import BaseEstimator, clone

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy import ledger_rules, ledger_storage, processes
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


@pytest.mark.parametrize("opened_again", [False, True])
def test_under_a_cap_the_first_charge_fixes_the_relation(storage, opened_again):
    # A relation that a later charge decides would be chosen by looking at releases.
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    assert ledger.adjacency is None
    ledger.charge(entry(0.1, **ADD_REMOVE))
    assert ledger.adjacency == "add-remove"
    if opened_again and storage:
        ledger = PrivacyLedger(**storage)
        assert ledger.adjacency == "add-remove"
    with pytest.raises(PrivacyParameterError, match=r"first spend fixes.*adjacency='replace-one'"):
        ledger.charge(entry(0.001))
    assert len(ledger.entries) == 1
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 0.1), rel=1e-12)


def test_after_replace_one_a_cap_counts_add_remove_double(storage):
    mu = math.hypot(0.2, 0.4) * 1.0001
    ledger = PrivacyLedger(gaussian_epsilon(1e-5, mu), 1e-5, **storage)
    ledger.charge(entry(0.2))
    assert ledger.adjacency == "replace-one"
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(0.21, **ADD_REMOVE))
    ledger.charge(entry(0.2, **ADD_REMOVE))
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(0.02, **ADD_REMOVE))


def test_a_first_charge_of_both_kinds_is_replace_one(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    ledger.charge_all([entry(0.01, **ADD_REMOVE), entry(0.01)])
    assert ledger.adjacency == "replace-one"


def test_a_refused_charge_fixes_nothing(storage):
    ledger = PrivacyLedger(1.0, 1e-5, **storage)
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(3.0, **ADD_REMOVE))
    ledger.charge(entry(0.1))
    assert ledger.adjacency == "replace-one"


def test_without_a_cap_the_relation_stays_open(storage):
    ledger = PrivacyLedger(**storage)
    ledger.charge(entry(0.1, **ADD_REMOVE))
    assert ledger.adjacency is None


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


@pytest.mark.parametrize("first", ["look", "unit"])
def test_an_unprotected_read_takes_the_unit_of_the_others(storage, first):
    ledger = PrivacyLedger(**storage)
    if first == "look":
        ledger.record_unprotected("a look")
    ledger.charge(entry(**UNIT))
    ledger.record_unprotected("another look")
    last = ledger.entries[-1]
    assert (last.unit, last.rows_per_unit, last.adjacency) == ("unit", 3, "replace-one")
    assert "one unit (at most 3 rows each)" in ledger.statement()
    with pytest.raises(PrivacyParameterError, match="same unit"):
        ledger.charge(entry())


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
    before = len(ledger_storage._live), len(ledger_storage._kept)
    ledger = PrivacyLedger()
    copy.deepcopy(ledger)
    del ledger
    gc.collect()
    assert (len(ledger_storage._live), len(ledger_storage._kept)) == before


# -- copies that come from elsewhere ---------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch):
    """Call it, and this is another process, days later: of the ledgers nothing but pickles."""

    def move():
        monkeypatch.setattr(ledger_storage, "_kept", {})
        monkeypatch.setattr(ledger_storage, "_live", {})
        monkeypatch.setattr(ledger_storage, "_going_on", {})
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


def test_what_goes_on_from_a_copy_has_its_history(elsewhere):
    ledger = PrivacyLedger(adjacency="replace-one")
    assert ledger.continued() is ledger
    ledger.charge(entry(0.25))
    text = pickle.dumps(ledger)
    elsewhere()
    other = pickle.loads(text).continued()
    assert (other.epsilon, other.delta, other.adjacency) == (None, None, "replace-one")
    assert other.entries == ledger.entries
    assert not other.detached
    other.charge(entry(0.05))
    assert (len(other.entries), len(ledger.entries)) == (2, 1)


def test_a_copy_with_a_cap_does_not_go_on_in_memory(elsewhere):
    # Each process that did would spend what is left.
    text = pickle.dumps(PrivacyLedger(1.0, 1e-5))
    elsewhere()
    with pytest.raises(BudgetExceededError, match=r"with a cap.*continued\(path="):
        pickle.loads(text).continued()


def test_a_copy_with_a_cap_goes_on_in_a_file(elsewhere, tmp_path):
    mu = 1 / noise_multiplier(0.99, 1e-5)
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge_all([entry(mu), entry(1e-4)])
    ledger.charge(entry(2e-4))
    text = pickle.dumps(ledger)
    elsewhere()
    with pytest.raises(BudgetExceededError, match=r"continued\(path=.*knows nothing"):
        pickle.loads(text).charge(entry(1e-4))
    moved = pickle.loads(text).continued(path=tmp_path / "a.db")
    assert (moved.epsilon, moved.delta, moved.adjacency) == (1.0, 1e-5, "replace-one")
    # Charges, not entries: what was planned together stays so.
    assert moved._read() == ledger._read()
    with pytest.raises(BudgetExceededError, match="the cap is 1"):
        moved.charge(entry(mu))
    moved.charge(entry(1e-4))
    # Again: the same ledger, whichever copy asks, also in another process.
    assert pickle.loads(text).continued(path=tmp_path / "a.db") is moved
    assert pickle.loads(text).continued() is moved
    with pytest.raises(PrivacyParameterError, match="lives in a file already"):
        pickle.loads(text).continued(path=tmp_path / "b.db")
    elsewhere()
    again = pickle.loads(text).continued(path=tmp_path / "a.db")
    assert len(again.entries) == 4
    assert len(PrivacyLedger(path=tmp_path / "a.db").entries) == 4
    assert os.listdir(tmp_path) == ["a.db"]


def test_a_file_that_lacks_spends_of_a_copy_is_refused(elsewhere, tmp_path):
    ledger = PrivacyLedger()
    early = pickle.dumps(ledger)
    ledger.charge(entry(0.2))
    late = pickle.dumps(ledger)
    PrivacyLedger(path=tmp_path / "other.db")
    elsewhere()
    pickle.loads(early).continued(path=tmp_path / "a.db").charge(entry(0.3))
    for path in (tmp_path / "a.db", None, tmp_path / "other.db"):
        with pytest.raises(PrivacyParameterError, match=r"another history|in a file already"):
            pickle.loads(late).continued(path=path)
    elsewhere()
    with pytest.raises(PrivacyParameterError, match="another history"):
        pickle.loads(late).continued(path=tmp_path / "other.db")


def test_a_ledger_at_home_moves_with_all_who_hold_it(tmp_path):
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge(entry(0.1))
    text = pickle.dumps(ledger)
    assert ledger.continued(path=tmp_path / "a.db") is ledger is pickle.loads(text)
    assert ledger.path == str(tmp_path / "a.db")
    ledger.charge(entry(0.1))
    assert len(PrivacyLedger(path=tmp_path / "a.db").entries) == 2
    assert ledger.continued() is ledger.continued(path=tmp_path / "a.db") is ledger
    with pytest.raises(PrivacyParameterError, match="lives in a file already"):
        ledger.continued(path=tmp_path / "b.db")


def test_a_charge_that_waits_while_its_ledger_moves_is_in_the_file(tmp_path):
    ledger = PrivacyLedger()
    with processes.lock:
        thread = threading.Thread(target=ledger.charge, args=(entry(0.1),))
        thread.start()
        time.sleep(0.1)
        ledger.continued(path=tmp_path / "a.db")
    thread.join()
    assert len(PrivacyLedger(path=tmp_path / "a.db").entries) == 1


@pytest.mark.parametrize("path", [None, "a.db"])
def test_in_a_worker_no_copy_goes_on(elsewhere, monkeypatch, tmp_path, path):
    text = pickle.dumps(PrivacyLedger())
    elsewhere()
    monkeypatch.setattr(ledger_storage, "descends_from", lambda owner: True)
    with pytest.raises(BudgetExceededError, match=r"worker process.*PrivacyLedger\(path="):
        pickle.loads(text).continued(path=path and tmp_path / path)
    assert os.listdir(tmp_path) == []


def test_in_a_worker_of_others_a_copy_goes_on_in_a_file(elsewhere, monkeypatch, tmp_path):
    # A server's child that loads a pickle from disk, whose owner has long ended.
    text = pickle.dumps(PrivacyLedger(1.0, 1e-5))
    elsewhere()
    monkeypatch.setattr(ledger_storage, "in_worker", lambda: True)
    with pytest.raises(BudgetExceededError, match=r"made elsewhere.*continued\(path="):
        pickle.loads(text).continued()
    moved = pickle.loads(text).continued(path=tmp_path / "a.db")
    moved.charge(entry(0.1))
    assert pickle.loads(text).continued() is moved


def test_a_ledger_of_a_file_goes_on_there(tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "a.db")
    ledger.charge(entry(0.1))
    assert ledger.continued() is ledger.continued(path=tmp_path / "a.db") is ledger
    with pytest.raises(PrivacyParameterError, match="lives in a file already"):
        ledger.continued(path=tmp_path / "b.db")


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


def test_first_ledgers_of_a_process_made_in_threads_are_at_home(monkeypatch):
    """All find that the process has no name yet; it must get one, not one a thread."""
    read = processes._parent_and_start

    def slow(pid):
        time.sleep(0.1)
        return read(pid)

    monkeypatch.setattr(processes, "_parent_and_start", slow)
    monkeypatch.setattr(processes, "_state", {})
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(PrivacyLedger(1.0, 1e-5))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ledger in made:
        ledger.charge(entry(0.1))
    assert len(made) == 4


def test_a_charge_within_a_charge_is_refused(monkeypatch, tmp_path):
    """By a signal handler or a finalizer, between check and record: else both would fit."""
    ledger = PrivacyLedger(1.0, 1e-5)
    mu, refused = 0.99 / noise_multiplier(1.0, 1e-5), []
    real = ledger_rules.fits

    def interrupted(*args):
        for use in (
            lambda: ledger.charge(entry(mu)),
            lambda: ledger.continued(path=tmp_path / "a.db"),
        ):
            with pytest.raises(BudgetExceededError, match="in the middle of another charge") as e:
                use()
            refused.append(e)
        assert ledger.entries == ()
        return real(*args)

    monkeypatch.setattr(ledger_rules, "fits", interrupted)
    ledger.charge(entry(mu))
    assert len(refused) == 2
    assert len(ledger.entries) == 1
    monkeypatch.undo()
    ledger.charge(entry(1e-3))


def test_interrupted_charges_leave_no_lock_and_are_on_record_if_confirmed(storage):
    """Signals at random moments, as from Ctrl-C."""

    def interrupt(*_):
        raise KeyboardInterrupt

    ledger, confirmed, room = PrivacyLedger(**storage), 0, 2e-2 if storage else 5e-4
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(60 if storage else 600):
            with contextlib.suppress(KeyboardInterrupt):
                try:
                    seconds = 2e-5 + room * int.from_bytes(os.urandom(2), "big") / 2**16
                    signal.setitimer(signal.ITIMER_REAL, seconds)
                    ledger.charge(entry(1e-3))
                    confirmed += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    thread = threading.Thread(target=ledger.charge, args=(entry(0.1),), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert len(ledger.entries) > confirmed
    assert ledger.entries[-1] == entry(0.1)
