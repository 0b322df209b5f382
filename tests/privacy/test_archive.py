"""Files: whole or not at all, constant bytes, no pickle."""

import io
import json
import os
import pickle
import stat
import tracemalloc
import zipfile

import numpy as np
import pytest

from skdpgen.exceptions import ReleaseError
from skdpgen.privacy.archive import read_archive, write_archive

HEADER = {"format": "x", "value": 0.1, "big": 2**100}
ARRAYS = {
    "a": np.arange(6, dtype=np.int64).reshape(2, 3),
    "empty": np.zeros((0,), dtype=np.int64),
    "public/names": np.array(["ä", "b"]),
    "public/fortran": np.asfortranarray(np.eye(2, 3)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def npy(array, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def make_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)


def test_round_trip(path):
    write_archive(path, HEADER, ARRAYS)
    header, arrays = read_archive(path)
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


def test_equal_content_makes_equal_bytes(tmp_path):
    for name in ("one", "two"):
        write_archive(tmp_path / name, HEADER, ARRAYS)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_an_existing_file_is_replaced(path):
    path.write_text("old")
    write_archive(str(path), HEADER, {})
    assert read_archive(path) == (HEADER, {})
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_ISREG(path.stat().st_mode)


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"x": object()}, {}),
        ({"x": float("nan")}, {}),
        ({"x": float("inf")}, {}),
        (HEADER, {"bad": np.array([object()])}),
    ],
)
def test_a_failure_leaves_nothing_behind(path, header, arrays):
    path.write_text("old")
    with pytest.raises((TypeError, ValueError)):
        write_archive(path, header, arrays)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_the_old_file_stays_until_the_new_one_is_complete(path, monkeypatch):
    path.write_text("old")

    def interrupted(draft, target):
        assert read_archive(draft)[0] == HEADER
        assert path.read_text() == "old"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_archive(path, HEADER, ARRAYS)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_folder_or_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_archive(tmp_path / "missing" / "file", HEADER, {})
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "missing")


class Bomb:
    exploded = False

    def __reduce__(self):
        return _explode, ()


def _explode():
    Bomb.exploded = True


GOOD = [("header.json", "{}"), ("a.npy", npy(np.zeros(2)))]


@pytest.mark.parametrize(
    "members",
    [
        [],
        [("a.npy", npy(np.zeros(2)))],
        [*GOOD, ("notes.txt", "rows")],
        [*GOOD, ("../evil", "x")],
        [("header.json", "no json")],
        [("header.json", "[]")],
        [("header.json", b"\xff\xfe\x00")],
        [("header.json", "[" * 100_000)],
        [("header.json", "{}"), ("a.npy", b"")],
        [("header.json", "{}"), ("a.npy", npy(np.zeros(20))[:-8])],
        [("header.json", "{}"), ("a.npy", npy(np.array([Bomb()]), allow_pickle=True))],
        [("header.json", "{}"), ("a.npy", pickle.dumps(Bomb()))],
    ],
)
def test_damaged_files_are_refused_and_never_unpickled(path, members):
    make_zip(path, members)
    with pytest.raises(ReleaseError):
        read_archive(path)
    assert not Bomb.exploded


def test_an_npz_in_place_of_an_array_is_refused(path):
    inner = io.BytesIO()
    np.savez(inner, x=np.zeros(2))
    make_zip(path, [("header.json", "{}"), ("a.npy", inner.getvalue())])
    with pytest.raises(ReleaseError):
        read_archive(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_members_are_refused(path):
    # Readers disagree on which of two members of one name counts.
    make_zip(path, [*GOOD, GOOD[1]])
    with pytest.raises(ReleaseError, match="repeated"):
        read_archive(path)


def test_bytes_that_are_no_zip_and_flipped_bits_are_refused(path):
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ReleaseError, match="damaged or not a release"):
        read_archive(path)
    write_archive(path, HEADER, {"a": np.arange(1000)})
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(ReleaseError, match="damaged"):
        read_archive(path)
    assert not Bomb.exploded


def test_the_header_is_plain_json(path):
    write_archive(path, HEADER, ARRAYS)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("header.json")) == HEADER
        assert archive.namelist() == ["header.json", *(f"{name}.npy" for name in ARRAYS)]


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}" + " " * 2**27)
    assert path.stat().st_size < 2**20
    with pytest.raises(ReleaseError, match="unpacks to far more than any release"):
        read_archive(path)


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_no_more_is_unpacked_than_the_file_says(path, kind):
    n = 2**26
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("header.json", b" " * n)
    path.write_bytes(path.read_bytes().replace(n.to_bytes(4, "little"), (2).to_bytes(4, "little")))
    tracemalloc.start()
    try:
        with pytest.raises(ReleaseError):
            read_archive(path)
        assert tracemalloc.get_traced_memory()[1] < n / 8
    finally:
        tracemalloc.stop()
