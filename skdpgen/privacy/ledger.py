"""The privacy ledger: what was spent, on what, under which neighbouring relation.

A ledger is charged *before* rows are read. With a cap it refuses a spend that would exceed it;
with a path it lives in an SQLite file, so that spends of several processes add up there.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta
from skdpgen.privacy.composition import Charge, add_up, check_order, fits, total_epsilon
from skdpgen.privacy.entries import Adjacency, LedgerEntry, check_adjacency

__all__ = ["PrivacyLedger"]

# In-memory ledgers of this process by key: a copy made by pickle, deepcopy or clone within the
# process is the same accountant, and no spend gets lost.
_live: weakref.WeakValueDictionary[str, PrivacyLedger] = weakref.WeakValueDictionary()


class PrivacyLedger:
    """Records privacy spends and adds them up exactly.

    Parameters
    ----------
    epsilon, delta : float or None
        The cap: a charge that would take the total beyond (epsilon, delta) is refused before
        anything is read. None for no cap; give both or neither.
    adjacency : {"replace-one", "add-remove"} or None
        The relation of the cap and the total. None takes the stricter relation of the entries.
        Add-remove spends count double in ``mu`` under replace-one (a replacement is a removal and
        an addition); replace-one spends say nothing about add-remove and are refused there.
    path : path-like or None
        An SQLite file that holds the entries. Needed where several processes spend from one
        budget (``n_jobs``). The cap is enforced inside one transaction. It is a property of this
        object, not of the file: open the file with the same cap everywhere.

    Notes
    -----
    What is guaranteed is the cap. The running total is exact for spends that were planned without
    looking at it; a stopping rule that reads it should rely on the cap instead.
    All entries of a ledger protect the same unit of privacy: rows, or units of several rows.

    Gaussian spends alone add up exactly, and a slicing release alone has its exact profile. Several
    of them, or one beside Gaussian spends, are added up as Renyi curves: the exact joint profile
    needs noise that is fixed before the directions are seen, which a ledger can't know. The cap
    holds however spends are chosen; for that, which of the two accountings it is must be known
    before anything is, and a slicing release has to be the first spend of a ledger with a cap.

    Examples
    --------
    >>> from skdpgen.privacy.entries import LedgerEntry
    >>> ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)
    >>> ledger.charge(LedgerEntry("demo", 4, 2 * 3.731, "replace-one", "row", 1, 1.0, 1e-5))
    >>> len(ledger.entries), round(ledger.spent(1e-5), 3)
    (1, 1.0)
    """

    _key: str
    _charges: list[Charge]
    _lock: threading.RLock
    _owner: int | None

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        adjacency: Adjacency | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        if (epsilon is None) != (delta is None):
            raise PrivacyParameterError("a cap needs both epsilon and delta.")
        self.epsilon = epsilon
        self.delta = delta
        if epsilon is not None and delta is not None:
            self.epsilon, self.delta = check_epsilon_delta(epsilon, delta)
        self.adjacency = None if adjacency is None else check_adjacency(adjacency)
        self.path = None if path is None else str(Path(path).absolute())
        self._key = uuid.uuid4().hex
        self._charges = []
        self._lock = threading.RLock()
        self._owner = os.getpid()
        _live[self._key] = self

    # -- reading --------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All spends so far, oldest first."""
        return _flat(self._read())

    def spent(self, delta: float) -> float:
        """Total epsilon of all entries at ``delta``; ``inf`` once one of them is not private."""
        charges = self._read()
        return total_epsilon(charges, self._relation(charges), delta)

    def _read(self) -> list[Charge]:
        if self.path is None:
            with self._lock:
                return list(self._charges)
        with self._transaction() as connection:
            return _read_charges(connection)

    @property
    def detached(self) -> bool:
        """Whether this is an in-memory copy from another process: its spends would get lost."""
        return self.path is None and self._owner != os.getpid()

    def __repr__(self) -> str:
        cap = "no cap" if self.epsilon is None else f"cap ({self.epsilon:g}, {self.delta:g})"
        where = "in memory" if self.path is None else "in a file"
        return f"PrivacyLedger({len(self.entries)} entries, {cap}, {where})"

    # -- spending -------------------------------------------------------------------------------

    def charge(self, entry: LedgerEntry) -> None:
        """Record a spend, or refuse it and record nothing.

        Parameters
        ----------
        entry : LedgerEntry
            The spend about to happen.

        Raises
        ------
        BudgetExceededError
            If the total would exceed the cap, or the ledger is a detached copy.
        PrivacyParameterError
            If the entry's unit of privacy or adjacency can't be added to this ledger.
        """
        self.charge_all([entry])

    def charge_all(self, entries: Iterable[LedgerEntry]) -> None:
        """Record several spends, all or none: those of one fit, say.

        They are fixed together, before any of them happens. That helps: what only the first charge
        of a ledger with a cap may hold can come together with others there.

        Parameters
        ----------
        entries : iterable of LedgerEntry
            The spends about to happen, at least one.

        Raises
        ------
        BudgetExceededError
            If the total would exceed the cap, or the ledger is a detached copy.
        PrivacyParameterError
            If there is none, or the unit of privacy or adjacency of one can't be added to this
            ledger.
        """
        charge = tuple(entries)
        if not charge:
            raise PrivacyParameterError("there is nothing to charge.")
        if self.detached:
            raise BudgetExceededError(
                "this in-memory ledger is a copy from another process, where its spends would "
                "get lost: give PrivacyLedger a path to share it between processes."
            )
        if self.path is None:
            with self._lock:
                self._check([*self._charges, charge])
                self._charges.append(charge)
            return
        with self._transaction() as connection:
            self._check([*_read_charges(connection), charge])
            connection.execute("INSERT INTO entries (entry) VALUES (?)", (_to_json(charge),))

    def continued(self) -> PrivacyLedger:
        """A new in-memory ledger that goes on from a detached copy, with its history and cap."""
        ledger = PrivacyLedger(self.epsilon, self.delta, adjacency=self.adjacency)
        ledger._charges.extend(self._read())
        return ledger

    def _check(self, charges: list[Charge]) -> None:
        if len({entry.unit for entry in _flat(charges)}) > 1:
            raise PrivacyParameterError(
                "all entries of a ledger must protect the same unit: a guarantee for rows can't be "
                "added to one for units of several rows. Start a new PrivacyLedger."
            )
        relation = self._relation(charges)
        add_up(charges, relation)  # or refuse: not every spend means something under it
        if self.epsilon is None or self.delta is None:
            return
        check_order(charges)
        if not fits(charges, relation, self.epsilon, self.delta):
            raise BudgetExceededError(
                f"this spend would take the total beyond the ledger's cap of epsilon = "
                f"{self.epsilon:g}, delta = {self.delta:g}; nothing was read or released."
            )

    def _relation(self, charges: Iterable[Charge]) -> Adjacency:
        if self.adjacency is not None:
            return self.adjacency
        if any(entry.adjacency == "replace-one" for entry in _flat(charges)):
            return "replace-one"
        return "add-remove"

    # -- copying and storage --------------------------------------------------------------------

    def __sklearn_clone__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.epsilon, self.delta, self.adjacency, self.path)
        return _restore, (self._key, *state, _plain(self._charges))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(str(self.path), timeout=60, isolation_level=None)
        try:
            # IMMEDIATE takes the write lock before the entries are read: no spend slips between
            # the check and the insert.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS entries (entry TEXT NOT NULL)")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()


