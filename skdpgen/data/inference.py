"""Schemas from the dtypes of a frame: what a dtype declares, and what it leaves open."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..exceptions import InputError, SchemaError
from .arrays import read_levels
from .columns import Boolean, Categorical, Column
from .datetime_columns import Datetime
from .dtypes import ColumnDtype
from .frames import FrameTemplate, as_table, column_at
from .numeric_columns import Numeric

__all__ = ["columns_from_dtypes", "draft_entries", "is_masked"]


def columns_from_dtypes(
    frame: Any,
    trust_categories: bool,
    bounds: Mapping[Hashable, Sequence[Any]],
    values: Mapping[Hashable, Sequence[Any]],
    missing: Sequence[Hashable] | None,
) -> dict[Hashable, Column]:
    """Columns of a frame from its dtypes and declared facts; see ``Schema.from_dtypes``.

    Parameters
    ----------
    frame : DataFrame or ndarray
        Only names and dtypes are read, and category lists if they are trusted.
    trust_categories : bool
        Whether category lists of pandas are public.
    bounds, values : mapping of name to sequence
        What is declared.
    missing : sequence of names or None
        Columns that may have missing values.

    Returns
    -------
    dict of name to Column
        In the order of the frame.

    Raises
    ------
    SchemaError
        If a column is left without bounds or values.
    InputError
        If a dtype is not supported or a name is not in the frame.
    """
    table = as_table(frame)
    dtypes = FrameTemplate.from_frame(table).dtypes
    for declared in (*bounds, *values, *(missing or ())):
        if declared not in dtypes:
            raise InputError(f"the frame has no column {declared!r}.")
    columns: dict[Hashable, Column] = {}
    open_bounds, open_values = [], []
    for position, (name, dtype) in enumerate(dtypes.items()):
        nullable = name in missing if missing is not None else is_masked(dtype)
        levels = values.get(name, _declared_levels(table, position, dtype, trust_categories))
        try:
            if levels is not None:
                columns[name] = Categorical(tuple(levels), missing=nullable)
            elif dtype.family == "bool":
                columns[name] = Boolean(missing=nullable)
            elif dtype.family not in ("int", "float", "datetime"):
                open_values.append(name)
            elif name not in bounds:
                open_bounds.append(name)
            elif dtype.family == "datetime":
                first, last = bounds[name]
                columns[name] = Datetime((first, last), missing=nullable)
            else:
                lower, upper = bounds[name]
                kind = "int" if dtype.family == "int" else "float"
                columns[name] = Numeric((lower, upper), kind, missing=nullable)
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from None
    if open_bounds or open_values:
        raise SchemaError("from_dtypes needs more public facts:" + _hint(open_bounds, open_values))
    return columns


def is_masked(dtype: ColumnDtype) -> bool:
    """Whether somebody chose a nullable dtype: pandas' own, where a plain one exists."""
    numbers = dtype.family in ("int", "float", "bool")
    return dtype.backend == "pandas" and numbers and not (dtype.is_plain or dtype.is_arrow)


def _declared_levels(
    table: Any, position: int, dtype: ColumnDtype, trust_categories: bool
) -> Sequence[Any] | None:
    if dtype.family != "category":
        return None
    if dtype.native is None:
        return read_levels(column_at(table, position))[1] if trust_categories else None
    return dtype.declared_levels


def _hint(bounds: Sequence[Hashable], values: Sequence[Hashable]) -> str:
    lines = []
    if bounds:
        lines.append("bounds={" + ", ".join(f"{n!r}: (LOWER, UPPER)" for n in bounds) + "}")
    if values:
        lines.append("values={" + ", ".join(f"{n!r}: [VALUE, ...]" for n in values) + "}")
    return "".join(f"\n    {line}" for line in lines)


_DRAFTS: dict[str, dict[str, Any]] = {
    "int": {"kind": "numeric", "bounds": "TODO", "dtype": "int"},
    "float": {"kind": "numeric", "bounds": "TODO", "dtype": "float"},
    "bool": {"kind": "boolean"},
    "datetime": {"kind": "datetime", "bounds": "TODO"},
}
_UNDECIDED = {"kind": "TODO: categorical, ordinal, numeric, datetime, id or text"}


def draft_entries(frame: Any) -> dict[str, Any]:
    """The JSON form of a schema with everything that dtypes do not say left open.

    Parameters
    ----------
    frame : DataFrame or ndarray
        Only names and dtypes are read.

    Returns
    -------
    dict
        JSON types only.
    """
    columns = [
        {"name": name, **_DRAFTS.get(dtype.family, _UNDECIDED), "note": f"{dtype.label} in frame"}
        for name, dtype in FrameTemplate.from_frame(frame).dtypes.items()
    ]
    if all(isinstance(entry["name"], str) for entry in columns):
        return {"target": None, "columns": {entry.pop("name"): entry for entry in columns}}
    return {"target": None, "columns": columns}
