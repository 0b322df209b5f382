"""Mixtures on interaction features through the synthesizer: targets, plans, what they refuse."""

import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    Schema,
    insecure_noise,
)
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import InputError, PrivacyParameterError
from skdpgen.features import InteractionFeatureMap
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.generators import Generator, ProductMixture
from skdpgen.synthesizers._mixture import plan_mixture
from skdpgen.synthesizers._mixture_target import mixture_target
from skdpgen.training import MixtureSettings


def test_tables_get_a_mixture_and_images_a_network(make, schema, table):
    cheap = {"features": "auto", "generator": "auto"}
    assert isinstance(make(schema, **cheap).fit(table).generator_, ProductMixture)
    image = Schema({}, default=Numeric((0, 1)), image_shape=(4, 4))
    pixels = np.random.default_rng(0).random((20, 16))
    assert isinstance(make(image, **cheap).fit(pixels).generator_, Generator)


def test_targets_are_exact_means_and_shares_on_their_scales(make_mixture, schema, table):
    with insecure_noise(scale=0):
        synthesizer = make_mixture(schema).fit(table)
    release = synthesizer.release_
    features = InteractionFeatureMap.from_release(release)
    settings = MixtureSettings(batch_size=1000)
    target = mixture_target(features, release, settings, balanced=True)
    ((rows, labels),) = synthesizer._codec.encode(table, None)
    codes = features.atoms.encode(rows)
    one_hot = np.eye(2)[labels]
    tables = [one_hot.T @ np.eye(n)[codes[:, j]] / 60 for j, n in enumerate(features.atoms.n_codes)]
    assert target.one_way == pytest.approx(np.concatenate(tables, axis=1), abs=1e-6)
    waves = []
    # Four harmonics under replace-one: squared amplitudes 4 : 3 : 2 : 1 with mean 1.
    for subset, phases in zip(features.subsets, features.phases, strict=True):
        turns = sum(p[codes[:, j]].astype(float) for j, p in zip(subset, phases, strict=True))
        for k in (1, 2, 3, 4):
            amplitude = np.sqrt((5 - k) / 2.5)
            waves.append(amplitude * one_hot.T @ np.exp(2j * np.pi * k * turns / 2**16) / 60)
    waves = np.concatenate(waves, axis=1)
    (group,) = target.groups
    # Groups shuffle blocks of frequencies: compare them as sets, in the order of their sizes.
    found = group.embedding.T
    for label in (0, 1):
        assert np.sort_complex(found[label].round(4)) == pytest.approx(
            np.sort_complex(waves[label].round(4)), abs=3e-4
        )
    assert target.proportions == pytest.approx(one_hot.mean(axis=0), abs=1e-6)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_stated_noise_is_that_of_the_target(make_mixture, schema, table, adjacency):
    release = make_mixture(schema, adjacency=adjacency).fit(table).release_
    features = InteractionFeatureMap.from_release(release)
    target = mixture_target(features, release, MixtureSettings(), balanced=False)
    # Shares (1 - b) / F and b / q of the squared norm, over the number of rows.
    scale = release.noise_stddev / 2.0**release.spec.lattice_bits / release.row_count
    q = len(features.atoms.columns)
    assert target.feature_stddev == pytest.approx(scale * np.sqrt(60 / 0.8), rel=1e-3)
    assert target.one_way_stddev == pytest.approx(scale * np.sqrt(q / 0.2), rel=1e-3)
    assert target.one_way_weight == pytest.approx((0.2 / q) / 0.8, rel=1e-3)
    assert target.class_weights.tolist() == [1, 1]
    # Free counts: at W^2 = S / 4 another label costs as much as the largest distance of two rows.
    weight = 0.2 if adjacency == "add-remove" else np.sqrt(0.8 / 4)
    steps = release.spec.count_steps / 2.0**release.spec.lattice_bits
    assert steps == pytest.approx(weight, rel=1e-4)
    bound = 1 + 0.04 if adjacency == "add-remove" else 2.5 * 0.8 + 2 * 0.2
    one = 4.0**release.spec.lattice_bits
    assert release.sensitivity_squared / one == pytest.approx(bound, rel=1e-5)


