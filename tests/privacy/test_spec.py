"""Shapes, bounds and the table of sensitivities."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.spec import EmbeddingSpec


def spec(
    n_signed=1000, group_widths=(), n_classes=2, count_weight=1.0, block_share=None, n_harmonics=1
):
    return EmbeddingSpec(n_signed, group_widths, n_classes, count_weight, block_share, n_harmonics)


def sensitivity(spec, adjacency):
    return math.sqrt(spec.sensitivity_squared(adjacency)) / 2**spec.lattice_bits


@pytest.mark.parametrize(
    ("shape", "replace_one", "add_remove"),
    [
        # Embedding, labels, counts: the counts are free at w = 1 under replace-one.
        ({"count_weight": 0.0}, 2.0, 1.0),
        ({"count_weight": 1.0}, 2.0, math.sqrt(2)),
        ({"count_weight": 0.2}, 2.0, math.sqrt(1.04)),  # 1.02
        ({"count_weight": 2.0}, math.sqrt(10), math.sqrt(5)),
        # Sum kernel with q groups, d columns.
        ({"group_widths": (2, 2)}, math.sqrt(5), math.sqrt(2.5)),  # 2.24: the largest q/d
        ({"group_widths": (2, 3, 5)}, math.sqrt(4.6), math.sqrt(2.3)),
        # No numbers: sqrt(2 q/d) against sqrt(2 (q/d + w^2)).
        ({"n_signed": 0, "group_widths": (4, 4), "count_weight": 0.0}, math.sqrt(0.5), 0.5),
        ({"n_signed": 0, "group_widths": (4, 4)}, math.sqrt(2.5), math.sqrt(1.25)),
        # No labels: counts can't move between classes, a row can only stop counting.
        ({"n_classes": 1}, 2.0, math.sqrt(2)),
        ({"n_classes": 1, "count_weight": 2.0}, math.sqrt(5), math.sqrt(5)),
        ({"n_signed": 0, "group_widths": (4, 4), "n_classes": 1}, math.sqrt(1.25), math.sqrt(1.25)),
        # A row of norm one, shared: sqrt(4 - 2 b), and at w^2 = 1 - b the counts are free.
        ({"group_widths": (4, 4), "block_share": 0.36, "count_weight": 0.8}, 3.28**0.5, 1.64**0.5),
        ({"group_widths": (4, 4), "block_share": 0.36, "count_weight": 0.0}, 3.28**0.5, 1.0),
        ({"group_widths": (4, 4), "block_share": 0.36}, 2.0, math.sqrt(2)),
        ({"group_widths": (2,), "block_share": 1.0, "count_weight": 0.0}, math.sqrt(2), 1.0),
        ({"block_share": 0.0}, 2.0, math.sqrt(2)),
        ({"block_share": 0.5, "count_weight": 0.0}, math.sqrt(2), math.sqrt(0.5)),  # no groups
        # With h harmonics 2 S (1 + 1/h) takes the place of 4 S.
        ({"n_harmonics": 2, "count_weight": 0.0}, math.sqrt(3), 1.0),
        ({"n_harmonics": 4, "count_weight": 0.5}, math.sqrt(2.5), math.sqrt(1.25)),  # free: 1/4
        (
            {"n_harmonics": 4, "group_widths": (4,), "block_share": 0.2, "count_weight": 0.0},
            math.sqrt(2.4),  # the default of tables: 1.55
            1.0,
        ),
    ],
)
def test_table_of_sensitivities(shape, replace_one, add_remove):
    # Categories and count weights are rounded to the lattice: 2^-25 of one. Harmonics pay for
    # truncated waves.
    tolerance = 1e-5 if "n_harmonics" in shape else 1e-6
    assert sensitivity(spec(**shape), "replace-one") == pytest.approx(replace_one, rel=tolerance)
    assert sensitivity(spec(**shape), "add-remove") == pytest.approx(add_remove, rel=1e-6)


def test_the_two_replace_one_cases_are_equal_at_weight_one_exactly():
    s = spec(group_widths=(2, 7))
    same_label = 4 * s.signed_bound + 2 * s.categorical_bound
    other_label = 2 * (s.signed_bound + s.categorical_bound + s.count_steps**2)
    assert s.sensitivity_squared("replace-one") == same_label == other_label


def test_rounding_is_on_the_safe_side():
    s = spec(group_widths=(2, 3, 7), count_weight=1 / 3)
    one = 2**s.lattice_bits
    # 1 / sqrt(12) is rounded down, and the bound is the rounded steps' own.
    assert s.category_steps == math.isqrt(one**2 // 12)
    assert s.categorical_bound == 3 * s.category_steps**2
    assert s.count_steps == round(one / 3)


@pytest.mark.parametrize(
    "share", [0.0, 5e-324, 1e-9, 0.1, 0.3, 1 / 3, 0.5, 1 - 2**-53, 1.0, np.float32(0.1)]
)
@pytest.mark.parametrize("n_groups", [1, 2, 3, 7, 200])
def test_the_shares_of_a_row_never_exceed_one(share, n_groups):
    s = spec(n_signed=20, group_widths=(2,) * n_groups, block_share=share)
    one = 4**s.lattice_bits
    exact = Fraction(float(share)) * one
    # The signed block gets all that the groups don't, to the last step ...
    assert s.signed_bound == one - math.floor(exact)
    # ... and the weight of a category is the largest whose squares fit into the groups' share.
    assert s.categorical_bound == n_groups * s.category_steps**2 <= exact
    assert n_groups * (s.category_steps + 1) ** 2 > math.floor(exact)
    assert s.signed_bound + s.categorical_bound <= one


def test_the_share_is_a_float_and_keyword_of_no_consequence_by_default():
    assert type(spec(block_share=np.float32(0.5)).block_share) is float
    assert spec(block_share=1).block_share == 1.0
    paper = spec(group_widths=(2, 3))
    assert paper.block_share is None
    assert paper.signed_bound == 4**paper.lattice_bits
    assert paper.category_steps == math.isqrt(4**paper.lattice_bits // 5)


def test_free_count_weight():
    assert spec().free_count_weight == 1.0
    assert spec(n_signed=0, group_widths=(2,)).free_count_weight == 0.0
    s = spec(group_widths=(2, 3), block_share=0.3)
    assert s.free_count_weight == pytest.approx(math.sqrt(0.7), rel=1e-6)
    # Rounded down to the lattice, where it is exact.
    steps = s.free_count_weight * 2**s.lattice_bits
    assert steps == math.isqrt(s.signed_bound)
    free = spec(group_widths=(2, 3), block_share=0.3, count_weight=s.free_count_weight)
    assert free.count_steps == steps


@pytest.mark.parametrize("n_signed", [0, 1, 2, 3, 4, 1000, 2**10 - 1, 2**10, 10_000, 2**24])
def test_squares_and_sums_fit_into_int64(n_signed):
    s = spec(n_signed=n_signed, group_widths=(2,), count_weight=16.0)
    assert n_signed * 4**s.lattice_bits < 2**63
    # What one row adds to one coordinate, times 2^33 rows.
    assert max(2**s.lattice_bits, s.category_steps, s.count_steps) * 2**33 <= 2**63


def test_lattice_is_fine_enough_for_ten_thousand_features():
    assert spec(n_signed=10_000).lattice_bits == 24
    assert spec(n_signed=10_000).signed_bound == 2**48
    assert spec(n_signed=2).lattice_bits == 26


def test_width_and_absent_blocks():
    s = spec(n_signed=6, group_widths=(2, 3))
    assert s.width == 11
    assert spec(n_signed=6).category_steps == spec(n_signed=6).categorical_bound == 0
    assert spec(n_signed=0, group_widths=(2,)).signed_bound == 0


def test_group_widths_become_immutable_integers():
    widths = [2, np.int64(3)]
    s = EmbeddingSpec(np.int32(4), widths, np.int64(2), np.float32(1))
    widths.append(50)
    assert s == EmbeddingSpec(4, (2, 3), 2, 1.0)
    assert [type(x) for x in (s.n_signed, *s.group_widths, s.n_classes)] == [int] * 4
    assert type(s.count_weight) is float


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"n_signed": -1}, r"2\^24"),
        ({"n_signed": 2**24 + 1}, r"2\^24"),
        ({"group_widths": (1,)}, "at least two categories"),
        ({"n_signed": 0}, "nothing to release"),
        ({"n_classes": 0}, "at least one class"),
        ({"count_weight": -0.1}, "count_weight"),
        ({"count_weight": 16.1}, "count_weight"),
        ({"count_weight": math.nan}, "count_weight"),
        ({"count_weight": "much"}, "must be integers"),
        ({"count_weight": None}, "must be integers"),
        ({"n_signed": 4.0}, "must be integers"),
        ({"n_classes": 2.0}, "must be integers"),
        ({"group_widths": (2.0,)}, "must be integers"),
        ({"group_widths": 2}, "must be integers"),
        ({"count_weight": 10**400}, "must be integers"),
        ({"block_share": 10**400}, "block_share numbers"),
        ({"block_share": "half"}, "block_share numbers"),
        ({"block_share": [0.5]}, "block_share numbers"),
        ({"block_share": -1e-9}, r"block_share must be a number in \[0, 1\]"),
        ({"block_share": 1.0000001}, r"block_share must be a number in \[0, 1\]"),
        ({"block_share": math.nan}, r"block_share must be a number in \[0, 1\]"),
        ({"block_share": math.inf}, r"block_share must be a number in \[0, 1\]"),
        ({"n_harmonics": 2.0}, "must be integers"),
        ({"n_harmonics": 0}, "n_harmonics must be in 1 .. 64"),
        ({"n_harmonics": 65, "n_signed": 130}, "n_harmonics must be in 1 .. 64"),
        ({"n_harmonics": 2, "n_signed": 6}, "whole families"),
    ],
)
def test_bad_shapes(shape, message):
    with pytest.raises(PrivacyParameterError, match=message):
        spec(**shape)


def test_bad_adjacency():
    with pytest.raises(PrivacyParameterError, match="adjacency"):
        spec().sensitivity_squared("both")
