"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["replaced"]


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A name to write to; what stands there takes the place of ``path`` if nothing goes wrong.

    Parameters
    ----------
    path : path-like
        The file that is to appear; it is replaced if it exists.

    Yields
    ------
    Path
        A new name in the same folder.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
