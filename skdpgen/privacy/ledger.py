"""The privacy ledger: what was spent, on what, under which neighbouring relation.

A ledger is charged *before* rows are read. With a cap it refuses a spend that would exceed it;
with a path it lives in an SQLite file, so that spends of several processes add up there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.composition import Charge, total_epsilon
from skdpgen.privacy.entries import MAXIMUM_TEXT_LENGTH, Adjacency, LedgerEntry
from skdpgen.privacy.ledger_file import Session, charge_from_plain, plain_charge
from skdpgen.privacy.ledger_memory import LedgerMemory
from skdpgen.privacy.ledger_report import flat, records, remaining_epsilon, statement, table
from skdpgen.privacy.ledger_rules import Cap, relation_of, terms_after
from skdpgen.privacy.ledger_storage import LedgerStorage

__all__ = ["PrivacyLedger"]


class PrivacyLedger(LedgerStorage):
    """Records privacy spends and adds them up exactly.

    Parameters
    ----------
    epsilon, delta : float or None
        The cap: a charge that would take the total beyond (epsilon, delta) is refused before
        anything is read. None for no cap, or that of the file; give both or neither.
    adjacency : {"replace-one", "add-remove"} or None
        The relation of the cap and the total. None takes the stricter relation of the entries;
        with a cap, that of the first charge, which fixes it for good.
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
        If the cap or the adjacency is out of range or contradicts the file, the spends in the file
        are beyond the cap, or the file can't be used: it is no ledger, damaged, has a second name,
        or is in a place that can't be written to.

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
    1 release is (0.9999, 1e-05)-differentially private for replacing one row
    (replace-one adjacency).
    >>> round(ledger.remaining(), 2)
    1.66
    """

    # -- reading --------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All spends so far, oldest first."""
        return flat(self._read())

    def spent(self, delta: float) -> float:
        """Total epsilon of all entries at ``delta``; ``inf`` once one of them is not private.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Epsilon, 0 for an empty ledger.
        """
        charges = self._read()
        return total_epsilon(charges, self._relation(charges), delta)

    def remaining(self) -> float:
        """Largest epsilon, at the cap's delta, of one more Gaussian release that the cap allows.

        A release of the ledger's own relation: of add-remove releases under replace-one, less fits.
        More than the difference of cap and :meth:`spent`: squares of noise parameters add up, not
        epsilons. ``inf`` without a cap, 0 if nothing fits any more. Several releases that use it
        up one after the other are fine; what it says doesn't depend on rows.

        Returns
        -------
        float
            Epsilon, at least 0.
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

        Returns
        -------
        str
            The statement.

        Raises
        ------
        PrivacyParameterError
            If ``delta`` isn't in (0, 1), or is None and nothing names one that is.
        """
        charges = self._read()
        if delta is None:
            deltas = [entry.delta for entry in flat(charges) if 0 < entry.delta < 1]
            delta = self.delta if self.delta is not None else max(deltas, default=0.0)
            if not delta and any(entry.protected for entry in flat(charges)):
                raise PrivacyParameterError("no entry names a delta in (0, 1): give one.")
        return statement(charges, self._relation(charges), delta)

    def to_records(self) -> list[dict[str, Any]]:
        """One dict of plain values an entry, oldest first: for a data frame, say.

        Returns
        -------
        list of dict
            Plain values by name.
        """
        return records(self._read())

    def __repr__(self) -> str:
        cap = "no cap" if self.epsilon is None else f"cap ({self.epsilon:g}, {self.delta:g})"
        where = "in memory" if self.path is None else "in a file"
        try:
            entries = self.entries
        except PrivacyParameterError:
            return f"PrivacyLedger({cap}, in a file that can't be read)"
        private = "" if all(entry.protected for entry in entries) else "NOT PRIVATE, "
        return f"PrivacyLedger({len(entries)} entries, {private}{cap}, {where})"

    def __str__(self) -> str:
        try:
            return f"{self!r}\n{table(self._read())}"
        except PrivacyParameterError:
            return repr(self)

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
            # With relation and unit of the others: it must not change what they mean.
            others = [entry for entry in flat(session.charges) if not entry.reason]
            entry = LedgerEntry(
                "unprotected",
                sensitivity_squared=1,
                noise_stddev=0.0,
                adjacency=self._relation(session.charges),
                unit=others[0].unit if others else "row",
                rows_per_unit=others[0].rows_per_unit if others else 1,
                epsilon=math.inf,
                delta=1.0,
                private=False,
                reason=reason,
            )
            self._append(session, (entry,))

    # -- internals ------------------------------------------------------------------------------

    def _read(self) -> list[Charge]:
        with self._session() as session:
            return list(session.charges)

    def _append(self, session: Session | LedgerMemory, charge: Charge) -> None:
        # The relation of a total is one for the whole file; this object may have a tighter cap.
        terms = terms_after(session.charges, charge, session.terms, self._caps(session))
        if terms != session.terms:
            session.write_terms(terms)
        session.append(charge)

    def _caps(self, session: Session | LedgerMemory) -> set[Cap]:
        return self._terms.caps | session.terms.caps

    def _relation(self, charges: Sequence[Charge]) -> Adjacency:
        return relation_of(charges, self._terms)
