"""The release: frozen, stored without pickle, verified, and honest about itself."""

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
from skdpgen.privacy.batches import RowBatch
from skdpgen.privacy.composition import total_epsilon
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.mechanisms import MeanEmbeddingMechanism
from skdpgen.privacy.noise import insecure_noise
from skdpgen.privacy.release import Release, frozen
from skdpgen.privacy.spec import EmbeddingSpec

SPEC = EmbeddingSpec(4, (2, 3), 2, 0.5)


def make(spec=SPEC, *, n=10, labels=None, epsilon=1.0, seed=None, scale=1.0, **kwargs):
    mechanism = MeanEmbeddingMechanism(spec, epsilon, 1e-5, **kwargs)
    rng = np.random.default_rng(0)
    one = 2**spec.lattice_bits
    batch = RowBatch(
        signed=rng.integers(-one // 2, one // 2, (n, spec.n_signed)),
        codes=np.zeros((n, len(spec.group_widths)), dtype=np.int64),
        labels=np.zeros(n, np.int64) if labels is None else np.array(labels),
        keep=np.ones(n, dtype=bool) if mechanism.rows_bounded else None,
    )
    arguments = {"public": {"names": ["a", "ü"]}, "public_arrays": {"f": np.arange(6.0)}}
    if seed is None:
        return mechanism.release([batch], PrivacyLedger(), **arguments)
    with insecure_noise(seed, scale=scale):
        return mechanism.release([batch], PrivacyLedger(), **arguments)


VARIANTS = {
    "replace-one": {},
    "add-remove": {"adjacency": "add-remove"},
    "promised units": {"rows_per_unit": 3},
    "bounded units": {"rows_per_unit": 3, "rows_bounded": True},
    "no counts": {"spec": EmbeddingSpec(4, (), 2, 0.0)},
    "insecure": {"seed": 0},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys(), scope="module")
def release(request):
    return make(**request.param)


def assert_same(a, b):
    for f in fields(Release):
        x, y = getattr(a, f.name), getattr(b, f.name)
        if f.name == "public_arrays":
            assert x.keys() == y.keys()
            assert all(np.array_equal(x[k], y[k]) and x[k].dtype == y[k].dtype for k in x)
        elif isinstance(x, np.ndarray):
            assert np.array_equal(x, y)
            assert x.dtype == y.dtype == np.int64
        else:
            assert x == y
            assert type(x) is type(y)


def assert_frozen(release):
    with pytest.raises(FrozenInstanceError):
        release.epsilon = 0.1
    for array in (release.noisy_sums, release.noisy_counts, *release.public_arrays.values()):
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
    assert names == {"skdpgen.privacy.release", "skdpgen.privacy.spec"}


def test_the_caller_keeps_no_hold_on_the_arrays():
    array = np.arange(3)
    release = replace(make(), public_arrays={"f": array})
    array[0] = 99
    assert release.public_arrays["f"].tolist() == [0, 1, 2]


def test_frozen_copies_every_kind_of_array():
    for array in (np.eye(3)[:, ::2], np.zeros((0, 3)), np.array(5), np.array(["a", "bc"])):
        twin = frozen(array)
        assert np.array_equal(twin, array)
        assert (twin.dtype, twin.shape) == (array.dtype, array.shape)
        assert not twin.flags.writeable
    with pytest.raises(ReleaseError, match="Python objects"):
        frozen(np.array([object()]))


def test_repr_is_short(release):
    assert len(repr(release)) < 600
    assert "noisy_sums" not in repr(release)


# -- the guarantee -------------------------------------------------------------------------------


def test_verify_recomputes_epsilon():
    for epsilon in (0.2, 1.0, 5.0):
        for variant in ({}, {"adjacency": "add-remove"}, {"rows_per_unit": 4}):
            recomputed = make(epsilon=epsilon, **variant).verify()
            assert recomputed == pytest.approx(epsilon, rel=1e-6)
            assert recomputed <= epsilon
    assert make(seed=0).verify() == math.inf


def test_statements():
    assert make().statement() == (
        "(1, 1e-05)-differentially private for replacing one row (replace-one adjacency)."
    )
    assert make(adjacency="add-remove").statement() == (
        "(1, 1e-05)-differentially private for adding or removing one row (add-remove adjacency)."
    )
    assert make(rows_per_unit=3).statement() == (
        "(1, 1e-05)-differentially private for replacing all rows of one unit (at most 3 rows a "
        "unit, promised) (replace-one adjacency)."
    )
    assert "(at most 3 rows a unit, kept)" in make(rows_per_unit=3, rows_bounded=True).statement()
    assert make(seed=0).statement().startswith("NOT PRIVATE")


def test_a_statement_never_rounds_the_guarantee_down():
    assert make(epsilon=1.0000004).statement().startswith("(1.0000004, 1e-05)-diff")
    assert make(epsilon=0.25).statement().startswith("(0.25, 1e-05)-diff")


FORGERIES = [
    ({"epsilon": 0.9}, "noise is too small"),
    ({"epsilon": 1 - 1e-6}, "noise is too small"),
    ({"delta": 1e-6}, "noise is too small"),
    ({"noise_stddev": 2.0**20}, "noise is too small"),
    ({"sensitivity_squared": 1}, "sensitivity isn't"),
    ({"rows_per_unit": 2}, "sensitivity isn't"),
    ({"adjacency": "add-remove"}, "sensitivity isn't"),
    ({"spec": replace(SPEC, count_weight=2.0)}, "sensitivity isn't"),
    ({"spec": replace(SPEC, n_classes=3)}, "shape"),
    ({"noisy_counts": np.zeros(3, np.int64)}, "shape"),
    ({"noisy_sums": np.zeros((2, 9))}, "integers"),
    ({"unit": "unit"}, "unit of privacy"),
    ({"rows_bounded": True}, "unit of privacy"),
    ({"n_rows": None}, "number of rows"),
    # NaN and infinity pass most comparisons.
    ({"epsilon": math.nan}, "out of range"),
    ({"delta": math.nan}, "out of range"),
    ({"epsilon": math.inf}, "out of range"),
    ({"epsilon": 0.0}, "out of range"),
    ({"epsilon": "1"}, "out of range"),
    ({"noise_stddev": math.inf}, "out of range"),
    ({"noise_stddev": math.nan}, "out of range"),
    ({"noise_stddev": 100.0}, "out of range"),
    ({"noise_stddev": "wide"}, "out of range"),
    ({"noise_stddev": None}, "out of range"),
    # Words that a statement would pass over.
    ({"unit": "patient"}, "no release has"),
    ({"adjacency": "both"}, "no release has"),
    ({"noise": "laplace"}, "no release has"),
    ({"rows_bounded": 0}, "no release has"),
    ({"rows_per_unit": True}, "no release has"),
    ({"n_rows": -1}, "no release has"),
    ({"n_rows": 10.5}, "no release has"),
    ({"n_rows": True}, "no release has"),
    # A unit of no rows has sensitivity 0, and epsilon 0 with any noise.
    ({"rows_per_unit": 0, "sensitivity_squared": 0, "unit": "unit"}, "no release has"),
    ({"rows_per_unit": -1, "unit": "unit"}, "no release has"),
]


@pytest.mark.parametrize(("change", "message"), FORGERIES)
def test_a_record_that_contradicts_itself_does_not_verify(change, message):
    forged = replace(make(), **change)
    with pytest.raises(ReleaseError, match=message):
        forged.verify()


def test_bounded_units_and_add_remove_may_not_record_a_number_of_rows():
    for variant in ({"adjacency": "add-remove"}, {"rows_per_unit": 3, "rows_bounded": True}):
        with pytest.raises(ReleaseError, match="number of rows"):
            replace(make(**variant), n_rows=10).verify()


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


def tampered(path, edit):
    """Save a release, change its header in place."""
    make().save(path)
    content = members(path)
    header = json.loads(content["header.json"])
    edit(header)
    content["header.json"] = json.dumps(header)
    write(path, content)


def test_round_trip(release, path):
    release.save(path)
    loaded = Release.load(path)
    assert_same(loaded, release)
    assert_frozen(loaded)
    assert loaded.statement() == release.statement()
    assert loaded.verify() == release.verify()


def test_the_file_holds_the_fields_and_nothing_else(release, path):
    release.save(path)
    content = members(path)
    assert content.keys() == {
        "header.json",
        "noisy_sums.npy",
        "noisy_counts.npy",
        "public/f.npy",
    }
    header = json.loads(content["header.json"])
    plain = {f.name for f in fields(Release)} - {"noisy_sums", "noisy_counts"}
    plain -= {"public_json", "public_arrays", "earlier"}
    assert header.keys() == {"format", "version", "public", *plain}
    if release.adjacency == "add-remove" or release.rows_bounded:
        assert header["n_rows"] is None


def test_saving_twice_gives_the_same_bytes(release, tmp_path):
    for name in ("one", "two"):
        release.save(str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_save_leaves_the_old_file(path, monkeypatch):
    make().save(path)
    old = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        make().save(path)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_file_is_an_os_error(path):
    with pytest.raises(FileNotFoundError):
        Release.load(path)


@pytest.mark.parametrize(("change", "message"), [f for f in FORGERIES if "noisy" not in str(f[0])])
def test_tampered_headers_are_refused(path, change, message):
    spec = change.get("spec")
    if spec is not None:
        change = {"spec": {f.name: getattr(spec, f.name) for f in fields(spec)}}
    tampered(path, lambda header: header.update(change))
    with pytest.raises(ReleaseError, match=message):
        Release.load(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda h: h.pop("epsilon"),
        lambda h: h.pop("spec"),
        lambda h: h.update(spec=None),
        lambda h: h["spec"].update(n_signed=-4),
        lambda h: h["spec"].update(count_weight=math.nan),
        lambda h: h["spec"].update(more=1),
        lambda h: h.update(public={"x": math.nan}),
    ],
)
def test_damaged_headers_are_refused(path, edit):
    tampered(path, edit)
    with pytest.raises(ReleaseError, match="damaged or not a release"):
        Release.load(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda h: h.update(version=2),
        lambda h: h.update(version="1"),
        lambda h: h.update(format="other"),
        lambda h: h.pop("version"),
    ],
)
def test_other_versions_are_refused(path, edit):
    tampered(path, edit)
    with pytest.raises(ReleaseError, match="not a release of version 1"):
        Release.load(path)


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
        {"noisy_sums.npy": None},
        {"noisy_counts.npy": None},
        {"header.json": None},
        {"noisy_sums.npy": npy(np.zeros((2, 9)))},
        {"noisy_sums.npy": npy(np.zeros((2, 8), np.int64))},
        {"noisy_sums.npy": npy(np.array([Bomb()]))},
        {"public/f.npy": npy(np.array([Bomb()]))},
        {"rows.npy": npy(np.zeros(3))},
        {"rows.csv": b"1,2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_tampered_arrays_are_refused_and_never_unpickled(path, change):
    make().save(path)
    content = members(path) | change
    write(path, {name: data for name, data in content.items() if data is not None})
    with pytest.raises(ReleaseError):
        Release.load(path)
    assert not Bomb.exploded


def test_bytes_that_are_no_zip_are_refused(path):
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ReleaseError, match="damaged or not a release"):
        Release.load(path)
    assert not Bomb.exploded


