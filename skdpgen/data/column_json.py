"""Columns from their JSON form, which :meth:`~skdpgen.data.Column.to_dict` writes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from ..exceptions import SchemaError
from .columns import MAX_VALUES, Boolean, Categorical, Column, Ordinal
from .datetime_columns import Datetime
from .numeric_columns import Numeric
from .opaque_columns import Id, Text

__all__ = ["column_from_dict", "named_column"]

_KINDS: dict[str, type[Column]] = {
    "numeric": Numeric,
    "ordinal": Ordinal,
    "categorical": Categorical,
    "label": Categorical,
    "boolean": Boolean,
    "datetime": Datetime,
    "id": Id,
    "text": Text,
}


def column_from_dict(entry: Mapping[str, Any]) -> Column:
    """Read one column from its JSON form.

    Parameters
    ----------
    entry : mapping
        ``kind`` ("numeric", "ordinal", "categorical", "label", "boolean", "datetime", "id" or
        "text") and the parameters of that kind; other entries become ``metadata``. A label is a
        categorical column that is the target, which is for :class:`~skdpgen.data.schema.Schema`
        to know.

    Returns
    -------
    Column
        The specification.

    Raises
    ------
    SchemaError
        If the kind is unknown or a rule of the kind is broken.

    Examples
    --------
    >>> column_from_dict({"kind": "boolean", "note": "a consent"})
    Boolean(metadata={'note': 'a consent'}, missing=False)
    """
    if not isinstance(entry, Mapping) or not isinstance(entry.get("kind"), str):
        raise SchemaError("a column needs an entry 'kind'.")
    kind = _KINDS.get(entry["kind"])
    if kind is None:
        raise SchemaError(f"unknown kind {entry['kind']!r}; there are {', '.join(sorted(_KINDS))}.")
    known = {f.name for f in fields(kind)} - {"metadata"}
    # Bounds and values may be left open in a file; in Python they have to be named.
    arguments: dict[str, Any] = {f.name: None for f in fields(kind) if _is_required(f)}
    arguments.update((k, v) for k, v in entry.items() if k in known)
    extra = {k: v for k, v in entry.items() if k not in known and k != "kind"}
    return kind(**arguments, metadata=extra)


def _is_required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def named_column(name: Hashable, entry: Column | Mapping[str, Any]) -> Column:
    """A column of a schema, as it is or from its JSON form.

    Parameters
    ----------
    name : hashable
        Name of the column.
    entry : Column or mapping
        The column; for a mapping see :func:`column_from_dict`.

    Returns
    -------
    Column
        The specification.

    Raises
    ------
    SchemaError
        If a rule is broken or more than ``MAX_VALUES`` values are declared; the message names
        the column.
    """
    try:
        column = entry if isinstance(entry, Column) else column_from_dict(entry)
        values = getattr(column, "values", None)
        if values is not None and len(values) > MAX_VALUES:
            raise SchemaError(f"{len(values)} values are more than the limit of {MAX_VALUES}.")
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
    return column
