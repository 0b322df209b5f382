"""
Free retraining and search
==========================

After one release, everything else is free: other settings, longer training, a search over dozens
of them. The search never asks the rows. It asks frequencies of the release that a candidate was
not trained on.
"""

# %%
# One fit, and what it has cost. (2,000 frequencies instead of 10,000.)
from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import load_fair

frame, schema = load_fair()
synth = DPMERFSynthesizer(
    epsilon=1.0,
    delta=1e-5,
    schema=schema,
    features=InteractionFeatures(2000, n_bins=32),
    generator=MixtureGenerator(100, n_mixtures=1),
    n_steps=300,
    random_state=0,
).fit(frame)
print(synth.ledger_)

# %%
# Training again, with other post-processing settings. No rows are given, none are read, and the
# ledger stays as it is.
synth.retrain(learning_rate=0.1, n_steps=150)
len(synth.ledger_.entries)

# %%
# A search over components and learning rates, on the release alone.
import pandas as pd

from skdpgen.model_selection import ReleaseSearchCV

grid = {"generator__n_components": [1, 4, 20, 100], "learning_rate": [0.005, 0.03, 0.1]}
search = ReleaseSearchCV(synth, grid, cv=3, random_state=0).fit_release(synth)
results = pd.DataFrame(search.cv_results_)
search.best_params_

# %%
# The score is minus the estimated squared error of the true embedding at frequencies that were
# held out, with what the noise adds subtracted. Bars: one standard error over the folds.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for rate, part in results.groupby("param_learning_rate"):
    ax.errorbar(
        part["param_generator__n_components"].astype(int),
        -part["mean_test_score"] * 1e4,
        part["sem_test_score"] * 1e4,
        fmt="o-",
        capsize=3,
        label=f"learning rate {rate:g}",
    )
ax.set_xscale("log")
ax.set_xticks([1, 4, 20, 100], ["1", "4", "20", "100"])
ax.set_xlabel("components of a mixture")
ax.set_ylabel("held-out error, in 1e-4")
ax.set_title("Twelve candidates, one release")
ax.legend(frameon=False)
plt.show()

# %%
# All of it together has cost one release.
print(search.ledger_.statement())
