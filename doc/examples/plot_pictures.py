"""
Pictures of a release, a table and a training
=============================================

All pictures of :mod:`skdpgen.plotting` on Fair's survey, from what was promised to what the
synthetic table is worth. Those that show real rows are private, like the rows; the survey is
public.
"""

# %%
from sklearn.model_selection import train_test_split

from skdpgen import DPMERFSynthesizer
from skdpgen.datasets import load_fair

frame, schema = load_fair()
train, test = train_test_split(frame, test_size=0.25, random_state=0, stratify=frame["affair"])
synth = DPMERFSynthesizer(1.0, 1e-5, schema=schema, n_steps=600, random_state=0).fit(train)
synthetic = synth.sample(len(train), random_state=0)

# %%
# What was promised: not one epsilon at one delta, but a curve. It may be published.
from skdpgen.plotting import PrivacyCurveDisplay

curve = PrivacyCurveDisplay.from_release(synth.release_).plot()
print(curve.caption())

# %%
# How the training went. Below the noise floor there is nothing to learn but noise.
from skdpgen.plotting import LossDisplay

LossDisplay.from_synthesizer(synth).plot()

# %%
# How often each value occurs, in the synthetic table and in the real one.
from skdpgen.plotting import MarginalsDisplay

MarginalsDisplay.from_tables(synthetic, train, schema=schema).plot()

# %%
# Which columns go together: red in the first two squares. In the third, blue was lost.
from skdpgen.evaluation import fidelity
from skdpgen.plotting import AssociationDisplay

links = AssociationDisplay.from_fidelity(fidelity(synthetic, train, schema=schema)).plot()
print(links.summary())

# %%
# What models learn from synthetic rows, and what they learn from real ones.
from skdpgen.evaluation import tstr
from skdpgen.plotting import TSTRDisplay

TSTRDisplay.from_result(tstr(synthetic, test, real_train=train, schema=schema)).plot()
