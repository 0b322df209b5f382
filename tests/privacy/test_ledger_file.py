"""The file of a ledger: never fresh where one was, never short of a charge, the cap kept."""

import contextlib
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy import ledger_file, ledger_lock, ledger_rules, processes
from skdpgen.privacy.accounting import gaussian_epsilon
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger


def entry(mu=0.25, **kwargs):
    fields = {"adjacency": "replace-one", "unit": "row", "rows_per_unit": 1}
    fields |= {"epsilon": 1.0, "delta": 1e-5} | kwargs
    return LedgerEntry("test", 4, 2 / mu, **fields)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def sql(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement, *values in statements:
            connection.execute(statement, *values)


# -- which file ------------------------------------------------------------------------------------


def test_a_program_that_comes_later_finds_the_file(path):
    PrivacyLedger(path=path).charge(entry(0.3))
    code = (
        "import sys; from skdpgen.privacy import PrivacyLedger\n"
        "print(repr(PrivacyLedger(path=sys.argv[1]).entries[0].mu))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == entry(0.3).mu


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger(path="ledger.db")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    ledger.charge(entry())
    assert list(elsewhere.iterdir()) == []
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["ledger.db"]
    assert pickle.loads(pickle.dumps(ledger)).entries == ledger.entries


def test_a_link_names_its_file_also_when_it_points_elsewhere_later(tmp_path, path):
    link = tmp_path / "link"
    link.symlink_to(path)  # before there is a file
    ledger = PrivacyLedger(1.0, 1e-5, path=link)
    assert path.is_file()
    assert ledger.path == str(path)
    ledger.charge(entry(0.2))
    link.unlink()
    link.symlink_to(tmp_path / "other")
    ledger.charge(entry(0.1))
    assert len(PrivacyLedger(path=path).entries) == 2


def test_a_file_with_two_names_is_refused(tmp_path, path):
    """The journal of a charge that was interrupted under one name is not seen under the other."""
    ledger = PrivacyLedger(1.0, 1e-5, path=path)
    ledger.charge(entry(0.1))
    second = tmp_path / "second"
    os.link(path, second)
    content = path.read_bytes()
    for use in (
        lambda: ledger.charge(entry(0.1)),
        lambda: ledger.entries,
        lambda: PrivacyLedger(path=path),
        lambda: PrivacyLedger(path=second),
    ):
        with pytest.raises(PrivacyParameterError, match=r"hard link.* Remove all names but one"):
            use()
    assert path.read_bytes() == content
    second.unlink()
    ledger.charge(entry(0.1))


def test_the_name_that_an_interrupted_creation_left_is_removed(tmp_path, path):
    ledger = PrivacyLedger(path=path)
    left, other = tmp_path / "ledger.db.0123.new", tmp_path / "ledger.db.4567.new"
    os.link(path, left)
    other.write_bytes(b"another file")
    ledger.charge(entry(0.1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.db", "ledger.db.4567.new"]


def test_a_file_that_is_mounted_alone_is_refused(tmp_path, monkeypatch):
    """Its journal would lie in the folder of the mount point, where the host doesn't see it."""
    path, mounts = tmp_path / "a ledger.db", tmp_path / "mountinfo"
    ledger = PrivacyLedger(path=path)
    lines = [
        "36 35 98:0 /mnt1 / rw,noatime - ext3 /dev/root rw",
        f"37 35 98:0 /host/ledger.db {path} rw - ext4 /dev/sda1 rw".replace("a l", "a\\040l"),
    ]
    monkeypatch.setattr(ledger_lock, "_MOUNTS", mounts)
    ledger.charge(entry(0.1))  # no such list on this system
    mounts.write_text("\n".join(lines))
    with pytest.raises(PrivacyParameterError, match="Mount its folder"):
        ledger.charge(entry(0.1))
    mounts.write_text(lines[0])
    ledger.charge(entry(0.1))


def test_odd_names(tmp_path):
    for name in ("a b%20c?mode=memory#x", ":memory:", "käse.db"):
        ledger = PrivacyLedger(path=tmp_path / name)
        ledger.charge(entry())
        assert (tmp_path / name).is_file()
        assert len(PrivacyLedger(path=tmp_path / name).entries) == 1
    assert len(list(tmp_path.iterdir())) == 3


# -- files that are no ledger --------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"not a database" * 100, b"SQLite format 3\x00", b"\x00" * 4096], ids=repr
)
def test_another_file_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(PrivacyParameterError, match=r"ledger file .* can't be used"):
        PrivacyLedger(path=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "tables", [("people (name)",), ("entries (entry)", "people (name)"), ("ledger (facts)",)]
)
def test_another_database_is_refused_and_left_alone(path, tables):
    sql(path, *((f"CREATE TABLE {table}",) for table in tables))
    content = path.read_bytes()
    with pytest.raises(PrivacyParameterError, match="other tables"):
        PrivacyLedger(path=path)
    assert path.read_bytes() == content


def test_a_table_with_another_column_is_refused(path):
    sql(path, ("CREATE TABLE entries (amount)",))
    with pytest.raises(PrivacyParameterError, match="no such column"):
        PrivacyLedger(path=path)


@pytest.mark.parametrize("path", ["", b"ledger.db", 3, "a\0b", object()])
def test_what_is_no_name_of_a_file_is_refused(path):
    with pytest.raises(PrivacyParameterError, match="path must be the name of a file"):
        PrivacyLedger(path=path)
    with pytest.raises(PrivacyParameterError, match="path must be the name of a file"):
        PrivacyLedger().continued(path=path)


def test_a_file_without_the_keyword_is_a_hint():
    with pytest.raises(PrivacyParameterError, match=r"a file is given as path="):
        PrivacyLedger("ledger.db")


def test_links_that_lead_nowhere_are_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(PrivacyParameterError, match="isn't a file"):
        PrivacyLedger(path=tmp_path / "loop")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(PrivacyParameterError, match="isn't a file"):
        PrivacyLedger(path=tmp_path)
    with pytest.raises(PrivacyParameterError, match="isn't a file"):
        PrivacyLedger(path="/dev/null")


def test_a_place_that_cannot_be_written_is_refused(tmp_path, path):
    path.write_bytes(b"")
    for place in (tmp_path / "missing" / "ledger.db", path / "ledger.db", "~/ledger.db"):
        with pytest.raises(PrivacyParameterError, match=r"ledger file .* no such folder"):
            PrivacyLedger(path=place)
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_a_disk_without_links_is_refused(tmp_path, path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(PrivacyParameterError, match=r"not permitted\..* local disk"):
        PrivacyLedger(path=path)
    assert os.listdir(tmp_path) == []


def test_two_that_create_it_at_once_make_one(path, monkeypatch):
    link = os.link

    def late(new, target):
        monkeypatch.setattr(os, "link", link)
        PrivacyLedger(1.0, 1e-5, path=path).charge(entry(0.2))
        link(new, target)

    monkeypatch.setattr(os, "link", late)
    ledger = PrivacyLedger(path=path)
    assert len(ledger.entries) == 1
    assert ledger.epsilon == 1.0
    assert os.listdir(path.parent) == ["ledger.db"]


# -- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ['{"mechanism": "x"}', "[]", "no json", '{"noise_stddev": NaN}', "[[]]", "3", "null"],
)
def test_an_entry_that_cannot_be_read_refuses_the_next_spend(path, text):
    ledger = PrivacyLedger(path=path)
    ledger.charge(entry())
    sql(path, ("INSERT INTO entries (entry) VALUES (?)", (text,)))
    for use in (ledger.charge, lambda _: PrivacyLedger(path=path), lambda _: ledger.spent(1e-5)):
        with pytest.raises(PrivacyParameterError, match="damaged, or was written by a newer"):
            use(entry())
    assert repr(ledger) == "PrivacyLedger(no cap, in a file that can't be read)"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM entries WHERE rowid = 1",
        "DELETE FROM ledger",
        "UPDATE ledger SET facts = '{}'",
        "INSERT INTO ledger SELECT facts FROM ledger",
        "UPDATE ledger SET facts = replace(facts, '\"epsilon\": 2.0', '\"epsilon\": -1')",
    ],
)
def test_a_file_that_lacks_something_is_refused(path, damage):
    ledger = PrivacyLedger(2.0, 1e-5, path=path)
    ledger.charge(entry(0.1))
    ledger.charge(entry(0.2))
    sql(path, (damage,))
    with pytest.raises(PrivacyParameterError, match="damaged"):
        ledger.charge(entry(0.1))
    with pytest.raises(PrivacyParameterError, match="damaged"):
        PrivacyLedger(path=path)


def test_every_torn_file_is_refused_or_whole(path):
    """Any page cut off or overwritten: an error, or all entries."""
    ledger = PrivacyLedger(path=path)
    for _ in range(60):
        ledger.charge(entry())
    content = path.read_bytes()
    assert len(content) > 4 * 4096
    for start in range(0, len(content), 4096):
        for torn in (content[:start], content[:start] + b"\x07" * 4096 + content[start + 4096 :]):
            path.write_bytes(torn)
            with pytest.raises(PrivacyParameterError):
                PrivacyLedger(path=path)
            with pytest.raises(PrivacyParameterError):
                ledger.charge(entry())
    path.write_bytes(content)
    assert len(PrivacyLedger(path=path).entries) == 60


def test_an_old_copy_put_back_is_noticed_by_who_knows_more(path, tmp_path):
    ledger = PrivacyLedger(path=path)
    ledger.charge(entry())
    shutil.copy(path, tmp_path / "old")
    ledger.charge(entry())
    shutil.copy(tmp_path / "old", path)
    text = pickle.dumps(ledger)
    for known in (ledger, pickle.loads(text)):
        with pytest.raises(PrivacyParameterError, match="replaced or restored"):
            known.charge(entry())


def test_a_file_that_is_gone_is_not_made_again(path):
    ledger = PrivacyLedger(path=path)
    path.unlink()
    with pytest.raises(PrivacyParameterError, match="is gone"):
        ledger.charge(entry())
    assert not path.exists()
    assert "can't be read" in repr(ledger)
    # Nor is another one in its place taken for it.
    PrivacyLedger(path=path)
    with pytest.raises(PrivacyParameterError, match="isn't the one that was opened"):
        ledger.charge(entry())


def test_a_pickle_works_where_there_is_no_file_until_it_is_charged(path, monkeypatch):
    text = pickle.dumps(PrivacyLedger(1.0, 1e-5, path=path))
    path.unlink()
    ghost = pickle.loads(text)
    assert (ghost.epsilon, ghost.delta, ghost.path) == (1.0, 1e-5, str(path))
    assert not ghost.detached
    with pytest.raises(PrivacyParameterError, match="is gone"):
        ghost.charge(entry())


def test_a_refused_spend_leaves_the_file_unlocked(path):
    ledger = PrivacyLedger(1.0, 1e-5, path=path)
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(1.0))
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert connection.execute("SELECT * FROM entries").fetchall() == []


