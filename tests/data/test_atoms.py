"""Which atoms the kinds of columns get, and that decoding gives each value its fair share."""

import numpy as np
import pandas as pd
import pytest

from skdpgen.data import (
    Boolean,
    Categorical,
    Datetime,
    Numeric,
    Ordinal,
    Schema,
    TabularPreprocessor,
)
from skdpgen.data.atoms import atom_layout
from skdpgen.data.encoders import make_encoder


def encoder_of(column, dtype, encoding="auto"):
    return make_encoder(column, pd.Series([], dtype=dtype), encoding=encoding)


def codes_of(encoder, values, n_bins=128):
    layout = atom_layout([encoder], n_bins)
    return layout.encode(encoder.encode(values))[:, 0]


COLUMNS = {
    "few": (Numeric((17, 90), "int"), "int64"),
    "two": (Numeric((0, 1), "int"), "int64"),
    "many": (Numeric((0, 99_999), "int"), "int64"),
    "negative": (Numeric((-5_000, 300), "int"), "int64"),
    "far": (Numeric((4_000_000, 6_000_000), "int"), "int64"),
    "narrow": (Numeric((-10, 1000), "int"), "uint8"),
    "log": (Numeric((0, 99_999), "int", scale="log1p"), "int64"),
    "huge": (Numeric((0, 2**53 - 1), "int"), "int64"),
    "float": (Numeric((0, 1)), "float64"),
    "signed": (Numeric((-150, 150)), "float64"),
    "float32": (Numeric((-1, 1)), "float32"),
    "tiny": (Numeric((0, 1e-300)), "float64"),
    "log float": (Numeric((0, 1e6), scale="log1p"), "float64"),
    "nullable": (Numeric((0, 10), missing=True), "float64"),
    "int8": (Numeric((-1000, 1000), "int"), "int8"),
    "log far": (Numeric((1000, 1_000_000), "int", scale="log1p"), "int64"),
    "nullable int": (Numeric((0, 5_000), "int", missing=True), "Int64"),
    "lopsided": (Numeric((-1e-9, 1e9)), "float64"),
    "time": (Datetime(("2000-01-01", "2030-01-01")), "datetime64[us]"),
    "nullable time": (Datetime(("1700-01-01", "2200-01-01"), missing=True), "datetime64[ns]"),
    "rank": (Ordinal(["low", "middle", "high"], missing=True), "object", "scale"),
    "flag": (Boolean(), "bool"),
    "word": (Categorical(["a", "b", "c"], missing=True), "object"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("n_bins", [4, 128])
def test_codes_survive_decoding_and_encoding_the_cells(kind, n_bins):
    encoder = encoder_of(*COLUMNS[kind])
    layout = atom_layout([encoder], n_bins)
    (n_codes,) = layout.n_codes
    codes = np.repeat(np.arange(n_codes), 50)
    uniforms = np.random.default_rng(0).random(len(codes))
    uniforms[::50], uniforms[1::50] = 0, np.nextafter(1, 0)
    rows = layout.decode(codes[:, None], uniforms[:, None])
    assert np.array_equal(layout.encode(rows)[:, 0], codes)
    cells = encoder.decode(rows)
    found = layout.encode(encoder.encode(cells))[:, 0]
    if encoder.numeric and encoder.dtype.family == "float":
        # The ends of an interval are a rounding error away from a neighboring point.
        assert np.abs(found - codes).max() <= 1
        assert (found != codes).mean() < 2 / 50
    else:
        assert np.array_equal(found, codes)
    assert n_codes <= n_bins + 4


def test_small_whole_numbers_have_atoms_of_their_own():
    values = pd.Series(np.arange(17, 91))
    assert np.array_equal(codes_of(encoder_of(*COLUMNS["few"]), values), np.arange(74))
    gains = pd.Series(np.arange(0, 40))
    codes = codes_of(encoder_of(*COLUMNS["many"]), gains)
    assert codes[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert len(set(codes)) == 16
    signed = pd.Series(np.arange(-15, 16))
    assert len(set(codes_of(encoder_of(*COLUMNS["negative"]), signed))) >= 12


def test_values_of_an_atom_are_equally_likely():
    encoder = encoder_of(*COLUMNS["many"])
    layout = atom_layout([encoder], 16)
    uniforms = (np.arange(60_000) + 0.5) / 60_000
    column = layout.columns[0]
    wide = next(i for i, steps in enumerate(column.steps) if 20 < steps < 3000)
    codes = np.full((60_000, 1), wide)
    cells = encoder.decode(layout.decode(codes, uniforms[:, None]))
    counts = np.bincount(np.asarray(cells))
    counts = counts[counts > 0]
    assert len(counts) == column.steps[wide]
    assert counts.max() - counts.min() <= 1


def test_bounds_and_zero_are_points_of_floats():
    encoder = encoder_of(*COLUMNS["signed"])
    layout = atom_layout([encoder], 128)
    points = [i for i, steps in enumerate(layout.columns[0].steps) if steps == 1]
    cells = pd.Series([-150.0, 0.0, 150.0])
    assert codes_of(encoder, cells).tolist() == points
    assert len(set(codes_of(encoder, pd.Series([-1e-6, 0.0, 1e-6])))) == 3
    assert encoder.decode(encoder.encode(cells)).tolist() == cells.tolist()


def test_values_far_from_the_bounds_are_told_apart():
    # Bounds of +-150 around data in +-5: a grid of 128 even bins has three bins there.
    values = pd.Series(np.linspace(-5, 5, 1001))
    assert len(set(codes_of(encoder_of(*COLUMNS["signed"]), values))) > 30


def test_ranks_and_categories():
    grade = Ordinal(["low", "middle", "high"])
    cells = pd.Series(["high", "low", "middle"])
    for encoding in ("onehot", "scale"):
        encoder = encoder_of(grade, "object", encoding)
        assert codes_of(encoder, cells).tolist() == [2, 0, 1]
        assert atom_layout([encoder], 128).n_ordered == ((3,) if encoding == "scale" else (0,))


def test_missing_is_the_last_code():
    encoder = encoder_of(*COLUMNS["nullable"])
    layout = atom_layout([encoder], 8)
    codes = codes_of(encoder, pd.Series([np.nan, 0.0, 10.0]), 8)
    assert codes.tolist() == [layout.n_codes[0] - 1, 0, layout.n_codes[0] - 2]


def test_positions_count_all_encoders_and_constants_have_no_atoms():
    encoders = [
        encoder_of(Categorical(["a", "b"]), "object"),
        encoder_of(Numeric((3, 3), "int"), "int64"),
        encoder_of(Categorical(["only"]), "object"),
        encoder_of(*COLUMNS["nullable"]),
    ]
    layout = atom_layout(encoders, 8)
    assert layout.width == sum(encoder.width for encoder in encoders)
    assert layout.columns[0].group == (0, 2)
    assert layout.columns[-1].position == layout.width - 3
    assert layout.columns[-1].group == (layout.width - 2, layout.width)
    assert len(layout.columns) == 2


@pytest.mark.parametrize(
    ("bounds", "kind", "dtype", "least"),
    [
        ((0, 99_999), "int", "uint8", 80),
        ((-1000, 1000), "int", "uint8", 80),
        ((0, 2**40), "int", "uint8", 80),
        ((-(2**31), 2**31 - 1), "int", "int8", 80),
        ((0, 1e12), "float", "float16", 120),
        ((-1e12, 1e12), "float", "float16", 120),
    ],
)
def test_the_grid_covers_what_a_narrow_dtype_can_hold(bounds, kind, dtype, least):
    encoder = encoder_of(Numeric(bounds, kind), dtype)
    assert least <= atom_layout([encoder], 128).n_codes[0] <= 132
    assert atom_layout([encoder], 4).n_codes[0] >= 3


def test_bounds_as_close_as_floats_can_be():
    encoder = encoder_of(Numeric((0, 5e-324)), "float64")
    assert atom_layout([encoder], 8).n_codes[0] >= 2
    assert codes_of(encoder, pd.Series([0.0, 5e-324]), 8)[0] == 0


@pytest.mark.parametrize("name", ["acs_national2019", "adult", "cervical", "compas", "nist_taxi"])
def test_real_tables_keep_what_has_an_atom_of_its_own(shared_data, name):
    frame, entries = shared_data.load(name)
    frame = frame.iloc[:: max(len(frame) // 2000, 1)].reset_index(drop=True)
    schema = Schema.from_dict(entries)
    undeclared = [n for n, column in schema.columns.items() if column.undeclared]
    schema, frame = schema.drop(undeclared), frame.drop(columns=undeclared)
    preprocessor = TabularPreprocessor.from_schema(schema).fit(frame)
    layout = atom_layout(preprocessor.encoders_.values(), 128)
    codes = layout.encode(preprocessor.transform(frame))
    rows = layout.decode(codes, np.random.default_rng(0).random(codes.shape))
    assert np.array_equal(layout.encode(rows), codes)
    back = preprocessor.inverse_transform(rows)
    kept = 0
    for column, encoder in preprocessor.encoders_.items():
        alone = atom_layout([encoder], 128).columns
        if alone and all(steps == 1 for steps in alone[0].steps):
            pd.testing.assert_series_equal(back[column], frame[column])
            kept += 1
        elif alone:
            assert back[column].isna().equals(frame[column].isna())
    assert kept >= 10
