"""Which process this is: a ledger in memory is at home in one, and its copies elsewhere know it."""

from __future__ import annotations

import multiprocessing
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Process", "descends_from", "in_worker", "lock", "this_process"]

_PROC = Path("/proc")


class Process(NamedTuple):
    """One running process: the number comes back after its end, the rest doesn't."""

    token: str
    pid: int
    started: str


#: Held whenever a ledger of this process is read or written. A fork waits for it: a child must
#: inherit no half-done transaction, no lock of a thread that it doesn't have, no open database.
lock = threading.RLock()

_state: dict[str, Process] = {}
_forked_from: set[str] = set()


def this_process() -> Process:
    """The process that runs this, also right after a fork."""
    current = _state.get("current")
    if current is not None and current.pid == os.getpid():
        return current
    with lock:  # two threads must not give the process two tokens
        current = _state.get("current")
        if current is None or current.pid != os.getpid():
            if current is not None:
                _forked_from.add(current.token)
            _, started = _parent_and_start(os.getpid())
            current = _state["current"] = Process(uuid.uuid4().hex, os.getpid(), started)
        return current


def in_worker() -> bool:
    """Whether this is a worker of a pool: multiprocessing, concurrent.futures, loky."""
    return multiprocessing.parent_process() is not None


def descends_from(owner: Process) -> bool:
    """Whether the owner has started this process, itself or by others.

    Known of forks, of children by multiprocessing, and, where the system tells, of any program. Not
    of daemons whose parent has ended, across containers, or on another machine.
    """
    this_process()
    parent = multiprocessing.parent_process()
    return (
        owner.token in _forked_from
        or (parent is not None and parent.pid == owner.pid)
        or (owner.pid, owner.started) in _ancestors()
    )


def _ancestors() -> Iterator[tuple[int, str]]:
    pid = os.getppid()
    while pid > 0:
        parent, started = _parent_and_start(pid)
        if started:  # else an owner without a known start would look like any process without one
            yield pid, started
        pid = parent


def _parent_and_start(pid: int) -> tuple[int, str]:
    """Of a process: its parent, or 0, and what tells it from others with its number, or nothing."""
    try:
        # The name in parentheses may hold anything, parentheses too.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return int(fields[1]), f"{boot} {fields[19]}"
    except (OSError, ValueError, IndexError):
        return 0, ""


def _after_fork_in_child() -> None:
    this_process()
    lock.release()


# Windows has no fork. The child runs in the thread that took the lock, so it may release it.
getattr(os, "register_at_fork", lambda **_: None)(
    before=lock.acquire, after_in_parent=lock.release, after_in_child=_after_fork_in_child
)

this_process()  # before there are threads
