"""From exceptions to one line and an exit status; nothing that may quote a cell comes through."""

from __future__ import annotations

import os

from skdpgen.exceptions import BudgetExceededError, SkdpgenError

__all__ = [
    "AFTER_THE_CHARGE",
    "BUDGET",
    "ERROR",
    "INTERRUPTED",
    "CommandError",
    "describe",
    "wants_traceback",
]

ERROR, USAGE, BUDGET, AFTER_THE_CHARGE, INTERRUPTED = 1, 2, 3, 4, 130


class CommandError(Exception):
    """An error of a command itself, in words that may be shown.

    Parameters
    ----------
    message : str
        One line: what is wrong and what to do.
    status : int, default=1
        Exit status.
    """

    def __init__(self, message: str, status: int = ERROR) -> None:
        super().__init__(message)
        self.status = status


def wants_traceback() -> bool:
    """Whether a developer asked for tracebacks, which may quote private cells."""
    return os.environ.get("SKDPGEN_TRACEBACK", "") not in ("", "0")


def describe(error: BaseException) -> tuple[str, int]:
    """What may be said of an error, and the exit status.

    Parameters
    ----------
    error : BaseException
        The messages of skdpgen's own errors are public by construction, those of the system name
        files. Of all others only the class is named: their text may quote cells.

    Returns
    -------
    message : str
        One line.
    status : int

    Examples
    --------
    >>> describe(ValueError("could not convert string to float: 'Anne'"))[0].partition(";")[0]
    'unexpected ValueError'
    """
    if isinstance(error, CommandError):
        return _one_line(error), error.status
    if isinstance(error, SkdpgenError):
        return _one_line(error), BUDGET if isinstance(error, BudgetExceededError) else ERROR
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return f"{where}{error.strerror}", ERROR
    if isinstance(error, ImportError) and error.name:
        return (
            f"the module {error.name} is missing: pip install 'skdpgen[plot,arrow]' brings what is "
            f"optional",
            ERROR,
        )
    if isinstance(error, MemoryError):
        return "there is not enough memory", ERROR
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    return (
        f"unexpected {type(error).__name__}; its text is not shown, for it may quote private "
        f"cells. SKDPGEN_TRACEBACK=1 shows it: on synthetic data only",
        ERROR,
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
