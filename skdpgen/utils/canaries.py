"""Markers in made-up rows, and the search for them in whatever comes out of a fit."""

from __future__ import annotations

import struct
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from skdpgen.data.columns import Categorical
from skdpgen.data.datetime_columns import Datetime
from skdpgen.data.numeric_columns import Numeric
from skdpgen.data.opaque_columns import Id, Text
from skdpgen.data.schema import Schema

__all__ = [
    "MARK",
    "MOMENT",
    "NUMBERS",
    "SCHEMA",
    "base_table",
    "findings",
    "marked_table",
    "reachable",
]

MARK = "CANARY"
"""What every marker that is a text contains."""
NUMBERS = (86753.09375, 197.30078125, 918273645)
"""Markers that are numbers."""
MOMENT = pd.Timestamp("2020-03-07 11:22:33.123456")
"""The marker that is a time."""
SCHEMA = Schema(
    {
        "key": Id(),
        "height": Numeric((0, 250)),
        "visits": Numeric((0, 40), "int", missing=True),
        "word": Categorical(("red", "blue"), other="other"),
        "level": Categorical(("low", "high")),
        "when": Datetime(("2020-01-01", "2020-12-31"), missing=True),
        "remark": Text(),
        "label": Categorical(("no", "yes")),
    },
    target="label",
)
"""The public facts about both tables."""


def base_table(n: int = 41) -> pd.DataFrame:
    """A table of every kind of column, with nothing to hide.

    Parameters
    ----------
    n : int, default=41
        Number of rows.
    """
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "key": pd.Series([f"k{i}" for i in range(n)], dtype=object),
            "height": rng.uniform(150, 200, n),
            "visits": pd.Series(rng.integers(0, 40, n).tolist(), dtype=object),
            "word": pd.Series(rng.choice(["red", "blue"], n).tolist(), dtype=object),
            "level": pd.Categorical(rng.choice(["low", "high"], n)),
            "when": pd.Timestamp("2020-06-01") + pd.to_timedelta(rng.integers(0, 200, n), "D"),
            "remark": pd.Series(["words"] * n, dtype=object),
            "label": pd.Series(rng.choice(["no", "yes"], n).tolist(), dtype=object),
        }
    )


def marked_table() -> pd.DataFrame:
    """:func:`base_table` with markers in every place where a table has room for private facts."""
    df = base_table()
    df.loc[3, "key"] = f"{MARK}-key"
    df.loc[3, "height"], df.loc[4, "height"] = NUMBERS[:2]  # outside and inside the bounds
    df.loc[3, "visits"], df.loc[4, "visits"] = NUMBERS[2], f"{MARK}-cell"
    df.loc[3, "word"] = f"{MARK}-word"
    df["level"] = df["level"].cat.add_categories([f"{MARK}-unused-level", f"{MARK}-level"])
    df.loc[3, "level"] = f"{MARK}-level"
    df.loc[3, "when"] = MOMENT
    df.loc[3, "remark"] = f"{MARK}-remark " * 3
    df.loc[3, "label"] = f"{MARK}-label"
    df.index = pd.Index([f"{MARK}-row-{i}" for i in range(len(df))], name=f"{MARK}-index")
    df.attrs["source"] = f"{MARK}-attrs"
    return df


def findings(content: bytes) -> list[object]:
    """Markers in bytes, as texts in any case and width and as binary numbers.

    Examples
    --------
    >>> findings(b"a canary"), findings(b"196"), findings(np.float64(NUMBERS[1]).tobytes())
    (['utf-8'], [], [197.30078125])
    """
    found: list[object] = [
        w for w in ("utf-8", "utf-16-le", "utf-32-le") if MARK.lower().encode(w) in content.lower()
    ]
    for number in NUMBERS:
        forms = [repr(number).encode()]
        forms += [struct.pack(order + "d", number) for order in "<>"]
        if isinstance(number, int):
            forms += [struct.pack(order + size, number) for order in "<>" for size in "iq"]
        found += [number for form in forms if form in content]
    for unit in ("ns", "us"):
        ticks = MOMENT.as_unit(unit).asm8.astype(np.int64).item()
        found += [MOMENT for order in "<>" if struct.pack(order + "q", ticks) in content]
    return found


def reachable(root: Any) -> Iterator[tuple[str, Any]]:
    """Every object that can be reached from one, by attributes and items, with its path.

    Examples
    --------
    >>> [path for path, thing in reachable({"a": [1, "b"]}) if thing == "b"]
    ["['a'][1]"]
    """
    todo: list[tuple[str, Any]] = [("", root)]
    seen: set[int] = set()
    while todo:
        path, thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType):
            continue
        seen.add(id(thing))
        yield path, thing
        if isinstance(thing, dict | types.MappingProxyType):
            todo += [(f"{path}[{k!r}]", v) for k, v in thing.items()]
            todo += [(f"{path} key", k) for k in thing]
        elif isinstance(thing, list | tuple | set | frozenset):
            todo += [(f"{path}[{i}]", v) for i, v in enumerate(thing)]
        elif isinstance(thing, types.FunctionType | types.MethodType | types.GeneratorType):
            closure = getattr(thing, "__closure__", None) or ()
            todo += [(f"{path} closure", cell.cell_contents) for cell in closure]
            todo += [(f"{path} self", thing.__self__)] if hasattr(thing, "__self__") else []
        slots = [s for c in type(thing).__mro__ for s in getattr(c, "__slots__", ())]
        for name in [*getattr(thing, "__dict__", ()), *slots]:
            if isinstance(name, str) and not name.startswith("__"):
                todo.append((f"{path}.{name}", getattr(thing, name, None)))
