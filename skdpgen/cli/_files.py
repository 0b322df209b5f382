"""Where commands may write, checked before they do anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from ._errors import CommandError

__all__ = ["check_output", "existing", "force_option", "output"]

#: A file to read.
existing = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
#: A file to write.
output = click.Path(dir_okay=False, path_type=Path)

force_option = click.option("--force", is_flag=True, help="Replace the output if it exists.")
# Most systems take 255 bytes; while a file is written its name is longer, by 34.
_LONGEST_NAME = 200


def check_output(path: Path, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse an output that can't be written, exists, or is an input.

    Parameters
    ----------
    path : Path
        Where the result shall go.
    force : bool
        Whether to replace a file that is there. Never one of the inputs.
    inputs : iterable of Path or None
        What the command reads, or writes besides.

    Raises
    ------
    CommandError
        If nothing may be written there.
    """
    for source in inputs:
        # Also one that isn't there yet: a new ledger, which the output would overwrite.
        if source is not None and _same(path, source):
            raise CommandError(f"{path} is used by this command: give the output another name.")
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} can't be replaced: it is no plain file.")
    if path.exists() and not force:
        raise CommandError(f"{path} exists; --force replaces it.")
    folder = path.parent
    if not folder.is_dir():
        raise CommandError(f"{path} can't be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path} can't be written: the folder {folder} is read-only.")
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise CommandError(f"the name of the output is too long: at most {_LONGEST_NAME} bytes.")


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()
