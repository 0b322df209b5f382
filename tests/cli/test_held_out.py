import numpy as np
import pytest

from skdpgen import Release, Schema
from skdpgen.cli._errors import CommandError
from skdpgen.cli._held_out import held_out, recorded, with_record

from .conftest import SCHEMA


def test_it_is_a_function_of_public_facts():
    first = held_out(100, 0.2, 3)
    assert first.sum() == 20
    np.testing.assert_array_equal(first, held_out(100, 0.2, 3))
    assert (first != held_out(100, 0.2, 4)).any()


def test_a_schema_keeps_the_record():
    schema = with_record(Schema.from_dict(SCHEMA), 0.2, 3)
    assert Schema.from_dict(schema.to_dict()).metadata["held_out"] == {"share": 0.2, "seed": 3}
    assert schema.columns == Schema.from_dict(SCHEMA).columns


def test_a_release_tells_them(folder):
    folder.fit("--hold-out", 0.2, "--seed", 3)
    release = Release.load(folder.path / "a.release")
    np.testing.assert_array_equal(recorded(release, 300), held_out(300, 0.2, 3))
    with pytest.raises(CommandError, match="wasn't made from the file"):
        recorded(release, 299)


def test_a_release_of_all_rows_tells_none(release):
    assert recorded(Release.load(release), 300) is None
    assert recorded(None, 300) is None
