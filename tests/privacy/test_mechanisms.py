"""The mechanism: sensitivity in exact integers, noise, order of events, and nothing else out."""

import json
import math
import pickle
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import opendp.measurements
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError, ReleaseError
from skdpgen.privacy import batches as batches_module
from skdpgen.privacy import codes as codes_module
from skdpgen.privacy import mechanisms as mechanisms_module
from skdpgen.privacy.accounting import composed_delta, gaussian_delta
from skdpgen.privacy.batches import CodeBatch, RowBatch
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.mechanisms import MeanEmbeddingMechanism
from skdpgen.privacy.noise import insecure_noise
from skdpgen.privacy.spec import EmbeddingSpec
from skdpgen.privacy.units import bounded_rows

INT64 = np.iinfo(np.int64)


def mechanism(spec=None, *, epsilon=1.0, delta=1e-5, **kwargs):
    if spec is None:
        spec = EmbeddingSpec(4, (2, 3), 2, 1.0)
    return MeanEmbeddingMechanism(spec, epsilon, delta, **kwargs)


def batch(rows, spec, keep=None):
    """Rows are (signed, codes, label) triples of Python integers."""
    n, q = len(rows), len(spec.group_widths)
    return RowBatch(
        signed=np.array([row[0] for row in rows], dtype=np.int64).reshape(n, spec.n_signed),
        codes=np.array([row[1] for row in rows], dtype=np.int64).reshape(n, q),
        labels=np.array([row[2] for row in rows], dtype=np.int64),
        keep=None if keep is None else np.array(keep, dtype=np.bool_),
    )


def exact(mech, batches):
    """The un-noised release as a list of Python integers."""
    with insecure_noise(scale=0):
        release = mech.release(batches, PrivacyLedger())
    return [*release.noisy_sums.ravel().tolist(), *release.noisy_counts.tolist()]


def squared_distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


# -- sensitivity ---------------------------------------------------------------------------------


@st.composite
def specs(draw):
    n_signed = draw(st.sampled_from([0, 1, 2, 3, 6]))
    widths = draw(st.lists(st.integers(2, 4), min_size=0 if n_signed else 1, max_size=3))
    weight = draw(st.sampled_from([1e-8, 0.2, 1.0, 1 / 3, 16.0]))
    return EmbeddingSpec(n_signed, tuple(widths), draw(st.integers(1, 3)), weight)


