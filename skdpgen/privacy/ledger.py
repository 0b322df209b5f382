"""The privacy ledger: what was spent, on what, under which neighbouring relation.

A ledger is charged *before* rows are read. With a cap it refuses a spend that would exceed it;
with a path it lives in an SQLite file, so that spends of several processes add up there.
"""

from __future__ import annotations

import contextlib
import math
import os
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.composition import Charge, add_up, check_order, fits, total_epsilon
from skdpgen.privacy.entries import MAXIMUM_TEXT_LENGTH, Adjacency, LedgerEntry
from skdpgen.privacy.ledger_file import LedgerFile, Session, Terms, charge_from_plain, plain_charge
from skdpgen.privacy.ledger_report import (
    flat,
    records,
    refusal,
    remaining_epsilon,
    statement,
    table,
)
from skdpgen.privacy.processes import Process, in_worker_of, lock, this_process

__all__ = ["PrivacyLedger"]

# Ledgers of this process by key: a copy made by pickle, deepcopy or clone within the process is the
# same accountant, and no spend gets lost. Ledgers in memory are kept for good once there is a
# pickle, which may outlive all other references; so are those that go on from one.
_live: weakref.WeakValueDictionary[str, PrivacyLedger] = weakref.WeakValueDictionary()
_kept: dict[str, PrivacyLedger] = {}
_going_on: dict[str, PrivacyLedger] = {}

_PATH_ADVICE = (
    "give ledger=PrivacyLedger(path=...), a file that all processes share. Nothing was read or "
    "released."
)


