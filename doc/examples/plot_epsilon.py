r"""
What epsilon buys: attacks and accuracy
=======================================

Two curves belong together when epsilon is chosen: what an attacker can do at most, and what the
synthetic table is worth. See :doc:`/user_guide/choosing_epsilon`.
"""

# %%
# The attacker
# ------------
#
# A release of skdpgen is Gaussian. The best attack on one row has a false-alarm rate
# :math:`\alpha` and finds a share :math:`\Phi(\Phi^{-1}(\alpha) + \mu)` of the true cases, with
# :math:`\mu` the inverse of the noise multiplier. The dashed line is blind guessing.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skdpgen.privacy import noise_multiplier

alarms = np.linspace(0, 1, 400)
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
for epsilon in (0.2, 1, 2, 5, 10):
    mu = 1 / noise_multiplier(epsilon, 1e-5)
    ax.plot(alarms, norm.cdf(norm.ppf(alarms) + mu), label=f"epsilon = {epsilon:g}")
ax.plot([0, 1], [0, 1], "--", color="#888")
ax.set_xlabel("false alarms")
ax.set_ylabel("true cases found, at most")
ax.set_title("The best attack, delta = 1e-5")
ax.legend(frameon=False)
plt.show()

# %%
# The table
# ---------
#
# Half of Fair's survey is fitted, the other half tests a classifier that has seen synthetic rows
# only. 3,183 rows are few: that is where epsilon matters most. 2,000 frequencies and 200
# components instead of the defaults; three releases at each epsilon, since noise differs.
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import load_fair

frame, schema = load_fair()
train, test = train_test_split(frame, test_size=0.5, random_state=0)


def auc(rows):
    """Train on rows, test on the real rows that were held back."""
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    model.fit(rows.drop(columns="affair").round(), rows["affair"])
    scores = model.predict_proba(test.drop(columns="affair").round())[:, 1]
    return roc_auc_score(test["affair"] == "yes", scores)


epsilons = [0.1, 0.3, 1, 3, 10]
scores = np.array(
    [
        [
            auc(
                DPMERFSynthesizer(
                    epsilon,
                    1e-5,
                    schema=schema,
                    features=InteractionFeatures(2000, n_bins=32),
                    generator=MixtureGenerator(100, n_mixtures=2),
                    n_steps=500,
                    random_state=0,
                )
                .fit(train)
                .sample(len(train), random_state=0)
            )
            for _ in range(3)
        ]
        for epsilon in epsilons
    ]
)

figure, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
ax.axhline(auc(train), linestyle="--", color="#888", label="real rows")
ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), alpha=0.2)
ax.plot(epsilons, scores.mean(axis=1), "o-", label="synthetic rows, 3 releases")
ax.set_xscale("log")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.set_xlabel("epsilon")
ax.set_ylabel("ROC AUC on real rows")
ax.legend(frameon=False)
plt.show()

# %%
# These scores read real rows, which nobody has to protect here. On private rows such a curve isn't
# covered by any epsilon, and neither is an epsilon chosen by it.

# sphinx_gallery_thumbnail_number = 1