# -- views ---------------------------------------------------------------------------------------


def test_views_without_noise():
    labels = [0, 0, 0, 1]
    release = make(n=4, labels=labels, seed=0, scale=0)
    one = 2.0**SPEC.lattice_bits
    assert release.row_count == 4.0
    assert release.mean_embedding() == pytest.approx(release.noisy_sums / (4 * one), rel=1e-15)
    # All rows have code 0 in both groups: class proportions times 1 / sqrt(5).
    assert release.mean_embedding()[:, 4] == pytest.approx(np.array([0.75, 0.25]) / math.sqrt(5))
    assert release.class_proportions().tolist() == [0.75, 0.25]
    assert release.coordinate_stddev == pytest.approx(release.noise_stddev / (4 * one), rel=1e-15)


@pytest.mark.parametrize("variant", ["add-remove", "bounded units"])
def test_a_private_number_of_rows_is_estimated_from_the_noisy_counts(variant):
    release = make(n=8, labels=[0] * 6 + [1] * 2, seed=0, scale=0, **VARIANTS[variant])
    assert release.n_rows is None
    assert release.row_count == pytest.approx(8.0, rel=1e-7)
    noisy = replace(release, noisy_counts=np.array([5, 2]) * SPEC.count_steps)
    assert noisy.row_count == 7.0
    assert replace(release, noisy_counts=np.array([-5, 2])).row_count == 1.0