class PrivacyLedger:
    """Records privacy spends and adds them up exactly.

    Parameters
    ----------
    epsilon, delta : float or None
        The cap: a charge that would take the total beyond (epsilon, delta) is refused before
        anything is read. None for no cap, or that of the file; give both or neither.
    adjacency : {"replace-one", "add-remove"} or None
        The relation of the cap and the total. None takes the stricter relation of the entries.
        Add-remove spends count double in ``mu`` under replace-one (a replacement is a removal and
        an addition); replace-one spends say nothing about add-remove and are refused there.
    path : path-like or None
        An SQLite file on a local disk that holds the entries, created if there is none. Needed
        where several processes spend from one budget (``n_jobs``). A charge is one transaction,
        and on the disk before rows are read. The file keeps the first cap and the first adjacency
        that it is given: others can open it with the same cap, a tighter one (for what they spend
        themselves) or none named, but not with a looser one.

    Raises
    ------
    PrivacyParameterError
        If the cap or the adjacency is out of range or contradicts the file, or the file can't be
        used: it is no ledger, damaged, or in a place that can't be written to.

    Notes
    -----
    What is guaranteed is the cap. The running total is exact for spends that were planned without
    looking at it; a stopping rule that reads it should rely on the cap instead.
    All entries of a ledger protect the same unit of privacy: rows, or units of several rows.

    Gaussian spends alone add up exactly; so does a slicing release, with Gaussian spends of the
    same charge. Several slicing releases, or one beside other charges, are added up as Renyi
    curves: the exact joint profile needs noise that is fixed before the directions are seen. The
    cap holds however spends are chosen; for that, which of the two accountings it is must be known
    before anything is, and a slicing release has to be in the first charge of a ledger with a cap.
    So must a spend with an ``extra_delta`` (learned categories); up to half of the cap's delta is
    then kept for others.

    Examples
    --------
    >>> from skdpgen.privacy.entries import LedgerEntry
    >>> ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)
    >>> ledger.charge(LedgerEntry("demo", 4, 2 * 3.731, "replace-one", "row", 1, 1.0, 1e-5))
    >>> len(ledger.entries), round(ledger.spent(1e-5), 3)
    (1, 1.0)
    >>> print(ledger.statement())
    1 release is (1, 1e-05)-differentially private for replacing one row (replace-one adjacency).
    >>> round(ledger.remaining(), 2)
    1.69
    """

    _key: str
    _charges: list[Charge]
    _owner: Process
    _taken: int

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        adjacency: Adjacency | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._terms = Terms(epsilon, delta, adjacency)
        self._charges = []
        self._owner = this_process()
        self._file: LedgerFile | None = None
        if path is not None:
            # Links and the working directory may change; the file stays the one it is now.
            self._file = LedgerFile(str(Path(path).resolve()))
            self._file.open(self._terms)
            with self._session():
                pass  # takes over what the file says
        self._key = uuid.uuid4().hex
        self._taken = 0
        _live[self._key] = self

    @property
    def epsilon(self) -> float | None:
        """Epsilon of the cap; None without one."""
        return self._terms.epsilon

    @property
    def delta(self) -> float | None:
        """Delta of the cap; None without one."""
        return self._terms.delta

    @property
    def adjacency(self) -> Adjacency | None:
        """The relation of the total; None takes the stricter one of the entries."""
        return self._terms.adjacency

    @property
    def path(self) -> str | None:
        """The file, as an absolute path without links; None for a ledger in memory."""
        return None if self._file is None else self._file.path

    # -- reading --------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All spends so far, oldest first."""
        return flat(self._read())

    def spent(self, delta: float) -> float:
        """Total epsilon of all entries at ``delta``; ``inf`` once one of them is not private."""
        charges = self._read()
        return total_epsilon(charges, self._relation(charges), delta)

    def remaining(self) -> float:
        """Largest epsilon, at the cap's delta, of one more Gaussian release that the cap allows.

        More than the difference of cap and :meth:`spent`: squares of noise parameters add up, not
        epsilons. ``inf`` without a cap, 0 if nothing fits any more. Several releases that use it
        up one after the other are fine; what it says doesn't depend on rows.
        """
        with self._session() as session:
            charges, caps = list(session.charges), self._caps(session)
        relation = self._relation(charges)
        return min((remaining_epsilon(charges, relation, *cap) for cap in caps), default=math.inf)

    def statement(self, delta: float | None = None) -> str:
        """What was spent in total, and for whom, in plain words.

        Parameters
        ----------
        delta : float or None
            None takes that of the cap, or else the largest of the entries.
        """
        charges = self._read()
        if delta is None:
            deltas = [entry.delta for entry in flat(charges) if entry.protected]
            delta = self.delta if self.delta is not None else max(deltas, default=0.0)
        return statement(charges, self._relation(charges), delta)

    def to_records(self) -> list[dict[str, Any]]:
        """One dict of plain values an entry, oldest first: for a data frame, say."""
        return records(self._read())

    @property
    def detached(self) -> bool:
        """Whether this is an in-memory copy from another process: its spends would get lost."""
        return self._file is None and self._owner != this_process()

    def __repr__(self) -> str:
        cap = "no cap" if self.epsilon is None else f"cap ({self.epsilon:g}, {self.delta:g})"
        where = "in memory" if self._file is None else "in a file"
        try:
            entries = self.entries
        except PrivacyParameterError:
            return f"PrivacyLedger({cap}, in a file that can't be read)"
        private = "" if all(entry.protected for entry in entries) else "NOT PRIVATE, "
        return f"PrivacyLedger({len(entries)} entries, {private}{cap}, {where})"

    def __str__(self) -> str:
        return f"{self!r}\n{table(self._read())}"

    # -- spending -------------------------------------------------------------------------------

    def charge(self, entry: LedgerEntry) -> None:
        """Record a spend, or refuse it and record nothing: :meth:`charge_all` of one entry.

        Parameters
        ----------
        entry : LedgerEntry
            The spend about to happen.
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
            ledger, or the file can't be used.
        """
        charge = tuple(entries)
        if not charge or not all(type(entry) is LedgerEntry for entry in charge):
            raise PrivacyParameterError("charge one LedgerEntry or more.")
        # Checked again: frozen isn't unchangeable, and what is added up is what is stored.
        charge = charge_from_plain(plain_charge(charge))
        with self._session(write=True) as session:
            self._append(session, charge)

    def record_unprotected(self, reason: str) -> None:
        """Write down that rows are about to be read without protection: the total turns infinite.

        Parameters
        ----------
        reason : str
            What for, like "selection by a score on private rows": public text, at most 200
            printable characters.

        Raises
        ------
        BudgetExceededError
            In a ledger with a cap, or a detached copy.
        PrivacyParameterError
            If the reason isn't such a text, or the file can't be used.
        """
        if not (isinstance(reason, str) and reason.strip() and reason.isprintable()):
            raise PrivacyParameterError("reason must be a text that says what rows are read for.")
        if len(reason) > MAXIMUM_TEXT_LENGTH:
            raise PrivacyParameterError(f"reason has more than {MAXIMUM_TEXT_LENGTH} characters.")
        with self._session(write=True) as session:
            # Under the relation of the others: it must not change what they mean.
            entry = LedgerEntry(
                "unprotected",
                sensitivity_squared=1,
                noise_stddev=0.0,
                adjacency=self._relation(session.charges),
                unit="row",
                rows_per_unit=1,
                epsilon=math.inf,
                delta=1.0,
                private=False,
                reason=reason,
            )
            self._append(session, (entry,))

    def continued(self) -> PrivacyLedger:
        """The ledger itself; of a detached copy, one that goes on here with its history and cap.

        All copies of one ledger go on as one.

        Raises
        ------
        BudgetExceededError
            In a worker, whose spends would get lost with it.
        """
        with lock:
            if not self.detached:
                return self
            if in_worker_of(self._owner):
                raise BudgetExceededError(
                    "this in-memory ledger is a copy in a worker process, where its spends would "
                    f"get lost: {_PATH_ADVICE}"
                )
            ledger = _going_on.get(self._key)
            if ledger is None:
                ledger = PrivacyLedger(self.epsilon, self.delta, adjacency=self.adjacency)
                _going_on[self._key] = ledger
            # Entries of a copy that was made later than the one before.
            ledger._charges.extend(self._charges[ledger._taken :])
            ledger._taken = max(ledger._taken, len(self._charges))
            return ledger

    # -- internals ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _session(self, *, write: bool = False) -> Iterator[Session | _InMemory]:
        """All charges, and how to append one, while nobody else can write."""
        if self._file is None:
            with lock:
                if write and self.detached:
                    raise BudgetExceededError(
                        "this in-memory ledger is a copy from another process, where its spends "
                        f"would get lost: {_PATH_ADVICE}"
                    )
                yield _InMemory(self._charges, self._terms)
            return
        with self._file.session(write=write) as session:
            # A cap that another process gave the file holds here, too.
            self._terms = self._terms.completed(session.terms)
            yield session

    def _read(self) -> list[Charge]:
        with self._session() as session:
            return list(session.charges)

    def _append(self, session: Session | _InMemory, charge: Charge) -> None:
        charges = [*session.charges, charge]
        # What is infinite anyway may stand beside any unit.
        if len({entry.unit for entry in flat(charges) if not entry.reason}) > 1:
            raise PrivacyParameterError(
                "all entries of a ledger must protect the same unit: a guarantee for rows can't be "
                "added to one for units of several rows. Start a new PrivacyLedger."
            )
        relation = self._relation(charges)
        add_up(charges, relation)  # or refuse: not every spend means something under it
        for cap in self._caps(session):
            check_order(charges)
            if not fits(charges, relation, *cap):
                raise BudgetExceededError(refusal(charges, relation, *cap))
        session.append(charge)

    def _caps(self, session: Session | _InMemory) -> set[tuple[float, float]]:
        # What fits under a tighter cap of this object may not fit under that of the file: each
        # certifies by its own Renyi orders.
        both = ((terms.epsilon, terms.delta) for terms in (self._terms, session.terms))
        return {(e, d) for e, d in both if e is not None and d is not None}

    def _relation(self, charges: Sequence[Charge]) -> Adjacency:
        if self.adjacency is not None:
            return self.adjacency
        if any(entry.adjacency == "replace-one" for entry in flat(charges)):
            return "replace-one"
        return "add-remove"

    # -- copying --------------------------------------------------------------------------------

    def __sklearn_clone__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        with lock:
            file = self._file
            if file is None and not self.detached:
                _kept[self._key] = self
            where = None if file is None else (file.path, file.key, file.seen)
            terms = (self.epsilon, self.delta, self.adjacency)
            charges = [plain_charge(charge) for charge in self._charges]
            return _restore, (self._key, terms, where, tuple(self._owner), charges)


@dataclass(frozen=True)
class _InMemory:
    charges: list[Charge]
    terms: Terms

    def append(self, charge: Charge) -> None:
        self.charges.append(charge)


def _restore(
    key: str,
    terms: tuple[float | None, float | None, Adjacency | None],
    where: tuple[str, str, int] | None,
    owner: tuple[str, int, str],
    charges: list[Any],
) -> PrivacyLedger:
    """Unpickle: the live ledger where it still exists in this process, else a copy."""
    with lock:
        live = _live.get(key)
        if live is not None:
            return live
        # Nothing is opened or created: on another machine there may be no such file, and what
        # doesn't need it should work.
        ledger = PrivacyLedger.__new__(PrivacyLedger)
        ledger._terms = Terms(*terms)
        ledger._file = None if where is None else LedgerFile(*where)
        ledger._charges = [charge_from_plain(charge) for charge in charges]
        ledger._owner = Process(*owner)
        ledger._taken = 0
        # Under its key a copy that travels back becomes the original again. It is not entered into
        # _live: a later copy may know more entries.
        ledger._key = key
        return ledger
