"""SlicedFDivSynthesizer: from a table to a release of histograms, and from there to rows."""

import json
import math
import pickle
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone

from skdpgen import (
    DPMERFSynthesizer,
    MixtureGenerator,
    PrivacyLedger,
    Release,
    Schema,
    SlicedFDivSynthesizer,
    insecure_noise,
)
from skdpgen.data import Categorical, Numeric
from skdpgen.exceptions import (
    BudgetExceededError,
    InputError,
    PrivacyParameterError,
    PrivacyWarning,
    ReleaseError,
    SchemaError,
    SkdpgenWarning,
)
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.generators import Generator, MLPGenerator, ProductMixture
from skdpgen.synthesizers._mixture_target import mixture_target
from skdpgen.training import MixtureSettings
from skdpgen.training.mixture_objective import interaction_loss

DIRECTIONS = ["wrapped", "sparse", "dense", "frame"]
STRAIGHT = DIRECTIONS[1:]
CHEAP = {"n_steps": 3, "batch_size": 20, "random_state": 0}


def make(schema, *, epsilon=1.0, delta=1e-5, **params):
    """A synthesizer that takes milliseconds to fit."""
    cheap = {"n_slices": 12, "n_cells": 8, **CHEAP}
    return SlicedFDivSynthesizer(epsilon, delta, schema=schema, **{**cheap, **params})


def survey(n=3000, seed=0):
    """Numbers, categories and missing cells that depend on the label."""
    rng = np.random.default_rng(seed)
    yes = rng.random(n) < 0.25
    red = rng.random(n) < np.where(yes, 0.8, 0.2)
    return pd.DataFrame(
        {
            "score": np.clip(np.where(yes, rng.normal(70, 8, n), rng.normal(40, 8, n)), 0, 100),
            "color": np.where(red, "red", np.where(rng.random(n) < 0.5, "green", "blue")),
            "wait": np.where(rng.random(n) < 0.6, np.nan, rng.integers(0, 30, n)),
            "label": np.where(yes, "yes", "no"),
        }
    )


SURVEY = Schema(
    {
        "score": Numeric((0, 100)),
        "color": Categorical(["red", "green", "blue"]),
        "wait": Numeric((0, 30), missing=True),
        "label": Categorical(["no", "yes"]),
    },
    target="label",
)


def codes_and_labels(synthesizer, df):
    features = SliceFeatureMap.from_release(synthesizer.release_)
    ((rows, labels),) = synthesizer._codec.encode(df, None)
    return features, features.atoms.encode(rows), labels