def test_proportions_are_positive_whatever_the_noise():
    release = replace(make(n=8), noisy_counts=np.array([-(2**40), 3 * SPEC.count_steps]))
    assert release.class_proportions().tolist() == [0.25, 0.75]


def test_without_counts_the_proportions_are_even():
    assert make(EmbeddingSpec(4, (), 4, 0.0)).class_proportions().tolist() == [0.25] * 4
    assert make(EmbeddingSpec(4, (), 1, 0.0)).class_proportions().tolist() == [1.0]
    assert make(EmbeddingSpec(4, (), 1, 0.5)).class_proportions().tolist() == [1.0]


def test_no_rows_divide_nothing_by_zero():
    release = make(n=0)
    assert release.n_rows == 0
    assert release.row_count == 1.0
    assert np.isfinite(release.mean_embedding()).all()


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_spends_are_what_a_ledger_would_add_up(changes):
    release = make(**changes)
    (entry,) = release.spends
    assert (entry.adjacency, entry.unit) == (release.adjacency, release.unit)
    assert entry.rows_per_unit == release.rows_per_unit
    total = total_epsilon([release.spends], release.adjacency, release.delta)
    assert total == pytest.approx(release.verify(), rel=1e-9)


# -- earlier releases ------------------------------------------------------------------------------

