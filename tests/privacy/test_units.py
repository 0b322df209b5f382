"""Bounding the rows of a unit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.units import bounded_rows


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(1, 4))
def test_the_first_rows_of_each_unit_are_kept(codes, limit):
    keep = bounded_rows(np.array(codes, dtype=np.int64), limit)
    seen = {}
    for code, kept in zip(codes, keep.tolist(), strict=True):
        seen[code] = seen.get(code, 0) + 1
        assert kept == (seen[code] <= limit)


@given(
    st.lists(st.integers(0, 3), max_size=15),
    st.lists(st.integers(0, 15), max_size=5),
    st.lists(st.integers(0, 15), max_size=5),
    st.integers(1, 3),
)
def test_other_units_keep_what_they_kept(others, places, new_places, limit):
    # One unit (99) is replaced by another (77), at other places and with another number of rows.
    def table(unit, positions):
        rows = [(code, i) for i, code in enumerate(others)]
        for i, position in enumerate(positions):
            rows.insert(position, (unit, i))
        keep = bounded_rows(np.array([code for code, _ in rows], dtype=np.int64), limit)
        return [row for row, kept in zip(rows, keep.tolist(), strict=True) if kept]

    before, after = table(99, places), table(77, new_places)
    assert [row for row in before if row[0] != 99] == [row for row in after if row[0] != 77]
    assert sum(row[0] == 99 for row in before) == min(limit, len(places))
    assert sum(row[0] == 77 for row in after) == min(limit, len(new_places))


def test_no_rows():
    assert bounded_rows(np.zeros(0, dtype=np.int64), 1).shape == (0,)


def test_codes_at_the_ends_of_int64():
    codes = np.array([-(2**63), 2**63 - 1, -(2**63)])
    assert bounded_rows(codes, 1).tolist() == [True, True, False]


@pytest.mark.parametrize("codes", [np.array([np.nan, np.nan]), np.zeros((2, 2), int)])
def test_codes_must_be_a_vector_of_integers(codes):
    with pytest.raises(PrivacyParameterError, match="vector of integers"):
        bounded_rows(codes, 1)


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_the_limit_must_be_positive(limit):
    with pytest.raises(PrivacyParameterError, match="rows_per_unit"):
        bounded_rows(np.array([1, 2]), limit)
