"""Schemas from the dtypes of a frame: what a dtype declares, and what it leaves open."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..exceptions import InputError, SchemaError
from .arrays import read_levels
from .columns import Boolean, Categorical, Column
from .datetime_columns import Datetime
from .dtypes import ColumnDtype
from .frames import FrameTemplate, as_table, column_at
from .numeric_columns import Numeric
from .schema_json import check_names, write_json

__all__ = ["columns_from_dtypes", "draft_entries", "open_column", "write_draft"]


def columns_from_dtypes(
    frame: Any,
    trust_categories: bool,
    bounds: Mapping[Hashable, Sequence[Any]],
    values: Mapping[Hashable, Sequence[Any]],
    missing: Sequence[Hashable] | None,
    leave_open: bool,
    target: Hashable,
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
    leave_open : bool
        Whether columns may be left without bounds or values.
    target : hashable
        The column to be predicted: whole numbers there are classes, where they are left open.

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
        nullable = name in missing if missing is not None else _is_masked(dtype)
        levels = values.get(name, _declared_levels(table, position, dtype, trust_categories))
        try:
            if levels is not None:
                columns[name] = Categorical(tuple(levels), missing=nullable)
            elif dtype.family == "bool":
                columns[name] = Boolean(missing=nullable)
            elif leave_open and name not in bounds:
                # A nullable dtype alone says nothing: that is left open, too.
                said = missing is not None and nullable
                columns[name] = open_column(dtype, name == target, said)
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


def _is_masked(dtype: ColumnDtype) -> bool:
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


def open_column(dtype: ColumnDtype, is_target: bool = False, missing: bool = False) -> Column:
    """What a dtype says about a column; bounds and values are open unless it declares them.

    Parameters
    ----------
    dtype : ColumnDtype
        Of the column.
    is_target : bool, default=False
        A target of whole numbers has classes, one of floats is a quantity.
    missing : bool, default=False
        Whether it is declared that cells may be missing.

    Examples
    --------
    >>> import pandas as pd
    >>> dtype = FrameTemplate.from_frame(pd.DataFrame({"age": [33]})).dtypes["age"]
    >>> open_column(dtype).to_dict(), open_column(dtype, is_target=True).to_dict()
    ({'kind': 'numeric', 'bounds': None, 'dtype': 'int'}, {'kind': 'categorical', 'values': None})
    """
    if dtype.declared_levels is not None:
        return Categorical(dtype.declared_levels, missing=missing)
    if dtype.family == "bool":
        return Boolean(missing=missing or _is_masked(dtype))
    if dtype.family == "datetime":
        return Datetime(None, missing=missing)
    if dtype.family == "float" or (dtype.family == "int" and not is_target):
        return Numeric(None, "int" if dtype.family == "int" else "float", missing=missing)
    return Categorical(None, missing=missing)


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


def write_draft(path: str | os.PathLike[str], entries: Mapping[str, Any]) -> None:
    """Write a draft to a JSON file.

    Raises
    ------
    SchemaError
        If a column name can't be written.
    """
    columns = entries["columns"]
    check_names(columns if isinstance(columns, dict) else [entry["name"] for entry in columns])
    write_json(path, entries)
