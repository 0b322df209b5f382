"""The ledger: exact totals, a cap that holds, and no copy that loses a spend."""

import contextlib
import copy
import gc
import math
import multiprocessing
import pickle
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from sklearn.base import BaseEstimator, clone

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import gaussian_epsilon, noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger

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
