import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen.data import Datetime, make_encoder
from skdpgen.data.times import format_step
from skdpgen.exceptions import InputError

DAYS = Datetime(("2020-01-01", "2020-12-31"), format="%Y-%m-%d", missing=True)
SECONDS = Datetime(("2020-01-01 00:00:00", "2020-12-31 23:59:59"), format="%Y-%m-%d %H:%M:%S")


def test_format_step():
    assert format_step("%Y-%m-%dT%H:%M:%S.%f%z") == "us"
    assert format_step("%d/%m/%y %I %p") == "h"
    assert format_step("%-d.%-m.%Y %-H:%M") == "m"
    assert format_step("%Y") == format_step("") == "D"
    assert format_step("100%%S") == "D"


def test_dates_outside_and_missing():
    cells = pd.Series(pd.to_datetime(["2019-01-01", "2020-07-01", "2031-01-01", None]))
    encoder = make_encoder(DAYS, cells)
    assert encoder.encode(cells).tolist() == [
        [0, 1, 0],
        [182 / 365, 1, 0],
        [1, 1, 0],
        [182 / 365, 0, 1],
    ]
    assert make_encoder(SECONDS, cells).encode(cells)[3, 0] == pytest.approx(0.5)


def test_a_date_format_makes_whole_days():
    cells = pd.Series(pd.to_datetime(["2020-03-01 11:59:00", "2020-03-01 12:00:00"]))
    encoder = make_encoder(DAYS, cells)
    assert encoder.decode(encoder.encode(cells)).astype(str).tolist() == [
        "2020-03-01T00:00:00.000000",
        "2020-03-02T00:00:00.000000",
    ]
    wild = np.array([[0.123456, 1, 0], [np.nan, 1, 0], [5, 1, 0]])
    assert (encoder.decode(wild).astype("M8[D]") == encoder.decode(wild)).all()