def test_a_locked_file_refuses_the_spend(path, monkeypatch):
    monkeypatch.setattr(ledger_file, "_TIMEOUT", 0.01)
    ledger = PrivacyLedger(path=path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(PrivacyParameterError, match="locked"):
            ledger.charge(entry())
        assert ledger.entries == ()  # reading needs no write lock
    ledger.charge(entry())


def test_a_busy_file_stops_no_other_ledger_and_no_fork(path, monkeypatch):
    monkeypatch.setattr(ledger_file, "_TIMEOUT", 60.0)
    ledger, memory = PrivacyLedger(path=path), PrivacyLedger()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(target=ledger.charge, args=(entry(),))
        thread.start()
        time.sleep(0.1)
        start = time.monotonic()
        for _ in range(5):
            memory.charge(entry(1e-3))
            with processes.lock:  # what a fork waits for
                pass
        assert time.monotonic() - start < 10
        assert thread.is_alive()
    thread.join()
    assert len(ledger.entries) == 1


def test_closing_the_file_during_a_charge_lets_nobody_in(path, monkeypatch):
    """A backup in another thread closes it, and with that SQLite's lock is gone."""
    code = """if True:
        import sys
        from skdpgen.exceptions import PrivacyParameterError
        from skdpgen.privacy import LedgerEntry, PrivacyLedger, ledger_file
        ledger_file._TIMEOUT = 0.2
        try:
            ledger = PrivacyLedger(path=sys.argv[1])
            ledger.charge(LedgerEntry("test", 4, 8.0, "replace-one", "row", 1, 1.0, 1e-5))
            print("charged")
        except PrivacyParameterError as error:
            print(error)
    """
    ledger, runs = PrivacyLedger(1.0, 1e-5, path=path), []
    real = ledger_rules.fits

    def backed_up(*args):
        path.read_bytes()
        run = [sys.executable, "-c", code, str(path)]
        runs.append(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        return real(*args)

    monkeypatch.setattr(ledger_rules, "fits", backed_up)
    ledger.charge(entry(0.2))
    assert len(runs) == 1
    assert "locked by others" in runs[0]
    assert len(PrivacyLedger(path=path).entries) == 1


def test_a_folder_that_cannot_be_locked_refuses_the_spend(path, monkeypatch):
    ledger = PrivacyLedger(path=path)

    def refuse(_, how):
        if how != ledger_lock._fcntl.LOCK_UN:
            raise OSError(37, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_lock._fcntl, "flock", refuse)
        with pytest.raises(PrivacyParameterError, match="No locks available"):
            ledger.charge(entry())
    # A system without such locks has SQLite's.
    monkeypatch.setattr(ledger_lock, "_fcntl", None)
    ledger.charge(entry())
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "CREATE VIEW v AS SELECT * FROM entries",
        "CREATE TABLE people (name)",
        "PRAGMA journal_mode = WAL",
    ],
)
def test_a_file_that_others_have_rebuilt_takes_no_spend(path, change):
    """A trigger can drop a confirmed charge; with WAL it is in another file."""
    ledger = PrivacyLedger(path=path)
    sql(path, (change,))
    for use in (lambda: ledger.charge(entry()), lambda: ledger.entries):
        with pytest.raises(PrivacyParameterError, match=r"other tables|set it to DELETE"):
            use()
    with pytest.raises(PrivacyParameterError, match=r"other tables|set it to DELETE"):
        PrivacyLedger(path=path)


