import torch

from skdpgen.generators import MLPGenerator
from skdpgen.layout import EncodedLayout

LAYOUT = EncodedLayout(width=6, numeric=(0, 4, 5), groups=((1, 4),))
CATEGORIES = EncodedLayout(width=5, numeric=(), groups=((0, 2), (2, 5)))


def _noise(net, n_rows, seed=0):
    return torch.randn(n_rows, net.noise_dim, generator=torch.Generator().manual_seed(seed))


def test_shapes_follow_the_parameters():
    net = MLPGenerator(LAYOUT, 3, noise_dim=5, hidden_sizes=(7, 6))
    assert net.noise_dim == 5
    assert net(torch.zeros(2, 5), torch.zeros(2, 3)).shape == (2, 6)
    weights = [tuple(m.weight.shape) for m in net.hidden if isinstance(m, torch.nn.Linear)]
    assert weights == [(7, 8), (6, 7)]


def test_noise_reaches_numbers_only():
    spread = MLPGenerator(LAYOUT, 2)
    raw = spread(_noise(spread, 20), torch.eye(2)[[0] * 20])
    assert (raw[:, [0, 4, 5]].std(dim=0) > 0.01).all()
    assert (raw[:, 1:4].std(dim=0) == 0).all()


def test_noise_reaches_coupled_categories():
    net = MLPGenerator(LAYOUT, 2, couple_categories=True)
    raw = net(_noise(net, 20), torch.eye(2)[[0] * 20])
    assert (raw.std(dim=0) > 0.01).all()


def test_each_class_has_its_own_category_logits():
    net = MLPGenerator(LAYOUT, 2)
    net.from_label.weight.data.normal_()
    first, second = net(torch.zeros(2, net.noise_dim), torch.eye(2))[:, 1:4]
    assert not torch.allclose(first, second)


def test_a_table_of_categories_only():
    net = MLPGenerator(CATEGORIES, 2)
    raw = net(_noise(net, 3), torch.eye(2)[[0, 1, 1]])
    assert raw.shape == (3, 5)
    raw.sum().backward()
    assert net.from_label.weight.grad is not None


def test_a_row_does_not_depend_on_its_batch():
    net = MLPGenerator(LAYOUT, 2)
    noise, labels = _noise(net, 8), torch.eye(2).repeat(4, 1)
    torch.testing.assert_close(net(noise, labels)[:3], net(noise[:3], labels[:3]))
