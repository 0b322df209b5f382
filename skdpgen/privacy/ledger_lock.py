"""Keeps others from a ledger file where SQLite's own locks and journal don't.

POSIX locks, which SQLite uses, are dropped as soon as the process closes *any* descriptor of the
file: a backup in another thread is enough. So there is a second lock, on the folder, that only the
end of this transaction (or process) drops. And SQLite names the journal of an interrupted charge
after the file: who comes by another name doesn't see it. So the file must have one name.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skdpgen.exceptions import PrivacyParameterError

__all__ = ["NEW", "check_single_name", "held"]

#: Ending of a file that is about to be linked to its name.
NEW = ".new"

_fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None
_MOUNTS = Path("/proc/self/mountinfo")


@contextlib.contextmanager
def held(path: str) -> Iterator[None]:
    """Hold the folder of a file, where the system has such locks.

    Not the file: closing that would drop SQLite's lock, and on some systems the two kinds of locks
    exclude each other.

    Raises
    ------
    BlockingIOError
        If somebody else holds it.
    OSError
        If the folder can't be locked.
    """
    if _fcntl is None:
        yield
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        _fcntl.flock(folder, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        yield
    finally:
        # Unlocked, not only closed: a program that is just being started may have a copy.
        _fcntl.flock(folder, _fcntl.LOCK_UN)
        os.close(folder)


def check_single_name(path: str) -> None:
    """Refuse a file with a second name: a hard link, or a mount of this file alone.

    Names that an interrupted creation has left behind are removed.

    Raises
    ------
    PrivacyParameterError
        Saying which, and what to do.
    """
    if os.stat(path).st_nlink > 1:
        for name in glob.glob(f"{glob.escape(path)}.*{NEW}"):
            with contextlib.suppress(OSError):
                if os.path.samefile(name, path):
                    os.unlink(name)
    if os.stat(path).st_nlink > 1:
        raise PrivacyParameterError(
            f"the ledger file {path!r} has a second name (a hard link): a charge that is "
            f"interrupted under one name would get lost under the other. Remove all names but one. "
            f"Nothing was read or released."
        )
    if _is_mounted_alone(path):
        raise PrivacyParameterError(
            f"the ledger file {path!r} is mounted as a single file: a charge that is interrupted "
            f"here would get lost elsewhere. Mount its folder. Nothing was read or released."
        )


def _is_mounted_alone(path: str) -> bool:
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    # The fifth field is the mount point, with blanks and the like as three octal digits.
    points = (line.split(b" ")[4] for line in lines)
    name = os.fsencode(path)
    return any(
        re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), point) == name
        for point in points
    )
