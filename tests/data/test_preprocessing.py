import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skdpgen.data import (
    Boolean,
    Categorical,
    Datetime,
    Id,
    Numeric,
    Ordinal,
    Schema,
    TabularPreprocessor,
    Text,
    make_encoder,
)
from skdpgen.exceptions import InputError, SchemaError

SCHEMA = Schema(
    {
        "age": Numeric((0, 100), "int"),
        "city": Categorical(["Rome", "Oslo"], missing=True),
        "key": Id(),
        "wage": Numeric((0, 10), missing=True),
        "remark": Text(),
        "grade": Ordinal(["C", "B", "A"]),
        "ok": Boolean(),
        "k": Categorical(["only"]),
        "day": Datetime(("2020-01-01", "2020-12-31"), format="%Y-%m-%d"),
    },
    target="ok",
)
FRAME = pd.DataFrame(
    {
        "remark": ["secret", "remarks"],
        "ok": [True, False],
        "age": [25, 75],
        "city": ["Oslo", None],
        "wage": [2.5, None],
        "grade": ["A", "C"],
        "k": ["only", "only"],
        "key": [17, 18],
        "day": pd.to_datetime(["2020-12-31", "2020-01-01"]),
    },
    index=[7, 8],
)
DAY = FRAME["day"]


@pytest.fixture
def preprocessor():
    return TabularPreprocessor.from_schema(SCHEMA).fit(FRAME)


def test_encoded_rows_and_layout(preprocessor):
    rows = preprocessor.transform(FRAME)
    assert preprocessor.get_feature_names_out().tolist() == [
        "age",
        "city_Rome",
        "city_Oslo",
        "city_<missing>",
        "wage",
        "wage_<present>",
        "wage_<missing>",
        "grade_C",
        "grade_B",
        "grade_A",
        "ok_False",
        "ok_True",
        "day",
    ]
    assert rows.tolist() == [
        [0.25, 0, 1, 0, 0.25, 1, 0, 0, 0, 1, 0, 1, 1],
        [0.75, 0, 0, 1, 0.5, 0, 1, 1, 0, 0, 1, 0, 0],
    ]
    layout = preprocessor.layout_
    assert layout.numeric == (0, 4, 12)
    assert layout.groups == ((1, 4), (5, 7), (7, 10), (10, 12))
    assert layout.image_shape is None
    assert preprocessor.n_features_in_ == 9
    assert preprocessor.feature_names_in_.tolist() == list(FRAME.columns)


def test_inverse_gives_frame_order_surrogates_and_constants(preprocessor):
    back = preprocessor.inverse_transform(preprocessor.transform(FRAME))
    expected = FRAME.assign(key=[0, 1], remark=["", ""]).reset_index(drop=True)
    pd.testing.assert_frame_equal(back, expected)


def test_any_real_matrix_is_decoded(preprocessor):
    rng = np.random.default_rng(0)
    rows = rng.normal(0, 1e9, (50, preprocessor.layout_.width))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[rng.random(rows.shape) < 0.1] = np.inf
    back = preprocessor.inverse_transform(rows.astype(np.float32))
    assert back.dtypes.tolist() == FRAME.dtypes.tolist()
    assert back["age"].between(0, 100).all()
    assert set(back["city"].dropna()) <= {"Rome", "Oslo"}
    assert back["day"].between("2020-01-01", "2020-12-31").all()
    assert (back["day"] == back["day"].dt.normalize()).all()
    assert preprocessor.inverse_transform(pd.DataFrame(rows))["grade"].isin(list("ABC")).all()
    half = np.full((1, rows.shape[1]), np.nan)
    assert preprocessor.inverse_transform(half)["age"].tolist() == [50]


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (np.zeros((1, 12)), "must have 13 columns"),
        (np.zeros(13), "must have 13 columns"),
        (np.zeros((1, 13), dtype=complex), "real numbers"),
        (np.full((1, 13), "a"), "real numbers"),
    ],
)
def test_inverse_refuses_other_shapes_and_dtypes(preprocessor, rows, rule):
    with pytest.raises(InputError, match=rule):
        preprocessor.inverse_transform(rows)


