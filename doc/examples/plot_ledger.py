"""
One budget for many releases
============================

A table is released every year, and each year's fit is charged to one ledger with a cap. What would
exceed it is refused before a row is read.
"""

# %%
# The cap, written down before the first release.
from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator, PrivacyLedger
from skdpgen.datasets import load_fair

frame, schema = load_fair()
ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)

# %%
# Releases at epsilon = 0.5, until the ledger says no. (Few features and steps; only the budget
# matters here.)
from skdpgen.exceptions import BudgetExceededError

spent = []
while len(spent) < 30:
    synth = DPMERFSynthesizer(
        0.5,
        1e-5,
        schema=schema,
        ledger=ledger,
        features=InteractionFeatures(100, n_bins=8),
        generator=MixtureGenerator(4, n_mixtures=1),
        n_steps=5,
    )
    try:
        synth.fit(frame)
    except BudgetExceededError as error:
        print(str(error).splitlines()[0])
        break
    spent.append(ledger.spent(delta=1e-5))
print(ledger.statement())

# %%
# Adding up the epsilons would have stopped after four. Gaussian releases add up by the squares of
# their noise parameters, exactly.
import matplotlib.pyplot as plt
import numpy as np

counts = np.arange(1, len(spent) + 1)
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.plot(counts, spent, "o-", label="spent, by the ledger")
ax.plot(counts, 0.5 * counts, ":", color="#6b7280", label="sum of the epsilons")
ax.axhline(2.0, linestyle="--", color="#b5542a", label="cap")
ax.set_ylim(0, 4)
ax.set_xticks(counts[:: max(1, len(counts) // 10)])
ax.set_xlabel("releases at epsilon = 0.5")
ax.set_ylabel("epsilon at delta = 1e-5")
ax.legend(frameon=False)
plt.show()

# %%
# What is left, as the epsilon of one more release:
print(f"{ledger.remaining():.2f}")