UNITS = ["s", "ms", "us", "ns"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Asia/Kathmandu"])
def test_times_come_back_in_pandas(unit, zone):
    base = pd.to_datetime(
        ["2020-01-01", "2020-03-29 01:30", "2020-10-25 00:30", "2020-10-25 01:30", None],
        format="ISO8601",
    )
    cells = pd.Series(base.tz_localize("UTC") if zone else base)
    cells = cells.dt.tz_convert(zone).dt.as_unit(unit) if zone else cells.dt.as_unit(unit)
    for column in (Datetime(("2019-12-31", "2021-01-01"), missing=True), DAYS, SECONDS):
        if zone is None and column is DAYS:
            continue
        encoder = make_encoder(column, cells)
        back = pd.Series(encoder.decode(encoder.encode(cells)))
        present = cells.notna() if column is SECONDS else slice(None)
        pd.testing.assert_series_equal(back[present], cells[present])
    arrow = cells.astype(f"timestamp[{unit}{', tz=' + zone if zone else ''}][pyarrow]")
    encoder = make_encoder(Datetime(("2019-12-31", "2021-01-01"), missing=True), arrow)
    back = pd.Series(encoder.decode(encoder.encode(arrow)))
    pd.testing.assert_series_equal(back, arrow)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_come_back_in_polars(unit, zone):
    cells = pl.Series([0, 10**9, None], dtype=pl.Datetime(unit, zone))
    encoder = make_encoder(Datetime(("1969-12-01", "1971-01-01"), missing=True), cells)
    back = encoder.decode(encoder.encode(cells))
    assert back.dtype == cells.dtype
    assert back.equals(cells, null_equal=True)


def test_dates_come_back():
    days = [datetime.date(2020, 2, 29), None, datetime.date(2020, 12, 31)]
    for cells in (pl.Series(days), pd.Series(days, dtype="date32[pyarrow]")):
        for column in (DAYS, Datetime(("2019-12-31T12:00", "2020-12-31T01:00"), missing=True)):
            encoder = make_encoder(column, cells)
            back = encoder.decode(encoder.encode(cells))
            assert back.dtype == cells.dtype
            found = back.to_list() if isinstance(back, pl.Series) else list(back)
            assert [None if d is pd.NA else d for d in found] == days
    array = np.array(["2020-02-29", "NaT"], dtype="M8[D]")
    encoder = make_encoder(DAYS, array)
    np.testing.assert_array_equal(encoder.decode(encoder.encode(array)), array)


def test_nanoseconds_are_kept_while_2_to_the_53_reach():
    cells = pd.Series(np.array([1, 8_985_599_999_999_999], dtype="M8[ns]"))
    narrow = Datetime(("1970-01-01", "1970-04-15"))
    encoder = make_encoder(narrow, cells)
    pd.testing.assert_series_equal(pd.Series(encoder.decode(encoder.encode(cells))), cells)
    wide = make_encoder(Datetime(("1900-01-01", "2100-01-01")), cells)
    found = wide.decode(wide.encode(cells)).astype(np.int64).tolist()
    assert found == [0, 8_985_600_000_000_000]  # microseconds


def test_bounds_beyond_the_dtype():
    cells = pd.Series(np.array(["2000-01-01", "NaT"], dtype="M8[ns]"))
    encoder = make_encoder(Datetime(("0001-01-01", "9999-12-31")), cells)
    built = encoder.decode(np.array([[0.0], [1.0], [np.nan]])).astype("M8[Y]").astype(int) + 1970
    assert built.tolist() == [1677, 2262, 2262]
    with pytest.raises(InputError, match="column 'd': no time within the declared bounds"):
        make_encoder(Datetime(("3000-01-01", "3001-01-01")), cells, "d")
    with pytest.raises(InputError, match="column 'd': no time within the declared bounds"):
        make_encoder(
            Datetime(("2020-01-01T01:00", "2020-01-01T02:00")),
            pl.Series([None], dtype=pl.Date),
            "d",
        )


def test_another_unit_than_the_fitted_one():
    fine = pd.Series(pd.to_datetime(["2020-05-05 05:05:05"])).dt.as_unit("us")
    encoder = make_encoder(SECONDS, fine)
    expected = encoder.encode(fine)
    for unit in UNITS:
        np.testing.assert_array_equal(encoder.encode(fine.dt.as_unit(unit)), expected)
    coarse = make_encoder(Datetime(("2020-01-01", "2020-12-31")), fine.dt.as_unit("s"))
    np.testing.assert_array_equal(coarse.encode(fine), coarse.encode(fine.dt.as_unit("s")))
    # Days, for a column of microseconds within one day.
    hours = make_encoder(Datetime(("2020-01-01T01:00", "2020-01-01T02:00")), fine)
    assert hours.encode(np.array(["2020-01-01"], dtype="M8[D]")).tolist() == [[0.0]]
    days = make_encoder(Datetime(("2020-01-01T06:00", "2020-01-11T06:00")), fine)
    assert days.encode(np.array(["2020-01-02"], dtype="M8[D]")).tolist() == [[0.075]]


def test_texts():
    cells = pd.Series(["2020-02-29", "2020-13-01", "", None, "1999-01-01"])
    encoder = make_encoder(DAYS, cells)
    back = encoder.decode(encoder.encode(cells))
    assert back.tolist() == ["2020-02-29", np.nan, np.nan, np.nan, "2020-01-01"]
    zoned = Datetime(("01.01.2020 +0000", "31.12.2020 +0000"), format="%d.%m.%Y %z")
    cells = pd.Series(["05.03.2020 +0000", "05.03.2020 -1200"])
    encoder = make_encoder(zoned, cells)
    assert encoder.decode(encoder.encode(cells)).tolist() == [
        "05.03.2020 +0000",
        "06.03.2020 +0000",
    ]
    with pytest.raises(InputError, match=r"'d' holds texts; declare .*'format'"):
        make_encoder(Datetime(("2020-01-01", "2021-01-01")), cells, "d")


def test_objects(hostile_cells):
    moment = datetime.datetime(2020, 5, 5, 1, 2, 3, 4)
    cells = pd.Series([moment, None, "2020-05-05"], dtype=object)
    encoder = make_encoder(Datetime(("2020-01-01", "2021-01-01"), missing=True), cells)
    assert encoder.decode(encoder.encode(cells)).tolist() == [moment, np.nan, np.nan]
    series = pd.Series(hostile_cells, dtype=object)
    for column in (DAYS, SECONDS, Datetime(("2020-01-01", "2021-01-01"))):
        rows = make_encoder(column, series).encode(series)
        assert ((rows >= 0) & (rows <= 1)).all()


def test_early_years_are_written_so_that_they_can_be_read_or_refused():
    texts = pd.Series(["0001-05-05"])
    column = Datetime(("0001-01-01", "0002-01-01"), format="%Y-%m-%d")
    if datetime.date(1, 1, 1).strftime("%Y") == "0001":  # depends on the platform
        encoder = make_encoder(column, texts, "d")
        assert encoder.decode(encoder.encode(texts)).tolist() == texts.tolist()
    else:
        with pytest.raises(InputError, match=r"'d': a time written in the format '%Y-%m-%d'"):
            make_encoder(column, texts, "d")
    make_encoder(column, np.array(["0001-05-05"], dtype="M8[s]"))  # no text is written here


def test_tokens_mean_missing():
    column = Datetime(("1000-01-01", "9999-12-31"), format="%Y-%m-%d", missing=["9999-12-31"])
    cells = pd.Series(["9999-12-31", "9999-12-30"])
    assert make_encoder(column, cells).encode(cells)[:, 2].tolist() == [1, 0]


def test_bounds_with_a_zone():
    bounds = ("2020-01-01T00:00+01:00", "2020-01-02T00:00+01:00")
    plain = pd.Series(pd.to_datetime(["2020-01-01"]))
    with pytest.raises(InputError, match="column 'd': the bounds carry a time zone"):
        make_encoder(Datetime(bounds), plain, "d")
    zoned = plain.dt.tz_localize("Europe/Berlin")
    assert make_encoder(Datetime(bounds), zoned).encode(zoned).tolist() == [[0.0]]
    # Bounds without a zone are wall-clock times of the column's zone.
    local = Datetime(("2020-01-01", "2020-01-02"))
    assert make_encoder(local, zoned).encode(zoned).tolist() == [[0.0]]


def test_equal_bounds():
    encoder = make_encoder(
        Datetime(("2020-01-01", "2020-01-01")), np.array(["2020"], dtype="M8[s]")
    )
    assert encoder.width == 0
    assert encoder.decode(np.empty((1, 0))).tolist() == [datetime.datetime(2020, 1, 1)]
