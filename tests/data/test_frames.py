import pickle

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from skdpgen.data.frames import (
    FrameTemplate,
    MappedTable,
    SeriesTemplate,
    as_series,
    as_table,
    column_at,
    iter_chunks,
    n_rows,
)
from skdpgen.exceptions import InputError

MARKER = "Anne's only value"


def test_as_table_passes_frames_and_arrays_through():
    for table in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), np.zeros((2, 1))):
        assert as_table(table) is table
    frame = pd.DataFrame({"a": [1]})
    assert as_table(nw.from_native(frame)) is frame


def test_lists_become_objects_whatever_their_cells():
    for rows in ([[1, 2]], [[1, "a"]], [[1, [2, 3]]], [[[1, 2], [3, 4]]], [(1, None)]):
        array = as_table(rows)
        assert array.dtype == object
        assert array.shape == (1, 2)
        assert array[0].tolist() == list(rows[0])
    assert as_table([np.array([1.5, 2.5])]).tolist() == [[1.5, 2.5]]
    assert as_table([]).shape == (0, 0)


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (np.zeros(3), "Reshape your data"),
        (np.zeros((1, 1, 1)), "3 dimension"),
        ([1, 2], "Reshape your data"),
        (["ab", "cd"], "Reshape your data"),
        ([[1], [1, 2]], "same number of cells"),
        (csr_array(np.eye(2)), "sparse"),
        (pl.LazyFrame({"a": [1]}), "collect"),
        (pa.table({"a": [1]}), "not supported"),
        ({"a": [1]}, "dict is not supported"),
        (None, "NoneType is not supported"),
        ("table.csv", "str is not supported"),
    ],
)
def test_as_table_refuses(table, rule):
    with pytest.raises(InputError, match=rule):
        as_table(table)


def test_as_series():
    series = pd.Series([1, 2])
    assert as_series(series) is series
    assert as_series(pd.DataFrame({"y": [1, 2]})).tolist() == [1, 2]
    assert as_series(pl.DataFrame({"y": [1, 2]})).to_list() == [1, 2]
    assert as_series(np.array([[1], [2]])).tolist() == [1, 2]
    assert as_series([1, [2]]).tolist() == [1, [2]]
    assert as_series([1, 2]).dtype == object
    for wrong in (np.zeros((2, 2)), pd.DataFrame({"a": [1], "b": [2]}), "yes", 3, None):
        with pytest.raises(InputError, match="expected one column"):
            as_series(wrong)


def test_structure_of_frames():
    template = FrameTemplate.from_frame(pd.DataFrame({"b": [1], "a": [MARKER]}))
    assert template.names == ("b", "a")
    assert [d.family for d in template.dtypes.values()] == ["int", "text"]
    assert FrameTemplate.from_frame(np.zeros((3, 2))).names == ("x0", "x1")
    assert FrameTemplate.from_frame(pl.DataFrame({"a": [1]})).backend == "polars"
    assert template.select(["a"]).names == ("a",)
    assert template.select(["a", "b"]).names == ("b", "a")
    with pytest.raises(InputError, match="no column 'c'"):
        template.select(["c"])


def test_template_holds_no_cell_no_index_and_no_category():
    frame = pd.DataFrame(
        {"c": pd.Series([MARKER], dtype="category"), "o": pd.Series([MARKER], dtype=object)},
        index=[MARKER],
    )
    frame.attrs["note"] = MARKER
    assert MARKER.encode() not in pickle.dumps(FrameTemplate.from_frame(frame))
    # A column axis can be categorical itself, with more levels than there are columns.
    wide = pd.DataFrame([[1]], columns=pd.CategoricalIndex(["a"], categories=["a", MARKER]))
    assert MARKER.encode() not in pickle.dumps(FrameTemplate.from_frame(wide))
    array = np.array([[MARKER]])
    assert FrameTemplate.from_frame(array) == FrameTemplate.from_frame(np.array([["a"]]))


@pytest.mark.parametrize("names", [["a", "a"], [0, 0], [0, False], [("a", 1), ("a", 1)]])
def test_duplicates_are_refused_by_name(names):
    with pytest.raises(InputError, match="duplicate column name"):
        FrameTemplate.from_frame(pd.DataFrame([[1, 2]], columns=pd.Index(names, dtype=object)))


