"""The loss of generated rows against histograms: small at the truth, fair to categories, exact."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from torch import nn

from skdpgen.atoms import AtomColumn, AtomLayout
from skdpgen.divergences.sliced import Divergence
from skdpgen.exceptions import InputError
from skdpgen.features.projection import SliceProjection
from skdpgen.features.slices import SliceFeatureMap
from skdpgen.generators import MLPGenerator
from skdpgen.generators.base import build_generator
from skdpgen.generators.heads import OutputHead
from skdpgen.layout import EncodedLayout
from skdpgen.training import sliced_objective
from skdpgen.training.sliced_objective import SlicedLoss, check_distance, project_to_simplex
from skdpgen.training.trainer import TrainingSettings, descend

DISTANCES = [*get_args(Divergence), "sliced_wasserstein", "mmd"]
CPU = torch.device("cpu")
LAYOUT = EncodedLayout(width=5, numeric=(0, 1), groups=((2, 5),))
VALUES = tuple(np.linspace(0, 1, 64).tolist())
ATOMS = AtomLayout(
    (
        AtomColumn(0, None, VALUES, VALUES, (1,) * 64),
        AtomColumn(1, None, VALUES, VALUES, (1,) * 64),
        AtomColumn(None, (2, 5)),
    ),
    5,
)
FEATURES = SliceFeatureMap.draw(
    ATOMS, n_bins=64, directions="sparse", n_slices=16, n_cells=32, random_state=0
)


def rows_of_class(label, n, seed):
    """Two numbers that depend on each other and on a category, as encoded rows."""
    rng = np.random.default_rng(seed)
    shares = (0.6, 0.3, 0.1) if label == 0 else (0.1, 0.2, 0.7)
    category = rng.choice(3, n, p=shares)
    first = np.clip(rng.normal(0.25 + 0.2 * category + 0.1 * label, 0.08, n), 0, 1)
    second = np.clip(1 - first + rng.normal(0, 0.05, n), 0, 1)
    return np.column_stack([first, second, np.eye(3)[category]])


def histograms_of(rows, features=FEATURES):
    cells = features.cells(features.atoms.encode(rows))
    counts = [np.bincount(column, minlength=features.n_cells) for column in cells.T]
    return np.array(counts) / len(rows)


HISTOGRAMS = np.array([histograms_of(rows_of_class(label, 20_000, seed=0)) for label in (0, 1)])


def make_loss(divergence="hellinger", **changes):
    settings = {
        "head": OutputHead(LAYOUT),
        "project": SliceProjection(FEATURES),
        "histograms": HISTOGRAMS,
        "class_weights": np.ones(2),
        "device": CPU,
        "seed": 0,
    }
    return SlicedLoss(divergence=divergence, **{**settings, **changes})


def batch(first=0, second=1, n=200, seed=5):
    rows = [rows_of_class(first, n, seed), rows_of_class(second, n, seed + 1)]
    return torch.as_tensor(np.concatenate(rows), dtype=torch.float32)


def labels_of(n=200, n_classes=2):
    return torch.eye(n_classes).repeat_interleave(n, dim=0)


def mean_loss(loss, rows, times=2):
    return float(np.mean([loss(rows, labels_of(len(rows) // 2)).item() for _ in range(times)]))


# -- what is small and what is large ---------------------------------------------------------------


@pytest.mark.parametrize("divergence", DISTANCES)
def test_the_truth_costs_little_and_anything_else_much(divergence):
    loss = make_loss(divergence)
    truth = mean_loss(loss, batch())
    moved = batch()
    moved[:, 0] = (moved[:, 0] + 0.25).clamp(0, 1)
    relabeled = batch()
    relabeled[:, 2:] = relabeled[:, [3, 4, 2]]
    shuffled = batch()
    shuffled[:200, 1] = shuffled[torch.randperm(200, generator=torch.Generator().manual_seed(0)), 1]
    for other, factor in ((moved, 4), (relabeled, 4), (batch(1, 0), 4)):
        assert mean_loss(loss, other) > factor * abs(truth)
    # The same numbers column by column: only slices of both columns can tell.
    assert mean_loss(loss, shuffled) > 1.5 * abs(truth)


@pytest.mark.parametrize("divergence", DISTANCES)
def test_each_class_is_compared_with_its_own_histograms(divergence):
    second_wrong = batch(0, 0)
    of_both = mean_loss(make_loss(divergence), second_wrong)
    of_first = mean_loss(make_loss(divergence, class_weights=np.array([1.0, 0.0])), second_wrong)
    of_second = mean_loss(make_loss(divergence, class_weights=np.array([0.0, 1.0])), second_wrong)
    assert of_second > 4 * abs(of_first)
    # The same draws for every weighting: the mean over the classes is exactly weighted.
    assert of_both == pytest.approx((of_first + of_second) / 2, rel=1e-4)
    weighted = mean_loss(make_loss(divergence, class_weights=np.array([3.0, 1.0])), second_wrong)
    assert weighted == pytest.approx((3 * of_first + of_second) / 4, rel=1e-4)


def test_wasserstein_counts_in_widths_of_the_slice():
    # One straight slice of one number, all rows half a range above the released uniform ones.
    atoms = AtomLayout(ATOMS.columns[:1], 1)
    features = SliceFeatureMap.draw(
        atoms, n_bins=64, directions="sparse", n_slices=1, n_cells=32, random_state=0
    )
    head = OutputHead(EncodedLayout(width=1, numeric=(0,), groups=()))
    low, n = np.zeros((1, 1, 32)), 400
    low[:, :, 4:12] = 1 / 8
    loss = SlicedLoss(
        head, SliceProjection(features), low, np.ones(1), "sliced_wasserstein", CPU, seed=0
    )
    # Cells 4 .. 12 are the numbers 1 / 8 .. 3 / 8, or their mirror images.
    rows = torch.linspace(1 / 8, 3 / 8, n)[:, None]
    up = features.tables[0][0][-1] > 0
    rows = rows if up else 1 - rows
    shift = 0.5 if up else -0.5
    width = sliced_objective._BANDWIDTH * np.std(np.arange(8))
    assert loss(rows, labels_of(n, 1)).item() < 0.02
    # Half a range is 16 cells.
    assert loss(rows + shift, labels_of(n, 1)).item() == pytest.approx(16 / width, rel=0.01)


def test_a_slice_of_a_single_cell_has_a_width_all_the_same():
    single = np.zeros((1, 16, 32))
    single[:, :, 3] = 1.0
    for divergence in DISTANCES:
        loss = make_loss(divergence, histograms=single, class_weights=np.ones(1))
        rows = batch()[:50].requires_grad_()
        value = loss(rows, labels_of(50, 1))
        (gradient,) = torch.autograd.grad(value, rows)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


# -- randomness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", DISTANCES)
def test_same_seed_same_losses_whatever_the_global_state(divergence):
    soft = batch()
    soft[:, 2:] = 0.8 * soft[:, 2:] + 0.2 / 3

    def series(seed):
        loss = make_loss(divergence, seed=seed)
        return [loss(soft, labels_of()).item() for _ in range(3)]

    torch.manual_seed(1)
    first = series(0)
    torch.manual_seed(2)
    assert series(0) == first
    assert series(1) != first
    assert len(set(first)) == 3


def test_every_step_looks_at_other_slices_and_all_get_their_turn():
    wide = SliceFeatureMap.draw(
        ATOMS, n_bins=64, directions="sparse", n_slices=40, n_cells=32, random_state=0
    )
    histograms = np.array([histograms_of(rows_of_class(c, 500, seed=0), wide) for c in (0, 1)])
    seen = []

    class Watched(SliceProjection):
        def forward(self, rows, chosen):
            seen.append(chosen.tolist())
            return super().forward(rows, chosen)

    loss = make_loss(project=Watched(wide), histograms=histograms)
    for _ in range(30):
        loss(batch(n=10), labels_of(10))
    assert all(len(set(chosen)) == 16 for chosen in seen)
    # A slice is missed by all 30 steps with probability 0.6^30, one of forty with 9e-6.
    assert {s for chosen in seen for s in chosen} == set(range(40))
    few = make_loss()
    few.project = Watched(
        replace(FEATURES, subsets=FEATURES.subsets[:5], tables=FEATURES.tables[:5])
    )
    few = make_loss(project=few.project, histograms=HISTOGRAMS[:, :5])
    few(batch(n=10), labels_of(10))
    assert sorted(seen[-1]) == [0, 1, 2, 3, 4]


# -- categories: drawn on the way in, probabilities on the way back --------------------------------


class Recorder(nn.Module):
    """A projection that keeps what it was given."""

    def __init__(self, project):
        super().__init__()
        self.project = project

    def forward(self, rows, chosen):
        self.rows = rows
        return self.project(rows, chosen)


def soft_batch(n=200, seed=0):
    raw = torch.randn(2 * n, 5, generator=torch.Generator().manual_seed(seed))
    return raw.requires_grad_()


def test_slices_see_drawn_categories_and_untouched_numbers():
    recorder = Recorder(SliceProjection(FEATURES))
    n, p = 2000, torch.tensor([0.5, 0.3, 0.2])
    rows = torch.cat([torch.rand(2 * n, 2), p.expand(2 * n, 3)], dim=1)
    make_loss("sliced_wasserstein", project=recorder)(rows, labels_of(n))
    groups = recorder.rows[:, 2:]
    assert torch.minimum(groups.abs(), (groups - 1).abs()).max() < 1e-6
    assert torch.allclose(groups.sum(dim=1), torch.ones(2 * n), atol=1e-6)
    assert torch.equal(recorder.rows[:, :2], rows[:, :2])
    # Shares of 4000 draws: standard deviation below 0.008, six of them.
    assert torch.allclose(groups.mean(dim=0), p, atol=6 * 0.008)


@pytest.mark.parametrize("divergence", DISTANCES)
def test_the_gradient_of_the_drawn_rows_reaches_the_logits(divergence):
    raw = soft_batch()
    recorder = Recorder(SliceProjection(FEATURES))
    loss = make_loss(divergence, project=recorder)
    rows = loss.head(raw)
    rows.retain_grad()
    loss(rows, labels_of()).backward()

    class Keep(nn.Module):
        @staticmethod
        def harden(rows, rng):
            return rows

    hard = recorder.rows.detach().clone().requires_grad_()
    make_loss(divergence, head=Keep())(hard, labels_of()).backward()
    assert torch.allclose(rows.grad, hard.grad, rtol=1e-3, atol=1e-6)
    assert torch.isfinite(raw.grad).all()
    assert (raw.grad[:, 2:].abs().max(dim=0).values > 0).all()
    assert (raw.grad[:, :2].abs().max(dim=0).values > 0).all()


@pytest.mark.parametrize("divergence", ["hellinger", "sliced_wasserstein", "mmd"])
def test_descending_finds_the_shares_of_categories(divergence):
    loss = make_loss(divergence)
    generator = build_generator(
        lambda layout, n: MLPGenerator(layout, n, hidden_sizes=(32,), couple_categories=True),
        LAYOUT,
        2,
        seed=0,
    )
    settings = TrainingSettings(n_steps=150, batch_size=100, learning_rate=1e-2, device="cpu")
    result = descend(generator, loss, 0.0, settings)
    assert result.status == "finished"
    assert result.loss_curve[-20:].mean() < 0.5 * result.loss_curve[:5].mean()
    shares = []
    for label in (0, 1):
        rows = result.generator.sample(np.full(2000, label), seed=0)
        shares.append(rows[:, 2:].mean(axis=0))
    # What a quick fit of a small network reaches; at the start all were a third.
    assert np.abs(np.array(shares) - [(0.6, 0.3, 0.1), (0.1, 0.2, 0.7)]).max() < 0.15


# -- the simplex -----------------------------------------------------------------------------------


def nearest_by_search(point):
    """Another way to the same point: the threshold that leaves a sum of 1, by root finding."""

    def excess(threshold):
        return np.maximum(point - threshold, 0).sum() - 1

    threshold = brentq(excess, point.min() - 2, point.max(), xtol=1e-15, rtol=1e-15)
    return np.maximum(point - threshold, 0)


@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_projection_to_the_simplex_equals_a_search(size, scale):
    points = np.random.default_rng(size).normal(0.1, scale, (20, size))
    expected = np.array([nearest_by_search(point) for point in points])
    assert project_to_simplex(points) == pytest.approx(expected, abs=1e-12 * max(1, scale))


def test_properties_of_the_projection():
    rng = np.random.default_rng(0)
    points = rng.normal(0.05, 0.2, (6, 5, 16))
    before = points.copy()
    found = project_to_simplex(points)
    assert np.array_equal(points, before)
    assert found.shape == points.shape
    assert (found >= 0).all()
    assert found.sum(axis=-1) == pytest.approx(np.ones((6, 5)), abs=1e-12)
    # Distributions stay, a common shift does nothing, order and ties are kept.
    inside = rng.dirichlet(np.ones(16), 10)
    assert project_to_simplex(inside) == pytest.approx(inside, abs=1e-12)
    assert project_to_simplex(found) == pytest.approx(found, abs=1e-12)
    assert project_to_simplex(points + 3.5) == pytest.approx(found, abs=1e-12)
    order = rng.permutation(16)
    assert project_to_simplex(points[..., order]) == pytest.approx(found[..., order], abs=1e-12)
    assert project_to_simplex(np.zeros(4)).tolist() == [0.25] * 4
    assert project_to_simplex(np.array([5.0, -1.0, 0.0])).tolist() == [1, 0, 0]
    # Nearest: no distribution is closer, and it never moves away from the truth.
    flat, nearest = points.reshape(-1, 16), found.reshape(-1, 16)
    distance = np.linalg.norm(flat - nearest, axis=1)
    for other in rng.dirichlet(np.full(16, 0.3), 200):
        assert (np.linalg.norm(flat - other, axis=1) >= distance - 1e-12).all()
        closer = np.linalg.norm(nearest - other, axis=1)
        assert (closer <= np.linalg.norm(flat - other, axis=1) + 1e-12).all()


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", DISTANCES)
def test_known_distances_are_returned(divergence):
    assert check_distance(divergence) == divergence


@pytest.mark.parametrize("divergence", ["wasserstein", "Hellinger", "", None, 3, ["kl"], True])
def test_unknown_distances_are_named_with_the_known_ones(divergence):
    with pytest.raises(InputError, match=r"divergence must be one of hellinger, kl.*mmd") as caught:
        check_distance(divergence)
    assert repr(divergence) in str(caught.value)
