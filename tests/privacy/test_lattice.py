"""Integer Fourier features: exact, row by row, never beyond the norm."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpgen.privacy.lattice import (
    GRID_BITS,
    IntegerFourier,
    quantize_frequencies,
    to_grid,
    trig_table,
)


def fourier(n_frequencies=50, n_columns=7, scale=3.0, lattice_bits=24):
    cycles = np.random.default_rng(0).normal(size=(n_frequencies, n_columns)) * scale
    return IntegerFourier(*quantize_frequencies(cycles), lattice_bits)


def grid(n, n_columns=7, seed=1):
    return to_grid(np.random.default_rng(seed).random((n, n_columns)))


def test_to_grid_rounds_and_is_total():
    z = np.array([0.0, 1.0, 0.5, 2.0**-21 * 1.01, -3.0, 7.0, np.inf, -np.inf, np.nan, 1e308, -0.0])
    one = 2**GRID_BITS
    expected = [0, one, one // 2, 1, 0, one, one, 0, one // 2, one, 0]
    with np.errstate(all="raise"):
        assert to_grid(z).tolist() == expected
        assert to_grid(z[:9].astype(np.float32)).tolist() == expected[:9]


def test_quantized_frequencies_are_close():
    cycles = np.array([[0.3, -1.7], [2.0, 0.0]])
    frequencies, bits = quantize_frequencies(cycles)
    assert bits == 22
    assert frequencies.dtype == np.int64
    assert np.abs(frequencies / 2**22 - cycles).max() <= 2.0**-23


@pytest.mark.parametrize("size", [1.0, 2e3, 1e4, 1e5, 1e6, 1e7])
def test_phases_are_exact_for_every_accepted_frequency(size):
    frequencies, bits = quantize_frequencies(np.full((1, 3), size))
    assert 8 <= bits <= 22
    # The largest phase, in exact integers, and half a step for the rounding to the table.
    assert 3 * int(frequencies[0, 0]) * 2**GRID_BITS < 2**53


@pytest.mark.parametrize("size", [1.2e7, 1e300, np.inf, np.nan])
def test_too_large_frequencies_are_refused(size):
    with pytest.raises(ValueError, match="too large for exact phases: choose a larger bandwidth"):
        quantize_frequencies(np.full((1, 3), size))


def test_no_frequencies():
    frequencies, bits = quantize_frequencies(np.zeros((0, 3)))
    features = IntegerFourier(frequencies, bits, 24)
    assert features(grid(5, 3)).shape == (5, 0)
    frequencies, bits = quantize_frequencies(np.zeros((4, 0)))  # frequencies over no columns
    assert (IntegerFourier(frequencies, bits, 24)(grid(2, 0))[:, :4] == 2**23).all()


@pytest.mark.parametrize(
    ("frequencies", "bits", "message"),
    [
        (np.full((1, 1), 2**33), 8, "too large"),
        (np.full((1, 1), 2**62), 8, "too large"),
        (np.full((1, 1), 0.5), 8, "int64 matrix"),  # fractions: products would round
        (np.full((1, 1), 1, dtype=np.int32), 8, "int64 matrix"),
        (np.full(3, 1), 8, "int64 matrix"),
        (np.full((1, 1), 1), -5, "resolution"),
        (np.full((1, 1), 1), 60, "resolution"),
    ],
)
def test_inexact_features_are_refused(frequencies, bits, message):
    with pytest.raises(ValueError, match=message):
        IntegerFourier(frequencies, bits, 24)


def test_features_against_exact_integer_arithmetic():
    features, rows = fourier(), grid(20)
    turn = 2 ** (features.frequency_bits + GRID_BITS)
    step = turn // 2**16
    table = trig_table(features.amplitude)
    values = features(rows)
    for i, row in enumerate(rows.tolist()):
        for f, frequency in enumerate(features.frequencies.tolist()):
            phase = sum(a * b for a, b in zip(row, frequency, strict=True)) % turn
            index = (phase + step // 2) // step % 2**16
            assert values[i, f] == table[0, index]
            assert values[i, len(features.frequencies) + f] == table[1, index]


def test_features_are_close_to_cosines():
    features, rows = fourier(), grid(200)
    angle = (
        2 * math.pi * (rows / 2**GRID_BITS) @ (features.frequencies.T / 2**features.frequency_bits)
    )
    expected = np.hstack([np.cos(angle), np.sin(angle)]) * features.amplitude
    # Half a table step, 2 pi / 2^17, and the truncation.
    limit = features.amplitude * math.pi / 2**16 + 2
    assert np.abs(features(rows) - expected).max() <= limit


@pytest.mark.parametrize("n_columns", [1, 7, 64])
def test_a_row_is_the_same_at_every_position_and_in_every_chunk(n_columns):
    features, rows = fourier(n_columns=n_columns), grid(500, n_columns)
    whole = features(rows)
    for start, stop in [(0, 1), (1, 4), (3, 130), (130, 500), (499, 500)]:
        assert np.array_equal(features(rows[start:stop]), whole[start:stop])
    order = np.random.default_rng(2).permutation(500)
    assert np.array_equal(features(rows[order]), whole[order])
    assert np.array_equal(features(np.asfortranarray(rows)), whole)
    assert np.array_equal(features(np.repeat(rows, 2, axis=0)[::2]), whole)


@given(
    st.lists(
        st.lists(st.integers(0, 2**GRID_BITS), min_size=3, max_size=3), min_size=1, max_size=4
    ),
    st.integers(1, 9),
    st.sampled_from([2, 18, 24, 26, 30]),
)
def test_the_norm_is_never_exceeded(rows, n_frequencies, lattice_bits):
    features = fourier(n_frequencies, 3, lattice_bits=lattice_bits)
    for row in features(np.array(rows, dtype=np.int64)).tolist():
        assert sum(v * v for v in row) <= 4**lattice_bits


AMPLITUDES = [0, 1, 2, 3, 5, 13, 90, 181, 1000, 46_341, 65_537, 237_266, 2**24, 2**26, 2**29 + 1]
AMPLITUDES += [2**30, 2**31 - 1, *np.random.default_rng(3).integers(1, 2**30, 25).tolist()]


@pytest.mark.parametrize("amplitude", AMPLITUDES)
def test_no_entry_of_the_table_exceeds_the_amplitude(amplitude):
    # Squares below 2^62 each: the sum fits into uint64.
    table = trig_table(amplitude)
    squares = (table.astype(np.int64) ** 2).astype(np.uint64).sum(axis=0)
    assert int(squares.max()) <= amplitude**2
    # Truncation costs less than one step, the mend at most one more.
    angle = 2 * math.pi * np.arange(2**16) / 2**16
    waves = amplitude * np.stack([np.cos(angle), np.sin(angle)])
    assert np.abs(table - waves).max() <= 2
    assert (np.abs(table) <= np.abs(waves) + 1e-6 * amplitude + 1e-9).all()
    # The four axes.
    quarter = 2**14
    assert table[0, 0] == table[1, quarter] == amplitude
    assert table[0, 2 * quarter] == table[1, 3 * quarter] == -amplitude


def test_the_table_is_mended_where_it_is_needed(monkeypatch):
    # A C library that rounds a cosine up past an integer: the check in integers sees it.
    cos = np.cos
    monkeypatch.setattr(np, "cos", lambda angle: np.where(angle == 0, 1 + 1e-9, cos(angle)))
    table = trig_table(2**30)
    assert table[0, 0] == 2**30
    assert int((table**2).astype(np.uint64).sum(axis=0).max()) <= 2**60


def test_amplitude_is_the_largest_integer_within_the_bound():
    for n_frequencies in (1, 2, 3, 50, 5000):
        amplitude = fourier(n_frequencies, 1).amplitude
        assert n_frequencies * amplitude**2 <= 2**48 < n_frequencies * (amplitude + 1) ** 2
