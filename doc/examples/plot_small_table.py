"""
A small table
=============

569 tumors with 30 measurements each. The noise on a count doesn't depend on the number of rows, so
it weighs fifty times more here than in a table of thirty thousand. What survives, and what
doesn't?
"""

# %%
# The measurements are lengths and areas in units of a microscope's image. Bounds are round numbers
# that such quantities can't exceed by much; the largest value of the table would be a patient's.
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
# A random forest, trained on synthetic rows and tested on real ones that were held back: with all
# columns, and with three that a physician would name (chosen without looking at rows).
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


def distance(rows, columns):
    """Average the total variation distance of single columns, in eight bins of the bounds."""
    distances = []
    for name in columns:
        bins = np.linspace(*bounds(name), 9)
        shares = [np.histogram(table[name], bins)[0] / len(table) for table in (train, rows)]
        distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return np.mean(distances)


def scores(columns, epsilon):
    """Score three releases: AUC and distance."""
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
    private = train[[*columns, "target"]]
    tables = [synth.fit(private).sample(2000, random_state=0) for _ in range(3)]
    return [[auc(table, columns), distance(table, columns)] for table in tables]


import matplotlib.pyplot as plt

epsilons = [0.3, 1, 3, 10]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for number, (title, columns) in enumerate({"30 columns": list(names), "3 columns": few}.items()):
    values = np.array([scores(columns, epsilon) for epsilon in epsilons])
    for ax, part in zip(axes, np.moveaxis(values, 2, 0), strict=True):
        ax.fill_between(epsilons, part.min(axis=1), part.max(axis=1), alpha=0.2)
        ax.plot(epsilons, part.mean(axis=1), "o-", label=f"synthetic, {title}")
    axes[0].axhline(auc(train, columns), linestyle="--", color=f"C{number}", linewidth=1)
for ax in axes:
    ax.set_xscale("log")
    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    ax.set_xlabel("epsilon (add-remove, delta = 1e-4)")
axes[0].set_title("ROC AUC on real rows (dashed: trained on real rows)", fontsize=10)
axes[1].set_title("distance of single columns (total variation)", fontsize=10)
axes[1].set_ylim(0)
axes[1].legend(frameon=False)
plt.show()

# %%
# The two kinds of tumors differ so much that a classifier learns them from a blurred table, and
# has learned them at epsilon = 1. The columns themselves are another matter: 341 rows give a rough
# picture only. Whoever needs distributions, not a classifier, wants more rows, a larger epsilon or
# fewer columns. Ask which are needed, and take those.