def test_no_rows_and_one_row(preprocessor):
    with pytest.raises(InputError, match="0 sample"):
        TabularPreprocessor.from_schema(SCHEMA).fit(FRAME.iloc[:0])
    empty = TabularPreprocessor.from_schema(SCHEMA).fit_structure(FRAME.iloc[:0])
    assert pickle.dumps(empty) == pickle.dumps(preprocessor)  # nothing was read but structure
    assert preprocessor.transform(FRAME.iloc[:0]).shape == (0, 13)
    back = preprocessor.inverse_transform(np.empty((0, 13)))
    assert back.dtypes.tolist() == FRAME.dtypes.tolist()
    assert len(back) == 0
    one = preprocessor.transform(FRAME.iloc[1:])
    np.testing.assert_array_equal(one, preprocessor.transform(FRAME)[1:])


# -- transformers ---------------------------------------------------------------------------------


def test_columns_in_the_manner_of_a_column_transformer():
    preprocessor = TabularPreprocessor(
        [
            ("grades", "scale", ["grade"]),
            ("wages", "log1p", "wage"),
            ("days", "linear", ("day",)),
            ("ages", "linear", np.array(["age"], dtype=object)),
            ("categories", "onehot", ["city", "k"]),
            ("gone", "drop", ["ok", "remark"]),
        ],
        schema=SCHEMA,
    ).fit(FRAME)
    assert preprocessor.get_feature_names_out().tolist() == [
        "grade",
        "wage",
        "wage_<present>",
        "wage_<missing>",
        "day",
        "age",
        "city_Rome",
        "city_Oslo",
        "city_<missing>",
    ]
    rows = preprocessor.transform(FRAME)
    assert rows[:, 0].tolist() == [1.0, 0.0]
    assert rows[0, 1] == np.log1p(2.5) / np.log1p(10)
    back = preprocessor.inverse_transform(rows)
    expected = FRAME.drop(columns=["ok", "remark"]).assign(key=[0, 1]).reset_index(drop=True)
    pd.testing.assert_frame_equal(back, expected)


@pytest.mark.parametrize(
    ("transformers", "error", "rule"),
    [
        ("onehot", SchemaError, "'auto' or a list"),
        ([("a", "onehot")], SchemaError, "triples"),
        (["abc"], SchemaError, "triples"),
        ([("a", "onehot", ["nope"])], InputError, "'nope' that is not there"),
        ([("a", "scale", ["age", "age"])], SchemaError, "'age' twice"),
        ([("a", "scale", ["age"])], SchemaError, "do not name the column 'city'"),
        ([("a", "onehot", ["age"])], SchemaError, "do not name the column 'city'"),
        (
            [("a", "onehot", ["age"]), ("b", "drop", list(SCHEMA.drop(["age"]).columns))],
            SchemaError,
            "'age' of kind numeric has no encoding 'onehot'",
        ),
    ],
)
def test_wrong_transformers_are_refused(transformers, error, rule):
    with pytest.raises(error, match=rule):
        TabularPreprocessor(transformers, schema=SCHEMA).fit(FRAME)


def test_a_schema_is_needed():
    with pytest.raises(SchemaError, match=r"needs a schema: .*from_schema"):
        TabularPreprocessor().fit(FRAME)
    with pytest.raises(SchemaError, match="needs a schema"):
        TabularPreprocessor(schema=SCHEMA.to_dict()).fit(FRAME)