def test_statistics_that_tools_leave_are_fine(path):
    ledger = PrivacyLedger(path=path)
    ledger.charge(entry())
    sql(path, ("ANALYZE",))
    ledger.charge(entry())
    assert len(PrivacyLedger(path=path).entries) == 2


def test_a_full_disk_refuses_the_spend(path):
    """A charge that isn't on the disk is none; a limit on file sizes stands in for the disk."""
    code = """if True:
        import resource, signal, sys
        from skdpgen.exceptions import PrivacyParameterError
        from skdpgen.privacy import LedgerEntry, PrivacyLedger
        ledger = PrivacyLedger(path=sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5 * 4096, 5 * 4096))
        charged = 0
        try:
            while charged < 1000:
                ledger.charge(LedgerEntry("x" * 200, 4, 8.0, "replace-one", "row", 1, 1.0, 1e-5))
                charged += 1
        except PrivacyParameterError as error:
            print(charged, error)
    """
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    charged, _, message = run.stdout.partition(" ")
    assert "full" in message or "disk I/O error" in message
    assert "Nothing was read" in message
    assert 0 < int(charged) == len(PrivacyLedger(path=path).entries) < 1000


# -- the cap of a file -----------------------------------------------------------------------------


def test_a_file_keeps_its_first_cap(path):
    PrivacyLedger(1.0, 1e-5, adjacency="replace-one", path=path)
    for looser in ({"epsilon": 1.1, "delta": 1e-5}, {"epsilon": 0.5, "delta": 1e-4}):
        with pytest.raises(PrivacyParameterError, match="looser"):
            PrivacyLedger(**looser, path=path)
    with pytest.raises(PrivacyParameterError, match="replace-one adjacency, not add-remove"):
        PrivacyLedger(adjacency="add-remove", path=path)
    tighter = PrivacyLedger(0.5, 1e-5, path=path)
    assert (tighter.epsilon, tighter.adjacency) == (0.5, "replace-one")
    same = PrivacyLedger(path=path)
    assert (same.epsilon, same.delta, same.adjacency) == (1.0, 1e-5, "replace-one")
    with pytest.raises(BudgetExceededError):
        tighter.charge(entry(0.2))
    same.charge(entry(0.2))
    with pytest.raises(BudgetExceededError):
        same.charge(entry(0.2))


