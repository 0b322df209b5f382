import pytest
import torch

from skdpgen.divergences.mmd import (
    class_weights,
    embedding_loss,
    noise_floor,
    squared_distance,
)


def _problem(n_rows=6, seed=0):
    rng = torch.Generator().manual_seed(seed)
    features = torch.randn(n_rows, 4, generator=rng, dtype=torch.float64)
    labels = torch.eye(2, dtype=torch.float64).repeat_interleave(n_rows // 2, dim=0)
    target = torch.randn(2, 4, generator=rng, dtype=torch.float64)
    return target, features, labels, torch.tensor([0.8, 0.2], dtype=torch.float64)


@pytest.mark.parametrize("objective", ["joint", "reweighted"])
def test_loss_is_the_mean_over_pairs_of_different_rows(objective):
    target, features, labels, shares = _problem()
    weights = class_weights(shares, objective)
    expected = 0.0
    for c in range(2):
        rows = features[labels[:, c] == 1]
        pairs = [rows[i] @ rows[j] for i in range(3) for j in range(3) if i != j]
        inner = target[c] @ rows.mean(dim=0)
        square = torch.stack(pairs).mean()
        norm = target[c] @ target[c]
        expected += weights[c] * (norm - 2 * shares[c] * inner + shares[c] ** 2 * square)
    assert embedding_loss(target, features, labels, shares, weights) == pytest.approx(expected)


def test_loss_is_unbiased():
    target, _, labels, shares = _problem(n_rows=4)
    weights = class_weights(shares, "joint")
    rng = torch.Generator().manual_seed(1)
    centers = torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]], dtype=torch.float64)
    draws = torch.stack(
        [
            embedding_loss(
                target,
                labels @ centers + torch.randn(4, 4, generator=rng, dtype=torch.float64),
                labels,
                shares,
                weights,
            )
            for _ in range(20_000)
        ]
    )
    truth = squared_distance(target, shares[:, None] * centers).sum()
    standard_error = draws.std() / len(draws) ** 0.5
    assert abs(draws.mean() - truth) < 4 * standard_error
    # The plain estimate would be off by many standard errors.
    assert (shares.square() * 4 / 2).sum() > 20 * standard_error


def test_reweighted_is_the_distance_within_classes():
    target, features, labels, shares = _problem()
    reweighted = embedding_loss(
        target, features, labels, shares, class_weights(shares, "reweighted")
    )
    within = embedding_loss(target / shares[:, None], features, labels, *torch.ones(2, 2))
    assert reweighted == pytest.approx(within)


def test_a_class_below_the_noise_cannot_outweigh_the_others():
    shares = torch.tensor([0.9, 0.1, 1e-5])
    weights = class_weights(shares, "reweighted", noise_energy=1e-4)
    # Within one percent of the paper's weights where the class stands out of the noise.
    assert weights[:2] == pytest.approx(shares[:2] ** -2, rel=0.011)
    assert weights[2] == pytest.approx(1e4, rel=1e-4)


def test_order_of_rows_does_not_matter():
    target, features, labels, shares = _problem()
    weights = torch.ones(2, dtype=torch.float64)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(2))
    straight = embedding_loss(target, features, labels, shares, weights)
    shuffled = embedding_loss(target, features[order], labels[order], shares, weights)
    assert shuffled == pytest.approx(straight)


def test_noise_floor_is_the_mean_loss_at_the_truth():
    rng = torch.Generator().manual_seed(3)
    shares = torch.tensor([0.75, 0.25])
    weights = class_weights(shares, "reweighted")
    noise = 0.1 * torch.randn(5000, 2, 30, generator=rng)
    losses = (weights * squared_distance(noise, torch.zeros(30))).sum(dim=1)
    assert losses.mean() == pytest.approx(noise_floor(30, 0.1, weights), rel=0.02)
