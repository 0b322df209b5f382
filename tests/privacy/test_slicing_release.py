"""The release of noisy rows: frozen, stored without pickle, verified, and honest about itself."""

import copy
import io
import json
import math
import pickle
import pickletools
import zipfile
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from skdpgen.exceptions import ReleaseError
from skdpgen.privacy.composition import total_epsilon
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import insecure_noise
from skdpgen.privacy.slicing import SlicingBatch, SlicingMechanism, encoded
from skdpgen.privacy.slicing_release import SlicingRelease

ONE = 2**20
KINDS = ["gaussian", "frame"]


def rows(n=6):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 3, n), rng.integers(0, 2, n)]
    return SlicingBatch(rng.integers(0, ONE, (n, 1)), np.array(codes).T.copy())


def make(kind="gaussian", *, n=6, epsilon=1.0, seed=None, scale=1.0):
    mechanism = SlicingMechanism(1, (3, 2), 6, 2, epsilon, 1e-5, kind)
    arguments = {"public": {"names": ["a", "ü"]}, "public_arrays": {"f": np.arange(6.0)}}
    if seed is None:
        return mechanism.release([rows(n)], PrivacyLedger(), **arguments)
    with insecure_noise(seed, scale=scale):
        return mechanism.release([rows(n)], PrivacyLedger(), **arguments)


VARIANTS = {
    "gaussian": {},
    "frame": {"kind": "frame"},
    "insecure": {"seed": 0},
    "no rows": {"n": 0},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys(), scope="module")
def release(request):
    return make(**request.param)


@pytest.fixture(scope="module")
def honest():
    return {kind: make(kind) for kind in KINDS}


def test_spends_are_what_a_ledger_would_add_up(release):
    total = total_epsilon([release.spends], "replace-one", release.delta)
    assert total == pytest.approx(release.verify(), rel=1e-6)


def assert_same(a, b):
    for f in fields(SlicingRelease):
        x, y = getattr(a, f.name), getattr(b, f.name)
        assert type(x) is type(y)
        if f.name == "public_arrays":
            assert x.keys() == y.keys()
            assert all(np.array_equal(x[k], y[k]) and x[k].dtype == y[k].dtype for k in x)
        elif isinstance(x, np.ndarray):
            assert np.array_equal(x, y)
            assert x.dtype == y.dtype == np.int64
        else:
            assert x == y