def test_the_target_can_be_left_alone():
    preprocessor = TabularPreprocessor.from_schema(SCHEMA, exclude_target=True).fit(FRAME)
    rows = preprocessor.transform(FRAME)
    assert rows.shape == (2, 11)
    np.testing.assert_array_equal(preprocessor.transform(FRAME.drop(columns="ok")), rows)
    assert "ok" not in preprocessor.inverse_transform(rows)
    without = TabularPreprocessor.from_schema(SCHEMA, exclude_target=True)
    without.fit(FRAME.drop(columns="ok"))
    np.testing.assert_array_equal(without.transform(FRAME), rows)
    # How a synthesizer puts features and labels back together.
    encoder = make_encoder(SCHEMA.columns["ok"], FRAME["ok"], "ok")
    assert encoder.codes(FRAME["ok"]).tolist() == [1, 0]
    columns = {**preprocessor.decode_columns(rows), "ok": encoder.decode_codes(np.array([0, 1]))}
    built = preprocessor.template_.build(columns, n=2)
    assert built.columns.tolist() == FRAME.columns.tolist()
    assert built["ok"].tolist() == [False, True]


# -- names and dtypes -----------------------------------------------------------------------------


def test_other_names_are_refused(preprocessor):
    with pytest.raises(InputError, match="has 8 features, but TabularPreprocessor is expecting 9"):
        preprocessor.transform(FRAME.drop(columns="age"))
    with pytest.raises(InputError, match="feature names should match"):
        preprocessor.transform(FRAME[FRAME.columns[::-1]])
    with pytest.raises(InputError, match="feature names should match"):
        preprocessor.transform(FRAME.rename(columns={"age": "Age"}))


def test_other_dtypes_are_read_if_they_can_hold_the_kind(preprocessor):
    rows = preprocessor.transform(FRAME)
    texts = FRAME.astype({"age": "str", "wage": "Float64", "ok": "int8", "city": "category"})
    np.testing.assert_array_equal(preprocessor.transform(texts), rows)
    np.testing.assert_array_equal(preprocessor.transform(pl.from_pandas(FRAME)), rows)
    with pytest.raises(InputError, match="column 'age' is declared numeric"):
        preprocessor.transform(FRAME.assign(age=DAY))
    with pytest.raises(InputError, match="column 'age' has a dtype that is not supported"):
        preprocessor.transform(FRAME.assign(age=1j))


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (csr_array(np.eye(3)), "sparse"),
        (np.zeros(3), "Reshape"),
        (np.eye(3) * 1j, "Complex data not supported"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), "duplicate column name 'a'"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "sparse"),
        (pd.DataFrame({"a": pd.to_timedelta([1], unit="s")}), "time differences"),
        (pl.DataFrame({"a": [[1]]}), "List"),
        (pd.DataFrame(index=range(3)), "0 feature"),
    ],
)
def test_unsupported_tables_are_refused(table, rule):
    with pytest.raises(InputError, match=rule):
        TabularPreprocessor(schema=Schema({}, default=Numeric((0, 1)))).fit(table)


@pytest.mark.parametrize("names", [[0, 1], [1, 0], ["x0", "x1"]])
def test_arrays_by_position(names):
    schema = Schema({name: Numeric((0, 10), "int") for name in names})
    table = np.array([[0, 5], [10, 2]], dtype="int8")
    preprocessor = TabularPreprocessor(schema=schema).fit(table)
    expected = table / 10 if names != [1, 0] else table[:, ::-1] / 10
    np.testing.assert_array_equal(preprocessor.transform(table), expected)
    back = preprocessor.inverse_transform(expected)
    np.testing.assert_array_equal(back, table)
    assert back.dtype == table.dtype
    assert not hasattr(preprocessor, "feature_names_in_")


def test_integer_and_mixed_names():
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=pd.Index([0, "b"], dtype=object))
    preprocessor = TabularPreprocessor(schema=Schema({}, default=Numeric((0, 4)))).fit(frame)
    pd.testing.assert_frame_equal(
        preprocessor.inverse_transform(preprocessor.transform(frame)), frame
    )
    assert preprocessor.get_feature_names_out().tolist() == ["0", "b"]
    assert not hasattr(preprocessor.fit(FRAME[["age"]]).fit(frame), "feature_names_in_")


def test_equal_feature_names_are_told_apart():
    schema = Schema({"a": Categorical(["b_c", "x"]), "a_b": Categorical(["c", "y"])})
    preprocessor = TabularPreprocessor(schema=schema).fit(pd.DataFrame({"a": ["x"], "a_b": ["c"]}))
    assert preprocessor.get_feature_names_out().tolist() == ["a_b_c", "a_x", "a_b_c#2", "a_b_y"]


