"""The privacy ledger: what was spent, on what, under which neighbouring relation.

A ledger is charged *before* rows are read. With a cap it refuses a spend that would exceed it;
with a path it lives in an SQLite file, so that spends of several processes add up there.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import (
    check_epsilon_delta,
    compose_gaussian,
    gaussian_delta,
    gaussian_epsilon,
)
from skdpgen.privacy.entries import Adjacency, LedgerEntry, check_adjacency
from skdpgen.privacy.slicing_accounting import slicing_delta, slicing_epsilon, slicing_renyi

__all__ = ["PrivacyLedger"]

# In-memory ledgers of this process by key: a copy made by pickle, deepcopy or clone within the
# process is the same accountant, and no spend gets lost.
_live: weakref.WeakValueDictionary[str, PrivacyLedger] = weakref.WeakValueDictionary()

# Half of the slack in delta that calibration keeps; the other half is for what formulas leave out.
_SLACK = 5e-9
# Renyi orders among which a total is optimized.
_ORDERS = (1 + np.logspace(-2, 5, 701)).tolist()
# Orders that a cap may be certified by, beside its own; they share a tenth of its delta.
_SPARE_ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, 65.0, 129.0)


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
    _entries: list[LedgerEntry]
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
        self._entries = []
        self._lock = threading.RLock()
        self._owner = os.getpid()
        _live[self._key] = self

    # -- reading --------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All spends so far, oldest first."""
        if self.path is None:
            with self._lock:
                return tuple(self._entries)
        with self._transaction() as connection:
            return tuple(_read_entries(connection))

    def spent(self, delta: float) -> float:
        """Total epsilon of all entries at ``delta``; ``inf`` once one of them is not private."""
        entries = self.entries
        return _total_epsilon(entries, self._relation(entries), delta)

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
        if self.detached:
            raise BudgetExceededError(
                "this in-memory ledger is a copy from another process, where its spends would "
                "get lost: give PrivacyLedger a path to share it between processes."
            )
        if self.path is None:
            with self._lock:
                self._check([*self._entries, entry])
                self._entries.append(entry)
            return
        with self._transaction() as connection:
            self._check([*_read_entries(connection), entry])
            connection.execute("INSERT INTO entries (entry) VALUES (?)", (_to_json(entry),))

    def continued(self) -> PrivacyLedger:
        """A new in-memory ledger that goes on from a detached copy, with its history and cap."""
        ledger = PrivacyLedger(self.epsilon, self.delta, adjacency=self.adjacency)
        ledger._entries.extend(self.entries)
        return ledger

    def _check(self, entries: list[LedgerEntry]) -> None:
        if len({entry.unit for entry in entries}) > 1:
            raise PrivacyParameterError(
                "all entries of a ledger must protect the same unit: a guarantee for rows can't be "
                "added to one for units of several rows. Start a new PrivacyLedger."
            )
        mu, slicing = _split(entries, self._relation(entries))
        if self.epsilon is None or self.delta is None:
            return
        if slicing and not entries[0].n_directions:
            raise BudgetExceededError(
                "in a ledger with a cap a slicing release has to come before all others: which "
                "accounting holds must not be decided by looking at earlier releases. Nothing was "
                "read or released; start a ledger with the slicing release, or one for it alone."
            )
        if not _fits(mu, slicing, self.epsilon, self.delta):
            raise BudgetExceededError(
                f"this spend would take the total beyond the ledger's cap of epsilon = "
                f"{self.epsilon:g}, delta = {self.delta:g}; nothing was read or released."
            )

    def _relation(self, entries: Iterable[LedgerEntry]) -> Adjacency:
        if self.adjacency is not None:
            return self.adjacency
        if any(entry.adjacency == "replace-one" for entry in entries):
            return "replace-one"
        return "add-remove"

    # -- copying and storage --------------------------------------------------------------------

    def __sklearn_clone__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.epsilon, self.delta, self.adjacency, self.path)
        return _restore, (self._key, *state, [asdict(entry) for entry in self._entries])

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
    entries: list[dict[str, Any]],
) -> PrivacyLedger:
    """Unpickle: the live ledger where it still exists in this process, else a copy."""
    live = _live.get(key)
    if live is not None:
        return live
    ledger = PrivacyLedger(epsilon, delta, adjacency=adjacency, path=path)
    ledger._entries.extend(LedgerEntry(**entry) for entry in entries)
    ledger._owner = None
    # Under its key a copy that travels back becomes the original again. It is not entered into
    # _live: a later copy may know more entries.
    ledger._key = key
    return ledger


