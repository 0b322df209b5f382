"""A history in memory: at home in one process, and only to be read in others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from skdpgen.exceptions import BudgetExceededError
from skdpgen.privacy.composition import Charge
from skdpgen.privacy.ledger_rules import Terms
from skdpgen.privacy.processes import Process, this_process

__all__ = ["WAY_OUT", "LedgerMemory"]

WAY_OUT = (
    "All processes share a file: give ledger=PrivacyLedger(path=...) from the start, or, in the "
    "process that has made the ledger or once that one has ended, go on with "
    "ledger.continued(path=...), which takes the spends so far along. A new ledger knows nothing "
    "of them. Nothing was read or released."
)


class LedgerMemory:
    """Charges and terms. Who uses it holds :data:`~skdpgen.privacy.processes.lock`.

    Parameters
    ----------
    terms : Terms
    charges : iterable of tuple of LedgerEntry
        Oldest first.
    owner : Process or None
        Where spends count; None is this process.
    """

    def __init__(
        self, terms: Terms, charges: Iterable[Charge] = (), owner: Process | None = None
    ) -> None:
        self.terms = terms
        self.charges = list(charges)
        self.owner = this_process() if owner is None else owner
        self._writing = False

    @property
    def detached(self) -> bool:
        """Whether this is a copy in another process."""
        return self.owner != this_process()

    def check_idle(self) -> None:
        """Refuse to change anything within a charge of the same thread.

        Raises
        ------
        BudgetExceededError
            In a signal handler, say, that interrupted a charge between check and record.
        """
        if self._writing:
            raise BudgetExceededError(
                "this ledger is in the middle of another charge, which a signal handler or a "
                "finalizer has interrupted: charge it outside of those. Nothing was read or "
                "released."
            )

    @contextlib.contextmanager
    def session(self, *, write: bool) -> Iterator[LedgerMemory]:
        """Itself; to write, one at a time.

        Raises
        ------
        BudgetExceededError
            To write in a copy from another process, or within another charge.
        """
        if not write:
            yield self
            return
        if self.detached:
            raise BudgetExceededError(
                "this in-memory ledger is a copy from another process, where its spends would get "
                f"lost. {WAY_OUT}"
            )
        self.check_idle()
        try:
            self._writing = True
            yield self
        finally:
            self._writing = False

    def append(self, charge: Charge) -> None:
        """Record a charge."""
        self.charges.append(charge)

    def write_terms(self, terms: Terms) -> None:
        """Fix cap and relation."""
        self.terms = terms
