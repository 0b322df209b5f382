import csv
import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpgen.data.csv_records import CsvFile
from skdpgen.exceptions import InputError


@pytest.fixture
def csv_file(tmp_path):
    def make(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return CsvFile(path)

    return make


def test_names_and_records(csv_file):
    file = csv_file('age,note\n33,"a, ""b"""\n51,"two\nlines"\n')
    assert file.names == ("age", "note")
    assert list(file.records()) == [["33", 'a, "b"'], ["51", "two\nlines"]]
    assert list(file.records()) == list(file.records())


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_that_of_the_names(csv_file, separator):
    file = csv_file(separator.join("abc") + "\n" + separator.join("123") + "\n")
    assert file.names == ("a", "b", "c")
    assert list(file.records()) == [["1", "2", "3"]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(csv_file, end):
    file = csv_file(end.join(["a,b", "1,2", "3,4"]))
    assert list(file.records()) == [["1", "2"], ["3", "4"]]


def test_gzip_and_a_byte_order_mark(csv_file):
    file = csv_file(gzip.compress("\ufeffa,b\n1,2\n".encode()), "table.csv.gz")
    assert file.names == ("a", "b")
    assert list(file.records()) == [["1", "2"]]


# What a parser might complain of: each maps in, and no other record changes.
ODD_LINES = {
    "short": (b"1", ["1", "", ""]),
    "long": (b"1,2,3,4,5", ["1", "2", "3"]),
    "no UTF-8": (b"caf\xe9,2,3", ["caf\ufffd", "2", "3"]),
    "a NUL": (b"1\x002,2,3", ["1\x002", "2", "3"]),
    "a quote inside": (b'a"b"c,2,3', ['a"b"c', "2", "3"]),
    "text after a quote": (b'"a"b,2,3', ["ab", "2", "3"]),
    "a huge cell": (b"x" * 200_000 + b",2,3", ["x" * 200_000, "2", "3"]),
    "spaces": (b" , ,", [" ", " ", ""]),
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
def test_an_odd_record_maps_in_and_leaves_the_others_alone(csv_file, line):
    content, cells = line
    file = csv_file(b"a,b,c\n7,8,9\n" + content + b"\n10,11,12\n")
    assert list(file.records()) == [["7", "8", "9"], cells, ["10", "11", "12"]]


def test_empty_lines_are_no_records(csv_file):
    assert list(csv_file("a\n\n1\n\n\n2\n\n").records()) == [["1"], ["2"]]


def test_an_open_quote_takes_the_rest_and_raises_nothing(csv_file):
    assert list(csv_file('a,b\n1,"2\n3,4\n').records()) == [["1", "2\n3,4\n"]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5))
def test_what_a_csv_writer_wrote_is_read_back(tmp_path_factory, rows):
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(stream.getvalue().encode("utf-8", "surrogatepass"))
    expected = [[c.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for c in r]
                for r in rows]  # fmt: skip
    assert list(CsvFile(path).records()) == expected


@settings(max_examples=50, deadline=None)
@given(st.binary())
def test_no_bytes_after_the_names_raise(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(b"a,b\n" + content)
    assert all(len(record) == 2 for record in CsvFile(path).records())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must name the columns"),
        ("\n1,2\n", "must name the columns"),
        ("a,,c\n", "column 2 has no name"),
        ("a,b,a\n", "names column 'a' twice"),
        ("a,b\x00\n", "isn't a list of column names"),
        (b"na\xefve,b\n", "isn't a list of column names"),
        ("a" * 201 + ",b\n", "isn't a list of column names"),
    ],
)
def test_a_first_line_that_names_no_columns(csv_file, content, message):
    with pytest.raises(InputError, match=message):
        csv_file(content)


def test_rows_that_an_open_quote_made_a_name_are_not_quoted(csv_file):
    with pytest.raises(InputError) as caught:
        csv_file('age,"word\n33,CANARY\n')
    assert "CANARY" not in str(caught.value)


def test_a_row_in_the_place_of_names_is_not_quoted(csv_file):
    with pytest.raises(InputError, match="column 4 as column 2 twice") as caught:
        csv_file("39,CANARY,77516,CANARY\n")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n" * 99)[:-20]], ids=["no gzip", "cut off"]
)
def test_a_damaged_gzip_file_is_refused(csv_file, content):
    with pytest.raises(InputError, match="no gzip file, or not a whole one"):
        list(csv_file(content, "table.csv.gz").records())
