"""Interaction features of codes: exact, bounded, the same in every order and representation."""

import math
import threading
import tracemalloc

import numpy as np
import pytest

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy import codes as codes_module
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.lattice import trig_table
from skdpgen.privacy.spec import EmbeddingSpec

N_CODES = (3, 2, 5, 4)
SUBSETS = ((2,), (0, 1), (3, 0), (0, 2, 3), (3, 1, 0, 2))


def fourier(n_codes=N_CODES, subsets=SUBSETS, seed=0, n_harmonics=1):
    """Random phases; the i-th subset has i + 1 families."""
    rng = np.random.default_rng(seed)
    phases = [
        [rng.integers(0, 2**16, (n_codes[c], i + 1)).astype(np.uint16) for c in subset]
        for i, subset in enumerate(subsets)
    ]
    return CodeFourier(n_codes, subsets, phases, n_harmonics)


def spec_of(features, n_classes=2, block_share=0.3):
    return EmbeddingSpec(
        2 * features.n_frequencies,
        features.n_codes,
        n_classes,
        1.0,
        block_share,
        features.n_harmonics,
    )


def table(n, n_codes=N_CODES, n_classes=2, seed=1):
    rng = np.random.default_rng(seed)
    columns = np.stack([rng.integers(0, size, n) for size in n_codes]).astype(np.uint16)
    return columns, rng.integers(0, n_classes, n)


def brute_force(features, columns, labels, spec):
    """Row by row and frequency by frequency, in Python integers."""
    tables_of = [trig_table(a).tolist() for a in features.amplitudes(spec.signed_bound)]
    sums = [[0] * spec.n_signed for _ in range(spec.n_classes)]
    for row, label in zip(columns.T.tolist(), labels.tolist(), strict=True):
        f = 0
        for subset, tables in zip(features.subsets, features.phases, strict=True):
            for k, (cosine, sine) in enumerate(tables_of, start=1):
                for i in range(tables[0].shape[1]):
                    pairs = zip(subset, tables, strict=True)
                    turn = k * sum(int(phase[row[c], i]) for c, phase in pairs) % 2**16
                    sums[label][f] += cosine[turn]
                    sums[label][f + features.n_frequencies] += sine[turn]
                    f += 1
    return sums


@pytest.mark.parametrize("n_harmonics", [1, 3])
@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 7, 500])
def test_sums_against_exact_integer_arithmetic(n, n_classes, n_harmonics):
    features = fourier(n_harmonics=n_harmonics)
    spec = spec_of(features, n_classes)
    columns, labels = table(n, n_classes=n_classes)
    sums = features.sums(columns, labels, spec)
    assert sums.dtype == np.int64
    assert sums.tolist() == brute_force(features, columns, labels, spec)


@pytest.mark.parametrize(
    "change",
    [
        {"_DENSE": 0},
        {"_DENSE": 10**6},
        {"_BLOCK": 1, "_FEW_CODES": 1},
        {"_BLOCK": 17, "_FEW_CODES": 1},
        {"_BLOCK": 1, "_FEW_CODES": 7},
        {"_DENSE": 0, "_BLOCK": 5, "_FEW_CODES": 1},
    ],
)
def test_sums_do_not_depend_on_how_they_are_counted(change, monkeypatch):
    features = fourier(n_harmonics=2)
    spec = spec_of(features, 3)
    columns, labels = table(200, n_classes=3)
    expected = features.sums(columns, labels, spec).tolist()
    for name, value in change.items():
        monkeypatch.setattr(codes_module, name, value)
    assert features.sums(columns, labels, spec).tolist() == expected