def test_under_a_tighter_cap_that_of_the_file_holds_too(path, monkeypatch):
    asked = set()

    def recorded(charges, relation, epsilon, delta):
        asked.add((epsilon, delta))
        return epsilon < 2.0

    monkeypatch.setattr(ledger_rules, "fits", recorded)
    PrivacyLedger(2.0, 1e-5, path=path)
    tighter = PrivacyLedger(1.0, 1e-5, path=path)
    with pytest.raises(BudgetExceededError, match="the cap is 2 "):
        tighter.charge(entry())
    assert asked == {(1.0, 1e-5), (2.0, 1e-5)}
    assert tighter.remaining() == 1.0


def test_a_cap_that_comes_later_holds_for_those_who_opened_before(path):
    ledger = PrivacyLedger(path=path)
    ledger.charge(entry(0.2))
    PrivacyLedger(1.0, 1e-5, adjacency="replace-one", path=path)
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(0.2))
    assert (ledger.epsilon, ledger.adjacency) == (1.0, "replace-one")


@pytest.mark.parametrize(
    "spends",
    [
        [entry(3.0)],
        [replace(entry(), private=False)],
        [entry(0.1), LedgerEntry("s", 4, 9e3, "replace-one", "row", 1, 1.0, 1e-5, True, 5, 3)],
        [entry(0.1), entry(0.1, extra_delta=1e-7)],
    ],
)
def test_a_cap_that_comes_too_late_is_refused(path, spends):
    """What is spent is beyond it, or in an order that no cap allows."""
    ledger = PrivacyLedger(path=path)
    for spend in spends:
        ledger.charge(spend)
    with pytest.raises(PrivacyParameterError, match="spent in this ledger already"):
        PrivacyLedger(1.0, 1e-5, path=path)
    assert PrivacyLedger(path=path).epsilon is None
    ledger.charge(entry(0.1))


