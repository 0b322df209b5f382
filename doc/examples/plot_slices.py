"""
Slices or an embedding
======================

Two ways to look at a table once: random features of a few columns, and histograms of slices.
Points around 25 nodes of a grid show whether a method keeps all modes. Without their labels, since
those would help.
"""

# %%
# 10,000 points, epsilon = 1 for each method, 2,000 frequencies or 100 slices. Both train a mixture
# of products.
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
).fit(points)
slices = SlicedFDivSynthesizer(1.0, 1e-5, n_slices=100, n_steps=600, **settings).fit(points)

# %%
import matplotlib.pyplot as plt

tables = {
    "real points": points,
    "embedding": embedding.sample(len(points), random_state=0),
    "histograms of slices": slices.sample(len(points), random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    ax.scatter(table["x"], table["y"], s=1, color="#777" if table is points else "C0")
    ax.set_title(name, fontsize=10)
    ax.set_aspect("equal")
plt.show()

# %%
# Networks, trained by the smoothed-sliced f-divergences on straight slices, need many more rows
# and minutes instead of seconds to get there: :doc:`/benchmarks/generated/slices_gaussians` has
# the figures for 100,000 points, and :doc:`/benchmarks/generated/gaussians` those of the
# embedding. For tables, see :doc:`/benchmarks/generated/slices_adult`.
