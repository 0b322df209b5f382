"""What a schema and the first line of a file let suspect, before any budget is spent on it."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skdpgen.data.columns import Column
    from skdpgen.data.schema import Schema

__all__ = ["hints"]

_ALIKE = 0.75


def hints(schema: Schema, data: Path | None) -> list[str]:
    """Entries that look misspelled, and numbers that may be written otherwise; no row is read.

    Parameters
    ----------
    schema : Schema
        Without problems. Entries that no kind knows are remarks of its author.
    data : Path or None
        Of a CSV file the first line is looked at.

    Returns
    -------
    list of str
        Sentences.

    Examples
    --------
    >>> from skdpgen.data.schema import Schema
    >>> hints(Schema({"age": {"kind": "numeric", "bounds": [0, 9], "mising": True}}), None)
    ["column 'age': 'mising' is taken for a remark; is it 'missing'?"]
    """
    found = [
        f"column {name!r}: {entry!r} is taken for a remark; {meant}"
        for name, column in schema.columns.items()
        for entry in column.metadata
        if (meant := _meant(str(entry), column))
    ]
    if data is not None and _has_numbers(schema) and _delimiter(data) == ";":
        found.append(
            f"{data.name} is separated by semicolons: are its numbers written with a point? 1,5 "
            "can't be read as a number, and fit says nothing of it."
        )
    return found


def _meant(entry: str, column: Column) -> str:
    """What an unknown entry may have been meant for; empty if it is a remark."""
    from skdpgen.data.columns import Boolean, Categorical, Ordinal
    from skdpgen.data.datetime_columns import Datetime
    from skdpgen.data.numeric_columns import Numeric

    own = _parameters(type(column))
    every: set[str] = set()
    kinds: tuple[type[Column], ...] = (Boolean, Categorical, Ordinal, Datetime, Numeric)
    for kind in kinds:
        every |= _parameters(kind)
    if entry in every:
        return f"{column.kind} columns have no {entry!r}."
    alike = get_close_matches(entry.lower(), sorted(own), n=1, cutoff=_ALIKE)
    return f"is it {alike[0]!r}?" if alike else ""


def _parameters(kind: type[Column]) -> set[str]:
    return {field.name for field in fields(kind)} - {"metadata"}


def _has_numbers(schema: Schema) -> bool:
    columns = [*schema.columns.values(), *([] if schema.default is None else [schema.default])]
    return any(column.kind == "numeric" for column in columns)


def _delimiter(data: Path) -> str:
    from skdpgen.data.csv_records import CsvFile

    return CsvFile(data).delimiter if data.name.lower().endswith((".csv", ".csv.gz")) else ""
