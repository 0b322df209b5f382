"""Ledger entries: plain numbers in range, or refused."""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.entries import LedgerEntry, check_adjacency

ENTRY = LedgerEntry("test", 4, 8.0, "replace-one", "row", 1, 1.0, 1e-5)


def test_mu_is_sensitivity_over_noise():
    assert ENTRY.mu == 0.25
    assert replace(ENTRY, noise_stddev=0.0).mu == math.inf
    assert replace(ENTRY, private=False).mu == math.inf


def test_an_entry_is_frozen():
    with pytest.raises(FrozenInstanceError):
        ENTRY.noise_stddev = 1e9


@pytest.mark.parametrize(
    "change",
    [
        {"noise_stddev": math.nan},  # would pass every cap: no comparison with NaN is true
        {"noise_stddev": math.inf},
        {"noise_stddev": -1.0},
        {"sensitivity_squared": 0},
        {"sensitivity_squared": -4},
        {"sensitivity_squared": 4.0},
        {"sensitivity_squared": np.int64(4)},
        {"sensitivity_squared": 2**121},
        {"sensitivity_squared": True},
        {"adjacency": "substitute"},
        {"unit": "patient"},
        {"unit": "unit", "rows_per_unit": 0},
        {"rows_per_unit": 40},  # then the unit isn't a row
        {"unit": "unit", "rows_per_unit": 2**20 + 1},
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"delta": 2.0},
        {"delta": math.nan},
        {"private": "yes"},
        {"noise_stddev": "8"},
        {"epsilon": np.float32(1)},  # JSON can't store it
        {"delta": False},
        {"mechanism": "two\nlines"},
        {"mechanism": "x" * 201},
        {"mechanism": None},
        {"reason": "a look"},  # at rows that noise protects
        {"reason": "a look", "private": False},
        {"reason": "a look", "noise_stddev": 0.0},
        {"reason": "a look", "private": False, "noise_stddev": 0.0, "extra_delta": 1e-9},
        {"reason": None, "private": False, "noise_stddev": 0.0},
        {"extra_delta": -1e-9},
        {"extra_delta": 1.0},
        {"extra_delta": math.nan},
    ],
)
def test_a_field_out_of_range_is_refused(change):
    with pytest.raises(PrivacyParameterError):
        replace(ENTRY, **change)


def test_check_adjacency():
    assert check_adjacency("replace-one") == "replace-one"
    assert check_adjacency("add-remove") == "add-remove"
    for other in ("replace_one", None, 1):
        with pytest.raises(PrivacyParameterError, match="'replace-one' or 'add-remove'"):
            check_adjacency(other)


SLICING = replace(ENTRY, n_directions=50, dimension=7, value_step=1.5)


def test_no_mu_describes_a_slicing_release():
    assert SLICING.mu == math.inf
    facts = {"n_directions": 50, "dimension": 7, "diameter": 2.0, "value_step": 1.5}
    assert SLICING.slicing == facts
    assert ENTRY.slicing["n_directions"] == 0


def test_what_is_protected():
    for entry in (ENTRY, SLICING):
        assert entry.protected
        assert not replace(entry, noise_stddev=0.0).protected
        assert not replace(entry, private=False).protected


@pytest.mark.parametrize(
    "change",
    [
        {"n_directions": 0},
        {"dimension": 0},
        {"n_directions": -1},
        {"n_directions": 50.0},
        {"dimension": 2**20 + 1},
        {"dimension": True},
        {"value_step": -1.0},
        {"value_step": math.nan},
        {"value_step": math.inf},
        {"adjacency": "add-remove"},
        {"unit": "unit"},
        {"rows_per_unit": 2},
    ],
)
def test_a_slicing_entry_out_of_range_is_refused(change):
    with pytest.raises(PrivacyParameterError):
        replace(SLICING, **change)
