from sklearn.preprocessing import FunctionTransformer

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    TabularPreprocessor,
    make_synthesis_pipeline,
)
from skdpgen.utils import parametrize_with_checks

SMALL = MixtureGenerator(8, n_mixtures=2)


def mixture():
    features = InteractionFeatures(60, n_bins=8)
    return DPMERFSynthesizer(1.0, 1e-5, features=features, generator=SMALL, n_steps=2)


SYNTHESIZERS = [
    mixture(),
    DPMERFSynthesizer(1.0, 1e-5, features=GaussianFeatures(20), n_steps=2, batch_size=20),
    SlicedFDivSynthesizer(1.0, 1e-5, n_slices=8, generator=SMALL, n_steps=2),
    SlicedRowsSynthesizer(400.0, 1e-5, n_slices=4, n_steps=2, batch_size=20),
    make_synthesis_pipeline(FunctionTransformer(), mixture()),
    make_synthesis_pipeline(TabularPreprocessor(), mixture()),
]


@parametrize_with_checks(SYNTHESIZERS)
def test_synthesizers_pass_the_checks(estimator, check):
    check(estimator)
