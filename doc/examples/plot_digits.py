"""
Images: handwritten digits
==========================

1,797 images of 8 x 8 pixels, as they ship with scikit-learn. A schema with ``image_shape`` is all
it takes to get the features of the paper and a convolutional network.
"""

# %%
# Every pixel is a number between 0 and 16, and the digit is the label.
from sklearn.datasets import load_digits

from skdpgen import DPMERFSynthesizer, GaussianFeatures, Schema

digits = load_digits(as_frame=True).frame
pixels = digits.columns.drop("target")
schema = Schema.from_dict(
    {
        "target": "target",
        "image_shape": [8, 8],
        "columns": {
            **{name: {"kind": "numeric", "bounds": [0, 16], "dtype": "float"} for name in pixels},
            "target": {"kind": "label", "values": list(range(10))},
        },
    }
)

# %%
# Under two thousand images are very few for a private release: at epsilon = 1 the noise on the
# mean of a class is large. So we look at epsilon = 1 and epsilon = 10 beside each other, and say
# that 10 is weak protection. Training is short (400 steps).
fits = {
    epsilon: DPMERFSynthesizer(
        epsilon,
        1e-5,
        schema=schema,
        features=GaussianFeatures(2000, bandwidth=3.0),
        n_steps=400,
        random_state=0,
    ).fit(digits)
    for epsilon in (1.0, 10.0)
}

# %%
# Three images of each digit, asked for by their labels.
import matplotlib.pyplot as plt
import numpy as np


def show(ax, table, title):
    """Tile three images of each digit."""
    images = table[pixels].to_numpy().reshape(3, 10, 8, 8)
    ax.imshow(images.transpose(0, 2, 1, 3).reshape(24, 80), cmap="gray_r", vmin=0, vmax=16)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()


wanted = np.tile(np.arange(10), 3)
figure, axes = plt.subplots(3, 1, figsize=(7, 7), layout="constrained")
real = digits.groupby("target").head(3).sort_values("target", kind="stable")
show(axes[0], real.iloc[np.arange(30).reshape(10, 3).T.ravel()], "real")
for ax, (epsilon, synth) in zip(axes[1:], fits.items(), strict=True):
    show(ax, synth.sample(30, y=wanted, random_state=0), f"synthetic, epsilon = {epsilon:g}")
plt.show()

# %%
# What are they worth? A classifier trained on synthetic images, tested on the real ones. MNIST has
# forty times as many images, and there epsilon = 1 gives 0.82: see
# :doc:`/benchmarks/generated/mnist`.
from sklearn.linear_model import LogisticRegression

for epsilon, synth in fits.items():
    table = synth.sample(3000, random_state=0)
    model = LogisticRegression(max_iter=500).fit(table[pixels], table["target"])
    print(f"epsilon = {epsilon:g}: accuracy {model.score(digits[pixels], digits['target']):.2f}")
