"""
A first synthetic table
=======================

Text.
"""

from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
from skdpgen.datasets import load_fair

frame, schema = load_fair()
frame.head()
