import datetime

import numpy as np
import pytest

from skdpgen.data import Datetime
from skdpgen.exceptions import SchemaError


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"bounds": ("2020-02-30", "2021-01-01")}, "does not follow"),
        ({"bounds": ("01.02.2020", "2021-01-01"), "format": "%d.%m.%Y"}, "does not follow"),
        ({"bounds": ("2021-01-01", "2020-01-01")}, "in order"),
        ({"bounds": "TODO"}, "two times"),
        ({"bounds": ("2020-01-01",)}, "two times"),
        ({"bounds": (1, 2)}, "texts or datetimes"),
        ({"bounds": ("2020-01-01", "2020-01-02T00:00+02:00")}, "time zone"),
        ({"bounds": ("2020-01-01", "2021-01-01"), "format": 3}, "format must be"),
    ],
)
def test_datetime_refuses(arguments, rule):
    with pytest.raises(SchemaError, match=rule):
        Datetime(**arguments)


def test_datetime_takes_all_kinds_of_bounds():
    first = datetime.datetime(2020, 1, 2)
    for bound in ("2020-01-02", first, first.date(), np.datetime64("2020-01-02")):
        assert Datetime((bound, "2021-01-01")).parsed_bounds[0] == first
    assert Datetime((first, first), format="%d.%m.%Y").bounds == ("02.01.2020", "02.01.2020")
    with pytest.raises(SchemaError, match="not declared"):
        _ = Datetime(None).parsed_bounds
