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
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta
from skdpgen.privacy.composition import Charge, add_up
from skdpgen.privacy.entries import Adjacency, LedgerEntry, check_adjacency
from skdpgen.privacy.processes import lock

__all__ = ["LedgerFile", "Session", "Terms", "charge_from_plain", "plain_charge"]

_TIMEOUT = 60.0  # seconds to wait while other processes write


@dataclass(frozen=True)
class Terms:
    """Cap and neighbouring relation; None where there is none."""

    epsilon: float | None = None
    delta: float | None = None
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise PrivacyParameterError("a cap needs both epsilon and delta.")
        if self.epsilon is not None and self.delta is not None:
            epsilon, delta = check_epsilon_delta(self.epsilon, self.delta)
            object.__setattr__(self, "epsilon", epsilon)
            object.__setattr__(self, "delta", delta)
        if self.adjacency is not None:
            check_adjacency(self.adjacency)

    def completed(self, other: Terms) -> Terms:
        """These terms, and the other's where these say nothing."""
        joint = self
        if self.epsilon is None:
            joint = replace(joint, epsilon=other.epsilon, delta=other.delta)
        return replace(joint, adjacency=self.adjacency or other.adjacency)

    def check_within(self, other: Terms) -> None:
        """Refuse a cap that is looser than the other, and another relation.

        Raises
        ------
        PrivacyParameterError
            Naming both.
        """
        for name in ("epsilon", "delta"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None and mine > theirs:
                raise PrivacyParameterError(
                    f"the ledger file has a cap of {name} = {theirs!r}, and {mine!r} would be "
                    f"looser. Leave out epsilon and delta to take the cap of the file, or give a "
                    f"tighter one."
                )
        if None not in (self.adjacency, other.adjacency) and self.adjacency != other.adjacency:
            raise PrivacyParameterError(
                f"the ledger file is for {other.adjacency} adjacency, not {self.adjacency}."
            )


class LedgerFile:
    """A file of charges, by its absolute path.

    Parameters
    ----------
    path : str
        Absolute.
    key : str, default=""
        Name written into the file, if it has been seen: another file in its place is refused.
    seen : int, default=0
        Number of charges seen there: a file with fewer is refused.
    """

    def __init__(self, path: str, key: str = "", seen: int = 0) -> None:
        self.path, self.key, self.seen = path, key, seen

    def open(self, terms: Terms) -> None:
        """Create the file if there is none, check it, and write down terms that it lacks.

        Raises
        ------
        PrivacyParameterError
            If it can't be created, read or written, is no ledger or a damaged one, or has stricter
            terms.
        """
        if not os.path.lexists(self.path):
            self._create()
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            _check_tables(connection)
            session = Session(self, connection)
            terms.check_within(session.terms)
            joint = session.terms.completed(terms)
            if joint.adjacency is not None:
                add_up(session.charges, joint.adjacency)
            if joint != session.terms:
                session.write_terms(joint)
            connection.execute("COMMIT")
        self.key, self.seen = session.key, len(session.charges)

    @contextlib.contextmanager
    def session(self, *, write: bool) -> Iterator[Session]:
        """Read the file, and keep others from writing until what is appended is on the disk.

        Raises
        ------
        PrivacyParameterError
            If the file is gone, was replaced, lacks entries, or can't be read or written.
        """
        with self._connection() as connection:
            # IMMEDIATE takes the write lock before the entries are read: no spend slips between
            # the check and the insert.
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            session = Session(self, connection)
            if self.key not in ("", session.key) or len(session.charges) < self.seen:
                raise PrivacyParameterError(
                    f"the ledger file {self.path!r} isn't the one that was opened, or lacks "
                    f"entries that it had: it was replaced or restored. Spends may be missing, so "
                    f"nothing is charged; bring back the newest copy."
                )
            yield session
            connection.execute("COMMIT")
            self.seen = len(session.charges)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if not os.path.isfile(self.path):
            kind = "isn't a file" if os.path.lexists(self.path) else "is gone"
            raise PrivacyParameterError(
                f"the ledger file {self.path!r} {kind}: nothing can be charged, and what was spent "
                f"isn't known."
            )
        with lock, self._explained():
            # Never creates: a new file would forget what was spent.
            connection = sqlite3.connect(
                f"{Path(self.path).as_uri()}?mode=rw",
                uri=True,
                timeout=_TIMEOUT,
                isolation_level=None,
            )
            try:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")
                yield connection
            finally:
                connection.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise PrivacyParameterError(
                f"the ledger file {self.path!r} can't be used ({error}): it is no ledger, damaged, "
                f"not writable, or locked by others for more than {_TIMEOUT:g} seconds. Nothing "
                f"was read or released."
            ) from error

    def _create(self) -> None:
        # Whole or not at all, and never over another: an empty file is always a damaged one.
        new = f"{self.path}.{uuid.uuid4().hex}.new"
        try:
            with self._explained(), contextlib.closing(sqlite3.connect(new)) as connection:
                connection.execute("CREATE TABLE entries (entry TEXT NOT NULL)")
                connection.execute("PRAGMA synchronous = EXTRA")
                with connection:
                    _add_facts(connection)
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


def _check_tables(connection: sqlite3.Connection) -> None:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = {name for (name,) in found}
    if tables == {"entries"}:  # written before there were terms
        _add_facts(connection)
    elif tables != {"entries", "ledger"}:
        raise sqlite3.DatabaseError("it has other tables than a ledger")
    damage = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if damage != "ok":
        raise sqlite3.DatabaseError(damage)


def _add_facts(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE ledger (facts TEXT NOT NULL)")
    facts = {"key": uuid.uuid4().hex, **asdict(Terms())}
    connection.execute("INSERT INTO ledger VALUES (?)", (json.dumps(facts),))
