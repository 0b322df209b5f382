"""``skdpgen schema``: draft what is public of a table, and check it; no row is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._errors import CommandError
from ._files import check_output, existing, output
from ._hints import hints
from ._output import Output, with_output

if TYPE_CHECKING:
    from skdpgen.data.columns import Column
    from skdpgen.data.schema import Schema

__all__ = ["misfits", "read_schema", "schema", "show_columns"]

# How each kind is written, in the words of the error.
_EXAMPLES = {
    "numeric": '{"kind": "numeric", "bounds": [0, 120], "dtype": "int"}',
    "categorical": '{"kind": "categorical", "values": ["red", "green"]}',
    "ordinal": '{"kind": "ordinal", "values": ["low", "middle", "high"]}',
    "label": '{"kind": "label", "values": ["no", "yes"]}',
    "boolean": '{"kind": "boolean"}',
    "datetime": (
        '{"kind": "datetime", "bounds": ["2020-01-01", "2024-12-31"], "format": "%Y-%m-%d"}'
    ),
    "id": '{"kind": "id"}',
    "text": '{"kind": "text"}',
}
_HOW = """
A schema says what is public about each column. Write down what a codebook or common sense says
("ages are 0 to 120"); don't look into the rows, for a bound read off them gives a person away.

  numbers      {numeric}
               "dtype": "float" for decimals, "decimals": 2 rounds what comes out;
               "scale": "log1p" for amounts with a long tail
  categories   {categorical}
               "other": "other" catches all the rest; "values": null learns the list privately
  ranks        {ordinal}
  yes or no    {boolean}
  dates        {datetime}
  keys         {id}     (surrogate keys come out)
  free text    {text}   (an empty text comes out)
  to predict   {label}  (one column at most; or "target": "its name")