def _split(entries: Iterable[LedgerEntry], relation: Adjacency) -> tuple[float, list[LedgerEntry]]:
    """Total ``mu`` of the Gaussian spends, infinite if one isn't protected; slicing spends."""
    mus, slicing = [], []
    for entry in entries:
        if relation == "add-remove" and entry.adjacency == "replace-one":
            raise PrivacyParameterError(
                "a replace-one spend can't be added to an add-remove ledger: it says nothing "
                "about adding or removing a row."
            )
        if entry.n_directions and entry.protected:
            slicing.append(entry)
        else:
            mus.append(entry.mu if entry.adjacency == relation else 2 * entry.mu)
    return compose_gaussian(mus), slicing


def _total_epsilon(entries: Iterable[LedgerEntry], relation: Adjacency, delta: float) -> float:
    mu, slicing = _split(entries, relation)
    if not slicing or mu == math.inf:
        return gaussian_epsilon(delta, mu)
    if mu == 0 and len(slicing) == 1:
        return slicing_epsilon(delta, slicing[0].noise_stddev, **slicing[0].slicing)
    _, delta = check_epsilon_delta(1.0, delta)
    totals = (_renyi(order, mu, slicing) + _conversion(order, delta) for order in _ORDERS)
    return max(0.0, min(totals))


def _fits(mu: float, slicing: list[LedgerEntry], epsilon: float, delta: float) -> bool:
    if not slicing or mu == math.inf:
        return gaussian_delta(epsilon, mu) <= delta
    if mu == 0 and len(slicing) == 1:
        alone = slicing_delta(epsilon, slicing[0].noise_stddev, **slicing[0].slicing)
        return alone * (1 + _SLACK) <= delta
    # The order that certifies a total may depend on earlier releases if later spends were chosen
    # by them, and then no theorem allows the best one. But each order certifies the histories for
    # which it is the first that holds, with its own share of delta, and the shares add up to delta.
    # Most goes to the order at which a Gaussian that uses up the cap is certified best.
    spare = 0.1 * delta / len(_SPARE_ORDERS)
    own = max(_ORDERS, key=lambda order: (epsilon - _conversion(order, 0.9 * delta)) / order)
    shares = [(own, 0.9 * delta), *((order, spare) for order in _SPARE_ORDERS)]
    return any(
        _renyi(order, mu, slicing) + _conversion(order, share) <= epsilon for order, share in shares
    )


def _renyi(order: float, mu: float, slicing: list[LedgerEntry]) -> float:
    """Renyi divergence of all spends together: the sum, also if they were chosen adaptively."""
    curves = [slicing_renyi(order, spend.noise_stddev, **spend.slicing) for spend in slicing]
    return math.fsum([order * mu * mu / 2, *curves])


def _conversion(order: float, delta: float) -> float:
    """What is added to a Renyi divergence to give epsilon (arXiv 2004.00010, Prop. 12)."""
    delta *= 1 - _SLACK
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def _to_json(entry: LedgerEntry) -> str:
    return json.dumps(asdict(entry))


def _read_entries(connection: sqlite3.Connection) -> list[LedgerEntry]:
    rows = connection.execute("SELECT entry FROM entries ORDER BY rowid").fetchall()
    return [LedgerEntry(**json.loads(row[0])) for row in rows]
