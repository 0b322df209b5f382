import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    PrivacyLedger,
    Schema,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
)
from skdpgen.evaluation._shadows import Shadows, joined, rows_at, vector
from skdpgen.training.progress import watching

SCHEMA = Schema.from_dict(
    {
        "target": "smoker",
        "columns": {
            "id": {"kind": "id"},
            "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
            "weight": {"kind": "numeric", "bounds": [0, 1], "dtype": "float", "missing": [""]},
            "day": {"kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"]},
            "member": {"kind": "boolean"},
            "smoker": {"kind": "label", "values": ["no", "yes"]},
        },
    }
)


def test_what_is_made_up_fits_the_schema():
    shadows = Shadows(DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA), few=True)
    rows = shadows.public_rows(300, np.random.default_rng(0))
    assert list(rows) == list(SCHEMA.columns)
    assert rows["age"].between(18, 90).all()
    # At the bounds half of the time, and in between.
    assert {18, 90} < set(rows["age"])
    assert rows["weight"].isna().any()
    assert set(rows["smoker"]) == {"no", "yes"}
    assert rows["day"].between("2020-01-01", "2020-12-31").all()
    low, high = shadows.opposite_rows()
    assert (low["age"].item(), high["age"].item()) == (18, 90)
    assert (low["smoker"].item(), high["smoker"].item()) == ("no", "yes")


def test_nobody_is_told_of_shadow_fits():
    synthesizer = DPMERFSynthesizer(
        1.0, 1e-5, schema=SCHEMA, n_steps=1, features=InteractionFeatures(5, n_bins=4)
    )
    told = []

    class Callback:
        def setup(self, estimator, context):
            told.append(estimator)

        on_fit_task_begin = on_fit_task_end = teardown = setup

    if hasattr(synthesizer, "set_callbacks"):  # of scikit-learn 1.9 and later
        synthesizer.set_callbacks(Callback())
    shadows = Shadows(synthesizer, few=False)
    table = shadows.public_rows(5, np.random.default_rng(0))
    with watching(lambda *call: told.append(call)):
        shadows.synthetic(table)
        shadows.release(table)
    assert told == []


def test_releases_of_a_copy_with_the_same_features_each_time():
    own = PrivacyLedger()
    synthesizer = DPMERFSynthesizer(
        1.0, 1e-5, schema=SCHEMA, ledger=own, features=GaussianFeatures(20)
    )
    shadows = Shadows(synthesizer, few=False)
    assert shadows.changed == {}
    table = shadows.public_rows(5, np.random.default_rng(0))
    first, second = shadows.release(table), shadows.release(table)
    assert first.public_arrays["frequencies"].tobytes() == (
        second.public_arrays["frequencies"].tobytes()
    )
    assert (vector(first) != vector(second)).any()
    exact = shadows.without_noise(table)
    assert not exact.private
    assert (vector(exact) == vector(shadows.without_noise(table))).all()
    # What was made without noise isn't among the spends, and nothing is in the user's ledger.
    assert [entry.private for entry in shadows.ledger.entries] == [True, True]
    assert own.entries == ()
    assert not hasattr(shadows._copy, "generator_")
    assert not hasattr(synthesizer, "release_")


@pytest.mark.parametrize(
    ("synthesizer", "changed"),
    [
        (SlicedFDivSynthesizer(1.0, 1e-5, schema=SCHEMA), {"n_slices": 8}),
        (SlicedFDivSynthesizer(1.0, 1e-5, schema=SCHEMA, n_slices=3), {"n_slices": 3}),
        (SlicedRowsSynthesizer(1.0, 1e-5, schema=SCHEMA), {"n_slices": 4}),
        (SlicedRowsSynthesizer(1.0, 1e-5, schema=SCHEMA, slice_dim=2), {"n_slices": 2}),
    ],
)
def test_few_slices(synthesizer, changed):
    assert Shadows(synthesizer, few=True).changed == changed


def test_a_frame_has_as_many_slices_as_make_it_up():
    synthesizer = SlicedRowsSynthesizer(10.0, 1e-5, schema=SCHEMA, directions="frame", n_slices=90)
    shadows = Shadows(synthesizer, few=True)
    row = shadows.opposite_rows()[0]
    release = shadows.release(row)
    assert release.layout.n_directions == release.layout.dimension
    assert shadows.projected_row(row).shape == (release.layout.dimension,)


def test_few_features():
    auto = Shadows(DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA), few=True).changed["features"]
    assert isinstance(auto, InteractionFeatures)
    assert (auto.n_frequencies, auto.n_bins) == (8, 4)
    chosen = InteractionFeatures(6, orders=(1,), n_bins=16)
    synthesizer = DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, features=chosen)
    few = Shadows(synthesizer, few=True).changed["features"]
    assert (few.n_frequencies, few.orders) == (6, (1,))
    # The user's own object stays as it is.
    assert chosen.n_bins == 16
    image = Schema.from_dict(
        {
            "image_shape": [2, 2],
            "target": None,
            "columns": {
                f"p{i}": {"kind": "numeric", "bounds": [0, 255], "dtype": "int"} for i in range(4)
            },
        }
    )
    few = Shadows(DPMERFSynthesizer(1.0, 1e-5, schema=image), few=True).changed["features"]
    assert isinstance(few, GaussianFeatures)


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, lambda d: np.array(list(d.values())).T]
)
def test_rows_of_all_kinds_of_tables(kind):
    table = kind({"a": [1, 2, 3], "b": [4, 5, 6]})
    both = joined(rows_at(table, [2, 0]), rows_at(table, np.array([1])))
    assert type(both) is type(table)
    assert np.asarray(both).tolist() == [[3, 6], [1, 4], [2, 5]]


def test_a_random_state_object_is_not_used_up():
    state = np.random.RandomState(0)
    synthesizer = DPMERFSynthesizer(1.0, 1e-5, schema=SCHEMA, random_state=state)
    before = clone(synthesizer).random_state.get_state()[2]
    Shadows(synthesizer, few=True)
    assert state.get_state()[2] == before
