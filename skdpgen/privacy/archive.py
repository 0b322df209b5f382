"""Files without pickle: a zip of one JSON header and one ``.npy`` an array."""

from __future__ import annotations

import io
import json
import os
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import ReleaseError

__all__ = ["read_archive", "write_archive"]

_HEADER = "header.json"
_ARRAY = ".npy"
# What a file may unpack to: far more than any release does, far less than a trap.
_MOST_BYTES, _MOST_TIMES = 2**26, 200
_KINDS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def write_archive(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write a header and arrays to one file, which appears whole or not at all.

    Time stamps are constant: equal content makes equal files.

    Parameters
    ----------
    path : path-like
        A file that exists is replaced, when the new one is complete.
    header : mapping
        JSON-ready, without NaN and infinities.
    arrays : mapping of str to ndarray
        Without Python objects.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with zipfile.ZipFile(draft, "x") as archive:
            _write(archive, _HEADER, json.dumps(header, allow_nan=False).encode())
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                _write(archive, name + _ARRAY, buffer.getvalue())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def read_archive(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what :func:`write_archive` wrote. Never unpickles.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    header : dict
    arrays : dict of str to ndarray

    Raises
    ------
    OSError
        If the file can't be opened.
    ReleaseError
        If it isn't such a file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            members = sorted({name for name in names if name.endswith(_ARRAY)} | {_HEADER})
            if sorted(names) != members:
                raise ReleaseError("the file holds unknown or repeated members.")
            # Others that zipfile knows unpack a whole block at once, however much that is.
            if {member.compress_type for member in archive.infolist()} - _KINDS:
                raise ReleaseError("the file is packed otherwise than releases are.")
            packed = sum(member.compress_size for member in archive.infolist())
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > _MOST_BYTES + _MOST_TIMES * packed:
                raise ReleaseError("the file is small and unpacks to far more than any release.")
            header = json.loads(_read(archive, _HEADER))
            arrays = {
                name.removesuffix(_ARRAY): np.asarray(
                    np.lib.format.read_array(io.BytesIO(_read(archive, name)), allow_pickle=False)
                )
                for name in names
                if name != _HEADER
            }
    except (OSError, ReleaseError):
        raise
    except Exception as error:
        raise ReleaseError(f"the file is damaged or not a release: {error}") from None
    if not isinstance(header, dict):
        raise ReleaseError("the header of the file isn't a JSON object.")
    return header, arrays


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    # With a size: without one zipfile unpacks all, however much, and then cuts it to what the file
    # said of itself.
    with archive.open(name) as member:
        content = member.read(archive.getinfo(name).file_size)
        member.read(1)  # its end, where the checksum is compared
        return content


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
