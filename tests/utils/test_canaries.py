import pickle
import types

import numpy as np
import pandas as pd
import pytest

from skdpgen.utils.canaries import MARK, MOMENT, NUMBERS, findings, marked_table, reachable


def test_every_marker_is_found_in_a_pickle_of_the_table():
    found = findings(pickle.dumps(marked_table()))
    assert set(NUMBERS) <= set(found)
    assert {"utf-8", MOMENT} <= set(found)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-le"])
def test_texts_of_every_width_and_case_are_found(encoding):
    assert findings(b"x" + MARK.lower().encode(encoding)) == [encoding]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("number", NUMBERS)
def test_binary_numbers_are_found(number, order):
    assert number in findings(np.array(number, f"{order}f8").tobytes())
    if isinstance(number, int):
        for size in ("i4", "i8"):
            assert number in findings(np.array(number, order + size).tobytes())


def test_nothing_is_found_where_nothing_is():
    assert findings(pickle.dumps(pd.DataFrame({"a": np.arange(1000.0)}))) == []


def test_attributes_items_keys_slots_and_closures_are_reached():
    class Slotted:
        __slots__ = ("inside",)

    slotted = Slotted()
    slotted.inside = "in a slot"

    def make():
        cell = "in a closure"
        return lambda: cell

    root = {
        "in a key": [("in a tuple",), {"in a set"}],
        "n": types.SimpleNamespace(a=make(), b=slotted, c=[].append),
    }
    root["itself"] = root
    found = [thing for _, thing in reachable(root) if isinstance(thing, str)]
    wanted = {"in a key", "in a tuple", "in a set", "in a closure", "in a slot"}
    assert wanted <= set(found)