"missing": true says that cells may be empty; "missing": ["?", "-9"] names what also means missing.
""".format(**_EXAMPLES)  # fmt: skip


@click.group()
def schema() -> None:
    """Write down what is public of a table: start here."""


@schema.command()
@click.argument("data", type=existing)
@click.option("-o", "--output", "target", type=output, help="JSON file to write; must not exist.")
@with_output
def draft(out: Output, data: Path, target: Path | None) -> None:
    """Start a schema: the column names of DATA, and TODO wherever you know more.

    Reads the names of the columns (of Parquet and Arrow files also dtypes) and nothing else. The
    first line of a CSV file must be its column names: it is taken as public.
    """
    from skdpgen.data.cells import parse_number
    from skdpgen.data.files import read_structure
    from skdpgen.data.inference import write_draft
    from skdpgen.data.schema import Schema

    structure = read_structure(data)
    entries = Schema.draft(structure)
    for entry in entries["columns"].values():
        if data.name.lower().endswith((".csv", ".csv.gz")):
            entry.pop("note")  # everything is text in a CSV file
    if any(parse_number(name) is not None for name in entries["columns"]):
        # Not saying which: it may be a cell.
        out.note(
            f"warning: names of columns are numbers. If the first line of {data.name} is a row, "
            f"this draft holds it: delete the draft, and give the file a line of names."
        )
    out.result = {"schema": entries, "output": target, "columns": list(entries["columns"])}
    if target is None:
        out.say(json.dumps(entries, indent=1, ensure_ascii=False))
        return
    check_output(target, force=False, inputs=[data])
    write_draft(target, entries)
    out.say(f"{target}: {structure.shape[1]} columns. Fill in each TODO, then run\n")
    out.say(f"  skdpgen schema check {target} {data}")
    out.say(_HOW.rstrip())


@schema.command()
@click.argument("schema_file", metavar="SCHEMA", type=existing)
@click.argument("data", type=existing, required=False)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column of DATA to leave out.")
@with_output
def check(out: Output, schema_file: Path, data: Path | None, drop: tuple[str, ...]) -> None:
    """Say what a SCHEMA lacks and how to write it, and whether it fits the columns of DATA.

    Looks at names (of Parquet and Arrow files also at dtypes), never at a row.
    """
    from skdpgen.data.schema import Schema
    from skdpgen.data.schema_json import read_json

    entries = read_json(schema_file)
    problems = _problems(entries)
    found: Schema | None = None
    if not problems:
        found = Schema.from_dict(entries)
        if data is not None:
            problems = misfits(found, data, drop)
    out.result = {
        "ok": not problems,
        "problems": [dict(zip(("column", "problem", "write"), p, strict=True)) for p in problems],
        "open": [] if found is None else [n for n, c in found.columns.items() if c.undeclared],
        "target": None if found is None else found.target,
        "hints": [] if found is None or problems else hints(found, data),
    }
    if problems:
        out.table(("column", "problem", "write"), problems)
        out.flush()
        raise click.exceptions.Exit(1)
    assert found is not None
    show_columns(out, found)
    target = "no target" if found.target is None else f"target {found.target}"
    out.say(f"{schema_file}: {len(found.columns)} columns, {target}. Nothing is missing.")
    if out.result["open"]:
        out.say(
            f"To be learned privately, with a part of the budget of fit (--domain-budget): "
            f"{', '.join(map(str, out.result['open']))}."
        )
    for hint in out.result["hints"]:
        out.note(f"hint: {hint}")


def read_schema(path: Path) -> Schema:
    """A schema from a file, or an error that leads to ``schema check``."""
    from skdpgen.data.schema import Schema
    from skdpgen.data.schema_json import read_json

    problems = _problems(read_json(path))
    if problems:
        column, problem, _ = problems[0]
        where = f"column {column!r}: " if column else ""
        raise CommandError(f"{where}{problem.rstrip('.')}. See: skdpgen schema check {path}")
    return Schema.from_json(path)


def _problems(entries: Any) -> list[tuple[str, str, str]]:
    """All that is wrong with a schema: column, rule, and how to write it."""
    from skdpgen.data.column_json import column_from_dict
    from skdpgen.data.schema import Schema
    from skdpgen.data.schema_json import named_entries
    from skdpgen.exceptions import SchemaError

    problems = []
    try:
        if not isinstance(entries, Mapping) or "columns" not in entries:
            raise SchemaError("a schema needs an entry 'columns'.")
        named = list(named_entries(entries["columns"]))
        if entries.get("default") is not None:
            named.append(("default", entries["default"]))
    except (SchemaError, TypeError) as error:
        return [("", str(error), '{"target": ..., "columns": {"age": {...}, ...}}')]
    for name, entry in named:
        kind = entry.get("kind") if isinstance(entry, Mapping) else None
        todo = [k for k, v in entry.items() if _is_todo(v)] if isinstance(entry, Mapping) else []
        if todo:
            problems.append((str(name), f"{', '.join(todo)}: TODO", _example(kind)))
            continue
        try:
            column_from_dict(entry)
        except SchemaError as error:
            problems.append((str(name), str(error), _example(kind)))
    if not problems:
        try:
            Schema.from_dict(entries)
        except SchemaError as error:
            problems.append(("", str(error), '"target": "the column to predict", or null'))
    return problems


def _is_todo(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("TODO")


def _example(kind: Any) -> str:
    return _EXAMPLES.get(kind, f"one of {', '.join(_EXAMPLES)}")


def misfits(schema: Schema, data: Path, drop: Sequence[str]) -> list[tuple[str, str, str]]:
    """Columns that are in one of the two only, and dtypes that can't hold what is declared.

    Parameters
    ----------
    schema : Schema
        Complete.
    data : Path
        Only names and dtypes are looked at.
    drop : sequence of str
        Columns that the schema need not know.

    Returns
    -------
    list of tuple
        Column, problem, and what to do.
    """
    from skdpgen.data.encoder_base import check_family
    from skdpgen.data.files import read_structure
    from skdpgen.data.frames import FrameTemplate
    from skdpgen.exceptions import InputError

    dtypes = FrameTemplate.from_frame(read_structure(data, schema)).dtypes
    unknown = [name for name in dtypes if name not in schema.columns and name not in drop]
    absent = [name for name in drop if name not in dtypes]
    if schema.columns and not set(schema.columns) & set(dtypes):
        # Not naming what stands there: without a header it is somebody's row.
        problem = "no column of the schema is named in its first line"
        return [("", f"{data.name}: {problem}", "add a line of column names to the file")]
    problems = [(name, "not in the data", "don't name it") for name in absent]
    problems += [
        (str(name), "not in the data", "remove it from the schema")
        for name in schema.columns
        if name not in dtypes or name in drop
    ]
    if schema.default is None:
        advice = "add it, or leave it out by --drop"
        problems += [(str(name), "not in the schema", advice) for name in unknown]
    for name, column in schema.columns.items():
        if name in dtypes:
            try:
                check_family(column, dtypes[name], name)
            except InputError as error:
                problems.append((str(name), str(error), "another kind, or convert the column"))
    return problems


def show_columns(out: Output, schema: Schema) -> None:
    """A table of the columns of a schema."""
    columns = [*schema.columns.items()]
    if schema.default is not None:
        columns.append(("(all others)", schema.default))
    rows = [
        (str(name), "label" if name == schema.target else c.kind, _domain(c), _missing(c))
        for name, c in columns
    ]
    out.table(("column", "kind", "domain", "missing"), rows)


def _domain(column: Column) -> str:
    """What a column can hold, in a few words."""
    if column.undeclared is not None:
        return "(learned)"
    bounds, values = getattr(column, "bounds", None), getattr(column, "categories", None)
    if bounds is not None:
        kind = f" {column.dtype}" if hasattr(column, "dtype") else ""
        return f"{bounds[0]} .. {bounds[1]}{kind}"
    if values is None:
        return ""
    shown = ", ".join(map(str, values[:4]))
    return shown if len(values) <= 4 else f"{shown}, ... ({len(values)} values)"


def _missing(column: Column) -> str:
    """Whether cells of a column may be missing, and what means it."""
    missing = getattr(column, "missing", False)
    if isinstance(missing, tuple):
        return ", ".join(repr(str(token)) for token in missing)
    return "yes" if missing else ""
