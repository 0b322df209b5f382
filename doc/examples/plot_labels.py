"""
Labels: rare, balanced, asked for
=================================

With a target, everything is released class by class. Rows can then be asked for by label, at no
cost. Rare classes show what noise does.
"""

# %%
# The women of the survey rated their marriage from 1 (very poor) to 5 (very good). We make that
# the target. Few gave a 1.
from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator, Schema
from skdpgen.datasets import load_fair

frame, codebook = load_fair()
public = codebook.to_dict()
public["target"] = "rate_marriage"
public["columns"]["rate_marriage"] = {"kind": "label", "values": [1, 2, 3, 4, 5]}
public["columns"]["affair"] = {"kind": "categorical", "values": ["no", "yes"]}
schema = Schema.from_dict(public)
real = frame["rate_marriage"].value_counts().sort_index()
real

# %%
# At each epsilon, five releases. The count of a class has noise of the same size, whether the
# class is large or small, so its *share* suffers most where it is rare. (Few features: only the
# counts matter here.)
import matplotlib.pyplot as plt
import numpy as np


def fit(epsilon, **settings):
    """Make one release with few features."""
    synth = DPMERFSynthesizer(
        epsilon,
        1e-5,
        schema=schema,
        features=InteractionFeatures(500, n_bins=16),
        generator=MixtureGenerator(20, n_mixtures=1),
        random_state=0,
        **settings,
    )
    return synth.fit(frame)


epsilons = [0.1, 0.3, 1, 3]
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for at, epsilon in enumerate(epsilons):
    for _ in range(5):
        release = fit(epsilon, n_steps=1).release_
        counts = release.class_proportions() * len(frame)
        for label, count in zip(real.index, counts, strict=True):
            where = label - 0.24 + 0.16 * at
            name = f"epsilon = {epsilon:g}" if label == 1 else None
            ax.plot(where, count, "o", color=f"C{at}", markersize=4, label=name)
for label, count in real.items():
    ax.hlines(count, label - 0.35, label + 0.35, color="#444", linestyle="--", linewidth=1)
ax.set_yscale("log")
ax.set_yticks([50, 100, 300, 1000, 3000], ["50", "100", "300", "1000", "3000"])
ax.set_xlabel("rating of the marriage")
ax.set_ylabel("rows, by the release")
handles, names = ax.get_legend_handles_labels()
unique = dict(zip(names, handles, strict=True))
ax.legend(unique.values(), unique.keys(), frameon=False, fontsize=9)
ax.set_title("Noisy class counts, true ones dashed", fontsize=10)
plt.show()

# %%
# Sampling follows the released shares, or what is asked for: equal shares, shares of your choice,
# or one label for each row.
synth = fit(1.0)
tables = {
    "released": synth.sample(1000, random_state=0),
    "balanced": synth.sample(1000, y="balanced", random_state=0),
    "asked for": synth.sample(1000, y={1: 0.5, 5: 0.5}, random_state=0),
}
{
    name: table["rate_marriage"].value_counts().sort_index().to_dict()
    for name, table in tables.items()
}

# %%
# A balanced table has many rows with a rating of 1. They know no more about such marriages than
# the release does: here, the share of affairs by rating, real and synthetic.
balanced = synth.sample(20_000, y="balanced", random_state=0)
affairs = [
    table.groupby("rate_marriage")["affair"].agg(lambda a: (a == "yes").mean())
    for table in (frame, balanced)
]
figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
at = np.arange(1, 6)
ax.bar(at - 0.2, affairs[0], 0.4, color="#b9c0c7", label="real")
ax.bar(at + 0.2, affairs[1], 0.4, label="synthetic, epsilon = 1")
ax.set_xlabel("rating of the marriage")
ax.set_ylabel("share with an affair")
ax.legend(frameon=False)
plt.show()