def test_rare_classes_get_more_weight_up_to_a_limit(make_mixture):
    schema = Schema(
        {"x": Numeric((0, 1)), "y": Categorical(["often", "seldom", "hardly"])}, target="y"
    )
    y = ["often"] * 900 + ["seldom"] * 99 + ["hardly"]
    df = pd.DataFrame({"x": np.linspace(0, 1, 1000), "y": y})
    with insecure_noise(scale=0):
        release = make_mixture(schema).fit(df).release_
    features = InteractionFeatureMap.from_release(release)
    weights = mixture_target(features, release, MixtureSettings(), balanced=True).class_weights
    expected = 1 / np.sqrt([0.9, 0.099, 0.01])
    assert weights == pytest.approx(expected / expected.mean(), rel=1e-3)


def plan(generator=None, **changes):
    settings = {
        "what": "features",
        "otherwise": "others",
        "n_steps": None,
        "batch_size": None,
        "learning_rate": None,
        "balanced": True,
        "device": "cpu",
        "seeds": np.random.SeedSequence(0),
    }
    return plan_mixture(generator or MixtureGenerator(), **{**settings, **changes})


def settings_used(monkeypatch, made, stddev, features=None):
    """What a plan fits a release with, in which features have this noise."""
    used = []

    class Stop(Exception):
        pass

    class Target:
        feature_stddev = stddev

    def fit(target, settings):
        used.append(settings)
        raise Stop

    module = "skdpgen.synthesizers._mixture"
    monkeypatch.setattr(f"{module}.feature_map_of", lambda release: features)
    monkeypatch.setattr(f"{module}.mixture_target", lambda *_: Target)
    monkeypatch.setattr(f"{module}.fit_mixture", fit)
    with pytest.raises(Stop):
        made.train(None)
    return used[0]


def test_defaults_follow_the_noise_and_choices_stay(monkeypatch):
    noisy = settings_used(monkeypatch, plan(), 0.1)
    assert (noisy.n_components, noisy.n_mixtures, noisy.learning_rate) == (400, 4, 0.03)
    usual = settings_used(monkeypatch, plan(), 0.01)
    assert (usual.n_components, usual.n_mixtures, usual.learning_rate) == (400, 4, 0.05)
    assert (noisy.floor_ratio, usual.floor_ratio) == (1.0, 0.97)
    asked = settings_used(monkeypatch, plan(MixtureGenerator(floor_ratio=0.5)), 0.01)
    assert asked.floor_ratio == 0.5
    clear = settings_used(monkeypatch, plan(), 0.001)
    assert (clear.n_components, clear.n_mixtures, clear.learning_rate) == (1000, 1, 0.1)
    assert (noisy.n_steps, clear.n_steps) == (1500, 1300)


def test_slices_take_more_steps_unless_noise_is_small(monkeypatch):
    slices = object.__new__(SliceFeatureMap)
    steps = [settings_used(monkeypatch, plan(), s, slices).n_steps for s in (0.1, 0.01, 0.001)]
    assert steps == [2000, 2000, 1300]
    assert settings_used(monkeypatch, plan(n_steps=7), 0.1, slices).n_steps == 7
    chosen = plan(MixtureGenerator(6, n_mixtures=3), learning_rate=0.2)
    kept = settings_used(monkeypatch, chosen, 0.001)
    assert (kept.n_components, kept.n_mixtures, kept.learning_rate) == (6, 3, 0.2)
    few = settings_used(monkeypatch, plan(MixtureGenerator(2)), 0.001)
    assert (few.n_components, few.n_mixtures) == (2, 2)


@pytest.mark.parametrize(
    ("generator", "changes", "message"),
    [
        (MixtureGenerator(0), {}, "n_components must be at least 1"),
        (MixtureGenerator(2.5), {}, "n_components must be an integer"),
        (MixtureGenerator(3, n_mixtures=4), {}, "at least n_mixtures = 4"),
        (MixtureGenerator(spread="wide"), {}, "spread must be a number"),
        (MixtureGenerator(floor_ratio=-1), {}, "floor_ratio must be finite"),
        (None, {"n_steps": 0}, "n_steps must be at least 1"),
        (None, {"batch_size": True}, "batch_size must be an integer"),
        (None, {"learning_rate": 0}, "learning_rate must be finite and positive"),
        (None, {"device": "gpu7"}, "device"),
    ],
)
def test_bad_settings_are_refused(generator, changes, message):
    with pytest.raises(InputError, match=message):
        plan(generator, **changes)


