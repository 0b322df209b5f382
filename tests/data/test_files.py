import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from skdpgen.data import Schema
from skdpgen.data.files import FORMATS, read_structure, read_table, scan_table, write_table
from skdpgen.data.frames import FrameTemplate, iter_chunks
from skdpgen.exceptions import InputError

SCHEMA = Schema.from_dict(
    {
        "target": "smoker",
        "columns": {
            "age": {"kind": "numeric", "bounds": [0, 120], "dtype": "int", "missing": True},
            "height": {"kind": "numeric", "bounds": [0, 250], "dtype": "float"},
            "born": {
                "kind": "datetime",
                "bounds": ["01.01.1900", "31.12.2020"],
                "format": "%d.%m.%Y",
            },
            "smoker": {"kind": "boolean"},
            "town": {"kind": "categorical", "values": ["Rome", "Oslo"]},
        },
    }
)
CSV = "age,height,born,smoker,town\n33,1.5,07.03.1990,True,Rome\n,,01.01.1950,False,Oslo\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    return path


def test_a_csv_file_is_read_as_texts(path):
    table = read_table(path)
    assert set(map(str, table.dtypes)) == {"string"}
    assert table["height"].tolist()[0] == "1.5"
    assert table.isna().sum().sum() == 2


def test_a_schema_converts_it(path):
    table = read_table(path, SCHEMA)
    dtypes = ["Int64", "Float64", "datetime64[us]", "boolean", "string"]
    assert list(map(str, table.dtypes)) == dtypes
    assert read_structure(path, SCHEMA).dtypes.equals(table.dtypes)
    assert read_structure(path, SCHEMA).shape == (0, 5)


def test_some_columns(path):
    assert list(read_table(path, SCHEMA, columns=["town", "age"]).columns) == ["age", "town"]
    with pytest.raises(InputError, match="no column 'x'"):
        read_table(path, SCHEMA, columns=["age", "x"])


@pytest.mark.parametrize("ending", FORMATS)
def test_round_trip(path, ending):
    table = read_table(path, SCHEMA)
    copy = path.with_name(f"copy{ending}")
    write_table(table, copy, SCHEMA)
    again = read_table(copy, SCHEMA)
    # Files that say their dtypes are read in those of pyarrow.
    pd.testing.assert_frame_equal(again.astype(table.dtypes), table)
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, copy.name])
    assert read_structure(copy, SCHEMA).dtypes.equals(again.dtypes)


@pytest.mark.parametrize("ending", FORMATS)
def test_an_index_is_not_written(path, ending):
    copy = path.with_name(f"copy{ending}")
    write_table(read_table(path)[1:], copy)
    assert read_table(copy)["town"].tolist() == ["Oslo"]


def test_times_are_written_in_the_format_of_the_schema(path):
    copy = path.with_name("copy.csv")
    write_table(read_table(path, SCHEMA), copy, SCHEMA)
    assert "07.03.1990" in copy.read_text()
    write_table(read_table(path, SCHEMA), copy)
    assert "1990-03-07" in copy.read_text()


def test_equal_tables_make_equal_files(path):
    contents = []
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(read_table(path), path.with_name(name))
        contents.append(path.with_name(name).read_bytes())
    assert contents[0] == contents[1]
    assert gzip.decompress(contents[0]).decode().startswith("age,")


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["people.xlsx", "people", "people.csv.zip"])
def test_the_kind_of_file_must_show(tmp_path, name):
    with pytest.raises(InputError, match="has to end in"):
        read_table(tmp_path / name)
    with pytest.raises(InputError, match="has to end in"):
        write_table(pd.DataFrame(), tmp_path / name)


