import pytest

from skdpgen.data import Id, Text
from skdpgen.exceptions import SchemaError


def test_nothing_is_left_to_declare():
    assert Id().undeclared is None
    assert Text().undeclared is None
    assert Text().constant == ""


def test_the_constant_is_a_text():
    assert Text("removed").constant == "removed"
    with pytest.raises(SchemaError, match="constant must be a text"):
        Text(constant=3)
