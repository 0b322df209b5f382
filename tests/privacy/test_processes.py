"""Workers of every kind refuse to spend from a copy, and share a file without losing anything."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import joblib
import pytest

from skdpgen.exceptions import BudgetExceededError
from skdpgen.privacy import processes
from skdpgen.privacy.accounting import noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.processes import Process, descends_from, lock, this_process

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

STARTS = [
    method
    for method in ("spawn", "fork", "forkserver")
    if method in multiprocessing.get_all_start_methods()
]


def entry(mu=0.25):
    return LedgerEntry("test", 4, 2 / mu, "replace-one", "row", 1, 1.0, 1e-5)


@pytest.mark.parametrize("start", STARTS)
def test_a_copy_in_a_worker_refuses(start):
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge(entry(0.1))
    with multiprocessing.get_context(start).Pool(1) as pool:
        with pytest.raises(BudgetExceededError, match="copy from another process"):
            pool.apply(PrivacyLedger.charge, (ledger, entry(0.1)))
        with pytest.raises(BudgetExceededError, match=r"worker process.*PrivacyLedger\(path="):
            pool.apply(PrivacyLedger.continued, (ledger,))
        # It knows its history, and comes home to the one it is a copy of.
        assert pool.apply(PrivacyLedger.spent, (ledger, 1e-5)) == ledger.spent(1e-5)
        assert pool.apply(copy.copy, (ledger,)) is ledger
        assert pool.apply(descends_from, (this_process(),))
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_a_copy_in_a_worker_of_joblib_refuses(backend):
    ledger = PrivacyLedger()
    with joblib.Parallel(n_jobs=2, backend=backend) as parallel:
        for spend in (PrivacyLedger.continued, PrivacyLedger.remaining):
            jobs = [joblib.delayed(spend)(ledger) for _ in range(2)]
            if spend is PrivacyLedger.continued:
                with pytest.raises(BudgetExceededError, match="worker process"):
                    parallel(jobs)
            else:
                assert parallel(jobs) == [float("inf")] * 2


def test_a_copy_in_a_worker_of_concurrent_futures_refuses():
    with ProcessPoolExecutor(1) as pool, pytest.raises(BudgetExceededError, match="worker"):
        pool.submit(PrivacyLedger.continued, PrivacyLedger()).result(timeout=60)


def test_a_ledger_that_was_made_in_a_worker_may_go_on_at_home(tmp_path):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        made = pool.apply(PrivacyLedger, (1.0, 1e-5))
    assert made.detached
    with pytest.raises(BudgetExceededError):
        made.charge(entry(0.1))
    made.continued(path=tmp_path / "ledger.db").charge(entry(0.1))


CHILD = """
import pickle, sys
from skdpgen.exceptions import BudgetExceededError
try:
    pickle.loads(bytes.fromhex(sys.argv[1])).continued()
    print("goes on")
except BudgetExceededError:
    print("refuses")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="ancestors are read from /proc")
@pytest.mark.parametrize("owner", ["this process", "one that ended"])
def test_programs_started_by_the_owner_are_its_workers_and_later_ones_are_not(owner):
    """The first is a grandchild, through a shell; the second finds the pid taken by another."""
    ledger = PrivacyLedger()
    if owner == "one that ended":
        ledger._store.owner = Process("gone", os.getpid(), "another boot 1")
        object.__setattr__(ledger, "_key", "gone")
    text = pickle.dumps(ledger).hex()
    command = [sys.executable, "-c", CHILD, text]
    run = subprocess.run(
        ["/bin/sh", "-c", '"$@"; true', "sh", *command], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ("refuses" if owner == "this process" else "goes on")


def test_without_proc_only_what_python_knows_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    parent = Process("a parent", os.getppid(), "")
    assert not descends_from(parent)
    assert processes._parent_and_start(os.getpid()) == (0, "")


def test_a_forked_child_is_another_process_also_without_pythons_hooks(monkeypatch):
    before = this_process()
    assert this_process() is before
    monkeypatch.setattr(processes, "_forked_from", set())
    monkeypatch.setitem(processes._state, "current", before._replace(pid=before.pid + 1))
    assert this_process().token != before.token
    assert descends_from(before)
    monkeypatch.setattr(processes, "_state", {})
    assert this_process().pid == os.getpid()


def test_a_fork_leaves_the_lock_open_in_parent_and_child():
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        import threading

        # Not by this thread, which could take it again.
        thread = threading.Thread(
            target=lambda: os.write(writing, b"open" if lock.acquire(timeout=5) else b"shut")
        )
        thread.start()
        thread.join()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 4) == b"open"
    # What runs in the child, where coverage isn't measured.
    lock.acquire()
    processes._after_fork_in_child()
    with pytest.raises(RuntimeError):
        lock.release()
    os.close(reading)
    os.close(writing)


# -- a file shared by many -----------------------------------------------------------------------


def spend(ledger, mu, tries, writing):
    accepted = 0
    for _ in range(tries):
        try:
            ledger.charge(entry(mu))
            accepted += 1
        except BudgetExceededError:
            pass
    os.write(writing, bytes([accepted]))


def test_twenty_processes_charge_exactly_what_fits(tmp_path):
    room = 37
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "ledger.db")
    mu = 1 / noise_multiplier(1.0, 1e-5) / room**0.5
    reading, writing = os.pipe()
    workers = [
        multiprocessing.get_context("fork").Process(target=spend, args=(ledger, mu, 3, writing))
        for _ in range(20)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 20
    accepted = os.read(reading, 100)
    os.close(reading)
    os.close(writing)
    assert len(accepted) == 20
    assert sum(accepted) == len(ledger.entries) == room
    assert set(ledger.entries) == {entry(mu)}
    assert 1 - 1e-6 < ledger.spent(1e-5) <= 1.0


@pytest.mark.parametrize("start", STARTS[:2])
def test_processes_share_the_cap_of_a_file(start, tmp_path):
    ledger = PrivacyLedger(1.0, 1e-5, path=tmp_path / "ledger.db")
    mu = 1 / noise_multiplier(1.0, 1e-5) / 5**0.5
    with multiprocessing.get_context(start).Pool(2) as pool:
        jobs = [pool.apply_async(PrivacyLedger.charge, (ledger, entry(mu))) for _ in range(12)]
        refused = 0
        for job in jobs:
            try:
                job.get(timeout=60)
            except BudgetExceededError:
                refused += 1
    assert (len(ledger.entries), refused) == (5, 7)
    assert ledger.spent(1e-5) <= 1.0


def test_workers_that_open_the_file_themselves_share_it(tmp_path):
    path = str(tmp_path / "ledger.db")
    with joblib.Parallel(n_jobs=2) as parallel:
        ledgers = parallel([joblib.delayed(PrivacyLedger)(1.0, 1e-5, path=path) for _ in range(4)])
    ledgers[0].charge(entry(0.2))
    for ledger in ledgers:
        assert len(ledger.entries) == 1
        with pytest.raises(BudgetExceededError):
            ledger.charge(entry(0.2))