def hostile_rows(spec):
    """Rows of all kinds: extreme within the bounds, at random, and far out of them."""
    one, p = 2**spec.lattice_bits, spec.n_signed
    entries = st.one_of(
        st.sampled_from([0, one, -one, one - 1, one + 1, INT64.min, INT64.max, 2**32, 2**31 + 1]),
        st.integers(-one // 2, one // 2),
    )
    axis = st.builds(
        lambda i, v: [v if j == i else 0 for j in range(p)],
        st.integers(0, max(0, p - 1)),
        st.sampled_from([one, -one, one + 1]),
    )
    even = math.isqrt(one**2 // max(1, p))
    corner = st.lists(st.sampled_from([even, -even]), min_size=p, max_size=p)
    signed = st.one_of(axis, corner, st.lists(entries, min_size=p, max_size=p))
    codes = st.tuples(*(st.integers(-1, width) for width in spec.group_widths))
    wild = st.sampled_from([INT64.min, INT64.max])
    labels = st.one_of(st.integers(-1, spec.n_classes), wild)
    return st.tuples(signed, codes, labels)


def other_rows(row, spec):
    """Rows to take the place of one: any, or the one that differs in everything but the label."""
    signed, codes, label = row
    one = 2**spec.lattice_bits
    negated = [-v if abs(v) <= one else v for v in signed]
    moved = [(c + 1) % width for c, width in zip(codes, spec.group_widths, strict=True)]
    return st.one_of(hostile_rows(spec), st.just((negated, moved, label)))


@st.composite
def shuffled_batches(draw, rows, spec, keep=None):
    """The same rows in any order, in any chunks, empty ones included."""
    order = draw(st.permutations(range(len(rows))))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    batches = []
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        part = order[start:stop]
        flags = None if keep is None else [keep[i] for i in part]
        batches.append(batch([rows[i] for i in part], spec, flags))
    return batches


EXAMPLES = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(st.data())
def test_replacing_a_row_stays_within_the_sensitivity(data):
    spec = data.draw(specs())
    others = data.draw(st.lists(hostile_rows(spec), max_size=4))
    row = data.draw(hostile_rows(spec))
    other = data.draw(other_rows(row, spec))
    mech = mechanism(spec)
    before = exact(mech, data.draw(shuffled_batches([*others, row], spec)))
    after = exact(mech, data.draw(shuffled_batches([*others, other], spec)))
    assert squared_distance(before, after) <= mech.sensitivity_squared


@EXAMPLES
@given(st.data())
def test_adding_a_row_stays_within_the_sensitivity(data):
    spec = data.draw(specs())
    others = data.draw(st.lists(hostile_rows(spec), max_size=4))
    row = data.draw(hostile_rows(spec))
    # A weight that rounds to no steps would leave the private number of rows unknown.
    mech = mechanism(
        replace(spec, count_weight=max(spec.count_weight, 0.1)), adjacency="add-remove"
    )
    before = exact(mech, data.draw(shuffled_batches(others, mech.spec)))
    after = exact(mech, data.draw(shuffled_batches([*others, row], mech.spec)))
    assert squared_distance(before, after) <= mech.sensitivity_squared


@EXAMPLES
@given(st.data(), st.sampled_from(["replace-one", "add-remove"]), st.integers(1, 3))
def test_changing_a_unit_stays_within_the_sensitivity(data, adjacency, limit):
    # Replaced by a unit with any number of rows; under add-remove, by none.
    spec = replace(data.draw(specs()), count_weight=0.5)
    others = data.draw(st.lists(st.tuples(st.integers(0, 2), hostile_rows(spec)), max_size=4))
    unit = data.draw(st.lists(hostile_rows(spec), max_size=5))
    other = (
        data.draw(st.lists(hostile_rows(spec), max_size=5)) if adjacency == "replace-one" else []
    )
    mech = mechanism(spec, adjacency=adjacency, rows_per_unit=limit, rows_bounded=True)
    sums = []
    for code, rows in [(98, unit), (99, other)]:
        table = [*others, *((code, row) for row in rows)]
        keep = bounded_rows(np.array([c for c, _ in table], dtype=np.int64), limit).tolist()
        sums.append(exact(mech, data.draw(shuffled_batches([row for _, row in table], spec, keep))))
    assert squared_distance(*sums) <= mech.sensitivity_squared
    one_row = mechanism(spec, adjacency=adjacency)
    assert mech.sensitivity_squared == one_row.sensitivity_squared * limit**2


@EXAMPLES
@given(st.data())
def test_order_and_chunks_do_not_matter(data):
    spec = data.draw(specs())
    rows = data.draw(st.lists(hostile_rows(spec), max_size=6))
    mech = mechanism(spec)
    assert exact(mech, data.draw(shuffled_batches(rows, spec))) == exact(mech, [batch(rows, spec)])


def attained(spec, row, other, adjacency="replace-one"):
    """Squared distance over squared sensitivity for two neighboring tables."""
    mech = mechanism(spec, adjacency=adjacency)
    tables = [[batch([r], spec)] if r is not None else [] for r in (row, other)]
    distance = squared_distance(*(exact(mech, table) for table in tables))
    return distance / mech.sensitivity_squared


def test_every_label_changing_pair_attains_two_at_weight_one():
    spec = EmbeddingSpec(2, (), 2, 1.0)
    one = 2**spec.lattice_bits
    mech = mechanism(spec)
    assert mech.sensitivity_squared == 4 * one**2
    for v in ([one, 0], [0, -one], [one * 3 // 5, one * 4 // 5]):
        assert attained(spec, (v, (), 0), ([one, 0], (), 1)) == pytest.approx(1, rel=1e-7)
    assert attained(spec, ([one, 0], (), 0), ([one, 0], (), 1)) == 1.0


@pytest.mark.parametrize("count_weight", [0.0, 0.2, 1.0])
def test_opposite_rows_with_the_same_label_attain_two(count_weight):
    spec = EmbeddingSpec(2, (), 2, count_weight)
    one = 2**spec.lattice_bits
    assert mechanism(spec).sensitivity_squared == 4 * one**2
    assert attained(spec, ([one, 0], (), 1), ([-one, 0], (), 1)) == 1.0


def test_one_frequency_attains_two_with_real_rows():
    from skdpgen.privacy.lattice import IntegerFourier, to_grid

    spec = EmbeddingSpec(2, (), 2, 1.0)
    # Half a cycle over [0, 1]: x = 0 and x = 1 have opposite features.
    fourier = IntegerFourier(np.array([[2**21]]), 22, spec.lattice_bits)
    first, last = fourier(to_grid(np.array([[0.0], [1.0]]))).tolist()
    assert attained(spec, (first, (), 0), (last, (), 0)) == pytest.approx(1, rel=1e-7)
    assert attained(spec, (first, (), 0), (first, (), 1)) == pytest.approx(1, rel=1e-7)


def test_mixed_rows_attain_the_bound():
    spec = EmbeddingSpec(1, (2, 3), 3, 1.0)
    one = 2**spec.lattice_bits
    row = ([one], (0, 1), 0)
    # Same label, all features different; then another label: the cases are equal at w = 1.
    assert attained(spec, row, ([-one], (1, 2), 0)) == 1.0
    assert attained(spec, row, ([one], (0, 1), 2)) == 1.0
    assert attained(spec, row, None, "add-remove") == 1.0


def test_categories_alone_attain_the_bound():
    for n_classes in (1, 2):
        spec = EmbeddingSpec(0, (2, 3), n_classes, 0.0)
        assert attained(spec, ([], (0, 1), 0), ([], (1, 2), 0)) == 1.0
    assert attained(spec, ([], (0, 1), 0), ([], (0, 1), 1)) == 1.0


def test_a_row_against_an_invalid_one_attains_the_bound_without_labels():
    # At w = 2 a row that stops counting moves more than one whose features turn around.
    spec = EmbeddingSpec(1, (), 1, 2.0)
    one = 2**spec.lattice_bits
    assert attained(spec, ([one], (), 0), ([one], (), 1)) == 1.0  # label out of range
    assert attained(spec, ([one], (), 0), ([-one], (), 0)) == pytest.approx(4 / 5)


# -- sensitivity of rows in codes ------------------------------------------------------------------

# Two columns of two and three codes. Opposite phases, so that two rows of a class can be opposite
# in every frequency; or phases at random.
CODES = (2, 3)
HALF_TURN = CodeFourier(
    CODES,
    ((0, 1), (0,)),
    [
        [np.full((2, 1), [[0], [2**15]], np.uint16), np.zeros((3, 1), np.uint16)],
        [np.array([[0, 2**14, 5]] * 2, np.uint16) + np.array([[0], [2**15]], np.uint16)],
    ],
)
RANDOM = CodeFourier(
    CODES,
    ((1,), (1, 0)),
    [
        [np.random.default_rng(i).integers(0, 2**16, (CODES[c], 3)).astype(np.uint16) for c in s]
        for i, s in enumerate(((1,), (1, 0)))
    ],
)
# Phases at which two or three harmonics are as far apart as they may be: where the Fejer kernel
# is zero, a third and a quarter of a turn.
TWO_HARMONICS, THREE_HARMONICS = (
    CodeFourier(
        CODES,
        ((0,), (1, 0)),
        [
            [np.array([[0], [step]], np.uint16)],
            [np.zeros((3, 2), np.uint16), np.full((2, 2), [[5], [5 + step]], np.uint16)],
        ],
        h,
    )
    for h, step in ((2, 2**16 // 3), (3, 2**14))
)


def code_spec(features, block_share, n_classes, count_weight):
    """``count_weight`` None: as much as is free."""
    widths = CODES if block_share else ()
    n_signed, h = 2 * features.n_frequencies, features.n_harmonics
    spec = EmbeddingSpec(n_signed, widths, n_classes, 0.0, block_share, h)
    weight = spec.free_count_weight if count_weight is None else count_weight
    return replace(spec, count_weight=weight)


def code_batch(rows, keep=None):
    """Rows are (codes, label) pairs."""
    return CodeBatch(
        codes=np.array([row[0] for row in rows], dtype=np.int64).reshape(len(rows), 2),
        labels=np.array([row[1] for row in rows], dtype=np.int64),
        keep=None if keep is None else np.array(keep, dtype=np.bool_),
    )


def all_contributions(mech):
    """What each possible row adds to the release; one more with codes and label out of range."""
    labels = range(mech.spec.n_classes + 1)
    rows = [((a, b), y) for a in range(-1, 3) for b in range(4) for y in labels]
    # With company, which has to cancel.
    others = [((0, 2), 0), ((1, 1), 0), ((-1, 1), 0)]
    common = exact(mech, [code_batch(others)])
    with_row = [exact(mech, [code_batch([*others, row])]) for row in rows]
    return [[x - y for x, y in zip(sums, common, strict=True)] for sums in with_row]


def largest_change(mech):
    """Squared, over all neighboring tables: the contribution of one row against any other's."""
    distinct = {tuple(c) for c in all_contributions(mech)}
    others = distinct if mech.adjacency == "replace-one" else [(0,) * len(next(iter(distinct)))]
    return max(squared_distance(a, b) for a in distinct for b in others)


@pytest.mark.parametrize(
    "features",
    [HALF_TURN, RANDOM, TWO_HARMONICS, THREE_HARMONICS],
    ids=["half turn", "random", "two harmonics", "three harmonics"],
)
@pytest.mark.parametrize(
    ("block_share", "n_classes", "count_weight", "adjacency"),
    [
        (None, 2, 1.0, "replace-one"),
        (0.0, 2, None, "replace-one"),
        (0.3, 2, 0.0, "replace-one"),
        (0.3, 2, None, "replace-one"),
        (0.3, 2, 1.0, "replace-one"),
        (0.3, 1, 0.5, "replace-one"),
        (0.3, 1, 3.0, "replace-one"),
        (0.9, 3, 0.1, "replace-one"),
        (0.3, 2, 0.5, "add-remove"),
    ],
)
def test_no_pair_of_code_rows_exceeds_the_sensitivity(
    features, block_share, n_classes, count_weight, adjacency
):
    spec = code_spec(features, block_share, n_classes, count_weight)
    mech = mechanism(spec, features=features, adjacency=adjacency)
    largest = largest_change(mech)
    assert largest <= mech.sensitivity_squared
    if features is not RANDOM:
        # Truncated cosines, and what the bound allows for them, are all that is missing.
        assert largest == pytest.approx(mech.sensitivity_squared, rel=1e-4)


def test_rows_in_codes_attain_the_bound_exactly():
    # One frequency of norm 2^26, without a rounding: opposite rows, or another label.
    features = CodeFourier((2,), ((0,),), [[np.array([[0], [2**15]], np.uint16)]])
    mech = mechanism(EmbeddingSpec(2, (), 2, 1.0, 0.0), features=features)
    sums = [
        exact(mech, [CodeBatch(np.array([[code]]), np.array([label]))])
        for code, label in ((0, 0), (1, 0), (1, 1))
    ]
    for other in sums[1:]:
        assert squared_distance(sums[0], other) == mech.sensitivity_squared == 4 * 2**52


def test_the_free_count_weight_is_the_largest_that_is_free():
    for block_share in (None, 0.0, 0.3, 0.9):
        free = code_spec(HALF_TURN, block_share, 2, None)
        without = replace(free, count_weight=0.0).sensitivity_squared("replace-one")
        assert free.sensitivity_squared("replace-one") == without
        more = replace(free, count_weight=free.count_weight + 2.0**-free.lattice_bits)
        assert more.sensitivity_squared("replace-one") > without


def test_rows_that_bring_their_signed_block_have_no_harmonics():
    with pytest.raises(PrivacyParameterError, match="may be opposite"):
        mechanism(EmbeddingSpec(4, (), 2, 1.0, n_harmonics=2))


def double_the_table(monkeypatch):
    pairs = codes_module._pairs
    monkeypatch.setattr(codes_module, "_pairs", lambda amplitude: 2 * pairs(amplitude))


def forget_the_share(monkeypatch):
    """Features of norm one, as if the one-hot groups had no share of it."""
    amplitudes = CodeFourier.amplitudes
    monkeypatch.setattr(CodeFourier, "amplitudes", lambda self, bound: amplitudes(self, 2**52))


def count_unclipped_codes(monkeypatch):
    """Each row with a code out of range counts as five."""
    sums = batches_module.code_sums

    def more(batch, spec, features):
        out = ((batch.codes < 0) | (batch.codes >= features.n_codes)).any(axis=1)
        times = np.where(out, 5, 1)
        codes = np.clip(batch.codes, 0, np.array(features.n_codes) - 1)
        labels = np.repeat(batch.labels, times)
        return sums(CodeBatch(np.repeat(codes, times, axis=0), labels), spec, features)

    monkeypatch.setattr(mechanisms_module, "code_sums", more)


@pytest.mark.parametrize("fault", [double_the_table, forget_the_share, count_unclipped_codes])
def test_a_planted_fault_exceeds_the_sensitivity(fault, monkeypatch):
    # The enumeration above would see each of these.
    spec = code_spec(HALF_TURN, 0.3, 2, None)
    mech = mechanism(spec, features=HALF_TURN)
    fault(monkeypatch)
    assert largest_change(mech) > mech.sensitivity_squared


@EXAMPLES
@given(st.data())
def test_a_unit_of_code_rows_stays_within_the_sensitivity(data):
    rows = st.lists(
        st.tuples(st.tuples(st.integers(-1, 2), st.integers(-1, 3)), st.integers(-1, 2)),
        max_size=4,
    )
    limit = data.draw(st.integers(1, 3))
    mech = mechanism(
        code_spec(HALF_TURN, 0.3, 2, 0.5),
        features=HALF_TURN,
        rows_per_unit=limit,
        rows_bounded=True,
    )
    others, sums = data.draw(rows), []
    for _ in range(2):
        table = [*((98, row) for row in data.draw(rows)), *((i, r) for i, r in enumerate(others))]
        keep = bounded_rows(np.array([c for c, _ in table], dtype=np.int64), limit)
        order = data.draw(st.permutations(range(len(table))))
        cut = data.draw(st.integers(0, len(table)))
        sums.append(
            exact(
                mech,
                [
                    code_batch([table[i][1] for i in part], [keep[i] for i in part])
                    for part in (order[:cut], order[cut:])
                ],
            )
        )
    assert squared_distance(*sums) <= mech.sensitivity_squared


def test_code_rows_out_of_range_still_belong_to_the_public_number_of_rows():
    mech = mechanism(code_spec(RANDOM, 0.3, 2, 0.5), features=RANDOM)
    rows = [((0, 0), 0), ((9, 0), 0), ((0, 0), 9)]
    assert mech.release([code_batch(rows)] * 2, PrivacyLedger()).n_rows == 6


def test_a_code_mechanism_takes_code_batches_only():
    spec = code_spec(RANDOM, 0.3, 2, 0.5)
    ledger, codes = PrivacyLedger(), code_batch([((0, 7), 0)] * 5)
    for mech, bad in (
        (mechanism(spec, features=RANDOM), good_batch(spec)),
        (mechanism(spec), codes),
        (mechanism(spec, features=RANDOM), replace(codes, codes=codes.codes.astype(float))),
    ):
        with pytest.raises(PrivacyParameterError, match=r"a batch|CodeBatch") as caught:
            mech.release([bad], ledger)
        assert not any(digit in str(caught.value).replace("int64", "") for digit in "0579")
    assert len(ledger.entries) == 3


@pytest.mark.parametrize(
    ("features", "spec", "message"),
    [
        (object(), EmbeddingSpec(4, (2, 3), 2, 1.0, 0.3), "must be a CodeFourier"),
        (HALF_TURN, EmbeddingSpec(10, (2, 3), 2, 1.0, 0.3), "number of frequencies"),
        (HALF_TURN, EmbeddingSpec(8, (2, 2), 2, 1.0, 0.3), "one-hot groups"),
        (HALF_TURN, EmbeddingSpec(8, (2, 3), 2, 1.0, 1.0), "nothing for the features"),
        (HALF_TURN, EmbeddingSpec(8, (2, 3), 2**62, 1.0, 0.3), "too many joint codes"),
    ],
)
def test_features_that_cannot_serve_the_spec_fail_before_there_is_anything_to_spend(
    features, spec, message
):
    with pytest.raises(PrivacyParameterError, match=message):
        mechanism(spec, features=features)


# -- exactness and hostile input -----------------------------------------------------------------


def test_sums_are_exact():
    rng = np.random.default_rng(0)
    spec = EmbeddingSpec(5, (2, 4), 3, 0.3)
    one, n = 2**spec.lattice_bits, 200
    bound = math.isqrt(one**2 // 5)
    signed = rng.integers(-bound, bound + 1, (n, 5))
    codes = np.stack([rng.integers(0, 2, n), rng.integers(0, 4, n)], axis=1)
    labels = rng.integers(0, 3, n)
    with insecure_noise(scale=0):
        release = mechanism(spec).release([RowBatch(signed, codes, labels)], PrivacyLedger())
    expected = [[0] * 11 for _ in range(3)]
    for v, (a, b), y in zip(signed.tolist(), codes.tolist(), labels.tolist(), strict=True):
        for j, value in enumerate(v):
            expected[y][j] += value
        expected[y][5 + a] += spec.category_steps
        expected[y][7 + b] += spec.category_steps
    assert release.noisy_sums.tolist() == expected
    counts = np.bincount(labels, minlength=3) * round(0.3 * one)
    assert release.noisy_counts.tolist() == counts.tolist()


def test_rows_that_break_a_bound_contribute_nothing_there():
    spec = EmbeddingSpec(2, (2,), 2, 1.0)
    one = 2**spec.lattice_bits
    c = spec.category_steps

    def release(signed, code, label):
        return exact(mechanism(spec), [batch([(signed, (code,), label)], spec)])

    full = release([one, 0], 1, 0)
    assert full == [one, 0, 0, c, 0, 0, 0, 0, one, 0]
    # Signed block beyond the norm: only that block is left out.
    for signed in ([one, 1], [one + 1, 0], [-one - 1, 0], [INT64.min, 0], [INT64.max, INT64.max]):
        assert release(signed, 1, 0) == [0, 0, 0, c, 0, 0, 0, 0, one, 0]
    # Code out of range: only its group.
    for code in (-1, 2, INT64.min, INT64.max):
        assert release([one, 0], code, 0) == [one, 0, 0, 0, 0, 0, 0, 0, one, 0]
    # Label out of range: the row.
    for label in (-1, 2, INT64.min, INT64.max):
        assert release([one, 0], 1, label) == [0] * 10


def test_rows_beyond_their_unit_contribute_nothing():
    spec = EmbeddingSpec(1, (2,), 2, 1.0)
    one = 2**spec.lattice_bits
    rows = [([one], (0,), 0), ([one], (0,), 0), ([-one], (1,), 1)]
    mech = mechanism(spec, rows_per_unit=2, rows_bounded=True)
    kept = exact(mech, [batch(rows, spec, [True, False, True])])
    assert kept == exact(mechanism(spec), [batch([rows[0], rows[2]], spec)])


class Reading:
    """A batch source that records when it is read."""

    def __init__(self, batches, events):
        self.batches, self.events = batches, events

    def __iter__(self):
        for one in self.batches:
            self.events.append("read")
            yield one


def good_batch(spec):
    return batch([([0] * spec.n_signed, (0,) * len(spec.group_widths), 0)] * 5, spec)


def test_batches_with_the_wrong_structure_are_refused():
    mech = mechanism()
    good = good_batch(mech.spec)

    class Sub(np.ndarray):
        pass

    bad = [
        {"signed": good.signed[:, :3]},
        {"signed": good.signed[:4]},
        {"signed": good.signed[0]},
        {"signed": good.signed.astype(float)},
        {"signed": good.signed.astype(np.int32)},
        {"signed": good.signed.astype(">i8")},
        {"signed": good.signed.tolist()},
        {"signed": np.ma.masked_array(good.signed, mask=True)},
        {"signed": good.signed.view(Sub)},
        {"codes": good.codes[:, :1]},
        {"codes": good.codes.astype(np.uint64)},
        {"labels": good.labels[:4]},
        # A column of labels would broadcast against the norm check and add up other rows.
        {"labels": good.labels[:, None]},
        {"labels": good.labels.astype(bool)},
        {"labels": np.int64(0)},
        {"keep": np.ones(5, dtype=bool)},
    ]
    for change in bad:
        ledger = PrivacyLedger()
        with pytest.raises(PrivacyParameterError, match=r"a batch|batches"):
            mech.release([replace(good, **change)], ledger)
        assert len(ledger.entries) == 1  # rows were asked for: the charge stands


def test_a_square_batch_with_a_column_of_labels_is_refused():
    # n = n_signed is the one case where the broadcast mask would be a legal index.
    spec = EmbeddingSpec(3, (), 2, 1.0)
    one = 2**spec.lattice_bits
    square = RowBatch(
        np.full((3, 3), one // 2), np.zeros((3, 0), np.int64), np.zeros((3, 1), np.int64)
    )
    with pytest.raises(PrivacyParameterError, match="shape"):
        mechanism(spec).release([square], PrivacyLedger())


def test_keep_masks_with_the_wrong_structure_are_refused():
    mech = mechanism(rows_per_unit=2, rows_bounded=True)
    good = good_batch(mech.spec)
    bad = [
        None,
        np.ones(4, dtype=bool),
        np.ones(1, dtype=bool),  # would broadcast to all rows
        np.ones((5, 1), dtype=bool),
        np.ones(5, dtype=np.int64),
        np.array(True),
        np.ma.masked_array(np.ones(5, dtype=bool), mask=True),
        [True] * 5,
    ]
    for keep in bad:
        with pytest.raises(PrivacyParameterError, match=r"keep|a batch"):
            mech.release([replace(good, keep=keep)], PrivacyLedger())
    assert mech.release([replace(good, keep=np.ones(5, dtype=bool))], PrivacyLedger()).private


def test_errors_quote_nothing_of_the_batch():
    spec = EmbeddingSpec(2, (), 2, 1.0)
    marked = RowBatch(np.full((7, 3), 987_654), np.zeros((7, 0), np.int64), np.full(7, 123_456))
    with pytest.raises(PrivacyParameterError) as caught:
        mechanism(spec).release([marked], PrivacyLedger())
    for secret in ("987", "123", "7"):
        assert secret not in str(caught.value)


# -- order of events -----------------------------------------------------------------------------


class RecordingLedger(PrivacyLedger):
    def __init__(self, events, **kwargs):
        super().__init__(**kwargs)
        self.events = events

    def charge(self, entry):
        self.events.append("charge")
        super().charge(entry)


def test_the_charge_comes_before_the_rows():
    mech, events = mechanism(), []
    batches = Reading([good_batch(mech.spec)] * 2, events)
    mech.release(batches, RecordingLedger(events))
    assert events == ["charge", "read", "read"]


def test_a_refused_charge_reads_nothing():
    mech, events = mechanism(), []
    ledger = PrivacyLedger(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        mech.release(Reading([good_batch(mech.spec)], events), ledger)
    assert events == []
    assert ledger.entries == ()


def test_a_failure_while_reading_stays_charged():
    def failing():
        yield good_batch(mechanism().spec)
        raise OSError("disk")

    ledger = PrivacyLedger()
    with pytest.raises(OSError, match="disk"):
        mechanism().release(failing(), ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("public", "arrays"),
    [
        ({"x": math.nan}, {}),
        ({"x": object()}, {}),
        ({}, {"x": np.array([object()])}),
    ],
)
def test_public_facts_that_cannot_be_stored_cost_nothing(public, arrays):
    mech, events = mechanism(), []
    ledger = RecordingLedger(events)
    with pytest.raises((TypeError, ValueError, ReleaseError)):
        mech.release(
            Reading([good_batch(mech.spec)], events), ledger, public=public, public_arrays=arrays
        )
    assert events == []


def test_the_entry_says_what_was_spent():
    ledger = PrivacyLedger()
    mech = mechanism(adjacency="add-remove", rows_per_unit=3)
    mech.release([good_batch(mech.spec)], ledger)
    (entry,) = ledger.entries
    assert entry.mechanism == "mean embedding"
    assert entry.sensitivity_squared == mech.spec.sensitivity_squared("add-remove") * 9
    assert entry.noise_stddev == mech.noise_stddev
    assert (entry.adjacency, entry.unit, entry.rows_per_unit) == ("add-remove", "unit", 3)
    assert (entry.epsilon, entry.delta, entry.private) == (1.0, 1e-5, True)
    assert ledger.spent(1e-5) == pytest.approx(1.0, abs=1e-6)
    assert ledger.spent(1e-5) <= 1.0


def test_insecure_noise_is_written_into_entry_and_release():
    ledger = PrivacyLedger()
    with insecure_noise(seed=0):
        release = mechanism().release([good_batch(mechanism().spec)], ledger)
    assert (release.noise, release.private) == ("insecure", False)
    assert ledger.spent(1e-5) == math.inf
    with pytest.raises(BudgetExceededError), insecure_noise(seed=0):
        mechanism().release([], PrivacyLedger(epsilon=500.0, delta=0.5))


def test_the_noise_source_is_taken_before_the_rows():
    # A batch source that opens the insecure context, and leaves it open, can't switch the noise off
    # behind the ledger.
    mech, context = mechanism(), insecure_noise(scale=0)

    def sneaky():
        context.__enter__()
        yield good_batch(mech.spec)

    try:
        release = mech.release(sneaky(), PrivacyLedger())
    finally:
        context.__exit__(None, None, None)
    assert release.private
    assert np.abs(release.noisy_sums).min() > 0  # 1 in 10^7 by chance


# -- noise ---------------------------------------------------------------------------------------


def halve_the_noise(monkeypatch):
    """Make the sampler lie: the privacy map it was asked for, but half the noise."""
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain, metric, scale):
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 2)

        def __call__(self, values):
            return self.sample(values)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", Liar)


@pytest.mark.parametrize("halved", [False, True])
def test_every_coordinate_has_the_stated_variance(halved, monkeypatch):
    if halved:
        halve_the_noise(monkeypatch)
    spec = EmbeddingSpec(2, (2,), 2, 0.2)
    mech = mechanism(spec, adjacency="add-remove")
    releases = [mech.release([], PrivacyLedger()) for _ in range(120)]
    noise = np.array([[*r.noisy_sums.ravel(), *r.noisy_counts] for r in releases], dtype=float)
    assert noise.shape == (120, 10)
    ratio = (noise**2).sum(axis=0) / (mech.noise_stddev**2 + 4)
    # Chi-square with 120 degrees, two-sided, 1e-8 a coordinate: false-alarm rate 1e-7.
    low, high = stats.chi2(120).ppf([5e-9, 1 - 5e-9])
    assert bool(((low < ratio) & (ratio < high)).all()) == (not halved)


def test_the_noise_is_the_calibrated_multiple_of_the_sensitivity():
    mech = mechanism(EmbeddingSpec(10, (), 2, 1.0))
    one = 2**mech.spec.lattice_bits
    assert mech.noise_stddev / one == pytest.approx(2 * 3.7306316, rel=1e-6)
    # Rounded up: never below multiplier times sensitivity, in exact arithmetic.
    assert int(mech.noise_stddev) ** 2 > 3.73063163**2 * mech.sensitivity_squared
    three = mechanism(EmbeddingSpec(10, (), 2, 1.0), rows_per_unit=3)
    assert three.noise_stddev == pytest.approx(3 * mech.noise_stddev, rel=1e-14)


@pytest.mark.parametrize("form", ["rows", "codes"])
@pytest.mark.parametrize("halved", [False, True])
def test_matched_statistic_audit(halved, form, monkeypatch):
    """Estimate mu from releases of two neighboring tables, along the direction that tells most.

    The statistic of a release is Gaussian with the same variance on both sides, and the means
    differ by mu standard deviations, so mu is estimated without trusting the stated noise. With
    400 runs a side the standard error is sqrt((2 + mu^2 / 4) / 400) = 0.08 at mu = 1.12.
    """
    if halved:
        halve_the_noise(monkeypatch)
    if form == "rows":
        spec = EmbeddingSpec(2, (2,), 2, 1.0)
        one = 2**spec.lattice_bits
        mech = mechanism(spec, epsilon=5.0)
        common = [([one // 2, one // 3], (1,), 1)] * 3
        tables = [[batch([*common, ([one, 0], (0,), label)], spec)] for label in (0, 1)]
    else:
        spec = code_spec(HALF_TURN, 0.3, 2, None)
        mech = mechanism(spec, epsilon=5.0, features=HALF_TURN)
        tables = [[code_batch([((1, 2), 1), ((0, 0), label)])] for label in (0, 1)]
    means = [np.array(exact(mech, table), dtype=float) for table in tables]
    direction = means[0] - means[1]

    def statistic(table):
        release = mech.release(table, PrivacyLedger())
        return float(np.r_[release.noisy_sums.ravel(), release.noisy_counts] @ direction)

    samples = np.array([[statistic(table) for _ in range(400)] for table in tables])
    spread = math.sqrt(samples.var(axis=1, ddof=1).mean())
    estimate = (samples[0].mean() - samples[1].mean()) / spread
    mu = math.sqrt(mech.sensitivity_squared) / mech.noise_stddev
    assert mu == pytest.approx(1 / 0.8918682, rel=1e-6)
    # Seven standard errors: false-alarm rate below 1e-9. Twice the mu is seven more away: with half
    # the noise (and its larger error) the check fails to see it once in 10^9.
    error = 7 * math.sqrt((2 + mu**2 / 4) / 400)
    assert (abs(estimate - mu) < error) == (not halved)
    assert (abs(estimate - 2 * mu) < error) == halved


def test_two_releases_of_one_table_differ():
    mech = mechanism()
    table = [good_batch(mech.spec)]
    first, second = (mech.release(table, PrivacyLedger()) for _ in range(2))
    assert (first.noisy_sums != second.noisy_sums).all()  # 1e-7 by chance


# -- what comes out ------------------------------------------------------------------------------


def test_replace_one_records_the_public_number_of_rows():
    mech = mechanism()
    release = mech.release([good_batch(mech.spec)] * 3, PrivacyLedger())
    assert (release.n_rows, release.adjacency, release.unit) == (15, "replace-one", "row")
    invalid = replace(good_batch(mech.spec), labels=np.full(5, -1))
    assert mech.release([invalid], PrivacyLedger()).n_rows == 5


@pytest.mark.parametrize(
    "private_n",
    [{"adjacency": "add-remove"}, {"rows_per_unit": 2, "rows_bounded": True}],
    ids=["add-remove", "bounded units"],
)
def test_where_the_number_of_rows_is_private_it_leaves_no_trace(private_n):
    # Same noise, tables that differ in rows that contribute nothing: everything is the same.
    mech = mechanism(**private_n)
    keep = np.zeros(5, dtype=bool) if mech.rows_bounded else None
    nothing = replace(good_batch(mech.spec), labels=np.full(5, -1), keep=keep)
    files, entries = [], []
    for table in ([], [nothing], [nothing] * 40):
        ledger = PrivacyLedger()
        with insecure_noise(seed=0):
            release = mech.release(table, ledger)
        assert release.n_rows is None
        files.append(pickle.dumps(release))
        entries.append(ledger.entries)
    assert files[0] == files[1] == files[2]
    assert entries[0] == entries[1] == entries[2]


def test_nothing_of_the_rows_stays_in_release_or_mechanism():
    spec = EmbeddingSpec(2, (2,), 2, 1.0)
    mech = mechanism(spec)
    marker = 0x1234567  # below 2^26: a valid entry
    rows = batch([([marker, 0], (0,), 0)] * 3, spec)
    ledger = PrivacyLedger()
    release = mech.release([rows], ledger)
    exposed = b"".join(pickle.dumps(x) for x in (release, mech, list(ledger.entries)))
    exposed += (repr(release) + repr(mech) + repr(ledger)).encode()
    for value in (marker, 3 * marker):
        assert value.to_bytes(8, "little") not in exposed
        assert str(value).encode() not in exposed


def test_a_release_is_silent():
    mech = mechanism()
    rows = batch([([INT64.min] * 4, (9, -9), 7), ([2**40] * 4, (0, 0), 1)], mech.spec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mech.release([rows], PrivacyLedger()).private


def test_batches_are_streamed():
    # Rows are not kept: 40 batches of 0.8 MB in less than ten of them.
    mech = mechanism(EmbeddingSpec(20, (), 2, 1.0))
    n = 5000

    def stream():
        for _ in range(40):
            yield RowBatch(
                np.zeros((n, 20), np.int64), np.zeros((n, 0), np.int64), np.zeros(n, np.int64)
            )

    tracemalloc.start()
    try:
        mech.release(stream(), PrivacyLedger())
        assert tracemalloc.get_traced_memory()[1] < 10 * n * 20 * 8
    finally:
        tracemalloc.stop()


def test_public_facts_travel_with_the_release():
    mech = mechanism()
    facts, array = {"columns": ["a"]}, np.arange(3)
    release = mech.release(
        [good_batch(mech.spec)], PrivacyLedger(), public=facts, public_arrays={"f": array}
    )
    array[:] = 7
    facts["columns"].append("b")
    assert release.public == {"columns": ["a"]}
    assert release.public_arrays["f"].tolist() == [0, 1, 2]
    assert json.loads(release.public_json) == {"columns": ["a"]}


@pytest.mark.parametrize("count_weight", [0.0, 1e-12])
def test_without_counts_there_are_none(count_weight):
    spec = EmbeddingSpec(2, (), 2, count_weight)
    release = mechanism(spec).release([good_batch(spec)], PrivacyLedger())
    assert release.noisy_counts.shape == (0,)
    for private_n in ({"adjacency": "add-remove"}, {"rows_bounded": True}):
        with pytest.raises(PrivacyParameterError, match="positive count_weight"):
            mechanism(spec, **private_n)


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"adjacency": "replace"}, "adjacency"),
        ({"rows_per_unit": 0}, "rows_per_unit"),
        ({"rows_per_unit": 2**20 + 1}, "rows_per_unit"),
        ({"rows_per_unit": 2.0}, "rows_per_unit"),
        ({"rows_per_unit": True}, "rows_per_unit"),
        ({"rows_bounded": 1}, "rows_bounded"),
        # Noise that the sampler can't make fails here, not after the rows were read.
        ({"rows_per_unit": 2**20, "epsilon": 0.001}, r"2\^52"),
    ],
)
def test_bad_parameters_fail_before_there_is_anything_to_spend(change, message):
    with pytest.raises(PrivacyParameterError, match=message):
        mechanism(**change)


def test_noise_narrower_than_the_lattice_is_refused():
    # 10^4 categories alone, at a huge epsilon: 2^26 / 100 * sqrt 2 * 0.03 is more than enough, ...
    assert mechanism(EmbeddingSpec(0, (10_000,), 2, 0.0), epsilon=500.0).noise_stddev > 2**10
    # ... but 10^12 of them leave less than 2^10 steps.
    with pytest.raises(PrivacyParameterError, match=r"2\^10"):
        mechanism(EmbeddingSpec(0, (10**12,), 2, 0.0), epsilon=500.0)


@pytest.mark.parametrize(
    ("rows", "unit"),
    [({}, "row"), ({"rows_per_unit": 2}, "unit"), ({"rows_bounded": True}, "unit")],
)
def test_unit_of_privacy(rows, unit):
    assert mechanism(**rows).unit == unit


# -- a release that needs earlier ones -------------------------------------------------------------


def test_earlier_releases_and_this_one_make_the_guarantee():
    """Noise is calibrated to what is left, and written into entry and release."""
    spec = EmbeddingSpec(4, (2, 3), 2, 1.0)
    earlier = (
        LedgerEntry("bounds", 2, 16.0, "replace-one", "row", 1, 0.3, 1e-5),
        LedgerEntry("values", 2, 16.0, "replace-one", "row", 1, 0.4, 1e-5, extra_delta=1e-6),
    )
    mech = mechanism(spec, earlier=earlier)
    own = math.sqrt(mech.sensitivity_squared) / mech.noise_stddev
    total = math.sqrt(own**2 + 2 * 2 / 16**2)
    assert 0.99999e-5 < composed_delta(1.0, total, 1e-6) <= 1e-5
    assert mech.noise_stddev > 1.05 * mechanism(spec).noise_stddev
    assert mech.own_epsilon < mech.epsilon == 1.0
    assert gaussian_delta(mech.own_epsilon, own) == pytest.approx(1e-5, rel=1e-6)
    ledger = PrivacyLedger()
    release = mech.release([batch([([0] * 4, [0, 0], 0)], spec)], ledger)
    assert ledger.entries[0].epsilon == mech.own_epsilon
    assert release.earlier == earlier
    assert release.epsilon == 1.0
    assert 0.9999 < release.verify() <= 1.0


def test_earlier_releases_that_leave_nothing_are_refused():
    spent = LedgerEntry("all", 1, 3.7, "replace-one", "row", 1, 1.0, 1e-5)
    with pytest.raises(PrivacyParameterError, match="leave nothing"):
        mechanism(earlier=(spent,))
    with pytest.raises(PrivacyParameterError, match="same adjacency and unit"):
        mechanism(adjacency="add-remove", earlier=(spent,))
    with pytest.raises(PrivacyParameterError, match="same adjacency and unit"):
        mechanism(rows_per_unit=2, earlier=(spent,))
