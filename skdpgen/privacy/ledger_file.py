"""The SQLite file of a ledger: created whole, checked when it is read, written in transactions.

A charge is on the disk before :meth:`LedgerFile.session` returns (rollback journal, synchronous
EXTRA), and there as a whole or not at all. A file that isn't what it should be is refused; none is
ever made where one was.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.composition import Charge
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger_lock import NEW, check_single_name, held
from skdpgen.privacy.ledger_rules import Terms, check_history
from skdpgen.privacy.processes import lock

__all__ = ["LedgerFile", "Session", "absolute", "charge_from_plain", "plain_charge"]

_TIMEOUT = 60.0  # seconds to wait while other processes write
_PAUSE = 0.005  # seconds between two tries


def absolute(path: object) -> str:
    """A path without links and "..": links and the working directory may change later.

    Raises
    ------
    PrivacyParameterError
        If it is no name of a file.
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not (isinstance(text, str) and text and "\0" not in text):
        raise PrivacyParameterError(f"path must be the name of a file, got {path!r}.")
    return os.path.realpath(text)


class LedgerFile:
    """A file of charges, by its absolute path.

    Parameters
    ----------
    path : str
        See :func:`absolute`.
    key : str, default=""
        Name written into the file, if it has been seen: another file in its place is refused.
    seen : int, default=0
        Number of charges seen there: a file with fewer is refused.
    """

    def __init__(self, path: str, key: str = "", seen: int = 0) -> None:
        self.path, self.key, self.seen = path, key, seen

    def open(self, terms: Terms, history: tuple[str, Sequence[Charge]] | None = None) -> None:
        """Create the file if there is none, check it, and write down terms that it lacks.

        Parameters
        ----------
        terms : Terms
        history : tuple of str and sequence of tuple of LedgerEntry, or None
            Key and charges of a ledger that goes on in the file. They are written if the file is
            new; else it has to be the file of that ledger, and to begin with them.

        Raises
        ------
        PrivacyParameterError
            If it can't be created, read or written, is no ledger or a damaged one, has stricter
            terms or more spends than the terms allow, or another history.
        """
        key, charges = history or (uuid.uuid4().hex, ())
        if not os.path.lexists(self.path):
            self._create(key, charges)
        with self._transaction(write=True) as connection:
            _upgrade(connection)
            damage = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if damage != "ok":
                raise sqlite3.DatabaseError(damage)
            session = Session(self, connection)
            if history is not None and (
                session.key != key or session.charges[: len(charges)] != list(charges)
            ):
                raise PrivacyParameterError(
                    f"the ledger file {self.path!r} holds another history than this ledger: one of "
                    f"the two lacks spends of the other, or they are for different tables. Give "
                    f"the name of a new file."
                )
            terms.check_within(session.terms)
            # A first cap of the file, or one of our own that is tighter.
            mine = terms.completed(session.terms)
            if mine != session.terms:
                check_history(session.charges, mine)
            joint = session.terms.completed(terms)
            if joint != session.terms:
                session.write_terms(joint)
        self.key, self.seen = session.key, len(session.charges)

    @contextlib.contextmanager
    def session(self, *, write: bool) -> Iterator[Session]:
        """Read the file, and keep others from writing until what is appended is on the disk.

        Raises
        ------
        PrivacyParameterError
            If the file is gone, was replaced, lacks entries, or can't be read or written.
        """
        with self._transaction(write=write) as connection:
            session = Session(self, connection)
            if self.key not in ("", session.key) or len(session.charges) < self.seen:
                raise PrivacyParameterError(
                    f"the ledger file {self.path!r} isn't the one that was opened, or lacks "
                    f"entries that it had: it was replaced or restored. Spends may be missing, so "
                    f"nothing is charged; bring back the newest copy."
                )
            yield session
        self.seen = len(session.charges)

    @contextlib.contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """What is done within is on the disk afterwards, or, after an error, undone."""
        deadline = time.monotonic() + _TIMEOUT
        with self._explained(), contextlib.ExitStack() as stack:
            while True:
                try:
                    connection = stack.enter_context(self._begun(write=write))
                    break
                except (BlockingIOError, sqlite3.OperationalError) as error:
                    if not _is_busy(error) or time.monotonic() > deadline:
                        raise
                # Without our own lock: ledgers in memory and forks don't wait for a file.
                time.sleep(_PAUSE)
            yield connection
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _begun(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        if not os.path.isfile(self.path):
            kind = "isn't a file" if os.path.lexists(self.path) else "is gone"
            raise PrivacyParameterError(
                f"the ledger file {self.path!r} {kind}: nothing can be charged, and what was spent "
                f"isn't known."
            )
        # Never creates: a new file would forget what was spent.
        uri = f"{Path(self.path).as_uri()}?mode=rw"
        with lock, held(self.path):
            check_single_name(self.path)
            connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
            with contextlib.closing(connection):
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")
                # EXCLUSIVE locks before entries are read, so that no spend slips between the check
                # and the insert, and lets nobody in who would stop the commit.
                connection.execute("BEGIN EXCLUSIVE" if write else "BEGIN")
                _check_content(connection)
                yield connection

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise PrivacyParameterError(
                f"the ledger file {self.path!r} can't be used ({error}): it is no ledger, damaged, "
                f"not writable, or locked by others for more than {_TIMEOUT:g} seconds. Nothing "
                f"was read or released."
            ) from error

    def _create(self, key: str, charges: Sequence[Charge]) -> None:
        # Whole or not at all, and never over another: an empty file is always a damaged one.
        new = f"{self.path}.{uuid.uuid4().hex}{NEW}"
        if not os.path.isdir(os.path.dirname(self.path)):
            raise PrivacyParameterError(
                f"the ledger file {self.path!r} can't be created: there is no such folder."
            )
        try:
            with self._explained(), contextlib.closing(sqlite3.connect(new)) as connection:
                connection.execute("CREATE TABLE entries (entry TEXT NOT NULL)")
                connection.execute("PRAGMA synchronous = EXTRA")
                with connection:
                    _add_facts(connection, key)
                    rows = ((json.dumps(plain_charge(charge)),) for charge in charges)
                    connection.executemany("INSERT INTO entries (entry) VALUES (?)", rows)
            # Windows has a rename that overwrites nothing, other systems have not.
            (os.rename if os.name == "nt" else os.link)(new, self.path)
        except FileExistsError:
            pass  # by another process, a moment ago
        except OSError as error:
            raise PrivacyParameterError(
                f"the ledger file {self.path!r} can't be created: {error.strerror}. Put it on a "
                f"local disk."
            ) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(new)


class Session:
    """What a file says while others can't write. Raises PrivacyParameterError if it can't be read.

    Attributes
    ----------
    charges : list of tuple of LedgerEntry
        Oldest first.
    terms : Terms
    key : str
    """

    def __init__(self, file: LedgerFile, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT rowid, entry FROM entries ORDER BY rowid").fetchall()
        facts = connection.execute("SELECT facts FROM ledger").fetchall()
        try:
            if [number for number, _ in rows] != list(range(1, len(rows) + 1)):
                raise ValueError("an entry is missing")
            self.charges = [charge_from_plain(json.loads(text)) for _, text in rows]
            ((text,),) = facts
            read = json.loads(text)
            self.key = str(read.pop("key"))
            self.terms = Terms(**read)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise PrivacyParameterError(
                f"the ledger file {file.path!r} is damaged, or was written by a newer version of "
                f"skdpgen: {error}. What was spent isn't known, so nothing is charged."
            ) from None

    def append(self, charge: Charge) -> None:
        """Write a charge; it holds once the session is over."""
        text = json.dumps(plain_charge(charge))
        self._connection.execute("INSERT INTO entries (entry) VALUES (?)", (text,))
        self.charges.append(charge)

    def write_terms(self, terms: Terms) -> None:
        """Write down cap and relation."""
        text = json.dumps({"key": self.key, **asdict(terms)})
        self._connection.execute("UPDATE ledger SET facts = ?", (text,))
        self.terms = terms


def plain_charge(charge: Charge) -> list[dict[str, Any]]:
    """A charge as JSON-ready values."""
    return [asdict(entry) for entry in charge]


def charge_from_plain(plain: Any) -> Charge:
    """The inverse of :func:`plain_charge`; takes the single entry of older files too."""
    if isinstance(plain, dict):
        plain = [plain]
    if not plain:
        raise ValueError("a charge without entries")
    return tuple(LedgerEntry(**entry) for entry in plain)


def _check_content(connection: sqlite3.Connection) -> None:
    """Refuse what could change the meaning of a charge: triggers, other tables, another journal."""
    found = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
    # ANALYZE, which some tools run, leaves statistics.
    content = {row for row in found if not row[1].startswith("sqlite_stat")}
    if not {("table", "entries")} <= content <= {("table", "entries"), ("table", "ledger")}:
        raise sqlite3.DatabaseError("it has other tables than a ledger, or more than tables")
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "delete":
        raise sqlite3.DatabaseError(
            f"another program has set journal_mode = {mode}; set it to DELETE again"
        )


def _upgrade(connection: sqlite3.Connection) -> None:
    """Give facts to a file that was written before there were any."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").fetchone() is None:
        _add_facts(connection, uuid.uuid4().hex)


def _add_facts(connection: sqlite3.Connection, key: str) -> None:
    connection.execute("CREATE TABLE ledger (facts TEXT NOT NULL)")
    facts = {"key": key, **asdict(Terms())}
    connection.execute("INSERT INTO ledger VALUES (?)", (json.dumps(facts),))


def _is_busy(error: Exception) -> bool:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, BlockingIOError) or (
        code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    )