@pytest.mark.parametrize("n_cpus", [None, 1, 2, 64])
def test_sums_do_not_depend_on_threads_order_and_parts(n_cpus, monkeypatch):
    features = fourier()
    spec = spec_of(features)
    columns, labels = table(300)
    expected = features.sums(columns, labels, spec).tolist()
    monkeypatch.setattr(codes_module.os, "cpu_count", lambda: n_cpus)
    order = np.random.default_rng(2).permutation(300)
    parts = np.array_split(order, 4)
    total = sum(features.sums(columns[:, part], labels[part], spec) for part in parts)
    assert total.tolist() == expected


def test_an_error_on_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(codes_module.os, "cpu_count", lambda: 4)
    tables = iter(range(5))

    def failing(*args):
        if next(tables) in (1, 3):
            raise MemoryError
        return weighted(*args)

    weighted = codes_module._weighted_pairs
    monkeypatch.setattr(codes_module, "_weighted_pairs", failing)
    features = fourier()
    with pytest.raises(MemoryError):
        features.sums(*table(20), spec_of(features))
    assert not [t for t in threading.enumerate() if t.name == "skdpgen sums"]


def test_the_largest_joint_codes_do_not_overflow():
    # 2^60 joint codes and seven classes: the largest key is just below 2^63.
    n_codes = (2**15,) * 4
    subsets = ((0, 1, 2, 3),)
    features = fourier(n_codes, subsets)
    spec = EmbeddingSpec(2, (), 7, 1.0, 0.0)
    features.check(spec)
    columns, labels = table(50, n_codes, 7)
    columns[:, 0], labels[0] = 2**15 - 1, 6
    expected = brute_force(features, columns, labels, spec)
    assert features.sums(columns, labels, spec).tolist() == expected
    with pytest.raises(PrivacyParameterError, match="too many joint codes"):
        features.check(EmbeddingSpec(2, (), 8, 1.0, 0.0))
    with pytest.raises(PrivacyParameterError, match="too many joint codes"):
        fourier((2**16,) * 4, subsets).check(EmbeddingSpec(2, (), 1, 1.0, 0.0))


def test_every_code_of_the_largest_column_is_told_apart():
    phases = np.arange(2**16, dtype=np.uint16)[:, None]
    features = CodeFourier([2**16], [[0]], [[phases]])
    spec = EmbeddingSpec(2, (), 1, 1.0, 0.0)
    wave = trig_table(2**spec.lattice_bits)
    for code in (0, 1, 2**15, 2**16 - 1):
        columns = np.full((1, 1), code, dtype=np.uint16)
        sums = features.sums(columns, np.zeros(1, dtype=np.int64), spec)
        assert sums.tolist() == [wave[:, code].tolist()]


@pytest.mark.parametrize("block_share", [None, 0.0, 0.3, 0.999, 1 - 2**-40])
@pytest.mark.parametrize("n_families", [1, 2, 3, 1000])
@pytest.mark.parametrize("n_harmonics", [1, 2, 5])
def test_the_norm_is_never_exceeded(n_families, block_share, n_harmonics):
    phases = np.repeat(np.arange(2**16, dtype=np.uint16)[:, None], n_families, axis=1)
    features = CodeFourier([2**16], [[0]], [[phases]], n_harmonics)
    n_signed = 2 * n_harmonics * n_families
    spec = EmbeddingSpec(n_signed, (2, 2), 1, 1.0, block_share, n_harmonics)
    amplitudes = features.amplitudes(spec.signed_bound)
    largest = sum(max((trig_table(a) ** 2).sum(axis=0).tolist()) for a in amplitudes)
    assert n_families * largest <= spec.signed_bound
    # As large as they may be: one more in each would be too much.
    assert n_families * sum((a + 1) ** 2 for a in amplitudes) > spec.signed_bound


