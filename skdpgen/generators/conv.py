"""The generator for images: a small map of features, upsampled twice by convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skdpgen.exceptions import InputError
from skdpgen.layout import EncodedLayout

__all__ = ["ConvGenerator"]


class ConvGenerator(nn.Module):
    """A class-conditional image generator with upsampling convolutions.

    Noise and label pass two dense layers into a stack of feature maps at a quarter of the
    image size. Two rounds of bilinear upsampling and convolution follow, as in the image
    generator of DP-MERF (Harder et al. 2021, arXiv 2002.11603, experiments). Layer and group
    normalization take the place of batch normalization, so that a row never depends on the
    others of its batch.

    Parameters
    ----------
    layout : EncodedLayout
        Layout of the rows to make; it must have an image shape.
    n_classes : int
        Number of labels, 1 for images without a label.
    noise_dim : int, default=5
        Width of the noise.
    hidden_size : int, default=200
        Width of the first dense layer.
    channels : (int, int), default=(16, 8)
        Feature maps at a quarter and at half of the image size.

    Raises
    ------
    InputError
        If the layout has no image shape.

    Examples
    --------
    >>> layout = EncodedLayout(784, tuple(range(784)), (), image_shape=(28, 28))
    >>> net = ConvGenerator(layout, n_classes=10)
    >>> net(torch.zeros(2, net.noise_dim), torch.zeros(2, 10)).shape
    torch.Size([2, 784])
    """

    def __init__(
        self,
        layout: EncodedLayout,
        n_classes: int,
        *,
        noise_dim: int = 5,
        hidden_size: int = 200,
        channels: tuple[int, int] = (16, 8),
    ) -> None:
        super().__init__()
        if layout.image_shape is None:
            raise InputError(
                "generator='conv' makes images, and this table isn't one: use 'mlp', or name "
                "the image shape in the schema."
            )
        self.noise_dim = noise_dim
        height, width = layout.image_shape
        first, second = channels
        # Rounding up, then resizing to the exact size, serves images of any size.
        quarter = (-(-height // 4), -(-width // 4))
        half = (-(-height // 2), -(-width // 2))
        n_quarter = first * quarter[0] * quarter[1]
        self.dense = nn.Sequential(
            nn.Linear(noise_dim + n_classes, hidden_size),
            nn.LayerNorm(hidden_size),
            nn.ReLU(),
            nn.Linear(hidden_size, n_quarter),
            nn.LayerNorm(n_quarter),
        )
        self.image = nn.Sequential(
            nn.Unflatten(1, (first, *quarter)),
            nn.Upsample(size=half, mode="bilinear", align_corners=False),
            nn.Conv2d(first, second, kernel_size=5, padding=2),
            nn.ReLU(),
            nn.Upsample(size=(height, width), mode="bilinear", align_corners=False),
            nn.Conv2d(second, 1, kernel_size=5, padding=2),
            nn.Flatten(),
        )

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Make raw images.

        Parameters
        ----------
        noise : Tensor of shape (n_rows, noise_dim)
            Standard normal noise.
        labels : Tensor of shape (n_rows, n_classes)
            One-hot labels.

        Returns
        -------
        Tensor of shape (n_rows, height * width)
            Raw pixels in row-major order.
        """
        raw: Tensor = self.image(self.dense(torch.cat([noise, labels], dim=1)))
        return raw
