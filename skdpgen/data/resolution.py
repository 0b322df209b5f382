"""Which declared column belongs to which column of a frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ..exceptions import InputError, SchemaError
from .columns import Column, declaration_hint
from .dtypes import ColumnDtype
from .encoder_base import check_family

__all__ = ["resolve_columns"]


def resolve_columns(
    columns: Mapping[Hashable, Column],
    default: Column | None,
    dtypes: Mapping[Hashable, ColumnDtype],
) -> dict[Hashable, Column]:
    """Find the column of every column of a frame; see ``Schema.resolve``.

    Parameters
    ----------
    columns : mapping of name to Column
        The columns of the schema.
    default : Column or None
        Describes every column of the frame that is not in ``columns``.
    dtypes : mapping of name to ColumnDtype
        The structure of the frame.

    Returns
    -------
    dict of name to Column
        The columns of the schema, then those that the default describes, in the order of the
        frame.

    Raises
    ------
    InputError
        If the frame lacks a column or has one that the schema does not know, or if a dtype
        cannot hold the kind.
    SchemaError
        If a column has no bounds or values yet.
    """
    absent = [name for name in columns if name not in dtypes]
    if absent:
        raise InputError(
            f"the frame lacks column(s) of the schema: {_listed(absent)}. Add them, or use "
            f"schema.drop([{absent[0]!r}, ...])."
        )
    unknown = [name for name in dtypes if name not in columns]
    if unknown and default is None:
        raise InputError(
            f"column(s) of the frame are not in the schema: {_listed(unknown)}. Drop them, "
            f"or declare them: schema.with_columns({{{unknown[0]!r}: ...}})."
        )
    found = dict(columns)
    found.update({name: default for name in unknown if default is not None})
    undeclared = [(n, c.undeclared) for n, c in found.items() if c.undeclared]
    if undeclared:
        name, entry = undeclared[0]
        assert entry is not None
        raise SchemaError(
            f"column(s) without bounds or values: {_listed([n for n, _ in undeclared])}. "
            f"Declare them: {declaration_hint(name, entry)}, or leave them out: "
            f"schema.drop([{name!r}])."
        )
    for name, column in found.items():
        check_family(column, dtypes[name], name)
    return found


def _listed(names: Sequence[Hashable]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown}, ..."
