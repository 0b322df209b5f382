import numpy as np
import pytest

from skdpgen.data import Numeric
from skdpgen.exceptions import SchemaError


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"bounds": (1, 0)}, "in order"),
        ({"bounds": (0, float("inf"))}, "finite"),
        ({"bounds": (float("nan"), 1)}, "finite"),
        ({"bounds": (False, True)}, "two finite numbers"),
        ({"bounds": ("0", "1")}, "two finite numbers"),
        ({"bounds": (0, 1, 2)}, "two finite numbers"),
        ({"bounds": "TODO"}, "must be a list"),
        ({"bounds": 3}, "must be a list"),
        ({"bounds": (-1.7e308, 1.7e308)}, "difference"),
        ({"bounds": (0, 10**400)}, "difference"),
        ({"bounds": (0, 1), "dtype": "decimal"}, "dtype must be"),
        ({"bounds": (0, 1), "scale": "log"}, "scale must be"),
        ({"bounds": (0, 1), "missing": "?"}, "missing must be a list"),
        ({"bounds": (0, 0.5), "dtype": "int"}, "whole"),
        ({"bounds": (0, 2**53), "dtype": "int"}, r"2\*\*53"),
        ({"bounds": (0, 2**45), "dtype": "int", "scale": "log1p"}, r"2\*\*45"),
        ({"bounds": (2**64, 2**64 + 1), "dtype": "int"}, "64 bits"),
        ({"bounds": (-(2**63) - 1, -(2**63)), "dtype": "int"}, "64 bits"),
        ({"bounds": (0, 1), "decimals": -1}, "decimals must be"),
        ({"bounds": (0, 1), "decimals": 16}, "decimals must be"),
        ({"bounds": (0, 1), "decimals": True}, "decimals must be"),
        ({"bounds": (0, 1), "decimals": 2.0}, "decimals must be"),
        ({"bounds": (0, 1), "metadata": "note"}, "mapping"),
    ],
)
def test_numeric_refuses(arguments, rule):
    with pytest.raises(SchemaError, match=rule):
        Numeric(**arguments)


def test_numeric_accepts_extremes():
    assert Numeric((5, 5)).bounds == (5, 5)
    assert Numeric((0, 2**53 - 1), "int").bounds == (0, 2**53 - 1)
    assert Numeric((2**64 - 2, 2**64 - 1), "int").bounds == (2**64 - 2, 2**64 - 1)
    assert Numeric((np.int8(1), np.float32(2.0)), "int").bounds == (1, 2)
    assert Numeric((0, 1), missing=[]).missing is False
    assert Numeric((0, 1), missing=None).missing is False
    assert Numeric((0, 1), missing=["?", -9]).missing == ("?", -9)
