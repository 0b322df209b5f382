"""Fitting mixtures: a known distribution comes back, training stops where noise begins."""

import dataclasses

import numpy as np
import pytest
import torch

from skdpgen.exceptions import InputError
from skdpgen.training.denoising import piecewise_constant
from skdpgen.training.mixture_objective import frequency_groups
from skdpgen.training.mixture_trainer import (
    Adam,
    MixtureSettings,
    MixtureTarget,
    coarse_basis,
    fit_mixture,
)

N_CODES = (4, 3, 40)
N_ORDERED = (0, 0, 40)
SUBSETS = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]


def distribution():
    """A joint distribution of a label of two classes and three columns that all depend."""
    rng = np.random.default_rng(0)
    joint = np.zeros((2, *N_CODES))
    for label, first in np.ndindex(2, 4):
        second = rng.dirichlet([1.0, 1.0, 1.0])
        peak = np.exp(-((np.arange(40) - 5 - 8 * first - 4 * label) ** 2) / 30)
        joint[label, first] = rng.random() * np.outer(second, peak / peak.sum())
    return joint / joint.sum()


def released(joint, noise=0.0, one_way=True, size=200, seed=0):
    rng = np.random.default_rng(seed)
    phases = [
        [rng.integers(0, 2**16, (N_CODES[j], 150)).astype(np.uint16) for j in subset]
        for subset in SUBSETS
    ]
    waves = []
    for subset, tables in zip(SUBSETS, phases, strict=True):
        others = tuple(1 + j for j in range(3) if j not in subset)
        marginal = joint.sum(axis=others)
        turns = np.zeros((*(N_CODES[j] for j in subset), 150))
        for axis, table in enumerate(tables):
            shape = [1] * len(subset)
            shape[axis] = len(table)
            turns = turns + table.reshape(*shape, 150) / 2**16
        waves.append(np.tensordot(marginal, np.exp(2j * np.pi * turns), axes=len(subset)))
    wave = np.concatenate(waves, axis=1)
    target = np.concatenate([wave.real, wave.imag], axis=1)
    target += noise * rng.normal(size=target.shape)
    tables = [joint.sum(axis=tuple(1 + i for i in range(3) if i != j)) for j in range(3)]
    exact = np.concatenate(tables, axis=1)
    return MixtureTarget(
        groups=frequency_groups(SUBSETS, phases, target, np.ones(target.shape[1] // 2), size, rng),
        n_codes=N_CODES,
        n_ordered=N_ORDERED,
        one_way=exact + noise * rng.normal(size=exact.shape) if one_way else None,
        proportions=joint.sum(axis=(1, 2, 3)),
        feature_stddev=noise,
        one_way_stddev=noise,
        class_weights=np.ones(len(joint)),
        one_way_weight=1 / 600,
    )


def fitted_joint(found):
    """The joint distribution of the average of all mixtures."""
    shares = np.concatenate(list(found.shares / len(found.shares)), axis=1)
    a, b, c = found.probabilities
    return np.einsum("yk,ka,kb,kc->yabc", shares, a, b, c)


def distance(a, b):
    return np.abs(a - b).sum() / 2


def test_a_known_distribution_is_recovered():
    joint = distribution()
    settings = MixtureSettings(n_components=40, n_mixtures=2, n_steps=900, floor_ratio=0.0)
    found = fit_mixture(released(joint), settings)
    assert found.status == "finished"
    assert len(found.loss_curve) == 900
    # The product of its marginals, which is where the components start, is 0.68 away.
    assert distance(fitted_joint(found), joint) < 0.06
    assert found.shares.sum(axis=(1, 2)) == pytest.approx([1, 1])


@pytest.mark.parametrize("one_way", [True, False])
def test_training_stops_at_the_noise_floor(one_way):
    target = released(distribution(), noise=0.02, one_way=one_way)
    found = fit_mixture(target, MixtureSettings(n_components=40))
    assert found.status == "floor"
    last = found.loss_curve[-len(target.groups) :].mean()
    assert last <= target.noise_floor < found.loss_curve[0]
    n_frequencies = 600
    floor = 2 * 0.02**2 * 2 + (2 * 47 * 0.02**2 / n_frequencies if one_way else 0)
    assert target.noise_floor == pytest.approx(floor)


def test_the_seed_decides_everything():
    target = released(distribution(), noise=0.02)
    settings = [
        MixtureSettings(n_components=8, n_mixtures=2, n_steps=20, seed=s) for s in (1, 1, 2)
    ]
    first, again, other = (fit_mixture(target, s).probabilities[2] for s in settings)
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_unlabeled():
    joint = distribution().sum(axis=0, keepdims=True)
    settings = MixtureSettings(n_components=40, n_mixtures=2, n_steps=600, floor_ratio=0.0)
    found = fit_mixture(released(joint), settings)
    assert found.shares.shape == (2, 1, 20)
    assert distance(fitted_joint(found), joint) < 0.06


def test_the_start_is_what_stands_out_of_the_noise():
    joint = distribution()
    joint[:, 3] *= 0.01
    joint[:, 2] *= 0.02
    # No noise on the shares themselves: what is pooled follows from the stated deviation alone.
    exact = released(joint / joint.sum())
    target = dataclasses.replace(exact, one_way_stddev=0.02)
    shares = exact.one_way.sum(axis=0)
    found = fit_mixture(target, MixtureSettings(n_steps=1, learning_rate=1e-6, spread=0.0))
    # Two categories are below two standard deviations and share what they hold.
    category, number = found.probabilities[0][0], found.probabilities[2][0]
    first, last = shares[:4], shares[-40:]
    assert (first < 2 * 0.02 * np.sqrt(2)).tolist() == [False, False, True, True]
    assert category[:2] == pytest.approx(first[:2], rel=1e-3)
    assert category[2:] == pytest.approx(first[2:].mean(), rel=1e-3)
    # Neighboring bins do where the noise hides their difference.
    smooth = piecewise_constant(last, 0.02 * np.sqrt(2))
    assert number == pytest.approx(smooth / smooth.sum(), rel=1e-3)
    assert 1 < len(set(smooth.tolist())) < 10


def test_a_fit_that_diverges_says_so():
    target = released(distribution())
    target.groups[0].released[0, 0] = np.nan
    found = fit_mixture(target, MixtureSettings(n_components=8, n_steps=20))
    assert found.status == "diverged"
    assert np.isfinite(found.loss_curve).all()
    assert np.isfinite(found.shares).all()


def test_adam_is_the_one_of_torch():
    rng = torch.Generator().manual_seed(0)
    ours = [torch.randn(3, 2, generator=rng), torch.randn(4, generator=rng)]
    theirs = [p.clone().requires_grad_() for p in ours]
    optimizer = torch.optim.Adam(theirs, betas=(0.9, 0.99), eps=1e-12)
    adam = Adam(ours)
    for rate in (0.1, 0.05, 0.2):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = 1e-4 * torch.randn(p.shape, generator=rng)
            q.grad = p.grad.clone()
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        adam.step(rate)
    for p, q in zip(ours, theirs, strict=True):
        assert torch.allclose(p, q.detach(), rtol=1e-5)


def test_coarse_bases_are_piecewise_linear():
    basis = coarse_basis(9, knots=(4, 2))
    assert basis.shape == (9, 5 + 3)
    assert basis[:, :5].sum(axis=1) == pytest.approx(np.ones(9))
    assert basis[1, :5] == pytest.approx([0.5, 0.5, 0, 0, 0])
    assert basis[6, 5:] == pytest.approx([0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"n_components": 3, "n_mixtures": 4}, "at least n_mixtures = 4"),
        ({"n_mixtures": 0}, "n_mixtures must be at least 1"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be finite and positive"),
        ({"spread": float("nan")}, "spread must be"),
        ({"floor_ratio": -1.0}, "floor_ratio must be"),
    ],
)
def test_settings_out_of_range(change, message):
    with pytest.raises(InputError, match=message):
        MixtureSettings(**change)
