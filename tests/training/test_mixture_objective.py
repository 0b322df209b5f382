"""The distance of a mixture to released features: exact expectations, gradients, partitions."""

import itertools

import numpy as np
import pytest
import torch

from skdpgen.training.mixture_objective import frequency_groups, interaction_loss, one_way_loss

N_CODES = [5, 7, 3, 30]
SUBSETS = [(0, 1), (1, 2, 3), (3,), (0, 1, 2), (0, 1, 2, 3)]
N_MIXTURES, N_COMPONENTS, N_CLASSES = 2, 4, 3


@pytest.fixture
def phases():
    rng = np.random.default_rng(0)
    return [
        [rng.integers(0, 2**16, (N_CODES[j], m)).astype(np.uint16) for j in subset]
        for subset, m in zip(SUBSETS, (70, 12, 3, 8, 9), strict=True)
    ]


@pytest.fixture
def target():
    return np.random.default_rng(1).normal(size=(N_CLASSES, 2 * 102))


@pytest.fixture
def mixture():
    rng = torch.Generator().manual_seed(0)
    width = N_MIXTURES * N_COMPONENTS
    atoms = [torch.softmax(torch.randn(n, width, generator=rng), dim=0) for n in N_CODES]
    logits = torch.randn(N_MIXTURES, N_CLASSES * N_COMPONENTS, generator=rng)
    shares = torch.softmax(logits, dim=1).view(N_MIXTURES, N_CLASSES, N_COMPONENTS)
    return atoms, shares


def predicted(phases, atoms, shares):
    """Expected features by complex arithmetic, shape (E, C, F)."""
    parts = []
    for subset, tables in zip(SUBSETS, phases, strict=True):
        wave = torch.ones((), dtype=torch.complex64)
        for column, table in zip(subset, tables, strict=True):
            angle = torch.tensor(2 * np.pi / 2**16 * table.astype(float).T)
            wave = wave * (torch.exp(1j * angle).to(torch.complex64) @ atoms[column].cfloat())
        parts.append(wave.view(-1, N_MIXTURES, N_COMPONENTS))
    return torch.einsum("fek,eck->ecf", torch.cat(parts), shares.cfloat())


def test_expected_features_are_those_of_the_joint_distribution(phases, mixture):
    # Over all 3,150 cells of the table, for one mixture and one subset of all columns.
    atoms, shares = mixture
    cells = np.array(list(itertools.product(*map(range, N_CODES))))
    component = [a.numpy()[:, :N_COMPONENTS].astype(float) for a in atoms]
    weights = np.prod([component[j][cells[:, j]] for j in range(4)], axis=0)
    turns = sum(phases[-1][j][cells[:, j]].astype(float) for j in range(4)) / 2**16
    exact = shares[0].numpy() @ (weights.T @ np.exp(2j * np.pi * turns))
    assert np.allclose(predicted(phases, atoms, shares)[0, :, -9:].numpy(), exact, atol=1e-5)


@pytest.mark.parametrize("size", [1000, 30])
def test_loss_and_gradient_equal_those_of_automatic_differentiation(phases, target, mixture, size):
    amplitudes = np.random.default_rng(5).uniform(0.5, 2, 102)
    groups = frequency_groups(SUBSETS, phases, target, amplitudes, size, np.random.default_rng(2))
    assert len(groups) == max(1, round(102 / size))
    atoms = [a.requires_grad_() for a in mixture[0]]
    shares = mixture[1].requires_grad_()
    weights = torch.tensor([0.5, 1.0, 1.5])
    released = torch.tensor(target[:, :102] + 1j * target[:, 102:]).cfloat()
    expected = torch.tensor(amplitudes).float() * predicted(phases, atoms, shares)
    squares = (expected - released).abs().square() * weights[:, None]
    squares.sum().backward()
    # Groups have unequal sizes: undo the mean over each, and they add up to the whole.
    losses = torch.zeros(N_MIXTURES)
    gradients, share_gradient = [torch.zeros_like(a) for a in atoms], torch.zeros_like(shares)
    for group in groups:
        part, part_shares = [torch.zeros_like(a) for a in atoms], torch.zeros_like(shares)
        with torch.no_grad():
            loss = interaction_loss(group, atoms, shares, weights, part, part_shares)
        losses += group.size * loss
        share_gradient += group.size * part_shares
        for whole, more in zip(gradients, part, strict=True):
            whole += group.size * more
    assert torch.allclose(losses, squares.sum(dim=(1, 2)), rtol=1e-4)
    assert torch.allclose(share_gradient, shares.grad, rtol=1e-3, atol=1e-3)
    for found, atom in zip(gradients, atoms, strict=True):
        assert torch.allclose(found, atom.grad, rtol=1e-3, atol=1e-3)


def test_groups_hold_each_frequency_once(phases):
    # The target tells frequencies apart.
    numbers = np.tile(np.arange(102.0), (N_CLASSES, 2))
    groups = frequency_groups(SUBSETS, phases, numbers, np.ones(102), 30, np.random.default_rng(0))
    found = np.concatenate([group.embedding[:, 0] for group in groups])
    assert np.array_equal(np.sort(found.real), np.arange(102))
    assert np.array_equal(found.real, found.imag)
    assert sum(length for group in groups for _, length in group.segments) == 102
    assert max(length for group in groups for _, length in group.segments) <= 64


def test_one_way_loss_and_gradient(mixture):
    atoms = torch.cat(mixture[0]).requires_grad_()
    shares = mixture[1].requires_grad_()
    rng = torch.Generator().manual_seed(3)
    released = torch.rand(N_CLASSES, len(atoms), generator=rng)
    weights = torch.tensor([0.5, 1.0, 1.5])
    expected = torch.einsum("nek,eck->ecn", atoms.view(-1, N_MIXTURES, N_COMPONENTS), shares)
    squares = (expected - released).square() * weights[:, None]
    squares.sum().backward()
    gradient, share_gradient = torch.zeros_like(atoms), torch.zeros_like(shares)
    with torch.no_grad():
        loss = one_way_loss(atoms, released, shares, weights, gradient, share_gradient)
    assert torch.allclose(loss, squares.sum(dim=(1, 2)), rtol=1e-5)
    assert torch.allclose(gradient, atoms.grad, rtol=1e-4, atol=1e-5)
    assert torch.allclose(share_gradient, shares.grad, rtol=1e-4, atol=1e-5)
