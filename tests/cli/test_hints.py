import json

import pytest

from skdpgen.cli._hints import hints
from skdpgen.data.schema import Schema


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"mising": True}, "'mising' is taken for a remark; is it 'missing'?"),
        ({"Decimals": 2}, "is it 'decimals'?"),
        ({"values": [1, 2]}, "numeric columns have no 'values'."),
        ({"note": "of the codebook", "source": "NIST", "unit": "years"}, ""),
    ],
)
def test_entries_that_look_misspelled(entry, words):
    found = hints(Schema({"age": {"kind": "numeric", "bounds": [0, 9], **entry}}), None)
    assert len(found) == bool(words)
    assert all(hint.endswith(words) for hint in found)


def test_semicolons_make_points_doubtful(folder):
    folder.data.write_text(folder.data.read_text().replace(",", ";"))
    (hint,) = folder.json("schema", "check", folder.schema, folder.data)["hints"]
    assert "semicolons" in hint
    assert f"hint: {hint}" in folder("schema", "check", folder.schema, folder.data).stderr


def test_no_row_decides_a_hint(folder):
    header = folder.data.read_text().splitlines()[0]
    schema = Schema.from_dict(json.loads(folder.schema.read_text()))
    for row in ("1,5", "a;b;c;d;e", ""):
        folder.data.write_text(f"{header}\n{row}\n")
        assert hints(schema, folder.data) == []
