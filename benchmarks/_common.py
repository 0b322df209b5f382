"""What the benchmark scripts share: where the data lies, and how a result is written down."""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("SKDPGEN_DATA", HERE.parents[1] / "shared" / "data")),
        help="folder with load.py and the data sets (default: shared/data beside the clone)",
    )
    options.add_argument("--fits", type=int, default=3, help="fits to average over")
    return options


def loader(folder: Path) -> ModuleType:
    """The ``load`` module of the data folder."""
    spec = importlib.util.spec_from_file_location("shared_data_load", folder / "load.py")
    if spec is None or spec.loader is None or not (folder / "load.py").exists():
        raise SystemExit(f"no load.py in {folder}: say with --data where the data sets are.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Stopwatch:
    """Wall seconds and CPU seconds of a ``with`` block."""

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu


def environment() -> str:
    """Date, versions and class of machine, in one line."""
    packages = ["numpy", "scikit-learn", "torch", "opendp", "autodp", "pandas"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"{datetime.date.today().isoformat()}; Python {platform.python_version()}, {versions}; "
        f"{platform.machine()}, {os.cpu_count()} shared cores, no GPU"
    )


def mean_and_spread(values: Any, digits: int = 3) -> str:
    """Mean and range of repeated fits, as ``0.851 (0.848-0.853)``."""
    values = np.asarray(values, dtype=float)
    if np.isnan(values).all():
        return ""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} ({values.min():.{digits}f}-{values.max():.{digits}f})"


def markdown(table: pd.DataFrame) -> str:
    """A table as Markdown."""
    header = " | ".join(str(c) for c in table.columns)
    rule = " | ".join("---" for _ in table.columns)
    rows = [" | ".join(str(v) for v in row) for row in table.itertuples(index=False)]
    return "\n".join(f"| {line} |" for line in (header, rule, *rows))


def write_result(name: str, title: str, command: str, table: pd.DataFrame, notes: str) -> None:
    """Write ``results/<name>.md``: title, command, table, notes, environment; and print it."""
    text = "\n".join(
        [
            f"# {title}",
            "",
            f"`{command}`",
            "",
            markdown(table),
            "",
            notes.strip(),
            "",
            environment(),
            "",
        ]
    )
    RESULTS.mkdir(exist_ok=True)
    draft = RESULTS / f".{name}.md"
    draft.write_text(text, encoding="utf-8")
    draft.replace(RESULTS / f"{name}.md")
    print(text)