def _restore(
    key: str,
    epsilon: float | None,
    delta: float | None,
    adjacency: Adjacency | None,
    path: str | None,
    charges: list[list[dict[str, Any]]],
) -> PrivacyLedger:
    """Unpickle: the live ledger where it still exists in this process, else a copy."""
    live = _live.get(key)
    if live is not None:
        return live
    ledger = PrivacyLedger(epsilon, delta, adjacency=adjacency, path=path)
    ledger._charges.extend(map(_charge, charges))
    ledger._owner = None
    # Under its key a copy that travels back becomes the original again. It is not entered into
    # _live: a later copy may know more entries.
    ledger._key = key
    return ledger


def _flat(charges: Iterable[Charge]) -> Charge:
    return tuple(entry for charge in charges for entry in charge)


def _plain(charges: Iterable[Charge]) -> list[list[dict[str, Any]]]:
    return [[asdict(entry) for entry in charge] for charge in charges]


def _charge(plain: list[dict[str, Any]]) -> Charge:
    if not plain:
        raise ValueError("a charge without entries.")
    return tuple(LedgerEntry(**entry) for entry in plain)


def _to_json(charge: Charge) -> str:
    return json.dumps([asdict(entry) for entry in charge])


def _read_charges(connection: sqlite3.Connection) -> list[Charge]:
    rows = connection.execute("SELECT entry FROM entries ORDER BY rowid").fetchall()
    # Older files have one entry a row.
    read = [json.loads(row[0]) for row in rows]
    return [_charge([plain] if isinstance(plain, dict) else plain) for plain in read]
