"""Atoms: codes of encoded rows and back, for every float there is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpgen.atoms import AtomColumn, AtomLayout

NUMBER = AtomColumn(
    0, None, (0.0, 0.1, 0.5, 0.75), (0.0, math.nextafter(0.5, 0), 0.7, 1.0), (1, 0, 3, 0)
)
NULLABLE = AtomColumn(1, (2, 4), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (1, 1, 1))
CATEGORY = AtomColumn(None, (4, 7))
LAYOUT = AtomLayout((NUMBER, NULLABLE, CATEGORY), 7)


def test_sizes():
    assert LAYOUT.n_codes == (4, 4, 3)
    assert LAYOUT.n_ordered == (4, 3, 0)


INSIDE = [(0.0, 0), (0.04, 0), (0.06, 1), (0.499, 1), (0.5, 2), (0.72, 2), (0.73, 3), (1.0, 3)]
OUTSIDE = [(-5.0, 0), (math.inf, 3), (-math.inf, 0), (math.nan, 2)]


@pytest.mark.parametrize(("number", "code"), [*INSIDE, *OUTSIDE])
def test_numbers_belong_to_the_nearest_atom(number, code):
    rows = np.zeros((1, 7))
    rows[0, 0] = number
    assert LAYOUT.encode(rows)[0, 0] == code


def test_groups_are_read_by_their_largest_entry():
    rows = np.zeros((3, 7))
    rows[:, 1:] = [
        [0.5, 1, 0, 0.2, 0.3, 0.1],
        [0.5, -1, 0, math.nan, -3, -2],
        [0.5, math.nan, math.nan, math.nan, math.nan, math.nan],
    ]
    assert LAYOUT.encode(rows)[:, 1:].tolist() == [[1, 1], [3, 2], [1, 0]]


@settings(max_examples=200, deadline=None)
@given(
    codes=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)),
    uniforms=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 3),
)
def test_codes_come_back(codes, uniforms):
    rows = LAYOUT.decode(np.array([codes]), np.array([uniforms]))
    assert LAYOUT.encode(rows).tolist() == [list(codes)]
    assert ((rows >= 0) & (rows <= 1)).all()
    assert rows[0, 2:4].sum() == rows[0, 4:7].sum() == 1


def test_steps_are_equally_likely_and_exact():
    uniforms = np.zeros((6, 3))
    uniforms[:, 0] = [0, 0.3, 0.34, 0.6, 0.67, 0.999]
    rows = LAYOUT.decode(np.tile([2, 0, 0], (6, 1)), uniforms)
    assert rows[:, 0] == pytest.approx([0.5, 0.5, 0.6, 0.6, 0.7, 0.7])
    continuous = LAYOUT.decode(np.tile([3, 0, 0], (6, 1)), uniforms)
    assert continuous[:, 0] == pytest.approx(0.75 + 0.25 * uniforms[:, 0])


def test_json_round_trip():
    assert AtomLayout.from_dict(LAYOUT.to_dict()) == LAYOUT


@pytest.mark.parametrize(
    "column",
    [
        {"position": None, "group": None},
        {"position": 0, "group": None},
        {"position": None, "group": (0, 2), "lower": (0.0,), "upper": (1.0,), "steps": (0,)},
        {"position": 0, "group": None, "lower": (0.0,), "upper": (1.0, 1.0), "steps": (0,)},
        {"position": 0, "group": None, "lower": (0.5, 0.0), "upper": (0.6, 0.1), "steps": (0, 0)},
        {"position": 0, "group": None, "lower": (0.0, 0.4), "upper": (0.5, 1.0), "steps": (0, 0)},
        {"position": 0, "group": None, "lower": (0.0,), "upper": (1.5,), "steps": (0,)},
    ],
)
def test_columns_that_make_no_sense(column):
    with pytest.raises(ValueError, match=r"atoms|column has|one lower end"):
        AtomColumn(**column)