@pytest.mark.parametrize(
    ("features", "generator", "message"),
    [
        (InteractionFeatures(20), "mlp", "interaction features train a mixture"),
        (InteractionFeatures(20), lambda layout, n: None, "interaction features train a mixture"),
        (GaussianFeatures(20), "mixture", "a mixture needs a release of InteractionFeatures"),
        (GaussianFeatures(20), MixtureGenerator(), "a mixture needs a release"),
    ],
)
def test_features_and_generators_that_do_not_fit_cost_nothing(
    make, schema, table, features, generator, message
):
    ledger = PrivacyLedger()
    synthesizer = make(schema, features=features, generator=generator, ledger=ledger)
    with pytest.raises(InputError, match=message):
        synthesizer.fit(table)
    assert ledger.entries == ()


def test_a_table_of_constants_is_refused_before_the_charge(make_mixture):
    ledger = PrivacyLedger()
    schema = Schema({"only": Categorical(["a"])})
    with pytest.raises(PrivacyParameterError, match="nothing to release"):
        make_mixture(schema, ledger=ledger).fit(pd.DataFrame({"only": ["a", "a"]}))
    assert ledger.entries == ()


def test_retraining_is_free_and_changes_the_mixture(make_mixture, schema, table):
    synthesizer = make_mixture(schema).fit(table)
    # With a floor ratio of 0 the noise can't end training early.
    generator = MixtureGenerator(12, n_mixtures=3, floor_ratio=0.0)
    synthesizer.retrain(generator=generator, n_steps=5)
    assert synthesizer.generator_.n_components == 12
    assert len(synthesizer.loss_curve_) == 5
    assert len(synthesizer.ledger_.entries) == 1
    with pytest.raises(InputError, match="interaction features train a mixture"):
        synthesizer.retrain(generator="mlp")
    with pytest.raises(InputError, match="'features' isn't a post-processing parameter"):
        synthesizer.retrain(features="auto")


def test_from_a_saved_release(make_mixture, schema, table, tmp_path):
    synthesizer = make_mixture(schema).fit(table)
    synthesizer.release_.save(tmp_path / "release")
    again = DPMERFSynthesizer.from_release(
        tmp_path / "release",
        template=table.head(0),
        generator=MixtureGenerator(8, n_mixtures=2),
        n_steps=3,
        batch_size=20,
        random_state=0,
    )
    assert again.features.get_params() == {
        "block_share": 0.2,
        "max_cycles": "auto",
        "max_subsets": len(again.release_.public_arrays["subset_shapes"]),
        "n_bins": 8,
        "n_frequencies": 60,
        "n_harmonics": 4,
        "orders": (2,),
    }
    pd.testing.assert_frame_equal(
        again.sample(20, random_state=1), synthesizer.sample(20, random_state=1)
    )


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("target", ["smoker", "age", None])
def test_labeled_numeric_and_missing_targets(make_mixture, schema, table, target, adjacency):
    columns = schema.columns
    changed = Schema(columns, target=target)
    # A fifth of the incomes is missing, far above the noise at this epsilon.
    synthesizer = make_mixture(changed, adjacency=adjacency, epsilon=200.0).fit(table)
    sample = synthesizer.sample(300)
    assert sample.dtypes.equals(table.dtypes)
    assert sample["age"].between(18, 99).all()
    assert set(sample["smoker"]) <= {"no", "yes"}
    assert sample["income"].isna().any()
    assert synthesizer.generator_.n_classes == (2 if target == "smoker" else 1)


def test_a_numeric_target_given_as_y(make_mixture, schema, table):
    changed = Schema(schema.columns, target="age")
    synthesizer = make_mixture(changed).fit(table.drop(columns="age"), table["age"])
    X, y = synthesizer.sample(50)
    assert list(X.columns) == [c for c in table.columns if c != "age"]
    assert y.between(18, 99).all()


