"""DP-MERF: training on a saved release, elsewhere and without rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import DPMERFSynthesizer, Release, Schema
from skdpgen.data import Categorical, Datetime, Id, Numeric, Text
from skdpgen.exceptions import InputError, ReleaseError


def test_a_saved_release_trains_elsewhere_to_the_same_rows(make, schema, table, tmp_path):
    synthesizer = make(schema).fit(table)
    path = tmp_path / "survey.release"
    synthesizer.release_.save(path)
    settings = {"n_steps": 3, "batch_size": 20, "random_state": 0}
    again = DPMERFSynthesizer.from_release(path, template=table.head(0), **settings)
    pd.testing.assert_frame_equal(again.sample(10), synthesizer.sample(10))
    assert again.classes_.tolist() == ["no", "yes"]
    assert again.get_params()["epsilon"] == 1.0
    usual = DPMERFSynthesizer.from_release(Release.load(path), **settings).sample(10)
    assert usual.columns.tolist() == table.columns.tolist()
    assert (
        usual["age"].tolist()
        == DPMERFSynthesizer.from_release(path, template=pl.from_pandas(table), **settings)
        .sample(10)["age"]
        .to_list()
    )


def test_from_release_keeps_the_columns_apart_whatever_their_order(make):
    # Schema and frame in different order: the two numbers must not change places.
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"b": rng.uniform(-5, 5, 200), "a": rng.random(200)})
    schema = Schema({"a": Numeric((0, 1)), "b": Numeric((-5, 5))})
    synthesizer = make(schema, epsilon=100).fit(df)
    again = DPMERFSynthesizer.from_release(
        synthesizer.release_, n_steps=3, batch_size=20, random_state=0
    )
    pd.testing.assert_frame_equal(again.sample(10), synthesizer.sample(10))
    turned = DPMERFSynthesizer.from_release(
        synthesizer.release_, template=df[["a", "b"]], n_steps=3, batch_size=20, random_state=0
    )
    pd.testing.assert_frame_equal(turned.sample(10)[["b", "a"]], synthesizer.retrain().sample(10))


@pytest.mark.parametrize(
    ("column", "cells", "kind"),
    [
        (Numeric((0, 9), "int", missing=True), pd.array([1, 2, 3], "int64"), "i"),
        (Numeric((0.5, 1.2)), pd.array([1, 1, 1], "int64"), "i"),
        (Numeric((2**63, 2**63 + 9), "int"), pd.array([2**63] * 3, "uint64"), "u"),
        (
            Datetime(("2020-01-01T00:00+00:00", "2021-01-01T00:00+00:00")),
            pd.to_datetime(["2020-03-01"] * 3, utc=True),
            "M",
        ),
        (Categorical([True, False], missing=True), pd.array([True, None, False], "boolean"), "b"),
        (Id(), ["a", "b", "c"], "i"),
        (Text(), ["a", "b", "c"], "O"),
    ],
)
def test_usual_dtypes_are_encoded_as_the_fitted_ones(make, column, cells, kind):
    schema = Schema({"v": column, "a": Numeric((0, 1))})
    synthesizer = make(schema).fit(pd.DataFrame({"v": cells, "a": [0.1, 0.2, 0.3]}))
    again = DPMERFSynthesizer.from_release(synthesizer.release_, n_steps=2)
    assert again.sample(3)["v"].dtype.kind == kind


def test_from_release_takes_post_processing_parameters_only(make, schema, table):
    release = make(schema).fit(table).release_
    with pytest.raises(InputError, match="'epsilon' isn't a post-processing parameter"):
        DPMERFSynthesizer.from_release(release, epsilon=9.0)


def test_a_template_that_is_encoded_otherwise_is_refused(make, schema, table):
    release = make(schema).fit(table).release_
    with pytest.raises(ReleaseError, match="doesn't fit the release"):
        # An integer column has no missing values, so it lacks two features.
        DPMERFSynthesizer.from_release(release, template=table.assign(income=1))


def test_names_that_json_cannot_hold_need_the_synthesizer_itself(make):
    schema = Schema({("a", 1): Numeric((0, 1))})
    synthesizer = make(schema).fit(pd.DataFrame({("a", 1): [0.1, 0.2]}))
    assert synthesizer.sample(2).columns.tolist() == [("a", 1)]
    with pytest.raises(ReleaseError, match="carries no schema"):
        DPMERFSynthesizer.from_release(synthesizer.release_)
