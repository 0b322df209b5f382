"""The data sets of the comparison, prepared in the same way for every method."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from skdpgen import Schema

SETS = (
    "adult",
    "bank_marketing",
    "acs_national2019",
    "compas",
    "census_kdd",
    "covtype",
    "intrusion",
    "diabetes130",
)
# Columns that give the label away, are weights of the survey, or were made from the label.
LEFT_OUT = {
    "acs_national2019": ("PINCP", "PWGTP", "WGTP"),
    "compas": ("is_recid", "is_violent_recid", "event", "end"),
}
NOTES = {
    "acs_national2019": "Label: income decile 5-9 against 0-4; persons without income left out.",
    "compas": "Without the columns that give the label away (r_*, vr_*, is_recid, event, ...).",
    "diabetes130": "Rows are hospital stays, several a patient: epsilon is a row's, not a "
    "patient's.",
    "intrusion": "Label: the five groups of attacks.",
}
LISTED = ("categorical", "ordinal", "boolean", "label")


@dataclass(frozen=True)
class Prepared:
    """A set: training and test rows with the same columns, and their public schema."""

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    entries: dict[str, Any]

    @property
    def schema(self) -> Schema:
        """The public schema, as skdpgen reads it."""
        return Schema.from_dict(self.entries)

    @property
    def n_classes(self) -> int:
        """Number of declared classes."""
        return len(self.entries["columns"][self.entries["target"]]["values"])


def prepare(name: str, load: ModuleType) -> Prepared:
    """Read a set and leave out what no method could use.

    Ids, texts and date-times go, and so do categories without a public list of values. The split
    is the set's own, or a seeded one. Nothing is read off the rows.

    Parameters
    ----------
    name : str
        One of ``SETS``, or any other set with a target.
    load : module
        The ``load`` module of the data folder.
    """
    train, test, entries = load.train_test(name)
    columns = dict(entries["columns"])
    if name == "acs_national2019":
        train, test = (_income_halves(rows) for rows in (train, test))
        columns["PINCP_DECILE"] = {"kind": "label", "values": ["0", "1"]}
    if name == "intrusion":
        groups = columns["label"]["groups"]
        train, test = (rows.assign(label=rows["label"].map(groups)) for rows in (train, test))
        columns["label"] = {"kind": "label", "values": list(dict.fromkeys(groups.values()))}
    kept = {c: e for c, e in columns.items() if _usable(name, c, e)}
    schema = {"target": entries["target"], "columns": kept}
    return Prepared(name, train[list(kept)], test[list(kept)], schema)


def _usable(name: str, column: str, entry: dict[str, Any]) -> bool:
    if column in LEFT_OUT.get(name, ()):
        return False
    if name == "compas" and column.startswith(("r_", "vr_")):
        return False
    return entry["kind"] == "numeric" or (entry["kind"] in LISTED and bool(entry.get("values")))


def _income_halves(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["PINCP_DECILE"].ne("N")]
    upper = rows["PINCP_DECILE"].astype(int) >= 5
    return rows.assign(PINCP_DECILE=np.where(upper, "1", "0")).reset_index(drop=True)


# Peers run in an environment of their own: tables travel as text, categories as codes of the
# public list, and a missing category as one code more, so that no peer has to find it in the rows.


def export(prepared: Prepared, folder: Path) -> None:
    """Write ``train.csv`` and ``domain.json``, what a peer needs and may know."""
    folder.mkdir(parents=True, exist_ok=True)
    domain, coded = {}, {}
    for name, entry in prepared.entries["columns"].items():
        cells = prepared.train[name]
        if entry["kind"] == "numeric":
            coded[name] = cells
            whole = entry.get("dtype") == "int"
            domain[name] = {"kind": "number", "bounds": entry["bounds"], "whole": whole}
        else:
            codes = pd.Index(entry["values"], dtype=object).get_indexer(cells.astype(object))
            codes = np.where(codes < 0, len(entry["values"]), codes)
            coded[name] = codes
            size = len(entry["values"]) + bool(entry.get("missing"))
            if codes.max() >= size:
                raise SystemExit(f"{prepared.name}: {name} holds values that it doesn't declare.")
            domain[name] = {"kind": "category", "size": size}
    pd.DataFrame(coded).to_csv(folder / "train.csv", index=False)
    facts = {"target": prepared.entries["target"], "columns": domain}
    (folder / "domain.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def restore(prepared: Prepared, path: Path) -> pd.DataFrame:
    """Read a peer's table back: codes become the declared values again."""
    table = pd.read_csv(path)
    for name, entry in prepared.entries["columns"].items():
        if entry["kind"] != "numeric":
            # The code after the last one stands for a missing value.
            values = np.array([*entry["values"], None], dtype=object)
            table[name] = values[table[name].to_numpy(np.int64)]
    return table[list(prepared.entries["columns"])]
