"""Rows that ``fit`` leaves out so that ``report`` can judge with them: which, by a public rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import CommandError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from skdpgen.data.schema import Schema
    from skdpgen.privacy.release import Release
    from skdpgen.privacy.slicing_release import SlicingRelease

__all__ = ["held_out", "recorded", "with_record", "without_record"]

_ENTRY = "held_out"


def held_out(n_rows: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Which rows are left out: a function of their number, which is public, and of nothing in them.

    Replacing a row therefore changes one row that is learned from, or none.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    share : float
        Share to leave out, in (0, 1).
    seed : int
        Of the choice.

    Returns
    -------
    ndarray of bool, shape (n_rows,)

    Examples
    --------
    >>> int(held_out(10, 0.2, 0).sum())
    2
    """
    import numpy as np

    left_out = np.zeros(n_rows, dtype=bool)
    left_out[np.random.default_rng(seed).permutation(n_rows)[: round(share * n_rows)]] = True
    return left_out


def with_record(schema: Schema, share: float, seed: int) -> Schema:
    """A schema that says which rows were left out: a release publishes it."""
    from skdpgen.data.schema import Schema

    return Schema.from_dict({**schema.to_dict(), _ENTRY: {"share": share, "seed": seed}})


def without_record(schema: Schema) -> Schema:
    """A schema that says nothing of rows left out."""
    from skdpgen.data.schema import Schema

    entries = schema.to_dict()
    return Schema.from_dict({k: v for k, v in entries.items() if k != _ENTRY})


def recorded(release: Release | SlicingRelease | None, n_rows: int) -> npt.NDArray[np.bool_] | None:
    """Which rows of the file that a release was made from it has not seen; None if it saw all.

    Raises
    ------
    CommandError
        If the release wasn't made from so many rows.
    """
    facts: Any = {} if release is None else release.public.get("schema") or {}
    entry = facts.get(_ENTRY)
    if release is None or not isinstance(entry, dict):
        return None
    try:
        left_out = held_out(n_rows, float(entry["share"]), int(entry["seed"]))
    except (KeyError, TypeError, ValueError):
        return None
    if n_rows - int(left_out.sum()) != release.n_rows:
        raise CommandError(
            "the release wasn't made from the file that --real names: rows that it left out can't "
            "be told. Give the file that fit read, or --test."
        )
    return left_out