def test_a_tighter_cap_that_is_spent_already_is_refused(path):
    PrivacyLedger(1.0, 1e-5, path=path).charge(entry(0.2))
    with pytest.raises(PrivacyParameterError, match="spent in this ledger already"):
        PrivacyLedger(0.1, 1e-5, path=path)
    PrivacyLedger(0.9, 1e-5, path=path)


def test_an_adjacency_that_the_entries_do_not_have_is_not_written(path):
    PrivacyLedger(path=path).charge(entry(0.2))
    with pytest.raises(PrivacyParameterError, match="says nothing about adding or removing"):
        PrivacyLedger(adjacency="add-remove", path=path)
    assert PrivacyLedger(path=path).adjacency is None


def test_entries_of_an_older_file_still_load(path):
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
    sql(
        path,
        ("CREATE TABLE entries (entry TEXT NOT NULL)",),
        ("INSERT INTO entries (entry) VALUES (?)", (json.dumps(old),)),
    )
    ledger = PrivacyLedger(path=path)
    assert ledger.epsilon is None
    assert ledger.spent(1e-5) == pytest.approx(gaussian_epsilon(1e-5, 0.25), rel=1e-12)
    ledger.charge_all([entry(0.1, extra_delta=1e-6), entry(0.2)])
    assert [e.extra_delta for e in PrivacyLedger(path=path).entries] == [0.0, 1e-6, 0.0]


# -- crashes ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("repetition", range(8))
def test_a_killed_process_loses_no_charge(path, repetition):
    """SIGKILL at random moments: every confirmed charge is there, none that wasn't begun."""
    ledger = PrivacyLedger(path=path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            os.write(writing, b"s")
            ledger.charge(entry(1e-3))
            os.write(writing, b"d")
    os.close(writing)
    seen = os.read(reading, 1)
    time.sleep(0.02 + 0.3 * int.from_bytes(os.urandom(2), "big") / 2**16)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while chunk := os.read(reading, 4096):
        seen += chunk
    os.close(reading)
    entries = PrivacyLedger(path=path).entries
    assert seen.count(b"d") <= len(entries) <= seen.count(b"s")
    assert set(entries) <= {entry(1e-3)}
    ledger.charge(entry())
    assert len(ledger.entries) == len(entries) + 1


def test_a_half_written_charge_is_rolled_back(path, tmp_path):
    """A file and its journal as a power cut leaves them, pages written and not committed."""
    ledger = PrivacyLedger(path=path)
    ledger.charge(entry(0.1))
    cut = tmp_path / "cut.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(500):
            connection.execute("INSERT INTO entries VALUES (?)", ("half" * 1000,))
        shutil.copy(path, cut)
        shutil.copy(f"{path}-journal", f"{cut}-journal")
    assert b"half" in cut.read_bytes()
    assert PrivacyLedger(path=cut).entries == (entry(0.1),)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_a_transaction_and_the_child_can_charge(path):
    """Else it would inherit a lock of a thread that it hasn't, and an open database."""
    ledger, ready, go = PrivacyLedger(path=path), threading.Event(), threading.Event()

    def hold():
        with ledger._session(write=True) as session:
            ready.set()
            go.wait(10)
            session.append((entry(0.1),))

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait(10)
    threading.Timer(0.2, go.set).start()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ledger.charge(entry(0.2))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    thread.join()
    assert status == 0
    assert [round(e.mu, 9) for e in ledger.entries] == [0.1, 0.2]