def assert_frozen(release):
    with pytest.raises(FrozenInstanceError):
        release.epsilon = 0.1
    for array in (release.directions, release.noisy_rows, *release.public_arrays.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    with pytest.raises(TypeError):
        release.public_arrays["g"] = np.zeros(1)
    release.public["names"].append("c")
    assert release.public == {"names": ["a", "ü"]}


# -- frozen --------------------------------------------------------------------------------------


def test_a_release_is_frozen(release):
    assert_frozen(release)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_are_equal_and_frozen(release, duplicate):
    twin = duplicate(release)
    assert_same(twin, release)
    assert_frozen(twin)
    assert twin.statement() == release.statement()


def test_a_pickle_holds_the_fields_and_nothing_else(release):
    names = {
        f"{argument}"
        for opcode, argument, _ in pickletools.genops(pickle.dumps(release))
        if "UNICODE" in opcode.name and str(argument).startswith("skdpgen")
    }
    assert names == {"skdpgen.privacy.slicing_release"}


def test_repr_is_short(release):
    assert len(repr(release)) < 600
    assert "noisy_rows" not in repr(release)


# -- the guarantee -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_verify_recomputes_epsilon(kind):
    for epsilon in (0.2, 1.0, 5.0):
        recomputed = make(kind, epsilon=epsilon).verify()
        assert recomputed == pytest.approx(epsilon, rel=1e-6)
        assert recomputed <= epsilon
    assert make(kind, seed=0).verify() == math.inf


def test_statements(honest):
    for kind in KINDS:
        assert honest[kind].statement() == (
            "(1, 1e-05)-differentially private for replacing one row (replace-one adjacency)."
        )
    assert "(1.0000004, 1e-05)-diff" in make(epsilon=1.0000004).statement()
    assert make(seed=0).statement().startswith("NOT PRIVATE")


FORGERIES = [
    ({"epsilon": 0.9}, "noise is too small"),
    ({"epsilon": 1 - 1e-6}, "noise is too small"),
    ({"delta": 1e-6}, "noise is too small"),
    ({"noise_stddev": 2.0**20}, "noise is too small"),
    ({"value_bits": 26}, "noise is too small"),
    ({"n_slices": 5}, "shape"),
    ({"group_widths": (3, 3)}, "shape"),
    ({"n_numeric": 0, "group_widths": (3, 3, 2)}, "shape"),
    # NaN and infinity pass most comparisons.
    ({"epsilon": math.nan}, "out of range"),
    ({"delta": math.nan}, "out of range"),
    ({"epsilon": math.inf}, "out of range"),
    ({"epsilon": "1"}, "out of range"),
    ({"noise_stddev": math.nan}, "out of range"),
    ({"noise_stddev": math.inf}, "out of range"),
    ({"noise_stddev": 100.0}, "out of range"),
    ({"noise_stddev": None}, "out of range"),
    ({"value_bits": 9}, "out of range"),
    ({"value_bits": 60}, "out of range"),
    ({"value_bits": "24"}, "out of range"),
    ({"n_numeric": 1.0}, "out of range"),
    ({"n_numeric": -1}, "out of range"),
    ({"group_widths": (3, -2)}, "out of range"),
    ({"n_slices": 0}, "out of range"),
    ({"slice_dim": True}, "out of range"),
    ({"direction_kind": "sparse"}, "out of range"),
    ({"value_bits": 24.0}, "no release has"),
    ({"direction_bits": 20}, "no release has"),
    ({"direction_bits": 32.0}, "no release has"),
    ({"noise": "laplace"}, "no release has"),
]

FORGED_ARRAYS = [
    ("gaussian", {"noisy_rows": np.zeros((6, 11), np.int64)}, "shape"),
    ("gaussian", {"noisy_rows": np.zeros(12, np.int64)}, "shape"),
    ("gaussian", {"directions": np.zeros((12, 6), np.int64)}, "shape"),
    ("gaussian", {"noisy_rows": np.zeros((6, 12))}, "integers"),
    ("gaussian", {"directions": np.zeros((6, 12))}, "integers"),
    ("gaussian", {"directions": np.full((6, 12), 2**50)}, "larger than any"),
    ("gaussian", {"directions": np.full((6, 12), np.iinfo(np.int64).min)}, "larger than any"),
    ("frame", {"directions": np.full((6, 12), 2**24)}, "make up a frame"),
    ("frame", {"directions": np.full((6, 12), 2**22)}, "make up a frame"),
]


@pytest.mark.parametrize(("change", "message"), FORGERIES)
def test_a_record_that_contradicts_itself_does_not_verify(honest, change, message):
    with pytest.raises(ReleaseError, match=message):
        replace(honest["gaussian"], **change).verify()


@pytest.mark.parametrize(("kind", "change", "message"), FORGED_ARRAYS)
def test_arrays_that_contradict_the_record_do_not_verify(honest, kind, change, message):
    with pytest.raises(ReleaseError, match=message):
        replace(honest[kind], **change).verify()


def test_a_frame_promises_no_more_than_its_noise_gives(honest):
    with pytest.raises(ReleaseError, match="noise is too small"):
        replace(honest["frame"], epsilon=1 - 1e-6).verify()
    # Gaussian directions need more noise than a frame, and aren't one.
    frame = replace(honest["gaussian"], direction_kind="frame")
    with pytest.raises(ReleaseError):
        frame.verify()


# -- storage -------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.release"


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def tampered(release, path, edit):
    """Save a release, change its header in place."""
    release.save(path)
    content = members(path)
    header = json.loads(content["header.json"])
    edit(header)
    content["header.json"] = json.dumps(header)
    write(path, content)


def test_round_trip(release, path):
    release.save(path)
    loaded = SlicingRelease.load(path)
    assert_same(loaded, release)
    assert_frozen(loaded)
    assert loaded.statement() == release.statement()
    assert loaded.verify() == release.verify()


def test_the_file_holds_the_fields_and_nothing_else(release, path):
    release.save(path)
    content = members(path)
    assert content.keys() == {"header.json", "directions.npy", "noisy_rows.npy", "public/f.npy"}
    plain = {f.name for f in fields(SlicingRelease)} - {"directions", "noisy_rows"}
    plain -= {"public_json", "public_arrays"}
    assert json.loads(content["header.json"]).keys() == {"format", "version", "public", *plain}


def test_saving_twice_gives_the_same_bytes(release, tmp_path):
    for name in ("one", "two"):
        release.save(str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_save_leaves_the_old_file(honest, path, monkeypatch):
    honest["frame"].save(path)
    old = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        honest["gaussian"].save(path)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("change", "message"), FORGERIES)
def test_tampered_headers_are_refused(honest, path, change, message):
    tampered(honest["gaussian"], path, lambda header: header.update(change))
    with pytest.raises(ReleaseError, match=message):
        SlicingRelease.load(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda h: h.pop("epsilon"),
        lambda h: h.pop("group_widths"),
        lambda h: h.update(group_widths=None),
        lambda h: h.pop("public"),
        lambda h: h.update(public={"x": math.nan}),
    ],
)
def test_damaged_headers_are_refused(honest, path, edit):
    tampered(honest["gaussian"], path, edit)
    with pytest.raises(ReleaseError, match="damaged or not a release"):
        SlicingRelease.load(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda h: h.update(version=2),
        lambda h: h.update(format="skdpgen-release"),
        lambda h: h.pop("version"),
    ],
)
def test_other_versions_and_kinds_are_refused(honest, path, edit):
    tampered(honest["gaussian"], path, edit)
    with pytest.raises(ReleaseError, match="not a slicing release of version 1"):
        SlicingRelease.load(path)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