@pytest.mark.parametrize(
    "columns",
    [
        pd.Index(["z", "a"]),
        pd.Index([1, 0]),
        pd.Index(["a", 0], dtype=object),
        pd.Index(["", " "], name="axis"),
        pd.Index([("a", 1), None], dtype=object, tupleize_cols=False),
        pd.Index([1.5, 2.5]),
        pd.MultiIndex.from_tuples([("a", 1), ("b", 1)], names=["x", None]),
    ],
)
def test_names_come_back(columns):
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=columns, index=["r", "s"])
    template = pickle.loads(pickle.dumps(FrameTemplate.from_frame(frame)))
    parts = {name: column_at(frame, i).array for i, name in enumerate(template.names)}
    built = template.build(parts, n=2)
    pd.testing.assert_frame_equal(built, frame.reset_index(drop=True))
    assert isinstance(built.index, pd.RangeIndex)


def test_build_empty_frames():
    for table in (pd.DataFrame(index=range(3)), np.zeros((3, 0))):
        assert FrameTemplate.from_frame(table).build({}, n=3).shape == (3, 0)
    frame = pd.DataFrame({"a": pd.array([], dtype="Int8")})
    built = FrameTemplate.from_frame(frame).build({"a": frame["a"].array}, n=0)
    pd.testing.assert_frame_equal(built, frame)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, lambda d: np.c_[d["a"], d["b"]]])
def test_chunks_are_views_of_consecutive_rows(library):
    table = library({"a": np.arange(7), "b": np.arange(7.0)})
    chunks = list(iter_chunks(table, 3))
    assert [n_rows(c) for c in chunks] == [3, 3, 1]
    assert all(type(c) is type(table) for c in chunks)
    joined = np.concatenate([np.asarray(c) for c in chunks])
    np.testing.assert_array_equal(joined, np.asarray(table))
    if isinstance(table, np.ndarray):
        assert np.shares_memory(chunks[0], table)
    assert list(iter_chunks(table[:0], 3)) == []
    for size in (0, True, -1):
        with pytest.raises(InputError, match="at least 1"):
            next(iter_chunks(table, size))


def test_series_template():
    template = SeriesTemplate.from_series(pd.Series([1, 2], name="y", index=[5, 6]))
    built = template.build(np.array([7]))
    pd.testing.assert_series_equal(built, pd.Series([7], name="y"))
    template = SeriesTemplate.from_series(pl.Series("y", [1]))
    assert template.build(pl.Series([3])).name == "y"
    template = SeriesTemplate.from_series(np.array(["a", MARKER]))
    assert template.build(np.array(["b"])).tolist() == ["b"]
    assert MARKER.encode() not in pickle.dumps(template)
    with pytest.raises(InputError, match="column 'y' has a dtype"):
        SeriesTemplate.from_series(np.array([1j]))


@pytest.mark.parametrize("wrap", [lambda a: a, pd.Index, pd.Series])
def test_the_dtype_of_a_column_does_not_depend_on_its_cells(wrap):
    full, with_null = (wrap(pd.array([1, other], dtype="Int64")) for other in (2, None))
    assert as_series(full).dtype == as_series(with_null).dtype == "Int64"
    assert as_series(pd.Categorical(["a"])).dtype == "category"
    with pytest.raises(InputError, match="pyarrow"):
        as_series(pa.array([1, None]))


def test_mapped_tables_apply_their_function_chunk_by_chunk():
    frame = pd.DataFrame({"a": [1, 2, 3]})
    sizes = []

    def halved(X):
        sizes.append(len(X))
        return X / 2

    table = MappedTable(frame, halved, frame.head(0) / 2)
    assert as_table(table) is table
    assert table.shape == (3, 1)
    assert n_rows(table) == 3
    assert FrameTemplate.from_frame(table).dtypes["a"].label == "float64"
    assert sizes == []
    chunks = list(iter_chunks(table, 2))
    assert sizes == [2, 1]
    assert [chunk["a"].tolist() for chunk in chunks] == [[0.5, 1.0], [1.5]]
