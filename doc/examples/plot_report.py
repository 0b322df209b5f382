"""
A report, for you and for others
================================

One page says whether a synthetic table is good and what was promised. With real rows it is
private; without, it may be published beside the table.
"""

# %%
# A fit on three quarters of Fair's survey, with few features. The last quarter is for judging.
from sklearn.model_selection import train_test_split

from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import load_fair
from skdpgen.reporting import report

frame, schema = load_fair()
train, test = train_test_split(frame, test_size=0.25, random_state=0, stratify=frame["affair"])
synth = DPMERFSynthesizer(
    1.0,
    1e-5,
    schema=schema,
    features=InteractionFeatures(2000, n_bins=32),
    generator=MixtureGenerator(100, n_mixtures=2),
    random_state=0,
).fit(train)
synthetic = synth.sample(10_000, random_state=0)

# %%
# For you: real rows are read, without noise, and the page says so. In a notebook it shows itself;
# ``page.save("report.html")`` writes it.
page = report(synthetic, release=synth.release_, real=train, test=test)
print(page.verdict)
page

# %%
# For others: the release, what was spent and the synthetic table, and nothing else.
report(synthetic, release=synth.release_, ledger=synth.ledger_, publishable=True)

# sphinx_gallery_thumbnail_path = "_static/report_thumbnail.png"
