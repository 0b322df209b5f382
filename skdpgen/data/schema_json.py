"""The JSON form of a schema: its entries, and the file that holds them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exceptions import SchemaError
from .atomic import replaced
from .columns import Categorical, Column

if TYPE_CHECKING:
    from .schema import Schema

__all__ = [
    "check_names",
    "named_entries",
    "read_json",
    "schema_arguments",
    "schema_to_dict",
    "write_json",
]

_ENTRIES = ("target", "notes", "image_shape", "class_names", "default", "columns")


def schema_arguments(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a schema from its JSON form; see ``Schema.from_dict``.

    Parameters
    ----------
    entries : mapping
        The JSON form.

    Returns
    -------
    dict
        Arguments of :class:`~skdpgen.data.schema.Schema`. The columns are still in their JSON
        form, the repeated ones written out.

    Raises
    ------
    SchemaError
        If there are no columns, if one is declared twice, or if a label is not the target.
    """
    if not isinstance(entries, Mapping) or "columns" not in entries:
        raise SchemaError("a schema needs an entry 'columns'.")
    columns: dict[Hashable, Mapping[str, Any]] = {}
    for name, entry in named_entries(entries["columns"]):
        if name in columns:
            raise SchemaError(f"column {name!r} is declared twice.")
        columns[name] = entry
    labels = [n for n, e in columns.items() if isinstance(e, Mapping) and _is_label(e)]
    target = entries.get("target")
    if target is None and len(labels) == 1:  # a draft has null there
        target = labels[0]
    if any(label != target for label in labels):
        raise SchemaError(
            f"column {next(n for n in labels if n != target)!r} is a label but not the "
            "target; make its kind 'categorical', or name it as the target."
        )
    return {
        "columns": columns,
        "target": target,
        "default": entries.get("default"),
        "notes": entries.get("notes", ""),
        "image_shape": entries.get("image_shape"),
        "class_names": entries.get("class_names"),
        "metadata": {k: v for k, v in entries.items() if k not in _ENTRIES},
    }


def _is_label(entry: Mapping[str, Any]) -> bool:
    return entry.get("kind") == "label"


def named_entries(columns: Any) -> Iterable[tuple[Hashable, Mapping[str, Any]]]:
    """Names and columns of either JSON form, repeated ones written out."""
    if isinstance(columns, Mapping):
        pairs = list(columns.items())
    else:
        if not isinstance(columns, list | tuple) or any("name" not in entry for entry in columns):
            raise SchemaError("columns must be an object, or a list of objects with a 'name'.")
        pairs = [(e["name"], {k: v for k, v in e.items() if k != "name"}) for e in columns]
    for name, entry in pairs:
        if isinstance(entry, Mapping) and "repeat" in entry:
            single = {k: v for k, v in entry.items() if k not in ("repeat", "prefix")}
            prefix = entry.get("prefix", name)
            yield from ((f"{prefix}{i}", single) for i in range(entry["repeat"]))
        else:
            yield name, entry


def schema_to_dict(schema: Schema) -> dict[str, Any]:
    """The JSON form of a schema; see ``Schema.to_dict``.

    Parameters
    ----------
    schema : Schema
        The schema.

    Returns
    -------
    dict
        What :func:`schema_arguments` reads, made of JSON types only.

    Raises
    ------
    SchemaError
        If a column name is neither a text nor an integer.
    """
    check_names(schema.columns)
    columns: Any = {
        name: _column_entry(column, name == schema.target)
        for name, column in schema.columns.items()
    }
    if not all(isinstance(name, str) for name in columns):
        columns = [{"name": name, **entry} for name, entry in columns.items()]
    result: dict[str, Any] = {"target": schema.target, "notes": schema.notes}
    if schema.image_shape is not None:
        result["image_shape"] = list(schema.image_shape)
    if schema.class_names is not None:
        result["class_names"] = list(schema.class_names)
    if schema.default is not None:
        result["default"] = schema.default.to_dict()
    return {**result, **copy.deepcopy(schema.metadata), "columns": columns}


def check_names(names: Iterable[Hashable]) -> None:
    """Refuse column names that are neither texts nor integers.

    Raises
    ------
    SchemaError
        If there is one.
    """
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise SchemaError(f"the column name {name!r} cannot be written to JSON; rename it.")


def _column_entry(column: Column, is_target: bool) -> dict[str, Any]:
    entry = column.to_dict()
    if is_target and type(column) is Categorical:
        entry["kind"] = "label"
    return entry


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    object
        What it says.

    Raises
    ------
    SchemaError
        If it is no JSON; the message names the file.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise SchemaError(f"{os.fspath(path)} is no JSON file: {error}") from None


def write_json(path: str | os.PathLike[str], entries: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all.

    Parameters
    ----------
    path : path
        The file; it is replaced if it exists.
    entries : mapping
        What it shall say.
    """
    text = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
