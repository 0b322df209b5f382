import pickle

import pytest
import torch

from skdpgen.generators.heads import OutputHead
from skdpgen.layout import EncodedLayout

MIXED = EncodedLayout(width=8, numeric=(0, 5), groups=((1, 3), (3, 5), (6, 8)))
UNEVEN = EncodedLayout(width=9, numeric=(4,), groups=((0, 4), (5, 7), (7, 9)))
NUMBERS = EncodedLayout(width=3, numeric=(0, 1, 2), groups=())
CATEGORIES = EncodedLayout(width=5, numeric=(), groups=((0, 3), (3, 5)))


def _raw(layout, n_rows=50, scale=3.0, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n_rows, layout.width, generator=rng)


@pytest.mark.parametrize("layout", [MIXED, UNEVEN, NUMBERS, CATEGORIES])
def test_groups_equal_torch_softmax_and_numerics_are_bounded(layout):
    raw = _raw(layout)
    rows = OutputHead(layout)(raw)
    assert rows.shape == raw.shape
    for start, stop in layout.groups:
        torch.testing.assert_close(rows[:, start:stop], raw[:, start:stop].softmax(dim=1))
    numbers = rows[:, list(layout.numeric)]
    assert ((numbers >= 0) & (numbers <= 1)).all()


def test_numerics_keep_their_positions_and_are_increasing():
    head = OutputHead(UNEVEN)
    raw = torch.zeros(3, 9)
    raw[:, 4] = torch.tensor([-1.0, 0.0, 1.0])
    low, middle, high = head(raw)[:, 4].tolist()
    assert 0 < low < middle < high < 1
    assert middle == pytest.approx(0.5)


def test_both_ends_are_reached_exactly():
    rows = OutputHead(NUMBERS)(torch.tensor([[-4.0, 4.0, 0.0]]))
    assert rows[0, 0] == 0
    assert rows[0, 1] == 1


def test_huge_raw_values_stay_finite_with_finite_gradients():
    raw = _raw(MIXED, scale=1e6).requires_grad_()
    rows = OutputHead(MIXED)(raw)
    rows.square().sum().backward()
    assert torch.isfinite(rows).all()
    assert torch.isfinite(raw.grad).all()


@pytest.mark.parametrize("layout", [MIXED, UNEVEN, NUMBERS, CATEGORIES])
def test_harden_gives_exact_one_hots_and_leaves_numerics(layout):
    head = OutputHead(layout)
    soft = head(_raw(layout))
    hard = head.harden(soft, torch.Generator().manual_seed(0))
    for start, stop in layout.groups:
        group = hard[:, start:stop]
        assert ((group == 0) | (group == 1)).all()
        assert (group.sum(dim=1) == 1).all()
    assert torch.equal(hard[:, list(layout.numeric)], soft[:, list(layout.numeric)])


def test_harden_samples_rather_than_takes_the_most_likely():
    head = OutputHead(CATEGORIES)
    soft = torch.tensor([[0.6, 0.3, 0.1, 0.5, 0.5]]).repeat(40_000, 1)
    hard = head.harden(soft, torch.Generator().manual_seed(0))
    # Five standard deviations of a share of 40,000 draws are below 0.0125.
    torch.testing.assert_close(hard.mean(dim=0), soft[0], atol=0.0125, rtol=0)
    both = (hard[:, 0] * hard[:, 3]).mean()
    assert both == pytest.approx(0.3, abs=0.0125)  # groups are drawn independently


def test_harden_never_draws_an_impossible_category():
    soft = torch.tensor([[0.0, 1.0, 0.0, 0.0, 1.0]]).repeat(1000, 1)
    hard = OutputHead(CATEGORIES).harden(soft, torch.Generator().manual_seed(0))
    assert torch.equal(hard, soft)


def test_harden_is_seeded():
    head = OutputHead(MIXED)
    soft = head(_raw(MIXED))
    first, again, other = (head.harden(soft, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_head_has_no_state_and_pickles():
    head = pickle.loads(pickle.dumps(OutputHead(UNEVEN)))
    assert head.state_dict() == {}
    assert torch.equal(head(_raw(UNEVEN)), OutputHead(UNEVEN)(_raw(UNEVEN)))