# -- scanned tables -------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_a_scanned_table_has_the_same_rows_in_any_chunks(tmp_path, ending):
    schema = Schema.from_dict({"columns": {"x": {"kind": "numeric", "dtype": "int"}}})
    path = tmp_path / f"table{ending}"
    write_table(pd.DataFrame({"x": range(100)}), path)
    table = scan_table(path, schema)
    whole = read_table(path, schema)
    assert table.shape == (100, 1)
    assert FrameTemplate.from_frame(table) == FrameTemplate.from_frame(whole)
    for size in (7, 7, 100, 1000):  # again and again: a table may be read twice
        parts = pd.concat(list(iter_chunks(table, size)), ignore_index=True)
        pd.testing.assert_frame_equal(parts, whole)
    odd = scan_table(path, schema, rows=lambda n: np.arange(1, n, 2))
    for _ in range(2):
        parts = pd.concat(list(iter_chunks(odd, 7)), ignore_index=True)
        assert parts["x"].tolist() == list(range(1, 100, 2))


def test_a_scan_only_counts_until_rows_are_asked_for(path, monkeypatch):
    converted = []
    from skdpgen.data import files

    def spy(cells, column):
        converted.extend(cells)
        return text(cells, column)

    text = files.column_of_texts
    monkeypatch.setattr(files, "column_of_texts", spy)
    table = scan_table(path, SCHEMA)
    assert table.shape == (2, 5)
    assert not converted
    list(iter_chunks(table, 10))
    assert "Rome" in converted


def test_a_file_that_shrinks_meanwhile_is_noticed(path):
    table = scan_table(path, SCHEMA)
    path.write_text(CSV.partition("\n")[0] + "\n")
    with pytest.raises(InputError, match="changed while it was read"):
        list(iter_chunks(table, 10))


def test_an_empty_table(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("a,b\n")
    assert read_table(path).shape == (0, 2)
    assert scan_table(path).shape == (0, 2)


# -- Parquet and Arrow ----------------------------------------------------------------------------


def test_a_null_does_not_change_a_dtype(tmp_path):
    found = []
    for cells in ([1, 2], [1, None]):
        path = tmp_path / "table.parquet"
        table = pa.table({"x": pa.array(cells, pa.int64())})
        pa.parquet.write_table(table, path)
        found.append(read_table(path).dtypes["x"])
    assert found[0] == found[1] == "int64[pyarrow]"


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_no_list_of_categories_and_no_index_comes_along(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b"], categories=["a", "b", "CANARY"])})
    if ending == ".parquet":
        frame.index = pd.Index(["CANARY-1", "CANARY-2"], name="who")
        frame.to_parquet(path)
        assert list(read_table(path, columns=["x"]).columns) == ["x"]
    else:
        frame.to_feather(path)
    table = read_table(path, columns=["x"])
    assert table["x"].dtype == "string[pyarrow]" or "string" in str(table["x"].dtype)
    assert "CANARY" not in repr(table)


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".arrow"])
def test_a_damaged_file_is_refused_without_its_content(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    path.write_bytes(b"CANARY" * 100)
    with pytest.raises(InputError, match="is damaged") as caught:
        read_table(path)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_names_are_distinct(tmp_path):
    path = tmp_path / "table.parquet"
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pa.parquet.write_table(table, path)
    with pytest.raises(InputError, match="names column 'a' twice"):
        read_table(path)


def test_pyarrow_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.feather", None)
    with pytest.raises(InputError, match=r"skdpgen\[arrow\]"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "table.parquet")


def test_text_is_utf_8(tmp_path):
    path = tmp_path / "table.csv"
    write_table(pd.DataFrame({"Größe": ["Zürich"]}), path)
    assert io.BytesIO(path.read_bytes()).read() == "Größe\nZürich\n".encode()
    assert read_table(path)["Größe"].tolist() == ["Zürich"]


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_bytes_that_are_no_text_raise_nothing(tmp_path, ending):
    ends = pa.py_buffer(np.array([0, 1, 2, 2], dtype=np.int32))
    valid = pa.py_buffer(np.array([0b011], dtype=np.uint8))
    cells = pa.StringArray.from_buffers(3, ends, pa.py_buffer(b"\xffa"), valid)
    path = tmp_path / f"table{ending}"
    write = pa.parquet.write_table if ending == ".parquet" else pa.feather.write_feather
    write(pa.table({"town": cells, "age": [1, 2, 3]}), path)
    table = read_table(path)
    assert table["town"].tolist()[:2] == ["\ufffd", "a"]
    assert table["town"].isna().tolist() == [False, False, True]
    assert list(table.columns) == ["town", "age"]