@pytest.mark.parametrize("n_harmonics", [1, 2, 3, 4, 7, 64])
def test_the_distance_of_two_rows_is_never_exceeded_and_nearly_attained(n_harmonics):
    # One family and one column: code t is the phase t, so these are all pairs of rows there are,
    # up to where they start, which matters by truncation only.
    features = CodeFourier(
        [2**16], [[0]], [[np.arange(2**16, dtype=np.uint16)[:, None]]], n_harmonics
    )
    spec = EmbeddingSpec(2 * n_harmonics, (), 1, 1.0, 0.0, n_harmonics)
    turn = np.arange(2**16)
    waves = [
        trig_table(amplitude)[:, k * turn % 2**16]
        for k, amplitude in enumerate(features.amplitudes(spec.signed_bound), start=1)
    ]
    rows = np.concatenate(waves).T
    distances = [
        int(((rows - rows[start]) ** 2).sum(axis=1).max()) for start in (0, 1, 12345, 40000)
    ]
    assert max(distances) <= spec.signed_distance
    # The Fejer kernel touches zero, so the bound is the distance of a pair, but for truncation.
    assert max(distances) == pytest.approx(spec.signed_distance, rel=1e-5)
    ratio = spec.signed_distance / spec.signed_bound
    assert ratio == pytest.approx(4 if n_harmonics == 1 else 2 + 2 / n_harmonics, rel=1e-5)


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [5, 4, 3, 2], [8, 4, 2, 1]])
def test_other_weights_would_exceed_the_distance(weights):
    """That the test above can fail: only the Fejer kernel's weights keep the bound."""
    spec = EmbeddingSpec(8, (), 1, 1.0, 0.0, 4)
    k = np.arange(1, 5)[:, None]
    phase = 2 * np.pi * np.arange(2**16) / 2**16
    shares = np.array(weights)[:, None] / sum(weights)
    largest = (2 * shares * (1 - np.cos(k * phase))).sum(axis=0).max()
    assert largest * spec.signed_bound > 1.01 * spec.signed_distance


def test_memory_is_bounded_for_a_subset_with_many_frequencies(monkeypatch):
    # 3000 joint codes and 500 frequencies would be 24 MB of pairs, and as much again for products.
    monkeypatch.setattr(codes_module, "_BLOCK", 2**14)
    monkeypatch.setattr(codes_module, "_MOST_BLOCK", 2**14)
    rng = np.random.default_rng(0)
    phases = [rng.integers(0, 2**16, (2**10, 500)).astype(np.uint16) for _ in range(2)]
    features = CodeFourier((2**10,) * 2, [[0, 1]], [phases])
    spec = EmbeddingSpec(1000, (), 2, 1.0, 0.0)
    columns, labels = table(3000, features.n_codes)
    features.sums(columns, labels, spec)
    tracemalloc.start()
    try:
        features.sums(columns, labels, spec)
        assert tracemalloc.get_traced_memory()[1] < 6e6  # tables alone are 3 MB
    finally:
        tracemalloc.stop()


def test_blocks_are_neither_too_large_nor_too_small():
    # Of 65 codes with a thousand classes each, adding up blocks took most of the time.
    found = [codes_module._codes_at_once(width) for width in (1, 20, 1000, 10_000, 2**20, 2**21)]
    assert found == [2**16, 3276, 512, 104, 1, 1]
    assert all(codes_module._codes_at_once(w) * w <= 2**20 for w in range(1, 3000, 7))


def test_what_was_checked_cannot_be_changed():
    n_codes, subsets = [3, np.int64(2)], [[np.int32(0), 1]]
    phases = [[np.ones((3, 2), np.uint16), np.ones((2, 2), np.uint16)]]
    features = CodeFourier(n_codes, subsets, phases)
    n_codes[0], subsets[0][0] = 9, 1
    phases[0][0][:] = 7
    phases[0].pop()
    assert (features.n_codes, features.subsets) == ((3, 2), ((0, 1),))
    assert [type(x) for x in (*features.n_codes, *features.subsets[0])] == [int] * 4
    assert [t.tolist() for t in features.phases[0]] == [[[1, 1]] * 3, [[1, 1]] * 2]
    with pytest.raises(ValueError, match="read-only"):
        features.phases[0][0][0, 0] = 2
    assert features.n_frequencies == 2


