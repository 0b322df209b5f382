import pytest

from skdpgen.data.atomic import replaced


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with replaced(path) as part:
        part.write_text("new")
        assert part.parent == tmp_path
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail(part):
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replaced(path) as part:
        fail(part)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
