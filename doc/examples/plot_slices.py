"""
Slices or an embedding
======================

Two ways to look at a table once: random features of a few columns, and histograms of slices. Points around 25
nodes of a grid show whether a method keeps all modes. Without their labels, since those would help.
"""

# %%
# 10,000 points, epsilon = 1 for each method. Both are public toys, so we may look at them.
from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator, SlicedFDivSynthesizer
from skdpgen.datasets import make_gaussian_grid

points, schema = make_gaussian_grid(10_000, random_state=0)
points = points[["x", "y"]]
schema = schema.drop(["label"])
settings = {"schema": schema, "random_state": 0}

embedding = DPMERFSynthesizer(
    1.0,
    1e-5,
    features=InteractionFeatures(2000, n_bins=64),
    generator=MixtureGenerator(200, n_mixtures=1),
    **settings,
)
wrapped = SlicedFDivSynthesizer(1.0, 1e-5, n_slices=100, n_steps=600, **settings)
dense = SlicedFDivSynthesizer(
    1.0, 1e-5, n_slices=50, directions="dense", divergence="hellinger", n_steps=800, **settings
)

# %%
# The first two train a mixture of products, the third a network, by the smoothed-sliced Hellinger divergence. All three
# are short trainings with few features.
import matplotlib.pyplot as plt

names = {
    "real points": None,
    "embedding, mixture": embedding,
    "wrapped slices, mixture": wrapped,
    "dense slices, network": dense,
}
figure, axes = plt.subplots(2, 2, figsize=(7, 7), layout="constrained", sharex=True, sharey=True)
for ax, (name, synth) in zip(axes.flat, names.items(), strict=True):
    table = points if synth is None else synth.fit(points).sample(5000, random_state=0)
    ax.scatter(table["x"][:5000], table["y"][:5000], s=1.5, color="#666" if synth is None else "C0")
    ax.set_title(name, fontsize=10)
    ax.set_aspect("equal")
plt.show()

# %%
# With time, all modes come out of each: :doc:`/benchmarks/generated/gaussians` and
# :doc:`/benchmarks/generated/slices_gaussians` have the figures for 100,000 points and full trainings.