# -- blocks of equal columns ----------------------------------------------------------------------


@pytest.mark.parametrize("column", [Numeric((0, 255), "int"), Numeric((0, 200), missing=["7"])])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
def test_blocks_give_what_single_columns_give(column, dtype):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 256, (300, 9)).astype(dtype)
    if dtype == "float32":
        column = Numeric(column.bounds, column.dtype)
        cells[cells > 250] = np.nan
        cells[cells == 9] = np.inf
    schema = Schema({}, default=column)
    preprocessor = TabularPreprocessor(schema=schema).fit(cells)
    single = [make_encoder(column, cells[:, i]).encode(cells[:, i]) for i in range(9)]
    rows = preprocessor.transform(cells)
    assert rows.tobytes() == np.hstack(single).tobytes()
    frame = pd.DataFrame(cells).rename(columns=str)
    in_frames = TabularPreprocessor(schema=schema).fit(frame)
    assert in_frames.transform(frame).tobytes() == rows.tobytes()
    mixed = frame.astype({"3": "float64"})  # no block any more
    assert in_frames.transform(mixed).tobytes() == rows.tobytes()
    back = in_frames.inverse_transform(rows)
    decoded = make_encoder(column, cells[:, 0]).decode(rows[:, :1])
    np.testing.assert_array_equal(back["0"], decoded)
    assert back["0"].dtype == dtype


def test_images():
    columns = {f"p{i}": Numeric((0, 255), "int") for i in range(6)}
    label = {"label": Categorical([0, 1])}
    schema = Schema({**columns, **label}, target="label", image_shape=(2, 3))
    frame = pd.DataFrame(np.arange(7, dtype="uint8")[None], columns=[*columns, "label"])
    preprocessor = TabularPreprocessor.from_schema(schema, exclude_target=True).fit(frame)
    assert preprocessor.layout_.image_shape == (2, 3)
    assert TabularPreprocessor.from_schema(schema).fit(frame).layout_.image_shape is None
    part = schema.drop(["p0", "label"])
    frame = frame.drop(columns=["p0", "label"])
    assert TabularPreprocessor.from_schema(part).fit(frame).layout_.image_shape is None


# -- scikit-learn ---------------------------------------------------------------------------------


def test_set_output(preprocessor):
    frame = preprocessor.set_output(transform="pandas").transform(FRAME)
    assert frame.columns.tolist() == preprocessor.get_feature_names_out().tolist()
    assert frame.index.tolist() == [7, 8]
    rows = preprocessor.set_output(transform="polars").transform(FRAME)
    assert isinstance(rows, pl.DataFrame)
    pd.testing.assert_frame_equal(
        preprocessor.inverse_transform(rows), preprocessor.inverse_transform(frame)
    )


def test_clone_pickle_and_pipeline(preprocessor):
    unfitted = clone(preprocessor)
    assert unfitted.schema == SCHEMA
    for method in ("transform", "inverse_transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(unfitted, method)(*([] if "names" in method else [FRAME]))
    again = pickle.loads(pickle.dumps(preprocessor))
    np.testing.assert_array_equal(again.transform(FRAME), preprocessor.transform(FRAME))
    pipeline = make_pipeline(TabularPreprocessor.from_schema(SCHEMA), MinMaxScaler())
    assert pipeline.fit_transform(FRAME).shape == (2, 13)
    assert repr(preprocessor) == "TabularPreprocessor(schema=Schema(9 columns, target='ok'))"
    assert preprocessor.fit(FRAME, y="ignored") is preprocessor


def test_feature_names_are_checked(preprocessor):
    names = preprocessor.get_feature_names_out(list(FRAME.columns))
    assert len(names) == 13
    with pytest.raises(InputError, match="not equal to feature_names_in_"):
        preprocessor.get_feature_names_out(["a"])
