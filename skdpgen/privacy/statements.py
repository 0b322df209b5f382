"""The words of a guarantee, the same for every release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skdpgen.privacy.entries import LedgerEntry

__all__ = ["guarantee", "learned_before"]

_DOMAINS = {"private bounds", "private categories"}


def guarantee(
    epsilon: float,
    delta: float,
    change: str,
    public: Any,
    earlier: Sequence[LedgerEntry] = (),
) -> str:
    """A guarantee in one sentence.

    Parameters
    ----------
    epsilon, delta : float
        What is guaranteed.
    change : str
        For what change of the table, adjacency included.
    public : object
        Public facts of the release. Where their schema says that bounds or values were learned, and
        not by the ``earlier`` releases, the sentence says that this cost is not in it.
    earlier : sequence of LedgerEntry, default=()
        Releases that the guarantee covers too.

    Examples
    --------
    >>> facts = {"schema": {"columns": {"age": {"kind": "numeric", "learned": True}}}}
    >>> print(guarantee(1.0, 1e-5, "replacing one row", facts))
    (1, 1e-05)-differentially private for replacing one row; bounds or values of its schema were \
learned by an earlier release, whose cost is not included.
    """
    words = f"({_shortest(epsilon)}, {_shortest(delta)})-differentially private for {change}"
    if earlier:
        words += f", together with {' and '.join(entry.mechanism for entry in earlier)}"
    if learned_before(public, earlier):
        words += (
            "; bounds or values of its schema were learned by an earlier release, whose cost is "
            "not included"
        )
    return f"{words}."


def learned_before(public: Any, earlier: Sequence[LedgerEntry]) -> bool:
    """Whether the schema among public facts cost something that isn't among ``earlier``."""
    # A column that a release learns for itself says true, one that came learned says "before".
    learned_here = any(entry.mechanism in _DOMAINS for entry in earlier)
    for column in _columns(public):
        learned = column.get("learned") if isinstance(column, dict) else None
        if learned and not (learned is True and learned_here):
            return True
    return False


def _columns(public: Any) -> Iterable[Any]:
    """Columns of the schema among public facts, in either JSON form; whatever a file may hold."""
    schema = public.get("schema") if isinstance(public, dict) else None
    columns = schema.get("columns") if isinstance(schema, dict) else None
    if isinstance(columns, dict):
        return columns.values()
    return columns if isinstance(columns, list) else ()


def _shortest(number: float) -> str:
    """Six digits where they are exact, else all of them: a guarantee is never rounded down."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)
