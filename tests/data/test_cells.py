import datetime
import decimal
import zoneinfo

import numpy as np
import pandas as pd
import pytest

from skdpgen.data.cells import (
    canonical_number,
    moment_of,
    moment_parser,
    number_of,
    parse_number,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        (" 0311 ", 311),
        ("-1.5", -1.5),
        ("1e3", 1000.0),
        (str(2**70 + 1), 2**70 + 1),
        ("inf", float("inf")),
        ("nan", None),
        ("", None),
        ("?", None),
        ("1_000", None),
        ("0x10", None),
        ("1" * 401, None),
    ],
)
def test_parse_number(text, number):
    assert parse_number(text) == number


def test_canonical_number_is_the_inverse_of_str():
    assert canonical_number("94") == 94
    assert canonical_number("0.5") == 0.5
    for text in ("094", "+94", "94.", "1e2", "inf", "nan", "a", " 94"):
        assert canonical_number(text) is None


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (True, 1),
        (np.bool_(True), 1),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.5), 0.5),
        (np.longdouble(2.5), 2.5),
        (decimal.Decimal(2**60 + 1), 2**60 + 1),
        (decimal.Decimal("0.5"), 0.5),
        (decimal.Decimal("1e999999"), float("inf")),
        (decimal.Decimal("sNaN"), None),
        (decimal.Decimal("NaN"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (None, None),
        (1j, None),
        ([1], None),
        (b"1", None),
        (np.array(1), None),
    ],
)
def test_number_of(cell, number):
    found = number_of(cell)
    assert found == number
    assert type(found) is type(number)


def test_number_of_asks_no_object_for_anything(hostile_cells):
    assert number_of(hostile_cells[0]) is None
    assert number_of(hostile_cells[1]) == 17  # its text, without its own __str__
    for cell in hostile_cells:
        number_of(cell)


DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("cell", "moment"),
    [
        (datetime.date(1970, 1, 2), DAY),
        (datetime.datetime(1970, 1, 2, 0, 0, 1), DAY + 10**6),
        (pd.Timestamp("1970-01-02 00:00:00.000001"), DAY + 1),
        (pd.Timestamp("1970-01-02", tz="Asia/Tokyo"), DAY - 9 * 3600 * 10**6),
        (np.datetime64("1969-12-31", "D"), -DAY),
        (np.datetime64("NaT"), None),
        (pd.NaT, None),
        ("1970-01-02", None),
        (0, None),
        (None, None),
    ],
)
def test_moment_of(cell, moment):
    assert moment_of(cell, None) == moment


def test_moment_of_text_needs_the_format():
    parse = moment_parser("%d.%m.%Y")
    assert moment_of("02.01.1970", parse) == DAY
    assert moment_of("1970-01-02", parse) is None
    assert moment_of("02.01.1970" + " " * 400, parse) is None


def test_moment_of_asks_no_object_for_anything(hostile_cells):
    parse = moment_parser("%Y")
    for cell in hostile_cells:
        moment_of(cell, parse)


class _Raises(BaseException):
    """No code that catches Exception catches it."""


def _fails(*_):
    raise _Raises


class _Zone(datetime.tzinfo):
    utcoffset = dst = tzname = _fails


class _Date(datetime.date):
    toordinal = _fails
    year = month = day = property(_fails)


class _HugeDate(datetime.date):
    def toordinal(self):
        return 10**30


class _Moment(datetime.datetime):
    toordinal = utcoffset = _fails
    year = hour = microsecond = tzinfo = fold = property(_fails)


class _Number(np.float32):
    __float__ = item = _fails


class _Long(np.longdouble):
    __float__ = item = _fails


@pytest.mark.parametrize(
    ("cell", "number", "moment"),
    [
        (_Date(1970, 1, 2), None, DAY),
        (_HugeDate(1970, 1, 2), None, DAY),
        (_Moment(1970, 1, 2, 0, 0, 1, 5), None, DAY + 10**6 + 5),
        (_Moment(1970, 1, 2, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")), None, DAY - 9 * DAY // 24),
        (datetime.datetime(1970, 1, 2, tzinfo=_Zone()), None, None),
        (_Number(0.5), 0.5, None),
        (_Long(0.5), 0.5, None),
        (np.timedelta64(5, "ns"), None, None),
    ],
)
def test_methods_are_those_of_known_classes(cell, number, moment):
    assert number_of(cell) == number
    assert moment_of(cell, None) == moment


def test_a_local_time_that_comes_twice_is_told_apart():
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    first, second = (datetime.datetime(2020, 10, 25, 2, 30, fold=f, tzinfo=zone) for f in (0, 1))
    assert moment_of(second, None) - moment_of(first, None) == 3600 * 10**6


def test_a_reader_that_fails_reads_nothing():
    assert moment_of("1970", lambda text: datetime.datetime(int(text), 0, 0)) is None
