import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpgen.data.scaling import (
    offsets_of_floats,
    offsets_of_integers,
    offsets_of_numbers,
    offsets_to_unit,
    reals_to_unit,
    unit_to_offsets,
    unit_to_reals,
)

SPANS = [1, 2, 3, 255, 10**9, 2**31, 2**45 - 1, 2**51, 2**51 + 3, 2**52 + 1, 2**53 - 1]


@given(st.data())
def test_offsets_of_integers_are_exact_for_all_widths(data):
    dtype = data.draw(st.sampled_from(["int8", "uint8", "int32", "int64", "uint64", "bool"]))
    info = np.iinfo(dtype) if dtype != "bool" else np.iinfo("uint8")
    most = info.max if dtype != "bool" else 1
    cells = data.draw(st.lists(st.integers(int(info.min), int(most)), min_size=1))
    lower = data.draw(st.integers(-(2**63), 2**64 - 1))
    upper = lower + data.draw(st.integers(0, 2**53 - 1))
    found = offsets_of_integers(np.array(cells, dtype=dtype), lower, upper)
    expected = [min(max(int(c), lower), upper) - lower for c in cells]
    assert found.tolist() == expected
    assert offsets_of_numbers(cells, lower, upper, 0).tolist() == expected


@given(
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.integers(-(2**63), 2**64 - 2**53),
    st.integers(0, 2**53 - 1),
)
def test_offsets_of_floats_round_half_to_even_then_clip(cells, lower, span):
    upper = lower + span
    found = offsets_of_floats(np.array(cells), lower, upper).tolist()

    def expected(cell):
        if math.isinf(cell):
            return span if cell > 0 else 0
        return min(max(round(cell), lower), upper) - lower

    assert found == [expected(c) for c in cells]
    assert offsets_of_numbers(cells, lower, upper, 0).tolist() == found


def test_rounding_is_half_to_even():
    cells = np.array([0.5, 1.5, 2.5, 2.5000001, -0.5, -1.5])
    assert offsets_of_floats(cells, -2, 9).tolist() == [2, 4, 4, 5, 2, 0]


@pytest.mark.parametrize(
    ("span", "log"), [(s, log) for s in SPANS for log in (False, True) if not log or s < 2**45]
)
def test_offsets_come_back(span, log):
    rng = np.random.default_rng(0)
    ends = np.arange(min(span, 2000) + 1, dtype=np.uint64)
    offsets = np.r_[ends, np.uint64(span) - ends, rng.integers(0, span + 1, 20_000, np.uint64)]
    z = offsets_to_unit(offsets, span, log)
    assert z.min() == 0.0
    assert z.max() == 1.0
    np.testing.assert_array_equal(unit_to_offsets(z, span, log), offsets)


@given(st.floats(0, 1), st.sampled_from(SPANS), st.booleans())
def test_any_unit_number_gives_a_nearest_offset(z, span, log):
    offset = int(unit_to_offsets(np.array([z]), span, log)[0])
    assert 0 <= offset <= span
    if not log:
        assert abs(offset / span - z) <= 0.5 / span + 2**-52


BOUNDS = [(0, 42), (-1, 1), (0, 1e6), (-150, 150), (1e5, 100001), (1e-9, 3e-9), (-3e15, 1e15)]


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("log", [False, True])
def test_decimals_of_twelve_digits_come_back_exactly(lower, upper, log):
    decimals = 12 - math.ceil(math.log10(max(abs(lower), abs(upper))))
    rng = np.random.default_rng(0)
    x = [round(v, decimals) for v in rng.uniform(lower, upper, 5000).tolist()]
    x = np.clip(np.array([*x, lower, upper]), lower, upper)
    z = reals_to_unit(x, float(lower), float(upper), log)
    assert (z[-2], z[-1]) == (0.0, 1.0)
    np.testing.assert_array_equal(unit_to_reals(z, float(lower), float(upper), log), x)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_other_floats_come_back_to_the_last_places(lower, upper):
    x = np.random.default_rng(0).uniform(lower, upper, 5000)
    z = reals_to_unit(x, float(lower), float(upper), False)
    error = np.abs(unit_to_reals(z, float(lower), float(upper), False) - x)
    assert error.max() <= 1e-15 * max(abs(lower), abs(upper)) * 2


@given(st.floats(allow_nan=False), st.floats(-1e300, 1e300), st.floats(1e-300, 1e300))
def test_reals_stay_inside(x, lower, spread):
    upper = lower + spread
    if not lower < upper:
        return
    for log in (False, True):
        z = reals_to_unit(np.array([x]), lower, upper, log)
        assert 0 <= z[0] <= 1
        assert lower <= unit_to_reals(z, lower, upper, log)[0] <= upper


def test_float32_comes_back_exactly():
    rng = np.random.default_rng(0)
    for lower, upper in [(0.0, 0.1), (-150.0, 150.0), (0.0, 1e6)]:
        x = rng.uniform(lower, upper, 5000).astype(np.float32)
        back = unit_to_reals(reals_to_unit(x, lower, upper, False), lower, upper, False)
        np.testing.assert_array_equal(back.astype(np.float32), x)


def test_nan_stays_nan():
    assert np.isnan(reals_to_unit(np.array([np.nan]), 0.0, 1.0, False))[0]
