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
from skdpgen.plotting import MarginalsDisplay

MarginalsDisplay.from_tables(synthetic, frame, schema=schema).plot()
