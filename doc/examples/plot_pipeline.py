"""
A rule that every synthetic row keeps
=====================================

No synthesizer learns rules between columns from noisy means. A pipeline can put them into the
encoding: what can't be written down can't come out.
"""

# %%
# Nobody marries before 14, or the table is wrong: that is a public rule, which relates two
# columns. A synthetic table doesn't know it.
from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import load_fair

frame, schema = load_fair()
settings = {
    "features": InteractionFeatures(2000, n_bins=32),
    "generator": MixtureGenerator(100, n_mixtures=2),
    "n_steps": 300,
    "random_state": 0,
}
plain = DPMERFSynthesizer(1.0, 1e-5, schema=schema, **settings).fit(frame)


def broken(table):
    """Tell the share of rows that break the rule."""
    return ((table["age"] - table["yrs_married"]) < 14).mean()


plain_table = plain.sample(len(frame), random_state=0)
print(f"rows that break the rule: {broken(plain_table):.1%}, real ones: {broken(frame):.1%}")

# %%
# Instead of the years of marriage we let the synthesizer see which *share* of the time since 14
# they are, between 0 and 1. The way back multiplies. Both are functions of one row, so the
# pipeline accepts them; what learns from rows or mixes them is refused.
from sklearn.preprocessing import FunctionTransformer

from skdpgen import make_synthesis_pipeline
from skdpgen.data import Numeric


def to_share(table):
    """Write the years of marriage as a share of the years since 14."""
    return table.assign(yrs_married=table["yrs_married"] / (table["age"] - 14).clip(lower=1))


def to_years(table):
    """Undo it."""
    return table.assign(yrs_married=table["yrs_married"] * (table["age"] - 14).clip(lower=1))


shares = schema.with_columns({"yrs_married": Numeric((0, 1))})
pipeline = make_synthesis_pipeline(
    FunctionTransformer(to_share, to_years), DPMERFSynthesizer(1.0, 1e-5, schema=shares, **settings)
)
pipeline.fit(frame)
table = pipeline.sample(len(frame), random_state=0)
print(f"rows that break the rule: {broken(table):.1%}")

# %%
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharex=True, sharey=True)
titles = ["real", "without the rule", "with the rule"]
for ax, title, rows in zip(axes, titles, [frame, plain_table, table], strict=True):
    jitter = rng.uniform(-0.6, 0.6, (2, 3000))
    ax.plot([15, 50], [1, 36], color="#b5542a", linewidth=1, linestyle="--")
    ax.scatter(
        rows["age"][:3000] + jitter[0], rows["yrs_married"][:3000] + jitter[1], s=1.5, color="C0"
    )
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("age")
axes[0].set_ylabel("years married")
axes[0].set_ylim(-2, 32)
plt.show()

# %%
# The rule has a price. The survey has the middles of intervals, and a share of the years since 14
# knows nothing of them: the real lumps are smeared along the line.
