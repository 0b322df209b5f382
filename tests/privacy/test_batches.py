"""Rows as integers: hostile structure is refused, bounds are enforced, sums are exact."""

import math
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy import batches as batches_module
from skdpgen.privacy.batches import CodeBatch, RowBatch, check_structure, code_sums, within_norm
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.spec import EmbeddingSpec

INT64 = np.iinfo(np.int64)
N_CODES = (3, 2, 4)


def features_of(n_codes=N_CODES):
    rng = np.random.default_rng(0)
    subsets = ((0, 1), (2,), (2, 0, 1))
    tables = [
        [rng.integers(0, 2**16, (n_codes[c], 2)).astype(np.uint16) for c in s] for s in subsets
    ]
    return CodeFourier(n_codes, subsets, tables)


FEATURES = features_of()
SPEC = EmbeddingSpec(12, N_CODES, 2, 0.5, 0.3)


def rows_of(n, seed=1, wild=True):
    """Codes and labels; with ``wild``, about half of the rows have something out of range."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in N_CODES], axis=1)
    labels = rng.integers(0, 2, n)
    if wild:
        values = np.array([-1, 4, 2**16, 2**32, -(2**16), INT64.min, INT64.max])
        where = rng.random((n, 4)) < 0.15
        codes = np.where(where[:, :3], rng.choice(values, (n, 3)), codes)
        labels = np.where(where[:, 3], rng.choice(values, n), labels)
    return codes, labels


def one_row(code_row, label, spec=SPEC):
    sums, counts = code_sums(CodeBatch(np.array([code_row]), np.array([label])), spec, FEATURES)
    return sums.tolist(), counts.tolist()


# -- rows in codes -------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, group_widths=(), block_share=0.0)])
def test_code_sums_are_exact_and_leave_out_rows_out_of_range(spec):
    codes, labels = rows_of(300)
    keep = np.random.default_rng(2).random(300) < 0.8
    sums, counts = code_sums(CodeBatch(codes, labels, keep), spec, FEATURES)
    expected = [[0] * spec.width for _ in range(2)]
    expected_counts = [0, 0]
    n_kept = 0
    for row, label, kept in zip(codes.tolist(), labels.tolist(), keep.tolist(), strict=True):
        inside = all(0 <= c < size for c, size in zip(row, N_CODES, strict=True))
        if not (kept and inside and 0 <= label < 2):
            continue
        n_kept += 1
        signed = FEATURES.sums(
            np.array([row], dtype=np.uint16).T.copy(), np.zeros(1, dtype=np.int64), spec
        )
        one_hot = [
            spec.category_steps * (c == code)
            for code, size in zip(row, spec.group_widths, strict=False)
            for c in range(size)
        ]
        contribution = [*signed[0].tolist(), *one_hot]
        expected[label] = [a + b for a, b in zip(expected[label], contribution, strict=True)]
        expected_counts[label] += spec.count_steps
    assert 80 < n_kept < 200
    assert sums.tolist() == expected
    assert counts.tolist() == expected_counts
    assert sums.dtype == counts.dtype == np.int64


def test_one_code_out_of_range_takes_out_the_whole_row():
    nothing = [[0] * SPEC.width] * 2, [0, 0]
    sums, counts = one_row([2, 1, 3], 1)
    assert counts == [0, SPEC.count_steps]
    assert sums[0] == [0] * SPEC.width
    c = SPEC.category_steps
    assert sums[1][12:] == [0, 0, c, 0, c, 0, 0, 0, c]
    for column, size in enumerate(N_CODES):
        # 2^16 and 2^32 would look like code 0 in 16 or 32 bits.
        for wild in (-1, size, 2**16, 2**32, -(2**16), INT64.min, INT64.max):
            row = [2, 1, 3]
            row[column] = wild
            assert one_row(row, 1) == nothing
    for label in (-1, 2, INT64.min, INT64.max):
        assert one_row([2, 1, 3], label) == nothing


@pytest.mark.parametrize("chunk", [1, 3, 3 * 7, 2**23])
def test_code_sums_do_not_depend_on_chunks_order_and_memory_layout(chunk, monkeypatch):
    codes, labels = rows_of(100)
    keep = np.arange(100) % 7 != 0
    expected = [a.tolist() for a in code_sums(CodeBatch(codes, labels, keep), SPEC, FEATURES)]
    monkeypatch.setattr(batches_module, "_CHUNK", chunk)
    order = np.random.default_rng(3).permutation(100)
    for layout in (np.asfortranarray, np.ascontiguousarray, lambda a: np.repeat(a, 2, axis=0)[::2]):
        batch = CodeBatch(layout(codes[order]), labels[order], keep[order])
        assert [a.tolist() for a in code_sums(batch, SPEC, FEATURES)] == expected


def test_no_rows():
    empty = CodeBatch(np.zeros((0, 3), np.int64), np.zeros(0, np.int64))
    sums, counts = code_sums(empty, SPEC, FEATURES)
    assert sums.tolist() == [[0] * SPEC.width] * 2
    assert counts.tolist() == [0, 0]


def test_codes_overwritten_meanwhile_are_not_counted(monkeypatch):
    # A caller who fills the next batch into the same memory meanwhile breaks no bound.
    codes, labels = rows_of(50, wild=False)
    expected = [a.tolist() for a in code_sums(CodeBatch(codes, labels), SPEC, FEATURES)]
    sums = CodeFourier.sums

    def overwrite_then_sum(self, *args):
        codes[:] = INT64.max
        return sums(self, *args)

    monkeypatch.setattr(CodeFourier, "sums", overwrite_then_sum)
    assert [a.tolist() for a in code_sums(CodeBatch(codes, labels), SPEC, FEATURES)] == expected


def test_memory_of_code_sums_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(batches_module, "_CHUNK", 30_000)
    codes, labels = rows_of(200_000, wild=False)
    batch = CodeBatch(codes, labels)
    code_sums(CodeBatch(codes[:10], labels[:10]), SPEC, FEATURES)
    tracemalloc.start()
    try:
        code_sums(batch, SPEC, FEATURES)
        # The tables of a turn take 4 MB, labels 1.6 MB twice; a copy of the codes would be 4.8 MB.
        assert tracemalloc.get_traced_memory()[1] < 9e6
    finally:
        tracemalloc.stop()


# -- structure -----------------------------------------------------------------------------------


class Sub(np.ndarray):
    pass


class SubBatch(CodeBatch):
    pass


GOOD = CodeBatch(np.zeros((5, 3), np.int64), np.zeros(5, np.int64))
ROWS = RowBatch(np.zeros((5, 12), np.int64), GOOD.codes, GOOD.labels)


@pytest.mark.parametrize(
    "batch",
    [
        replace(GOOD, codes=GOOD.codes[:, :2]),
        replace(GOOD, codes=GOOD.codes[:4]),
        replace(GOOD, codes=GOOD.codes[0]),
        replace(GOOD, codes=GOOD.codes[:, :, None]),
        replace(GOOD, codes=GOOD.codes.T),
        replace(GOOD, codes=GOOD.codes.astype(float)),
        replace(GOOD, codes=GOOD.codes.astype(np.uint16)),
        replace(GOOD, codes=GOOD.codes.astype(np.uint64)),
        replace(GOOD, codes=GOOD.codes.astype(">i8")),
        replace(GOOD, codes=GOOD.codes.astype(object)),
        replace(GOOD, codes=GOOD.codes.tolist()),
        replace(GOOD, codes=GOOD.codes.view(Sub)),
        replace(GOOD, codes=np.ma.masked_array(GOOD.codes, mask=True)),
        replace(GOOD, labels=GOOD.labels[:4]),
        replace(GOOD, labels=GOOD.labels[:, None]),
        replace(GOOD, labels=GOOD.labels.astype(bool)),
        replace(GOOD, labels=np.array(0)),
        replace(GOOD, keep=np.ones(5, dtype=bool)),
        SubBatch(GOOD.codes, GOOD.labels),
        ROWS,
        None,
        (GOOD.codes, GOOD.labels, None),
    ],
)
def test_code_batches_with_the_wrong_structure_are_refused(batch):
    check_structure(GOOD, SPEC, FEATURES, False)
    with pytest.raises(PrivacyParameterError, match=r"a batch|batches|a CodeBatch"):
        check_structure(batch, SPEC, FEATURES, False)


def test_the_form_of_the_rows_is_the_one_that_was_declared():
    check_structure(ROWS, SPEC, None, False)
    with pytest.raises(PrivacyParameterError, match="RowBatch"):
        check_structure(GOOD, SPEC, None, False)


def test_a_spec_without_groups_takes_all_columns_in_codes():
    bare = replace(SPEC, group_widths=(), block_share=0.0)
    check_structure(GOOD, bare, FEATURES, False)
    with pytest.raises(PrivacyParameterError, match="shape"):
        check_structure(replace(GOOD, codes=GOOD.codes[:, :0]), bare, FEATURES, False)


@pytest.mark.parametrize(
    "keep",
    [None, np.ones(4, bool), np.ones(1, bool), np.ones((5, 1), bool), np.ones(5, np.int64)],
)
def test_keep_of_a_code_batch(keep):
    check_structure(replace(GOOD, keep=np.ones(5, bool)), SPEC, FEATURES, True)
    with pytest.raises(PrivacyParameterError, match=r"keep|shape"):
        check_structure(replace(GOOD, keep=keep), SPEC, FEATURES, True)


# -- rows with written-out signed blocks ---------------------------------------------------------


@pytest.mark.parametrize("n_signed", [1, 2, 3, 1024, 10_000])
def test_overflowing_squares_do_not_pass_the_norm_check(n_signed):
    spec = EmbeddingSpec(n_signed, (), 1, 1.0)
    one = 2**spec.lattice_bits
    rows = np.zeros((10, n_signed), dtype=np.int64)
    rows[0] = 2**32  # its squares are 2^64: they wrap to 0
    rows[1] = INT64.min  # so do these
    rows[2] = INT64.max
    rows[3] = one
    rows[4, 0] = -one
    rows[5, 0] = one
    rows[5, -1] += 1
    rows[6] = math.isqrt(one**2 // n_signed)
    rows[7, -1] = 2**31 + 2**16
    rows[8, 0] = one + 1
    rows[9] = -4 * one  # 1,024 of these squares wrap to 0 as well
    valid = [False, False, False, n_signed == 1, True, False, True, False, False, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert within_norm(rows, spec).tolist() == valid
