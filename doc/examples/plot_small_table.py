"""
When a table is too small
=========================

569 tumors with 30 measurements each. Noise that is nothing for thirty thousand rows is everything for five hundred, and no
method can change that. Fewer columns help.
"""

# %%
# The measurements are lengths and areas in units of a microscope's image. Bounds are round numbers that such quantities can't
# exceed by much; the largest value of the table would be a patient's.
from sklearn.datasets import load_breast_cancer

from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator, Schema
from skdpgen.data import Categorical, Numeric

frame = load_breast_cancer(as_frame=True).frame
frame["target"] = frame["target"].map({0: "malignant", 1: "benign"})
names = frame.columns.drop("target")


def bounds(name):
    """Give public bounds by the kind of the measurement."""
    if "area" in name:
        return (0, 500) if "error" in name else (0, 5000)
    if "perimeter" in name:
        return (0, 20) if "error" in name else (0, 300)
    if "radius" in name or "texture" in name:
        return (0, 5) if "error" in name else (0, 50)
    return (0, 0.5) if "error" in name else (0, 1)


def schema(columns):
    """Describe some of the columns, and the target."""
    facts = {name: Numeric(bounds(name)) for name in columns}
    return Schema({**facts, "target": Categorical(["malignant", "benign"])}, target="target")


# %%
# A random forest, trained on synthetic rows and tested on real ones that were held back: with all columns, and with three that a
# physician would name (chosen without looking at rows).
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

train, test = train_test_split(frame, test_size=0.4, random_state=0, stratify=frame["target"])
few = ["mean radius", "mean texture", "mean concavity"]


def auc(rows, columns):
    """Train on rows, test on real ones."""
    if rows["target"].nunique() < 2:
        return np.nan
    model = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    model.fit(rows[columns], rows["target"])
    return roc_auc_score(test["target"] == "malignant", model.predict_proba(test[columns])[:, 1])


def scores(columns, epsilon):
    """Score three releases."""
    columns = list(columns)
    synth = DPMERFSynthesizer(
        epsilon,
        1e-4,
        schema=schema(columns),
        adjacency="add-remove",
        n_rows_hint=500,
        features=InteractionFeatures(1000, n_bins=16),
        generator=MixtureGenerator(50, n_mixtures=2),
        random_state=0,
    )
    table = train[[*columns, "target"]]
    return [auc(synth.fit(table).sample(2000, random_state=0), columns) for _ in range(3)]


import matplotlib.pyplot as plt

epsilons = [0.3, 1, 3, 10]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for number, (title, columns) in enumerate({"30 columns": list(names), "3 columns": few}.items()):
    values = np.array([scores(columns, epsilon) for epsilon in epsilons])
    ax.fill_between(epsilons, values.min(axis=1), values.max(axis=1), alpha=0.2)
    ax.plot(epsilons, values.mean(axis=1), "o-", label=f"synthetic, {title}")
    ax.axhline(auc(train, columns), linestyle="--", color=f"C{number}", linewidth=1)
ax.axhline(0.5, linestyle=":", color="#888")
ax.set_xscale("log")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.set_xlabel("epsilon (add-remove, delta = 1e-4)")
ax.set_ylabel("ROC AUC on real rows")
ax.set_title("341 rows; dashed: trained on real rows", fontsize=10)
ax.legend(frameon=False)
plt.show()

# %%
# With 341 rows, three releases at one epsilon already differ by a lot. If a small table has to be released, ask which few columns
# are needed, and take those.
