import torch

from skdpgen.generators import MLPGenerator
from skdpgen.layout import EncodedLayout

LAYOUT = EncodedLayout(width=4, numeric=(0,), groups=((1, 4),))


def test_shapes_follow_the_parameters():
    net = MLPGenerator(LAYOUT, 3, noise_dim=5, hidden_sizes=(7, 6))
    assert net.noise_dim == 5
    assert net(torch.zeros(2, 5), torch.zeros(2, 3)).shape == (2, 4)
    assert [tuple(m.weight.shape) for m in net.hidden if isinstance(m, torch.nn.Linear)] == [
        (7, 8),
        (6, 7),
    ]


def test_the_label_reaches_the_output_past_the_hidden_layers():
    torch.manual_seed(0)
    net = MLPGenerator(LAYOUT, 2)
    for parameter in net.hidden.parameters():
        parameter.data.zero_()
    first, second = net(torch.zeros(2, net.noise_dim), torch.eye(2))
    assert not torch.allclose(first, second)


def test_a_row_does_not_depend_on_its_batch():
    torch.manual_seed(0)
    net = MLPGenerator(LAYOUT, 2)
    noise, labels = torch.randn(8, net.noise_dim), torch.eye(2).repeat(4, 1)
    torch.testing.assert_close(net(noise, labels)[:3], net(noise[:3], labels[:3]))