GOOD = {"n_codes": (3, 2), "subsets": ((0, 1),)}
TABLES = (np.zeros((3, 2), np.uint16), np.zeros((2, 2), np.uint16))


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_codes": (0, 2)}, r"2\^16 codes"),
        ({"n_codes": (2**16 + 1, 2)}, r"2\^16 codes"),
        ({"subsets": (), "phases": ()}, "a subset"),
        ({"subsets": ((0, 1), (0,))}, "a subset"),
        ({"subsets": ((),)}, "1 to 4 different"),
        ({"subsets": ((0, 0),)}, "1 to 4 different"),
        ({"n_codes": (2,) * 5, "subsets": ((0, 1, 2, 3, 4),)}, "1 to 4 different"),
        ({"subsets": ((0, 2),)}, "doesn't exist"),
        ({"subsets": ((-1, 0),)}, "doesn't exist"),
        ({"phases": ((),)}, "shape"),
        ({"phases": (TABLES[:1],)}, "shape"),
        ({"phases": (TABLES[::-1],)}, "shape"),
        ({"phases": ((TABLES[0], TABLES[1][:, :1]),)}, "shape"),
        ({"phases": ((TABLES[0][:, :0], TABLES[1][:, :0]),)}, "shape"),
        ({"phases": ((TABLES[0], TABLES[1][0]),)}, "plain matrices of uint16"),
        ({"phases": ((TABLES[0], TABLES[1].astype(np.int64)),)}, "plain matrices of uint16"),
        ({"phases": ((TABLES[0], TABLES[1].astype(">u2")),)}, "plain matrices of uint16"),
        ({"phases": ((TABLES[0], TABLES[1].tolist()),)}, "plain matrices of uint16"),
        ({"phases": ((TABLES[0], TABLES[1].view(Sub)),)}, "plain matrices of uint16"),
        ({"phases": ((TABLES[0], np.ma.masked_array(TABLES[1])),)}, "plain matrices of uint16"),
        ({"n_harmonics": 0}, "n_harmonics"),
        ({"n_harmonics": 65}, "n_harmonics"),
    ],
)
def test_bad_tables(change, message):
    with pytest.raises(ValueError, match=message):
        CodeFourier(**{**GOOD, "phases": (TABLES,), **change})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (EmbeddingSpec(6, (3, 2), 2, 1.0, 0.3), "number of frequencies"),
        (EmbeddingSpec(4, (3, 2), 2, 1.0, 0.3, 2), "number of frequencies or harmonics"),
        (EmbeddingSpec(4, (2, 3), 2, 1.0, 0.3), "one-hot groups"),
        (EmbeddingSpec(4, (3,), 2, 1.0, 0.3), "one-hot groups"),
        (EmbeddingSpec(4, (3, 2), 2, 1.0, 1.0), "nothing for the features"),
        (EmbeddingSpec(4, (3, 2), 2**61, 1.0, 0.3), "too many joint codes"),
    ],
)
def test_specs_that_the_features_cannot_serve(spec, message):
    features = CodeFourier(**GOOD, phases=(TABLES,))
    features.check(EmbeddingSpec(4, (3, 2), 2, 1.0, 0.3))
    features.check(EmbeddingSpec(4, (), 2, 1.0))
    with pytest.raises(PrivacyParameterError, match=message):
        features.check(spec)


def test_amplitudes():
    features = fourier()
    assert features.n_families == features.n_frequencies == 15
    assert features.amplitudes(2**48) == (math.isqrt(2**48 // 15),)
    assert features.amplitudes(14) == (0,)
    features = fourier(n_harmonics=3)
    assert (features.n_families, features.n_frequencies) == (15, 45)
    expected = tuple(math.isqrt(2**48 * k // 90) for k in (3, 2, 1))
    assert features.amplitudes(2**48) == expected