def histograms_by_hand(features, codes, labels, n_classes=2):
    """Joint shares of class and cell, from the tables of the release alone."""
    found = np.zeros((n_classes, features.n_slices, features.n_cells))
    for s, (subset, tables) in enumerate(zip(features.subsets, features.tables, strict=True)):
        for row, label in zip(codes.tolist(), labels.tolist(), strict=True):
            total = sum(int(t[row[j]]) for j, t in zip(subset, tables, strict=True))
            found[label, s, total % 2**16 * features.n_cells // 2**16] += 1 / len(codes)
    return found


# -- the release -----------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_the_release_counts_rows_in_cells(schema, table, directions):
    with insecure_noise(scale=0):
        synthesizer = make(schema, directions=directions).fit(table)
    features, codes, labels = codes_and_labels(synthesizer, table)
    assert (features.n_slices, features.n_cells, features.directions) == (12, 8, directions)
    expected = histograms_by_hand(features, codes, labels)
    assert features.histograms(synthesizer.release_) == pytest.approx(expected, abs=1e-12)
    shares = np.bincount(labels) / 60
    assert synthesizer.release_.class_proportions() == pytest.approx(shares, abs=1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("labeled", [True, False])
def test_sensitivity_and_noise_are_those_of_one_cell_a_slice(schema, table, adjacency, labeled):
    schema = schema if labeled else Schema(schema.columns)
    release = make(schema, adjacency=adjacency).fit(table).release_
    one = 4.0**release.spec.lattice_bits
    # Counts of weight 0.2, but for an unlabeled table whose number of rows is public.
    count = 0.0 if not labeled and adjacency == "replace-one" else 0.04
    moved = 2 * (1 + count) if adjacency == "replace-one" else 1 + count
    if not labeled and adjacency == "replace-one":
        assert release.noisy_counts.shape == (0,)
    assert release.sensitivity_squared / one == pytest.approx(moved, rel=1e-6)
    # Noise multiplier of the exact Gaussian at (1, 1e-5).
    assert release.noise_stddev / math.sqrt(one * moved) == pytest.approx(3.7306, rel=1e-4)
    assert release.verify() <= 1.0
    assert release.n_rows == (60 if adjacency == "replace-one" else None)


def test_noise_has_the_stated_width(schema, table, exact_sums):
    synthesizer = make(schema, n_slices=40)
    exact = exact_sums(synthesizer, table)
    release = synthesizer.fit(table).release_
    noise = np.concatenate([release.noisy_sums.ravel(), release.noisy_counts]) - exact
    # 642 values: six standard deviations of mean and mean square, false alarm below 1e-8.
    z = noise / release.noise_stddev
    assert abs(np.mean(z**2) - 1) < 6 * math.sqrt(2 / len(z))
    assert abs(np.mean(z)) < 6 / math.sqrt(len(z))


def test_neighbors_keep_the_stated_distance(schema, table, exact_sums):
    for adjacency in ("replace-one", "add-remove"):
        synthesizer = make(schema, adjacency=adjacency)
        plain = [int(v) for v in exact_sums(synthesizer, table)]
        limit = synthesizer.release_.sensitivity_squared
        distances = []
        for i in range(12):
            other = table.drop(index=i)
            if adjacency == "replace-one":
                other = table.copy()
                other.loc[i] = table.loc[59 - i]
                other.loc[i, "smoker"] = "no" if table.loc[i, "smoker"] == "yes" else "yes"
            moved = [int(v) for v in exact_sums(synthesizer, other)]
            distances.append(sum((a - b) ** 2 for a, b in zip(plain, moved, strict=True)))
        # Another label moves all cells and both counts: the bound is reached, never passed.
        assert set(distances) == {limit}


def test_the_seed_fixes_slices_and_never_the_noise(schema, table):
    first, second = make(schema).fit(table), make(schema).fit(table)
    tables = [s.release_.public_arrays["slice_tables"] for s in (first, second)]
    assert np.array_equal(*tables)
    # Noise is 10^8 steps wide: some of 194 agree by chance with probability below 1e-6.
    assert not (first.release_.noisy_sums == second.release_.noisy_sums).any()
    other = make(schema, random_state=1).fit(table).release_.public_arrays["slice_tables"]
    assert other.tolist() != tables[0].tolist()


def test_rows_beyond_the_limit_of_their_unit_do_not_count(schema, table, exact_sums):
    units = np.repeat(np.arange(12), 5)
    kept = np.tile([True, True, False, False, False], 12)
    synthesizer = make(schema, rows_per_unit=2)
    bounded = exact_sums(synthesizer, table, unit_id=units)
    release = synthesizer.release_
    assert (release.n_rows, release.unit, release.rows_bounded) == (None, "unit", True)
    assert release.sensitivity_squared == 4 * release.spec.sensitivity_squared("replace-one")
    assert np.array_equal(bounded, exact_sums(synthesizer, table[kept], unit_id=units[kept]))
    wild = table.copy()
    wild.loc[~kept, "age"] = 99
    wild.loc[~kept, "smoker"] = "no"
    assert np.array_equal(bounded, exact_sums(synthesizer, wild, unit_id=units))
    bounded = synthesizer.fit(table, unit_id=units).release_.statement()
    assert "at most 2 rows a unit, kept" in bounded
    # Without labels, counts are needed all the same: the number of rows is private.
    unlabeled = make(Schema(schema.columns)).fit(table, unit_id=units)
    assert unlabeled.release_.noisy_counts.shape == (1,)


def public_view(df, delta=1e-5, unit_id=None, **params):
    """All that is visible of a fit and isn't noise, or made from noise."""
    if params.get("directions", "wrapped") == "wrapped":
        # With a floor ratio of 0 the noise can't end training early.
        params["generator"] = MixtureGenerator(8, n_mixtures=2, floor_ratio=0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ledger = PrivacyLedger()
        synthesizer = make(SURVEY, delta=delta, ledger=ledger, **params)
        synthesizer.fit(df, unit_id=unit_id)
        sample = synthesizer.sample(5)
    release = synthesizer.release_
    return {
        "attributes": {name: type(value) for name, value in vars(synthesizer).items()},
        "codec": pickle.dumps(synthesizer._codec),
        "release": {
            name: (value.dtype, value.shape) if isinstance(value, np.ndarray) else repr(value)
            for name, value in vars(release).items()
        },
        "slices": {name: a.tolist() for name, a in release.public_arrays.items()},
        "ledger": synthesizer.ledger_.entries,
        "stream": synthesizer._sampling_rng.bit_generator.state["state"],
        "loss": synthesizer.loss_curve_.shape,
        "statement": synthesizer.privacy_statement(),
        "dtypes": [str(dtype) for dtype in sample.dtypes],
        "warnings": [(w.category, str(w.message)) for w in caught],
    }


@pytest.mark.parametrize("directions", ["wrapped", "sparse"])
@pytest.mark.parametrize("delta", [1e-5, 0.0247])  # the second lies between 1 / 41 and 1 / 40
def test_under_add_remove_nothing_depends_on_the_number_of_rows(directions, delta):
    df = survey(41)
    settings = {"directions": directions, "adjacency": "add-remove", "delta": delta}
    whole = public_view(df, **settings)
    assert whole["warnings"] == []
    for n in (40, 1):
        assert public_view(df.head(n), **settings) == whole


def test_with_units_nothing_depends_on_the_number_of_rows():
    df, ids = survey(41), [f"unit-{i // 8}" for i in range(41)]
    whole = public_view(df, unit_id=ids, rows_per_unit=2, delta=0.0247)
    fewer = public_view(df.head(40), unit_id=[*ids[:39], "unit-5"], rows_per_unit=2, delta=0.0247)
    assert fewer == whole


def test_no_number_of_rows_is_written_under_add_remove(tmp_path):
    n = 4567
    synthesizer = make(SURVEY, adjacency="add-remove").fit(survey(n))
    synthesizer.release_.save(tmp_path / "release")
    with zipfile.ZipFile(tmp_path / "release") as archive:
        header = archive.read("header.json")
    assert json.loads(header)["n_rows"] is None
    assert str(n).encode() not in header


def test_delta_above_one_over_n_warns_where_n_is_public(schema, table):
    with pytest.warns(PrivacyWarning, match="larger than one over the number of rows"):
        make(schema, delta=0.02).fit(table)


# -- the Fourier target ----------------------------------------------------------------------------


def target_of(synthesizer, batch_size=40, balanced=False):
    release = synthesizer.release_
    features = SliceFeatureMap.from_release(release)
    return mixture_target(features, release, MixtureSettings(batch_size=batch_size), balanced)


def loss_at(target, codes, labels, n_classes=2):
    """Loss over all groups of the distribution of some rows: a mixture of as many points."""
    n = len(codes)
    atoms = [torch.from_numpy(np.eye(k)[codes[:, j]].T) for j, k in enumerate(target.n_codes)]
    shares = torch.from_numpy(np.eye(n_classes)[labels].T[None] / n).float()
    atoms = [a.float().contiguous() for a in atoms]
    weights = torch.as_tensor(target.class_weights, dtype=torch.float32)
    total = 0.0
    for group in target.groups:
        into = [torch.zeros_like(a) for a in atoms], torch.zeros_like(shares)
        total += group.size * interaction_loss(group, atoms, shares, weights, *into).item()
    return total / sum(group.size for group in target.groups)


def test_waves_are_class_wise_means_of_harmonics_of_the_cells(schema, table):
    with insecure_noise(scale=0):
        synthesizer = make(schema).fit(table)
    features, codes, labels = codes_and_labels(synthesizer, table)
    (group,) = target_of(synthesizer, batch_size=10_000).groups
    # 12 slices of 8 cells have harmonics 1 .. 4; the last one counts half.
    assert group.size == 12 * 4
    cells = features.cells(codes)
    expected = [
        [
            (math.sqrt(0.5) if k == 4 else 1.0)
            * np.mean(np.exp(2j * np.pi * k * cells[:, s] / 8) * (labels == label))
            for s in range(12)
            for k in (1, 2, 3, 4)
        ]
        for label in (0, 1)
    ]
    found = group.embedding.T
    # Groups shuffle whole slices: both classes are looked up together.
    left = list(map(tuple, np.array(expected).T))
    for pair in found.T:
        nearest = min(left, key=lambda e: abs(e[0] - pair[0]) + abs(e[1] - pair[1]))
        assert abs(np.array(nearest) - pair).max() < 1e-5
        left.remove(nearest)
    assert left == []


@pytest.mark.parametrize("batch_size", [40, 10_000])
@pytest.mark.parametrize("n_cells", [4, 8, 32])
def test_the_loss_is_the_squared_distance_of_histograms(schema, table, n_cells, batch_size):
    with insecure_noise(scale=0):
        synthesizer = make(schema, n_cells=n_cells).fit(table)
    features, codes, labels = codes_and_labels(synthesizer, table)
    target = target_of(synthesizer, batch_size)
    assert loss_at(target, codes, labels) < 1e-9
    # Other rows with the same labels: by Parseval the mean over the slices of squared distances.
    other = np.random.default_rng(0).permutation(codes, axis=0)
    difference = features.histograms(synthesizer.release_) - histograms_by_hand(
        features, other, labels
    )
    expected = (difference**2).sum() / 12
    assert expected > 1e-3
    assert loss_at(target, other, labels) == pytest.approx(expected, rel=1e-4)
    weighted = replace(target, class_weights=np.array([0.5, 3.0]))
    expected = (0.5 * (difference[0] ** 2).sum() + 3 * (difference[1] ** 2).sum()) / 12
    assert loss_at(weighted, other, labels) == pytest.approx(expected, rel=1e-4)


def test_the_target_of_noise_has_the_stated_noise(schema, table):
    # With so few cells the missing sine of the last harmonic is a quarter of the noise.
    params = {"n_slices": 500, "n_cells": 4}
    with insecure_noise(scale=0):
        exact = make(schema, **params).fit(table)
    with insecure_noise(seed=3):
        noisy = make(schema, **params).fit(table)
    before, after = target_of(exact), target_of(noisy)
    noise = [
        (a.released - b.released).numpy().ravel()
        for a, b in zip(after.groups, before.groups, strict=True)
    ]
    z = np.concatenate(noise) / after.feature_stddev
    # 2 classes, 500 slices, 3 independent numbers each besides the sum. Six standard deviations of
    # the mean square, 0.155: false alarm below 1e-8.
    independent = 2 * 500 * 3
    assert len(z) == 2 * 500 * 4
    assert abs(np.mean(z**2) - 1) < 6 * math.sqrt(2 / independent)
    _, codes, labels = codes_and_labels(exact, table)
    at_truth = loss_at(after, codes, labels)
    assert after.noise_floor == pytest.approx(2 * 2 * after.feature_stddev**2)
    assert abs(at_truth / after.noise_floor - 1) < 6 * math.sqrt(2 / independent)
    assert after.one_way is None
    assert after.one_way_weight == 0


def test_classes_weigh_alike_or_by_the_root_of_their_rarity(schema, table):
    synthesizer = make(schema).fit(table)
    assert target_of(synthesizer).class_weights.tolist() == [1, 1]
    shares = synthesizer.release_.class_proportions()
    weights = target_of(synthesizer, balanced=True).class_weights
    expected = 1 / np.sqrt(np.maximum(shares, 0.01))
    assert weights == pytest.approx(expected / expected.mean())


# -- fit and sample --------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("target", ["smoker", "age", None])
@pytest.mark.parametrize("directions", ["wrapped", "sparse"])
def test_samples_look_like_the_table(schema, table, directions, target, adjacency):
    changed = Schema(schema.columns, target=target)
    synthesizer = make(changed, directions=directions, adjacency=adjacency, epsilon=200.0)
    sample = synthesizer.fit(table).sample(200)
    assert sample.dtypes.equals(table.dtypes)
    assert sample.columns.tolist() == table.columns.tolist()
    assert sample["age"].between(18, 99).all()
    assert set(sample["smoker"]) <= {"no", "yes"}
    assert set(sample["color"]) <= {"red", "green", "blue", "other"}
    assert sample["income"].dropna().between(0, 100_000).all()
    assert sample["income"].isna().any()
    assert hasattr(synthesizer, "classes_") == (target == "smoker")
    assert len(synthesizer.loss_curve_) <= 3
    wanted = ProductMixture if directions == "wrapped" else Generator
    assert isinstance(synthesizer.generator_, wanted)


def test_other_tables_and_a_target_given_as_y(schema, table):
    frame = make(schema).fit(pl.from_pandas(table)).sample(7)
    assert isinstance(frame, pl.DataFrame)
    assert frame.schema == pl.from_pandas(table).schema
    X, y = make(schema).fit(table.drop(columns="smoker"), table["smoker"]).sample(9)
    assert list(X.columns) == [c for c in table.columns if c != "smoker"]
    assert set(y) <= {"no", "yes"}
    assert (y.name, len(X)) == ("smoker", 9)
    numbers = np.random.default_rng(0).random((30, 3))
    sample = make(Schema({}, default=Numeric((0, 1))), directions="dense").fit(numbers).sample(4)
    assert sample.shape == (4, 3)


def test_labels_as_asked(schema, table):
    for directions in ("wrapped", "frame"):
        synthesizer = make(schema, directions=directions).fit(table)
        assert (synthesizer.sample(40, y="balanced")["smoker"] == "yes").sum() == 20
        assert synthesizer.sample(2, y=["yes", "no"])["smoker"].tolist() == ["yes", "no"]


@pytest.mark.parametrize("directions", ["wrapped", "sparse"])
def test_a_large_budget_recovers_the_table(directions):
    df = survey()
    cheap = {
        "wrapped": {
            "generator": MixtureGenerator(30, n_mixtures=1, floor_ratio=0.0),
            "n_steps": 300,
            "batch_size": 1000,
        },
        "sparse": {"n_steps": 300, "batch_size": 128, "learning_rate": 5e-3},
    }[directions]
    with insecure_noise(scale=0):
        synthesizer = make(
            SURVEY,
            **{
                "directions": directions,
                "n_slices": 60,
                "n_cells": 32,
                **cheap,
            },
        ).fit(df)
    losses = synthesizer.loss_curve_ + synthesizer.noise_floor_
    assert losses[-20:].mean() < 0.3 * losses[:3].mean()
    sample = synthesizer.sample(3000, random_state=0)
    for label in ("no", "yes"):
        real, fake = df[df["label"] == label], sample[sample["label"] == label]
        assert abs(len(real) - len(fake)) / 3000 < 0.05
        assert fake["score"].mean() == pytest.approx(real["score"].mean(), abs=6)
        assert (fake["color"] == "red").mean() == pytest.approx(
            (real["color"] == "red").mean(), abs=0.12
        )
        assert fake["wait"].isna().mean() == pytest.approx(real["wait"].isna().mean(), abs=0.15)


def test_the_pipeline_is_reproducible_under_insecure_noise(schema, table):
    for directions in ("wrapped", "dense"):
        runs = []
        for _ in range(2):
            with insecure_noise(seed=5):
                runs.append(make(schema, directions=directions).fit(table))
        pd.testing.assert_frame_equal(runs[0].sample(20), runs[1].sample(20))
        assert np.array_equal(runs[0].loss_curve_, runs[1].loss_curve_)
        assert "NOT PRIVATE" in runs[0].privacy_statement()
        assert runs[0].ledger_.spent(1e-5) == math.inf


# -- after the fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_a_saved_release_trains_elsewhere_to_the_same_rows(schema, table, directions, tmp_path):
    synthesizer = make(schema, directions=directions, adjacency="add-remove").fit(table)
    synthesizer.release_.save(tmp_path / "release")
    again = SlicedFDivSynthesizer.from_release(
        tmp_path / "release", template=table.head(0), **CHEAP
    )
    pd.testing.assert_frame_equal(again.sample(20), synthesizer.sample(20))
    params = again.get_params()
    assert (params["n_slices"], params["n_cells"], params["directions"]) == (12, 8, directions)
    assert (params["epsilon"], params["delta"], params["adjacency"]) == (1.0, 1e-5, "add-remove")
    with pytest.raises(InputError, match="'n_slices' isn't a post-processing parameter"):
        SlicedFDivSynthesizer.from_release(tmp_path / "release", n_slices=3)


@pytest.mark.parametrize(("divergence", "rate"), [("tv", 1e-3), ("sliced_wasserstein", 2e-3)])
def test_the_learning_rate_follows_the_divergence(schema, table, divergence, rate):
    made = make(schema, directions="sparse", n_slices=4, n_steps=1, divergence=divergence)
    made.fit(table)
    assert made._plan_for_release().settings.learning_rate == rate
    assert made.set_params(learning_rate=0.5)._plan_for_release().settings.learning_rate == 0.5


def test_retraining_changes_the_divergence_free_of_charge(schema, table):
    synthesizer = make(schema, directions="sparse").fit(table)
    release, entries = synthesizer.release_, synthesizer.ledger_.entries
    assert len(entries) == 1
    losses = [synthesizer.loss_curve_]
    for divergence in ("kl", "reverse_kl", "js", "pearson", "tv", "sliced_wasserstein", "mmd"):
        synthesizer.retrain(divergence=divergence)
        assert synthesizer.divergence == divergence
        losses.append(synthesizer.loss_curve_)
    # The same generator and draws to begin with: only the divergence makes a difference.
    assert len({round(curve[0], 9) for curve in losses}) == 8
    assert synthesizer.release_ is release
    assert synthesizer.ledger_.entries == entries
    kept = synthesizer.generator_
    with pytest.raises(InputError, match="divergence must be one of"):
        synthesizer.retrain(divergence="renyi")
    assert synthesizer.divergence == "mmd"
    assert synthesizer.generator_ is kept


@pytest.mark.parametrize(
    "name",
    [
        "epsilon",
        "delta",
        "schema",
        "n_slices",
        "n_cells",
        "directions",
        "adjacency",
        "rows_per_unit",
        "count_weight",
        "ledger",
    ],
)
def test_retraining_refuses_privacy_parameters_by_name(schema, table, name):
    synthesizer = make(schema).fit(table)
    before = synthesizer.get_params()
    with pytest.raises(InputError, match=f"'{name}' isn't a post-processing parameter"):
        synthesizer.retrain(**{name: before[name]})
    assert set(synthesizer.post_processing_parameters) < set(before)
    assert name not in synthesizer.post_processing_parameters


def test_class_weights_count_in_both_trainings(schema, table):
    for directions in ("wrapped", "sparse"):
        synthesizer = make(schema, directions=directions, epsilon=100.0).fit(table)
        balanced = synthesizer.loss_curve_
        assert not np.array_equal(synthesizer.retrain(class_weight=None).loss_curve_, balanced)


def test_releases_of_one_synthesizer_are_refused_by_the_other(schema, table, make_mixture):
    for directions in ("wrapped", "sparse"):
        slices = make(schema, directions=directions).fit(table).release_
        with pytest.raises(ReleaseError, match=r"wasn't made by DPMERFSynthesizer.*slices"):
            DPMERFSynthesizer.from_release(slices)
    waves = make_mixture(schema).fit(table).release_
    with pytest.raises(ReleaseError, match="no slices: it was made by another synthesizer"):
        SlicedFDivSynthesizer.from_release(waves)


def with_map(release, **changes):
    facts = release.public
    facts["feature_map"] = {**facts["feature_map"], **changes}
    return replace(release, public_json=json.dumps(facts))


def test_a_release_that_contradicts_itself_is_refused(schema, table, tmp_path):
    release = make(schema).fit(table).release_
    arrays = dict(release.public_arrays)
    orders, tables = arrays["slice_orders"], arrays["slice_tables"]
    first = int(orders[0])
    n_codes = SliceFeatureMap.from_release(release).atoms.n_codes
    size = sum(n_codes[j] for j in arrays["slice_columns"][:first])
    without_first = {
        "slice_orders": orders[1:],
        "slice_columns": arrays["slice_columns"][first:],
        "slice_tables": tables[size:],
    }
    contradicting = [
        with_map(release, n_cells=16),
        replace(release, public_arrays=without_first),
    ]
    damaged = [
        with_map(release, atoms={"width": 3}),
        replace(release, public_arrays={**arrays, "slice_tables": tables[:-1]}),
        replace(release, public_arrays={**arrays, "slice_tables": tables.astype(np.int64)}),
        replace(release, public_arrays={k: v for k, v in arrays.items() if k != "slice_orders"}),
        # Sums of wrapped slices leave the range of straight ones.
        with_map(release, directions="sparse"),
    ]
    unknown = [with_map(release, kind="wavelets")]
    for bad, message in [
        *((bad, "contradicts its spec") for bad in contradicting),
        *((bad, "feature map of the release is damaged") for bad in damaged),
        *((bad, "features that this version doesn't know") for bad in unknown),
    ]:
        with pytest.raises(ReleaseError, match=message):
            SlicedFDivSynthesizer.from_release(bad, **CHEAP)
        # Nor by the way of a file.
        bad.save(tmp_path / "bad")
        with pytest.raises(ReleaseError, match=message):
            SlicedFDivSynthesizer.from_release(tmp_path / "bad", **CHEAP)
    with pytest.raises(ReleaseError, match="doesn't fit the release"):
        # An integer column has no missing values, so it lacks a code.
        SlicedFDivSynthesizer.from_release(release, template=table.assign(income=1))
    with pytest.raises(ReleaseError, match="isn't the one of the recorded spec"):
        SlicedFDivSynthesizer.from_release(
            replace(release, sensitivity_squared=release.sensitivity_squared // 2)
        )


def test_parameters_clone_and_repr(schema, table):
    synthesizer = make(schema, divergence="js", directions="frame", generator="mlp")
    copy = clone(synthesizer)
    for name, value in synthesizer.get_params(deep=False).items():
        assert getattr(copy, name) == value or getattr(copy, name) is value, name
    assert "divergence='js'" in repr(synthesizer)
    assert not hasattr(copy, "release_")
    # A clone reads the same rows: it spends from the same ledger.
    synthesizer.fit(table)
    clone(synthesizer).fit(table)
    assert len(synthesizer.ledger_.entries) == 2
    with pytest.raises(ValueError, match="Invalid parameter 'slices'"):
        synthesizer.set_params(slices=3)
    defaults = SlicedFDivSynthesizer(1.0, 1e-5).get_params()
    assert (defaults["n_slices"], defaults["n_cells"]) == (400, 32)
    assert (defaults["directions"], defaults["divergence"]) == ("wrapped", "hellinger")


@pytest.mark.parametrize("directions", ["wrapped", "sparse"])
def test_no_row_is_kept(schema, table, directions):
    df = table.copy()
    df.loc[3, "key"] = "CANARY"
    df.loc[4, "remark"] = "CANARY"
    df.loc[3, "income"] = 86753.09375
    df.loc[5, "color"] = "CANARY"
    df.index = [f"CANARY-{i}" for i in range(60)]
    synthesizer = make(schema, directions=directions).fit(df, unit_id=df["key"])
    synthesizer.retrain(n_steps=2)
    for content in (pickle.dumps(synthesizer), pickle.dumps(synthesizer, protocol=0)):
        assert b"CANARY" not in content
        assert np.float64(86753.09375).tobytes() not in content
        assert b"86753.09375" not in content
        # The search would find it.
    assert b"CANARY" in pickle.dumps(df)
    # What a release weighs doesn't grow with the table.
    twice = make(schema, directions=directions).fit(pd.concat([table] * 20, ignore_index=True))
    once = make(schema, directions=directions).fit(table)
    assert abs(len(pickle.dumps(twice)) - len(pickle.dumps(once))) < 200
    again = pickle.loads(pickle.dumps(once))
    pd.testing.assert_frame_equal(again.sample(5, random_state=0), once.sample(5, random_state=0))


def test_training_that_diverges_says_so(schema, table):
    class Exploding(MLPGenerator):
        def forward(self, noise, labels):
            self.calls = getattr(self, "calls", 0) + 1
            raw = super().forward(noise, labels)
            return raw * math.nan if self.calls > 2 else raw

    synthesizer = make(schema, directions="sparse").fit(table)
    with pytest.warns(SkdpgenWarning, match=r"training diverged after \d steps"):
        synthesizer.retrain(generator=lambda layout, n: Exploding(layout, n), n_steps=6)


# -- bad input: a clear error before any noise, nothing spent --------------------------------------

NAN = float("nan")


@pytest.fixture
def refuses(noise_calls, schema, table):
    """Check that a fit raises and did nothing else."""

    def check(error, message, X=table, schema=schema, unit_id=None, **params):
        ledger = params.setdefault("ledger", PrivacyLedger())
        synthesizer = make(schema, **params)
        with pytest.raises(error, match=message) as caught:
            synthesizer.fit(X, unit_id=unit_id)
        assert isinstance(caught.value, ValueError)
        assert "60" not in str(caught.value)
        assert noise_calls == []
        assert getattr(ledger, "entries", ()) == ()
        assert not hasattr(synthesizer, "release_")

    return check


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a number in"),
        ({"epsilon": NAN}, "epsilon must be a number in"),
        ({"delta": 1}, "delta must be a number in"),
        ({"adjacency": "zero-out"}, "adjacency must be"),
        ({"rows_per_unit": 0}, "rows_per_unit must be"),
        ({"directions": "random"}, "directions must be"),
        ({"directions": None}, "directions must be"),
        ({"n_slices": 0}, "n_slices must be an integer in"),
        ({"n_slices": 1.5}, "n_slices must be an integer in"),
        ({"n_slices": "auto"}, "n_slices must be an integer in"),
        ({"n_slices": 10**6}, "n_slices must be an integer in"),
        ({"n_slices": True}, "n_slices must be an integer in"),
        ({"n_cells": 3}, "n_cells must be a power of two"),
        ({"n_cells": 2}, "n_cells must be a power of two"),
        ({"n_cells": 16.0}, "n_cells must be an integer in"),
        ({"n_cells": 8192}, "n_cells must be an integer in"),
        ({"count_weight": -1}, "count_weight must be"),
        ({"count_weight": "free"}, "count_weight must be 'auto'"),
        ({"count_weight": None}, "count_weight"),
        ({"count_weight": 0, "adjacency": "add-remove"}, "positive count_weight"),
        ({"ledger": "file.sqlite"}, "ledger must be a PrivacyLedger"),
    ],
)
def test_privacy_parameters(refuses, params, message):
    refuses(PrivacyParameterError, message, **params)


@pytest.mark.parametrize("directions", ["wrapped", "sparse"])
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"divergence": "renyi"}, "divergence must be one of hellinger"),
        ({"divergence": None}, "divergence must be one of"),
        ({"class_weight": "inverse"}, "class_weight must be None or 'balanced'"),
        ({"generator": "gan"}, "generator"),
        ({"generator": 3}, "generator"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_steps": 1.5}, "n_steps must be an integer"),
        ({"batch_size": -1}, "batch_size"),
        ({"batch_size": "all"}, "batch_size must be an integer"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
        ({"device": "toaster"}, "device"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_post_processing_parameters(refuses, directions, params, message):
    refuses(InputError, message, directions=directions, **params)


@pytest.mark.parametrize(
    ("directions", "generator", "message"),
    [
        ("wrapped", "mlp", "wrapped slices train a mixture"),
        ("wrapped", lambda layout, n: MLPGenerator(layout, n), "wrapped slices train a mixture"),
        ("sparse", "mixture", "a mixture needs a release of directions='wrapped'"),
        ("dense", MixtureGenerator(), "a mixture needs a release of directions='wrapped'"),
        ("frame", "conv", "image"),
        ("wrapped", MixtureGenerator(0), "n_components must be at least 1"),
    ],
)
def test_generators_that_do_not_fit_the_directions(refuses, directions, generator, message):
    refuses(InputError, message, directions=directions, generator=generator)


def test_tables_that_do_not_fit(refuses, schema, table):
    refuses(InputError, "0 sample", X=table.head(0))
    refuses(InputError, "lacks column", X=table.drop(columns="age"))
    refuses(InputError, "not in the schema: 'zip'", X=table.assign(zip=1))
    refuses(
        InputError, "column 'age' is declared numeric", X=table.assign(age=pd.Timestamp("2020"))
    )
    refuses(InputError, "one entry for each row", unit_id=np.arange(5))
    refuses(SchemaError, "schema must be a Schema", schema=3)
    constants = Schema({"only": Categorical(["a"])})
    refuses(
        PrivacyParameterError,
        "nothing to release",
        X=pd.DataFrame({"only": ["a", "a"]}),
        schema=constants,
    )


def test_no_cell_is_read_before_the_charge(schema, table, monkeypatch):
    def read(*args):
        raise AssertionError("read before the charge")

    monkeypatch.setattr("skdpgen.synthesizers._embedding.unit_codes", read)
    monkeypatch.setattr("skdpgen.synthesizers._table.TableCodec.encode", read)
    full = PrivacyLedger(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        make(schema, ledger=full).fit(table, unit_id=table["key"])
    assert full.entries == ()


def test_a_refused_refit_keeps_the_fitted_model(schema, table):
    synthesizer = make(schema).fit(table)
    release = synthesizer.release_
    with pytest.raises(InputError):
        synthesizer.fit(table.drop(columns="age"))
    assert synthesizer.release_ is release
    assert isinstance(release, Release)
    assert len(synthesizer.ledger_.entries) == 1
    assert synthesizer.sample(2).columns.tolist() == table.columns.tolist()
