"""
A first synthetic table
=======================

Fair's survey of 6,366 women on marriage and affairs is a table that one would want to keep
private. We fit once, sample a table of the same kind, and look at both side by side.
"""

# %%
# The table, and what is publicly known about its columns. The schema is the codebook of the
# survey; nothing in it was read off the rows.
from skdpgen.datasets import load_fair

frame, schema = load_fair()
frame.head()

# %%
schema.columns["educ"], schema.columns["age"]

# %%
# One release at epsilon = 1 and a mixture that is trained on it, with default settings.
from skdpgen import DPMERFSynthesizer

synth = DPMERFSynthesizer(epsilon=1.0, delta=1e-5, schema=schema, random_state=0)
synth.fit(frame)
print(synth.privacy_statement())

# %%
# Sampling costs nothing. Columns, order and dtypes are those of the private table.
synthetic = synth.sample(len(frame), random_state=0)
synthetic.head()

# %%
# Shares of the values, real and synthetic. Mind that the real bars are exact: a picture like this
# one is private, and stays where the rows are. (The survey is public; that is why it is here.)
import matplotlib.pyplot as plt
import numpy as np

columns = ["affair", "rate_marriage", "educ", "children", "yrs_married", "occupation"]
figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
for ax, column in zip(axes.flat, columns, strict=True):
    if column == "yrs_married":
        bins = np.arange(0, 31, 5)
        shares = [np.histogram(table[column], bins)[0] / len(table) for table in (frame, synthetic)]
        labels = [f"{low}-{low + 5}" for low in bins[:-1]]
    else:
        labels = sorted(set(frame[column]))
        shares = [
            [(table[column] == label).mean() for label in labels] for table in (frame, synthetic)
        ]
    at = np.arange(len(labels))
    ax.bar(at - 0.2, shares[0], 0.4, label="real", color="#b9c0c7")
    ax.bar(at + 0.2, shares[1], 0.4, label="synthetic")
    long = column == "occupation"
    ax.set_xticks(
        at, labels, rotation=35 if long else 0, ha="right" if long else "center", fontsize=8
    )
    ax.set_title(column, fontsize=10)
axes[0, 0].legend(frameon=False)
plt.show()
