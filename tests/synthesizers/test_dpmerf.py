"""DP-MERF: every variant of the paper, every kind of frame, generator and device."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn

from skdpgen import GaussianFeatures, PrivacyLedger, Schema, insecure_noise
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import (
    InputError,
    PrivacyParameterError,
    SkdpgenWarning,
)
from skdpgen.generators import ConvGenerator, MLPGenerator

TWO_NUMBERS = Schema({"a": Numeric((0, 1)), "b": Numeric((-5, 5))})


def two_numbers(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.random(n), "b": rng.uniform(-5, 5, n)})


# -- the variants of the paper ---------------------------------------------------------------------


def test_unlabeled_numbers(make):
    synthesizer = make(TWO_NUMBERS).fit(two_numbers())
    release = synthesizer.release_
    assert release.noisy_sums.shape == (1, 20)
    # Nobody needs the count of a table whose number of rows is public.
    assert release.noisy_counts.shape == (0,)
    assert release.n_rows == 50
    assert not hasattr(synthesizer, "classes_")
    sample = synthesizer.sample(200)
    assert sample["a"].between(0, 1).all()
    assert sample["b"].between(-5, 5).all()


def test_unlabeled_tables_of_private_size_count_their_rows(make):
    release = make(TWO_NUMBERS, adjacency="add-remove", epsilon=50).fit(two_numbers(400)).release_
    assert release.n_rows is None
    assert release.noisy_counts.shape == (1,)
    # Noise of 0.6 rows at count weight 0.2: 50 of its standard deviations.
    assert abs(release.row_count - 400) < 40


def test_bandwidths_and_count_weights_are_privacy_choices(make, schema, table):
    narrow, wide = (
        make(schema, features=GaussianFeatures(20, bandwidth=width))
        .fit(table)
        .release_.public_arrays["frequencies"]
        for width in (0.1, [0.2, 0.4])
    )
    # Same draws of a standard normal, divided by the bandwidth.
    assert np.abs(narrow[::2] - 2 * wide[::2]).max() <= 2 + np.abs(narrow).max() * 2**-9
    uncounted = make(schema, count_weight=0).fit(table)
    assert uncounted.release_.noisy_counts.shape == (0,)
    assert (uncounted.sample(10)["smoker"] == "yes").sum() == 5
    heavy = make(schema, count_weight=2).fit(table).release_
    free = make(schema).fit(table).release_
    assert heavy.sensitivity_squared > free.sensitivity_squared


def test_labeled_heterogeneous_table(make, schema, table):
    synthesizer = make(schema).fit(table)
    # 2 F features, then present/missing of income, four colors, two for member.
    assert synthesizer.release_.noisy_sums.shape == (2, 20 + 2 + 4 + 2)
    assert synthesizer.release_.noisy_counts.shape == (2,)
    assert synthesizer.classes_.tolist() == ["no", "yes"]
    assert synthesizer.feature_names_in_.tolist() == list(table.columns)
    assert synthesizer.n_features_in_ == 7
    sample = synthesizer.sample(100)
    assert sample.columns.tolist() == table.columns.tolist()
    assert sample.dtypes.equals(table.dtypes)
    assert set(sample["color"]) <= {"red", "green", "blue", "other"}
    assert sample["age"].between(18, 99).all()
    assert sample["key"].is_unique
    assert not set(sample["key"]) & set(table["key"])
    assert set(sample["remark"]) == {"-"}


def test_imbalanced_variant_weighs_classes_and_keeps_their_proportions(make, schema, table):
    with insecure_noise(seed=3):
        joint = make(schema, class_weight=None).fit(table)
        balanced = make(schema, class_weight="balanced")
    with insecure_noise(seed=3):
        balanced.fit(table)
    assert np.array_equal(joint.release_.noisy_sums, balanced.release_.noisy_sums)
    assert not np.array_equal(joint.loss_curve_, balanced.loss_curve_)
    expected = 1000 * joint.release_.class_proportions()
    counts = balanced.sample(1000)["smoker"].value_counts()[["no", "yes"]]
    assert np.abs(counts.to_numpy() - expected).max() < 1


@pytest.mark.parametrize("labeled", [False, True])
def test_images_get_the_convolutional_generator(make, labeled):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (40, 64), dtype=np.uint8)
    pixels = {f"x{i}": Numeric((0, 255), "int") for i in range(64)}
    label = {"digit": Categorical([0, 1, 2])} if labeled else {}
    schema = Schema(pixels | label, target="digit" if labeled else None, image_shape=(8, 8))
    y = rng.integers(0, 3, 40) if labeled else None
    synthesizer = make(schema).fit(X, y)
    assert isinstance(synthesizer.generator_.backbone, ConvGenerator)
    made = synthesizer.sample(6)
    images = made[0] if labeled else made
    assert images.shape == (6, 64)
    assert images.dtype == np.uint8
    if labeled:
        assert made[1].dtype == y.dtype
        assert set(made[1]) <= {0, 1, 2}


def test_images_of_a_default_column(make):
    X = np.random.default_rng(0).random((30, 64))
    schema = Schema({}, default=Numeric((0, 1)), image_shape=(8, 8))
    synthesizer = make(schema).fit(X)
    assert isinstance(synthesizer.generator_.backbone, ConvGenerator)
    assert synthesizer.sample(3).shape == (3, 64)


def test_numeric_target_in_the_table_or_as_y(make, exact_sums):
    schema = Schema({"a": Numeric((0, 1)), "b": Numeric((-5, 5))}, target="b")
    df = two_numbers()
    inside = make(schema).fit(df)
    assert inside.sample(4).columns.tolist() == ["a", "b"]
    beside = make(schema).fit(df[["a"]], df["b"])
    X, y = beside.sample(4)
    assert X.columns.tolist() == ["a"]
    assert y.name == "b"
    assert y.between(-5, 5).all()
    assert not hasattr(beside, "classes_")
    # Same features in the same order: one release either way.
    assert np.array_equal(exact_sums(make(schema), df), exact_sums(make(schema), df[["a"]], df.b))
    with pytest.raises(InputError, match="listed values"):
        beside.sample(2, y="balanced")


def test_categories_only(make):
    df = pd.DataFrame({"u": ["a", "b"] * 10, "v": ["k"] * 20})
    synthesizer = make(Schema({"u": Categorical(["a", "b"]), "v": Categorical(["k"])})).fit(df)
    assert synthesizer.release_.noisy_sums.shape == (1, 2)
    assert set(synthesizer.sample(20)["v"]) == {"k"}


def test_one_category_table_is_refused_before_anything_is_spent(make, noise_calls):
    ledger = PrivacyLedger()
    synthesizer = make(Schema({"v": Categorical(["k"])}), ledger=ledger)
    with pytest.raises(PrivacyParameterError, match="nothing to release"):
        synthesizer.fit(pd.DataFrame({"v": ["k"] * 5}))
    assert (ledger.entries, noise_calls) == ((), [])


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.filterwarnings("ignore:delta is larger")
def test_tables_of_one_or_two_rows(make, schema, table, n, adjacency):
    synthesizer = make(schema, adjacency=adjacency).fit(table.head(n))
    assert len(synthesizer.sample(5)) == 5


def test_one_class_only(make, schema, table):
    synthesizer = make(schema).fit(table.assign(smoker="no"))
    # The other class is public; noise decides its small share.
    assert synthesizer.classes_.tolist() == ["no", "yes"]
    assert synthesizer.sample(3, y=["yes"] * 3)["smoker"].tolist() == ["yes"] * 3
    declared = schema.with_columns({"smoker": {"values": ["no"]}})
    alone = make(declared).fit(table.assign(smoker="no"))
    assert set(alone.sample(5)["smoker"]) == {"no"}


def test_all_missing_columns_leave_the_others_alone(make, schema, table, exact_sums):
    nothing = pd.Series([np.nan] * len(table))
    synthesizer = make(schema).fit(table.assign(income=nothing))
    with_values = make(schema).fit(table)
    assert synthesizer.sample(3).dtypes.equals(with_values.sample(3).dtypes)
    full = exact_sums(make(schema), table).reshape(-1)[: 2 * 28].reshape(2, 28)
    empty = exact_sums(make(schema), table.assign(income=nothing))[: 2 * 28].reshape(2, 28)
    # Everything behind present/missing is the same to the last integer.
    assert np.array_equal(full[:, 22:], empty[:, 22:])


def test_keys_and_texts_never_reach_the_release(make, schema, table, exact_sums):
    shuffled = table.assign(key=table["key"].to_numpy()[::-1], remark="other words")
    assert np.array_equal(exact_sums(make(schema), table), exact_sums(make(schema), shuffled))


def test_missing_label_is_a_class_of_its_own(make):
    schema = Schema({"a": Numeric((0, 1)), "c": Categorical(["x", "y"], missing=True)}, target="c")
    df = pd.DataFrame({"a": [0.1, 0.2, 0.3], "c": ["x", None, "y"]})
    synthesizer = make(schema).fit(df)
    assert synthesizer.classes_.tolist() == ["x", "y", None]
    assert synthesizer.sample(2, y=[None, "x"])["c"].isna().tolist() == [True, False]
    assert synthesizer.sample(1, y=[np.nan])["c"].isna().all()


# -- frames ----------------------------------------------------------------------------------------


def test_polars_in_polars_out(make, schema, table):
    frame = pl.from_pandas(table)
    sample = make(schema).fit(frame).sample(5)
    assert isinstance(sample, pl.DataFrame)
    assert sample.schema == frame.schema
    wrapped = make(schema).fit(nw.from_native(frame)).sample(5)
    assert wrapped.schema == frame.schema
    X, y = make(schema).fit(frame.drop("smoker"), frame["smoker"]).sample(5)
    assert isinstance(y, pl.Series)
    assert y.name == "smoker"
    assert X.columns == frame.columns[:-1]


def test_numpy_with_a_target_among_integer_names(make):
    X = np.column_stack([np.linspace(0, 1, 20), np.arange(20) % 2])
    schema = Schema({0: Numeric((0, 1)), 1: Categorical([0, 1])}, target=1)
    synthesizer = make(schema).fit(X)
    assert synthesizer.release_.noisy_sums.shape == (2, 20)
    sample = synthesizer.sample(4, y=[1, 0, 1, 0])
    assert sample.dtype == X.dtype
    assert sample[:, 1].tolist() == [1, 0, 1, 0]


def test_table_with_target_and_table_with_y_give_the_same_release(make, schema, table, exact_sums):
    X = table.drop(columns="smoker")
    whole = exact_sums(make(schema), table)
    assert np.array_equal(whole, exact_sums(make(schema), X, table["smoker"]))
    assert np.array_equal(whole, exact_sums(make(schema), X, table["smoker"].tolist()))
    assert np.array_equal(whole, exact_sums(make(schema), X, table["smoker"].to_numpy()))
    assert np.array_equal(whole, exact_sums(make(schema), pl.from_pandas(table)))


@pytest.mark.parametrize("index", ["float", "dates", "repeated"])
def test_rows_are_matched_by_position_whatever_the_index(make, schema, table, index, exact_sums):
    labels = {
        "float": np.linspace(5.0, 6.0, 60),
        "dates": pd.date_range("2020-01-01", periods=60),
        "repeated": [0] * 60,
    }[index]
    y = table["smoker"].set_axis(labels)
    plain = exact_sums(make(schema), table)
    assert np.array_equal(plain, exact_sums(make(schema), table.drop(columns="smoker"), y))


@pytest.mark.parametrize("kind", ["make", "make_mixture"])
def test_order_of_rows_and_chunks_do_not_matter(
    kind, request, schema, table, monkeypatch, exact_sums
):
    make = request.getfixturevalue(kind)
    whole = exact_sums(make(schema), table)
    assert np.array_equal(whole, exact_sums(make(schema), table.iloc[::-1]))
    monkeypatch.setattr("skdpgen.features.mixed._CHUNK_ELEMENTS", 7 * 28)
    monkeypatch.setattr("skdpgen.privacy.batches._CHUNK", 9)
    monkeypatch.setattr("skdpgen.synthesizers._table._CHUNK_CELLS", 100)
    units = np.arange(60) // 2
    assert np.array_equal(whole, exact_sums(make(schema), table))
    y = table["smoker"]
    assert np.array_equal(whole, exact_sums(make(schema), table.drop(columns="smoker"), y))
    bounded = exact_sums(make(schema), table, unit_id=units)
    assert np.array_equal(bounded, exact_sums(make(schema), table.iloc[::2], unit_id=units[::2]))


# -- generators and devices ------------------------------------------------------------------------


class Line(nn.Module):
    """The smallest generator: one dense layer over noise and label."""

    noise_dim = 3

    def __init__(self, width, n_classes):
        super().__init__()
        self.layer = nn.Linear(3 + n_classes, width)

    def forward(self, noise, labels):
        return self.layer(torch.cat([noise, labels], dim=1))


def test_user_module_is_copied_and_trained(make):
    module = Line(2, 1)
    before = module.layer.weight.detach().clone()
    synthesizer = make(TWO_NUMBERS, generator=module).fit(two_numbers())
    assert isinstance(synthesizer.generator_.backbone, Line)
    assert synthesizer.generator is module
    assert torch.equal(module.layer.weight, before)
    assert not torch.equal(synthesizer.generator_.backbone.layer.weight, before)


def test_user_factory_gets_layout_and_classes(make, schema, table):
    seen = []

    def factory(layout, n_classes):
        seen.append((layout.width, n_classes))
        return MLPGenerator(layout, n_classes, hidden_sizes=(8,))

    synthesizer = make(schema, generator=factory).fit(table)
    assert seen == [(2 + 2 + 4 + 2, 2)]
    assert len(synthesizer.sample(3)) == 3


def test_device_is_a_post_processing_choice(make):
    synthesizer = make(TWO_NUMBERS, device="cpu").fit(two_numbers())
    assert {p.device.type for p in synthesizer.generator_.parameters()} == {"cpu"}
    assert len(synthesizer.loss_curve_) == 3


def test_divergence_is_reported_and_the_release_is_kept(make):
    with pytest.warns(SkdpgenWarning, match="retrain with a smaller learning_rate"):
        synthesizer = make(TWO_NUMBERS, learning_rate=1e30, n_steps=20).fit(two_numbers())
    assert len(synthesizer.loss_curve_) < 20
    assert len(synthesizer.retrain(learning_rate=0.01).loss_curve_) == 20
    assert len(synthesizer.ledger_.entries) == 1