EARLIER = (
    LedgerEntry("private bounds", 2, 16.0, "replace-one", "row", 1, 0.3, 1e-5),
    LedgerEntry(
        "private categories", 2, 16.0, "replace-one", "row", 1, 0.4, 1e-5, extra_delta=1e-6
    ),
)


@pytest.mark.parametrize("seed", [None, 0])
def test_earlier_releases_travel_along(seed, path):
    earlier = EARLIER
    if seed is not None:
        earlier = tuple(replace(e, private=False, epsilon=math.inf) for e in EARLIER)
    release = make(earlier=earlier, seed=seed)
    release.save(path)
    assert json.loads(members(path)["header.json"])["version"] == 2
    loaded = Release.load(path)
    assert_same(loaded, release)
    assert loaded.earlier == earlier
    assert pickle.loads(pickle.dumps(release)).earlier == earlier
    assert loaded.verify() == (pytest.approx(1.0, rel=1e-6) if seed is None else math.inf)
    ending = "(replace-one adjacency), together with private bounds and private categories."
    assert loaded.statement().endswith(ending) == (seed is None)


@pytest.mark.parametrize(
    ("earlier", "message"),
    [
        ((EARLIER[0], replace(EARLIER[1], noise_stddev=8.0)), "noise is too small"),
        ((EARLIER[0], replace(EARLIER[1], extra_delta=2e-6)), "noise is too small"),
        ((replace(EARLIER[0], unit="unit"),), "don't fit: an earlier release must be"),
        ((replace(EARLIER[0], private=False),), "don't fit: other unit or noise"),
    ],
)
def test_earlier_releases_that_do_not_fit_are_refused(earlier, message, path):
    with pytest.raises(ReleaseError, match=message):
        replace(make(earlier=EARLIER), earlier=earlier).verify()


def test_earlier_releases_for_other_units_are_refused():
    of_three = tuple(replace(entry, unit="unit", rows_per_unit=3) for entry in EARLIER)
    of_two = tuple(replace(entry, rows_per_unit=2) for entry in of_three)
    release = make(rows_per_unit=3, earlier=of_three)
    release.verify()
    with pytest.raises(ReleaseError, match="don't fit: other unit or noise"):
        replace(release, earlier=of_two).verify()


def test_spends_include_earlier_releases():
    release = make(earlier=EARLIER)
    assert release.spends[:-1] == EARLIER
    total = total_epsilon([release.spends], release.adjacency, release.delta)
    assert total == pytest.approx(release.verify(), rel=1e-9)
