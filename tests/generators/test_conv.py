import pytest
import torch

from skdpgen.exceptions import InputError
from skdpgen.generators import ConvGenerator
from skdpgen.layout import EncodedLayout


def _layout(height, width):
    n = height * width
    return EncodedLayout(n, tuple(range(n)), (), image_shape=(height, width))


@pytest.mark.parametrize(("height", "width"), [(28, 28), (8, 8), (5, 11), (1, 2)])
def test_images_of_any_size(height, width):
    net = ConvGenerator(_layout(height, width), 3, noise_dim=4, channels=(3, 2))
    assert net(torch.zeros(2, 4), torch.zeros(2, 3)).shape == (2, height * width)


def test_pixels_are_in_row_major_order():
    net = ConvGenerator(_layout(7, 5), 1).eval()
    lit = torch.zeros(1, 1, 8, 8)
    lit[0, 0, 2, 1] = 1.0
    net.upsample.register_forward_hook(lambda module, inputs, output: lit)
    flat = net(torch.zeros(1, net.noise_dim), torch.ones(1, 1))
    assert flat.argmax() == 2 * 5 + 1


def test_noise_and_label_reach_the_image():
    net = ConvGenerator(_layout(8, 8), 2).eval()
    noise = torch.randn(1, net.noise_dim, generator=torch.Generator().manual_seed(0))
    base = net(noise, torch.eye(2)[:1])
    assert not torch.allclose(base, net(noise, torch.eye(2)[1:]))
    assert not torch.allclose(base, net(-noise, torch.eye(2)[:1]))


def test_a_row_does_not_depend_on_its_batch_when_sampling():
    net = ConvGenerator(_layout(8, 8), 2).eval()
    noise = torch.randn(6, net.noise_dim, generator=torch.Generator().manual_seed(0))
    labels = torch.eye(2).repeat(3, 1)
    torch.testing.assert_close(net(noise, labels)[:2], net(noise[:2], labels[:2]))


def test_a_table_is_refused():
    layout = EncodedLayout(width=3, numeric=(0,), groups=((1, 3),))
    with pytest.raises(InputError, match="'mlp'"):
        ConvGenerator(layout, 2)