def test_labels_as_asked(make_mixture, schema, table):
    synthesizer = make_mixture(schema).fit(table)
    assert (synthesizer.sample(40, y="balanced")["smoker"] == "yes").sum() == 20
    assert synthesizer.sample(3, y=["no", "yes", "no"])["smoker"].tolist() == ["no", "yes", "no"]


def test_many_classes(make_mixture):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.random(700), "y": np.arange(700) % 7})
    schema = Schema({"x": Numeric((0, 1)), "y": Categorical(list(range(7)))}, target="y")
    synthesizer = make_mixture(schema, epsilon=100.0, n_steps=300, batch_size=None).fit(df)
    assert np.bincount(synthesizer.sample(700)["y"], minlength=7) == pytest.approx(
        np.full(7, 100), abs=5
    )


def test_the_joint_objective(make_mixture, schema, table):
    joint = make_mixture(schema, class_weight=None).fit(table)
    assert len(joint.sample(5)) == 5
    with pytest.raises(InputError, match="class_weight must be None or 'balanced'"):
        joint.retrain(class_weight="equal")


@pytest.mark.parametrize(
    ("params", "orders"),
    [
        # 60 rows at epsilon = 1 drown triples; under add-remove 30,000 are taken for granted.
        ({"adjacency": "replace-one"}, {2}),
        ({"adjacency": "replace-one", "n_rows_hint": 10**6}, {2}),
        ({"adjacency": "add-remove"}, {2, 3}),
        ({"adjacency": "add-remove", "n_rows_hint": 60}, {2}),
    ],
)
def test_features_follow_the_number_of_rows_only_where_it_is_public(
    make_mixture, schema, table, params, orders
):
    release = make_mixture(schema, **params).fit(table).release_
    found = InteractionFeatureMap.from_release(release).subsets
    assert {len(subset) for subset in found} == orders


def test_with_units_the_number_of_rows_stays_private(make_mixture, schema, table):
    units = np.arange(60) // 2
    synthesizer = make_mixture(schema, rows_per_unit=2, n_rows_hint=10**6)
    release = synthesizer.fit(table, unit_id=units).release_
    found = InteractionFeatureMap.from_release(release).subsets
    # By the hint; sixty rows would be given pairs.
    assert {len(subset) for subset in found} == {3}


def test_parts_of_a_release_keep_its_scales(make_mixture, schema, table):
    release = make_mixture(schema).fit(table).release_
    features = InteractionFeatureMap.from_release(release)
    settings = MixtureSettings(batch_size=1000)
    whole = mixture_target(features, release, settings, balanced=True)
    part = mixture_target(features, release, settings, True, parts=np.array([3, 0, 11]))
    assert sum(group.size for group in part.groups) == 12
    assert part.feature_stddev == whole.feature_stddev
    assert np.array_equal(part.one_way, whole.one_way)
    # All coordinates have the same noise, so the one-way tables weigh more beside fewer waves.
    assert 12 * part.one_way_weight == pytest.approx(60 * whole.one_way_weight, rel=1e-12)
    floor = 2 * part.feature_stddev**2
    floor += part.one_way_weight * sum(part.n_codes) * part.one_way_stddev**2
    assert part.noise_floor == pytest.approx(part.class_weights.sum() * floor, rel=1e-12)
    waves = {tuple(w) for group in whole.groups for w in group.embedding.real}
    assert {tuple(w) for group in part.groups for w in group.embedding.real} < waves


def test_retraining_takes_settings_of_the_generator(make_mixture, schema, table):
    mixture = MixtureGenerator(8, n_mixtures=2)
    synthesizer = make_mixture(schema, generator=mixture).fit(table)
    synthesizer.retrain(generator__n_components=4)
    assert synthesizer.generator_.n_components == 4
    assert synthesizer.generator.n_components == 4
    # The object that the user gave is the user's.
    assert mixture.n_components == 8
    with pytest.raises(InputError, match="n_components must be at least 1"):
        synthesizer.retrain(generator__n_components=0)
    assert synthesizer.generator.n_components == 4
    with pytest.raises(InputError, match="'features' isn't a post-processing parameter"):
        synthesizer.retrain(features__n_frequencies=5)
    with pytest.raises(InputError, match="class_weight = 'balanced' has no parameters of its own"):
        synthesizer.retrain(class_weight__x=1)
