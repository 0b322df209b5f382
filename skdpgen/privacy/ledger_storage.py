"""Where a ledger lives, in memory or in a file, and what its copies are.

Within a process every copy is the ledger itself. In another process a copy in memory can be read;
all that goes on from such copies there is one ledger, too.
"""

from __future__ import annotations

import contextlib
import os
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.composition import Charge
from skdpgen.privacy.entries import Adjacency
from skdpgen.privacy.ledger_file import (
    LedgerFile,
    Session,
    absolute,
    charge_from_plain,
    plain_charge,
)
from skdpgen.privacy.ledger_memory import WAY_OUT, LedgerMemory
from skdpgen.privacy.ledger_rules import Terms
from skdpgen.privacy.processes import Process, descends_from, in_worker, lock

__all__ = ["LedgerStorage"]

# Ledgers of this process by key: a copy made by pickle, deepcopy or clone within the process is the
# same accountant, and no spend gets lost. Ledgers in memory are kept for good once there is a
# pickle, which may outlive all other references; so are those that go on from one.
_live: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_kept: dict[str, Any] = {}
_going_on: dict[str, Any] = {}


class LedgerStorage:
    """Terms and history of a ledger: see :class:`~skdpgen.privacy.ledger.PrivacyLedger`."""

    _key: str
    _store: LedgerMemory | LedgerFile
    _terms: Terms
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
        self._store = LedgerMemory(self._terms)
        if path is not None:
            self._store = LedgerFile(absolute(path))
            self._store.open(self._terms)
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
        """The relation of the total; None as long as none is fixed."""
        return self._terms.adjacency

    @property
    def path(self) -> str | None:
        """The file, as an absolute path without links; None for a ledger in memory."""
        return self._store.path if isinstance(self._store, LedgerFile) else None

    @property
    def detached(self) -> bool:
        """Whether this is an in-memory copy from another process: its spends would get lost."""
        return isinstance(self._store, LedgerMemory) and self._store.detached

    # -- copies ---------------------------------------------------------------------------------

    def continued(self, *, path: str | os.PathLike[str] | None = None) -> Self:
        """The ledger itself; of a detached copy, one that goes on here with its history and cap.

        All copies of one ledger go on as one, in this process. That takes a file where there is a
        cap: several processes that go on with copies would each spend what is left.

        Parameters
        ----------
        path : path-like or None
            A new file, which the history moves into and the ledger lives in from now on; or the
            file that it has been moved into before. None leaves it where it is.

        Raises
        ------
        BudgetExceededError
            In a worker, whose spends would get lost with it. For a copy with a cap, without a path.
            With a path, in a process that the owner has started: do it there, before.
        PrivacyParameterError
            If the file can't be used, or holds another history.
        """
        with lock:
            store, ledger = self._store, self
            if isinstance(store, LedgerMemory) and store.detached:
                ledger = self._successor(store, path)
                path = ledger.path if path is None else path
            if path is not None:
                charges = store.charges if isinstance(store, LedgerMemory) else ()
                ledger._move(absolute(path), self._key, charges)
            if ledger is not self:
                _going_on[self._key] = ledger
            return ledger

    def _successor(self, copy: LedgerMemory, path: str | os.PathLike[str] | None) -> Self:
        """What goes on here from a detached copy, with what this one knows."""
        ledger: Self | None = _going_on.get(self._key)
        in_file = path is not None or (ledger is not None and ledger.path is not None)
        if descends_from(copy.owner) or (in_worker() and not in_file):
            raise BudgetExceededError(
                "this is a worker process, and its in-memory ledger a copy of one that was made "
                f"elsewhere: spends would get lost here. {WAY_OUT}"
            )
        if copy.terms.caps and not in_file:
            raise BudgetExceededError(
                "this in-memory ledger with a cap is a copy from another process: each process "
                f"that went on with a copy would spend what is left. {WAY_OUT}"
            )
        if ledger is None:
            ledger = type(self)(self.epsilon, self.delta, adjacency=self.adjacency)
        if isinstance(ledger._store, LedgerMemory):
            # Entries of a copy that was made later than the one before.
            ledger._store.charges.extend(copy.charges[ledger._taken :])
            ledger._taken = max(ledger._taken, len(copy.charges))
        return ledger

    def _move(self, path: str, key: str, copied: Sequence[Charge]) -> None:
        """Live in a file from now on, or check that this one's file knows the copied charges."""
        if isinstance(self._store, LedgerMemory):
            self._store.check_idle()
            copied = self._store.charges
        elif path != self.path:
            raise PrivacyParameterError(f"this ledger lives in a file already: {self.path!r}.")
        elif not copied:
            return
        file = LedgerFile(path)
        file.open(self._terms, (key, copied))
        self._store = file

    def __sklearn_clone__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        with lock:
            store, terms = self._store, (self.epsilon, self.delta, self.adjacency)
            if isinstance(store, LedgerFile):
                where = (store.path, store.key, store.seen)
                return _restore, (type(self), self._key, terms, where, None, [])
            if not store.detached:
                _kept[self._key] = self
            charges = [plain_charge(charge) for charge in store.charges]
            return _restore, (type(self), self._key, terms, None, tuple(store.owner), charges)

    # -- use ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _session(self, *, write: bool = False) -> Iterator[Session | LedgerMemory]:
        """All charges, and how to append one, while nobody else can write."""
        with lock:
            if isinstance(self._store, LedgerMemory):
                with self._opened(write=write) as session:
                    yield session
                return
        # A ledger may move into a file, but never back.
        with self._opened(write=write) as session:
            yield session

    @contextlib.contextmanager
    def _opened(self, *, write: bool) -> Iterator[Session | LedgerMemory]:
        opened: AbstractContextManager[Session | LedgerMemory] = self._store.session(write=write)
        with opened as session:
            # A cap that another process gave the file holds here, too.
            self._terms = self._terms.completed(session.terms)
            yield session
        self._terms = self._terms.completed(session.terms)


def _restore(
    kind: type[LedgerStorage],
    key: str,
    terms: tuple[float | None, float | None, Adjacency | None],
    where: tuple[str, str, int] | None,
    owner: tuple[str, int, str] | None,
    charges: list[Any],
) -> LedgerStorage:
    """Unpickle: the live ledger where it still exists in this process, else a copy."""
    with lock:
        live: LedgerStorage | None = _live.get(key)
        if live is not None:
            return live
        # Nothing is opened or created: on another machine there may be no such file, and what
        # doesn't need it should work.
        ledger = kind.__new__(kind)
        ledger._terms = Terms(*terms)
        if where is not None:
            ledger._store = LedgerFile(*where)
        else:
            copied = [charge_from_plain(charge) for charge in charges]
            ledger._store = LedgerMemory(ledger._terms, copied, owner and Process(*owner))
        ledger._taken = 0
        # Under its key a copy that travels back becomes the original again. It is not entered into
        # _live: a later copy may know more entries.
        ledger._key = key
        return ledger
