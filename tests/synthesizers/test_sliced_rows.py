"""The rows mechanism as an estimator: what it takes, warns of, releases and refuses."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from skdpgen import MixtureGenerator, PrivacyLedger, Schema, SlicedRowsSynthesizer, insecure_noise
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import (
    BudgetExceededError,
    InputError,
    PrivacyWarning,
    ReleaseError,
    SkdpgenWarning,
)
from skdpgen.privacy import SlicingRelease

SCHEMA = Schema(
    {
        "kind": Categorical(["a", "b", "c"]),
        "x": Numeric((0, 10)),
        "y": Categorical(["no", "yes"]),
        "z": Numeric((-1, 1), missing=True),
    },
    target="y",
)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n)
    z = rng.uniform(-1, 1, n)
    z[::7] = np.nan
    return pd.DataFrame(
        {
            "kind": rng.choice(["a", "b", "c"], n),
            "x": x,
            "y": np.where(x > 5, "yes", "no"),
            "z": z,
        }
    )


def make(epsilon=400.0, **params):
    settings = {"n_slices": 6, "n_steps": 3, "batch_size": 16, "device": "cpu", "random_state": 0}
    return SlicedRowsSynthesizer(epsilon, 1e-5, schema=SCHEMA, **{**settings, **params})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"slice_dim": 2},
        {"directions": "frame", "n_slices": 9},
        {"divergence": "sliced_wasserstein"},
        {"divergence": "mmd", "slice_dim": 3},
    ],
)
def test_fit_and_sample(params):
    synthesizer = make(**params).fit(table())
    sample = synthesizer.sample(50)
    pd.testing.assert_series_equal(sample.dtypes, table().dtypes)
    assert sample["x"].between(0, 10).all()
    assert sample["z"].isna().any()
    assert synthesizer.release_.n_rows == 400
    assert synthesizer.ledger_.spent(1e-5) == pytest.approx(400.0, rel=1e-3)
    assert np.isfinite(synthesizer.loss_curve_).all()


def test_the_projection_of_training_is_that_of_the_release():
    """Without noise and with hard rows the loss compares a table to itself."""
    from skdpgen.synthesizers._noisy_rows import row_batches
    from skdpgen.synthesizers._table import TableCodec

    frame = table()
    with insecure_noise(scale=0):
        synthesizer = make().fit(frame)
    release = synthesizer.release_
    codec = TableCodec.build(frame, None, SCHEMA.unlabeled())
    ((rows, _),) = codec.encode(frame, None)
    plan = synthesizer._plan_for_release()
    seen = {}

    def record(generator, loss, floor, settings):
        seen["loss"] = loss
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdpgen.synthesizers._noisy_rows.descend", record)
        with pytest.raises(InterruptedError):
            plan.train(release)
    directions = seen["loss"]._directions.numpy()
    projected = np.einsum("nw,wmk->nmk", rows, directions)
    # Rows are shuffled: compare the values of each slice in order. Grid, weights and values are
    # rounded to at least 2^-16.
    expected = np.sort(release.projections(), axis=0)
    assert np.sort(projected, axis=0) == pytest.approx(expected, abs=1e-3)
    (batch,) = row_batches(codec, frame)
    assert batch.codes.shape == (400, 3)


def test_slices_without_noise_teach_a_dependence():
    """A network trained on exact slices gets the label from the number."""
    with insecure_noise(scale=0):
        synthesizer = make(n_slices=40, n_steps=600, batch_size=128).fit(table(2000))
    sample = synthesizer.sample(2000, random_state=0)
    gap = sample["x"][sample["y"] == "yes"].mean() - sample["x"][sample["y"] == "no"].mean()
    # 5 in the table; 0 without a dependence.
    assert gap > 2


def test_warnings_before_and_after_the_rows(monkeypatch):
    # Before: no table of 400 rows shows at epsilon = 1, and no row is read for saying so.
    read = []
    encode = "skdpgen.synthesizers._table.TableCodec.encode"
    monkeypatch.setattr(encode, lambda *_: read.append(1) or iter(()))
    with (
        pytest.warns(SkdpgenWarning, match="hides everything") as caught,
        pytest.raises(RuntimeError, match="stop"),
    ):
        make(1.0, ledger=Stopping()).fit(table())
    assert not read
    assert all("SlicedFDivSynthesizer" in str(w.message) for w in caught)


class Stopping(PrivacyLedger):
    def charge(self, entry):
        raise RuntimeError("stop")


def test_a_warning_after_the_release_where_this_table_shows_nothing():
    constant = table(2000).assign(kind="a", x=5.0, y="no", z=0.0)
    with pytest.warns(SkdpgenWarning, match="no more variance than their noise"):
        make(40.0).fit(constant)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(400.0).fit(table(2000))


def test_a_large_delta_is_warned_of():
    with pytest.warns(PrivacyWarning, match="delta is larger"):
        SlicedRowsSynthesizer(400.0, 0.01, schema=SCHEMA, n_slices=2, n_steps=2).fit(table())


def test_from_a_saved_release(tmp_path):
    frame = table()
    synthesizer = make(directions="frame", n_slices=9).fit(frame)
    synthesizer.release_.save(tmp_path / "release")
    settings = {"n_steps": 3, "batch_size": 16, "device": "cpu", "random_state": 0}
    again = SlicedRowsSynthesizer.from_release(
        tmp_path / "release", template=frame.head(0), **settings
    )
    assert isinstance(again.release_, SlicingRelease)
    assert (again.n_slices, again.slice_dim, again.directions) == (9, 1, "frame")
    pd.testing.assert_frame_equal(
        again.sample(20, random_state=1), synthesizer.sample(20, random_state=1)
    )
    with pytest.raises(ReleaseError, match="doesn't fit the release"):
        SlicedRowsSynthesizer.from_release(
            tmp_path / "release", template=frame.head(0).assign(z=pd.Series([], dtype="int64"))
        )


def test_retraining_is_free_and_refuses_privacy_parameters():
    synthesizer = make().fit(table())
    synthesizer.retrain(divergence="tv", n_steps=2)
    assert len(synthesizer.ledger_.entries) == 1
    for name in ("epsilon", "delta", "schema", "n_slices", "slice_dim", "directions", "ledger"):
        with pytest.raises(InputError, match=f"'{name}' isn't a post-processing parameter"):
            synthesizer.retrain(**{name: 1})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_slices": 0}, "positive integers"),
        ({"slice_dim": 1.5}, "positive integers"),
        ({"directions": "sparse"}, "'gaussian' or 'frame'"),
        ({"directions": "frame", "n_slices": 4}, "multiple of the dimension"),
        ({"divergence": "energy"}, "divergence must be one of"),
        ({"divergence": "sliced_wasserstein", "slice_dim": 2}, "slices of dimension 1"),
        ({"generator": MixtureGenerator()}, "noisy rows train a network"),
        ({"generator": "mixture"}, "noisy rows train a network"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"epsilon": 0}, "epsilon must be"),
    ],
)
def test_bad_parameters_cost_nothing(params, message):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=message):
        make(**{"ledger": ledger, **params}).fit(table())
    assert not ledger.entries


def test_a_target_beside_the_table_is_refused():
    frame = table()
    with pytest.raises(InputError, match="a column of X"):
        make().fit(frame.drop(columns="y"), frame["y"])


def test_a_full_ledger_refuses_before_rows_are_read():
    ledger = PrivacyLedger(500.0, 1e-5)
    make(ledger=ledger).fit(table())
    with pytest.raises(BudgetExceededError):
        make(ledger=ledger).fit(table())
    assert len(ledger.entries) == 1


def test_directions_and_noise_are_new_in_every_fit():
    first, second = (make().fit(table()).release_ for _ in range(2))
    assert not np.array_equal(first.directions, second.directions)
    assert not np.array_equal(first.noisy_rows, second.noisy_rows)


def test_no_row_and_no_label_is_reachable_from_the_pickle():
    frame = table().assign(x=np.linspace(3.14159, 3.1416, 400))
    blob = pickle.dumps(make().fit(frame))
    assert frame["x"].to_numpy().tobytes()[:64] not in blob
    assert np.float64(frame["x"][7]).tobytes() not in blob
    restored = pickle.loads(blob)
    assert len(restored.sample(3)) == 3
    assert not hasattr(restored, "classes_")


def test_training_is_reproducible():
    release = make().fit(table()).release_
    first, second = (
        SlicedRowsSynthesizer.from_release(
            release, n_steps=5, batch_size=16, device="cpu", random_state=3
        ).generator_.state_dict()
        for _ in range(2)
    )
    assert all(torch.equal(weight, second[name]) for name, weight in first.items())
