"""Fixtures for the tests of :mod:`skdpgen.data`."""

import datetime
import decimal
import fractions
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest


class Hostile:
    """A cell that raises whatever is done to it."""

    __hash__ = None  # type: ignore[assignment]

    def _fail(self, *args: object) -> Any:
        raise RuntimeError("a cell was asked for something")

    __eq__ = __ne__ = __lt__ = __str__ = __repr__ = __bool__ = _fail  # type: ignore[assignment]
    __float__ = __int__ = __index__ = __len__ = __iter__ = __array__ = _fail


class HostileText(str):
    """A text that raises instead of telling what it says."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("a cell was asked for its text")

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def hostile_cells() -> list[Any]:
    """Objects that might stand in a column of objects."""
    return [
        Hostile(),
        HostileText("17"),
        None,
        pd.NA,
        pd.NaT,
        float("nan"),
        np.float32("nan"),
        np.datetime64("NaT"),
        float("inf"),
        -float("inf"),
        10**1000,
        -(10**1000),
        2**63,
        np.uint64(2**64 - 1),
        np.longdouble("1e4000"),
        decimal.Decimal("sNaN"),
        decimal.Decimal("1e999999"),
        decimal.Decimal("0.5"),
        fractions.Fraction(1, 3),
        1 + 2j,
        [1, 2],
        (),
        {"a": 1},
        {1},
        b"bytes",
        "",
        "x" * 10_000_000,
        "9" * 10_000_000,
        "1e999",
        "\x00",
        "\ud800",
        True,
        np.bool_(False),
        datetime.date(1, 1, 1),
        datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC),
        datetime.timedelta(1),
        pd.Timestamp("2262-01-01", tz="Asia/Tokyo"),
        pd.Period("2020"),
        np.datetime64(2**62, "Y"),
        np.array([1, 2]),
        pd.Series([1]),
        print,
        int,
    ]
