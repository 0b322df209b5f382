"""scikit-learn's own checks, without a single expected failure.

The checks of skdpgen for synthesizers are in tests/utils.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    Schema,
    SlicedFDivSynthesizer,
    TabularPreprocessor,
)
from skdpgen.data import Numeric

ANY = Schema({}, default=Numeric((-10, 10)))
SMALL = {"generator": MixtureGenerator(8, n_mixtures=2), "n_steps": 2, "batch_size": 10}
NETWORK = {"features": GaussianFeatures(20), "n_steps": 2, "batch_size": 10}
MIXTURE = {"features": InteractionFeatures(20, n_bins=8), **SMALL}

CHECKED = [
    TabularPreprocessor(schema=ANY),
    DPMERFSynthesizer(1.0, 1e-5, schema=ANY, **NETWORK),
    DPMERFSynthesizer(1.0, 1e-5, schema=ANY, **MIXTURE),
    # Without a schema, bounds and values are learned privately.
    DPMERFSynthesizer(1.0, 1e-5, **NETWORK),
    DPMERFSynthesizer(1.0, 1e-5, **MIXTURE),
    SlicedFDivSynthesizer(1.0, 1e-5, schema=ANY, n_slices=4, **SMALL),
    SlicedFDivSynthesizer(1.0, 1e-5, n_slices=4, **SMALL),
]


@parametrize_with_checks(CHECKED)
@pytest.mark.filterwarnings("ignore:delta is larger")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
