"""Interaction features: their kernel, their subsets, and the way through a release."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from skdpgen import InteractionFeatures
from skdpgen.atoms import AtomColumn, AtomLayout
from skdpgen.exceptions import PrivacyParameterError
from skdpgen.features import InteractionFeatureMap
from skdpgen.features.settings import ReleaseFacts
from skdpgen.privacy import MeanEmbeddingMechanism, PrivacyLedger, Release


def layout(*columns):
    """Columns of so many categories, or of so many single values of a number, if negative."""
    made, position = [], 0
    for n in columns:
        if n > 0:
            made.append(AtomColumn(None, (position, position + n)))
            position += n
        else:
            values = tuple(np.linspace(0, 1, -n).tolist())
            made.append(AtomColumn(position, None, values, values, (1,) * -n))
            position += 1
    return AtomLayout(tuple(made), position)


def draw(atoms, n_frequencies=200, **params):
    features = InteractionFeatures(n_frequencies, **params)
    return features.draw(atoms, ReleaseFacts(), np.random.RandomState(0))


def waves(table):
    return np.exp(2j * np.pi * table.astype(float) / 2**16)


def test_the_kernel_of_a_category_is_the_indicator_of_equality():
    table = draw(layout(5), n_frequencies=40_000, orders=(1,)).phases[0][0]
    kernel = (waves(table) @ waves(table).conj().T).real / 40_000
    # Entries off the diagonal have a standard deviation of 0.0035: 6 of them, false alarm 2e-8.
    assert np.abs(kernel - np.eye(5)).max() < 6 * 0.0036


def test_the_kernel_of_a_number_is_a_scale_mixture_of_gaussians():
    features = draw(layout(-64), n_frequencies=40_000, orders=(1,), max_cycles=8.0)
    table = features.phases[0][0]
    kernel = (waves(table) @ waves(table[:1]).conj().T).real[:, 0] / 40_000
    distance = np.arange(64) / 64
    scales = np.exp(np.linspace(np.log(0.5), np.log(8), 4001))
    expected = np.exp(-((2 * np.pi * np.outer(distance, scales)) ** 2) / 2).mean(axis=1)
    assert np.abs(kernel - expected).max() < 6 * 0.0036
    # Half of the number of values bounds the scale: finer waves can't be told from coarser ones.
    coarse = draw(layout(-4), n_frequencies=40_000, orders=(1,)).phases[0][0]
    scales = np.exp(np.linspace(np.log(0.5), np.log(2), 4001))
    expected = np.exp(-((2 * np.pi * scales / 4) ** 2) / 2).mean()
    found = (waves(coarse[1]) * waves(coarse[0]).conj()).real.mean()
    assert found == pytest.approx(expected, abs=6 * 0.0036)


def test_missing_has_a_phase_of_its_own():
    number = AtomColumn(0, (1, 3), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (1, 1, 1))
    table = draw(AtomLayout((number,), 3), n_frequencies=40_000, orders=(1,)).phases[0][0]
    assert table.shape == (4, 40_000)
    assert abs((waves(table[3]) * waves(table[0]).conj()).real.mean()) < 6 * 0.0036


def test_orders_share_the_frequencies_evenly_and_subsets_by_their_bits():
    features = draw(layout(2, 4, 16), n_frequencies=101, orders=(3, 2))
    assert features.subsets == ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    sizes = [tables[0].shape[1] for tables in features.phases]
    # Bits 1, 2, 4: products 2, 4 and 8 of 14.
    assert sizes == [7, 15, 29, 50]
    assert features.n_frequencies == 101
    assert features.width == 202 + 22


def test_too_many_subsets_are_chosen_by_weight():
    atoms = layout(*[2] * 10, *[64] * 3)
    features = draw(atoms, n_frequencies=400, orders=(2,), max_subsets=12)
    assert len(features.subsets) == 12
    assert list(features.subsets) == sorted(set(features.subsets))
    # The three pairs of wide columns weigh 36 each, the 75 others 6 or 1: some wide pair is left
    # out with probability 1e-2 at most, and the seed is fixed.
    assert set(itertools.combinations((10, 11, 12), 2)) <= set(features.subsets)


def test_very_many_subsets_are_never_listed():
    atoms = layout(*[3] * 120)
    features = draw(atoms, n_frequencies=50, orders=(3,), max_subsets=40)
    assert len(features.subsets) == 40
    assert all(len(set(subset)) == 3 for subset in features.subsets)


@pytest.mark.parametrize(("columns", "orders"), [((5,), {1}), ((5, 3), {2}), ((5, 3, 2), {2, 3})])
def test_orders_beyond_the_table_become_the_largest(columns, orders):
    features = draw(layout(*columns), orders=(2, 3, 4))
    assert {len(subset) for subset in features.subsets} == orders
    assert features.n_frequencies == 200


def test_a_table_of_constants_has_nothing_to_release():
    with pytest.raises(PrivacyParameterError, match="nothing to release"):
        draw(layout())


@pytest.mark.parametrize("block_share", [0.0, 0.3])
def test_through_a_release_and_a_file(block_share, tmp_path):
    features = draw(layout(4, -9, 3), block_share=block_share, n_bins=16)
    spec = features.spec(2, 0.2)
    assert spec.width == features.width
    mechanism = MeanEmbeddingMechanism(spec, 1.0, 1e-5, "add-remove", features=features.fourier)
    facts, arrays = features.to_public()
    rows = np.zeros((3, features.atoms.width))
    batches = features.batches(rows, np.zeros(3, dtype=np.int64), None)
    release = mechanism.release(
        batches, PrivacyLedger(), public={"feature_map": facts}, public_arrays=arrays
    )
    release.save(tmp_path / "release")
    again = InteractionFeatureMap.from_release(Release.load(tmp_path / "release"))
    assert again.atoms == features.atoms
    assert (again.n_bins, again.block_share) == (16, block_share)
    assert again.subsets == features.subsets
    for one, other in zip(again.phases, features.phases, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_settings_are_stored_untouched():
    features = InteractionFeatures(
        10, orders=[2], n_bins=7, max_cycles=3, block_share=0.1, max_subsets=9
    )
    assert clone(features).get_params() == features.get_params()
    assert features.get_params()["orders"] == [2]


@pytest.mark.parametrize(
    ("facts", "orders", "n_harmonics"),
    [
        # Adult, 32,561 rows, at epsilon = 1 and 0.2 (noise multipliers 3.73 and 16.3).
        (ReleaseFacts("add-remove", 3.7306, 32_561), (2, 3), 1),
        (ReleaseFacts("replace-one", 3.7306, 32_561), (2, 3), 4),
        (ReleaseFacts("add-remove", 16.3, 32_561), (2,), 1),
        (ReleaseFacts("add-remove", 3.7306, 12_000), (2,), 1),
        (ReleaseFacts("replace-one", 3.7306, 17_000), (2,), 4),
        (ReleaseFacts("add-remove", 3.7306, 310_000), (2, 3), 1),
        (ReleaseFacts("add-remove", 3.7306, 312_000), (3,), 1),
        (ReleaseFacts("replace-one", 3.7306, 441_000), (3,), 4),
    ],
)
def test_what_auto_chooses_from_public_facts(facts, orders, n_harmonics):
    atoms = layout(3, 3, -8, 3)
    drawn = InteractionFeatures(40, n_bins=8).draw(atoms, facts, np.random.RandomState(0))
    assert {len(subset) for subset in drawn.subsets} == set(orders)
    assert drawn.n_harmonics == n_harmonics
    assert drawn.n_frequencies == 40
    asked = InteractionFeatures(40, orders=(1,), n_harmonics=2)
    drawn = asked.draw(atoms, facts, np.random.RandomState(0))
    assert {len(subset) for subset in drawn.subsets} == {1}
    assert drawn.n_harmonics == 2


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_waves_are_coarser_where_noise_is_large(adjacency):
    atoms = layout(-128, 3)
    for rows, max_cycles in ((12_000, 16), (32_561, 32)):
        facts = ReleaseFacts(adjacency, 3.7306, rows)
        chosen, asked = (
            features.draw(atoms, facts, np.random.RandomState(0))
            for features in (
                InteractionFeatures(60),
                InteractionFeatures(60, max_cycles=max_cycles),
            )
        )
        assert chosen.subsets == asked.subsets
        for one, other in zip(chosen.phases, asked.phases, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_part_of_the_map_has_whole_families_at_their_coordinates():
    atoms = layout(3, -8, 4)
    features = draw(atoms, n_frequencies=60, n_harmonics=4)
    assert features.n_parts == 15
    parts = np.array([9, 0, 4, 13])
    part = features.part(parts)
    assert part.n_parts == 4
    everything = [np.concatenate([t.T for t in tables], axis=1) for tables in features.waves()]
    kept = [np.concatenate([t.T for t in tables], axis=1) for tables in part.waves()]
    by_wave = [wave for tables in everything for wave in tables]
    waves = features.coordinates(parts)
    assert waves.tolist() == [*waves[:16], *(60 + waves[:16])]
    chosen = [by_wave[i] for i in waves[:16]]
    found = [wave for tables in kept for wave in tables]
    assert all(np.array_equal(a, b) for a, b in zip(chosen, found, strict=True))
    # Of every family the waves at one, two, three and four times its phases are there.
    for tables in part.waves():
        first = tables[0][:, : tables[0].shape[1] // 4]
        for k in (2, 3, 4):
            own = tables[0][:, (k - 1) * first.shape[1] :][:, : first.shape[1]]
            assert np.array_equal(own, first * np.uint16(k))