class Bomb:
    exploded = False

    def __reduce__(self):
        return _explode, ()


def _explode():
    Bomb.exploded = True


@pytest.mark.parametrize(
    "change",
    [
        {"directions.npy": None},
        {"noisy_rows.npy": None},
        {"header.json": None},
        {"noisy_rows.npy": npy(np.zeros((6, 12)))},
        {"directions.npy": npy(np.full((6, 12), 2**60))},
        {"noisy_rows.npy": npy(np.array([Bomb()]))},
        {"public/f.npy": npy(np.array([Bomb()]))},
        {"labels.npy": npy(np.zeros(6))},
        {"rows.csv": b"1,2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_tampered_arrays_are_refused_and_never_unpickled(honest, path, change):
    honest["gaussian"].save(path)
    content = members(path) | change
    write(path, {name: data for name, data in content.items() if data is not None})
    with pytest.raises(ReleaseError):
        SlicingRelease.load(path)
    assert not Bomb.exploded


# -- views ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_views_without_noise(kind):
    release = make(kind, seed=0, scale=0)
    data = rows()
    scaled = encoded(data, slice(None), release.layout) / 2.0**16
    expected = scaled @ release.direction_matrix()
    assert release.projections().shape == (6, 6, 2)
    got = release.projections().reshape(6, 12)
    got, expected = (values[np.argsort(values[:, 0])] for values in (got, expected))
    assert got == pytest.approx(expected, abs=1e-6)
    # What a generator makes of the same rows: numbers in [0, 1] and indicators, times weights.
    made = np.concatenate(
        [data.numbers / ONE, np.eye(3)[data.codes[:, 0]], np.eye(2)[data.codes[:, 1]]], axis=1
    )
    assert made * release.column_weights() == pytest.approx(scaled, abs=2e-5)
    assert release.noise_scale == release.noise_stddev / 2.0**release.value_bits
    assert release.n_rows == 6


def test_directions_that_nobody_drew_are_refused(honest):
    """Each entry could be drawn; all of them at once can't, and would break the promise."""
    release = honest["gaussian"]
    largest = np.full_like(release.directions, release.layout.direction_limit)
    with pytest.raises(ReleaseError, match="longer than any that are drawn"):
        replace(release, directions=largest).verify()
