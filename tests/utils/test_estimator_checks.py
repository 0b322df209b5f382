import warnings

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from skdpgen import (
    DPMERFSynthesizer,
    GaussianFeatures,
    InteractionFeatures,
    MixtureGenerator,
    PrivacyLedger,
    SlicedFDivSynthesizer,
    SlicedRowsSynthesizer,
    TabularPreprocessor,
    insecure_noise,
    make_synthesis_pipeline,
)
from skdpgen.exceptions import BudgetExceededError, InputError
from skdpgen.utils import check_synthesizer, parametrize_with_checks, synthesizer_checks
from skdpgen.utils._check_tools import plain_table

SMALL = MixtureGenerator(8, n_mixtures=2)


def mixture(cls=DPMERFSynthesizer):
    features = InteractionFeatures(60, n_bins=8)
    return cls(1.0, 1e-6, features=features, generator=SMALL, n_steps=2)


SYNTHESIZERS = [
    mixture(),
    DPMERFSynthesizer(1.0, 1e-6, features=GaussianFeatures(20), n_steps=2, batch_size=20),
    SlicedFDivSynthesizer(1.0, 1e-6, n_slices=8, generator=SMALL, n_steps=2),
    SlicedRowsSynthesizer(400.0, 1e-6, n_slices=4, n_steps=2, batch_size=20),
    make_synthesis_pipeline(FunctionTransformer(), mixture()),
    make_synthesis_pipeline(TabularPreprocessor(), mixture()),
]


@parametrize_with_checks(SYNTHESIZERS)
def test_synthesizers_pass_the_checks(estimator, check):
    check(estimator)


# -- synthesizers with a flaw ----------------------------------------------------------------------


class KeepsRows(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        self._last_rows = X
        return super().fit(X, y, **params)


class KeepsACell(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        super().fit(X, y, **params)
        self.tallest_ = float(X["height"].max())
        return self


class FixesItsNoise(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        with insecure_noise(seed=self.random_state):
            return super().fit(X, y, **params)


class ForgetsItsSpends(DPMERFSynthesizer):
    def _ledger_in_use(self, **options):
        return PrivacyLedger()


class HasAClone(DPMERFSynthesizer):
    def __sklearn_clone__(self):
        return type(self)(**self.get_params(deep=False))


class CallsEpsilonFree(DPMERFSynthesizer):
    post_processing_parameters = ("epsilon", "n_steps")


class HasUnknownParameters(DPMERFSynthesizer):
    post_processing_parameters = ("n_steps", "momentum")


class ChangesParameters(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        self.n_steps = 3
        return super().fit(X, y, **params)


class SetsAttributesInInit(DPMERFSynthesizer):
    def __init__(self, epsilon, delta, **params):
        super().__init__(epsilon, delta, **params)
        self.cache = {}

    @classmethod
    def _get_param_names(cls):
        return DPMERFSynthesizer._get_param_names()


class Scores(DPMERFSynthesizer):
    def score(self, X, y=None):
        return 0.0


class RetrainsOnRows(DPMERFSynthesizer):
    def retrain(self, X=None, **params):
        return super().retrain(**params)


class SpendsForRetraining(DPMERFSynthesizer):
    def retrain(self, **params):
        if params:
            return super().retrain(**params)
        return self.fit(plain_table())


class CountsWrongly(DPMERFSynthesizer):
    def sample(self, n_samples=1, random_state=None, *, y=None):
        return super().sample(n_samples or 1, random_state, y=y)


class TakesEveryNumber(DPMERFSynthesizer):
    def sample(self, n_samples=1, random_state=None, *, y=None):
        n_samples = n_samples if isinstance(n_samples, int | np.integer) else 1
        return super().sample(abs(int(n_samples)), random_state, y=y)


class IgnoresSeeds(DPMERFSynthesizer):
    def sample(self, n_samples=1, random_state=None, *, y=None):
        return super().sample(n_samples, y=y)


class GivesTexts(DPMERFSynthesizer):
    def sample(self, n_samples=1, random_state=None, *, y=None):
        sample = super().sample(n_samples, random_state, y=y)
        return sample.astype({"number": str}) if "number" in sample else sample


class LeavesTheBounds(DPMERFSynthesizer):
    def sample(self, n_samples=1, random_state=None, *, y=None):
        sample = super().sample(n_samples, random_state, y=y)
        return sample.assign(height=1000.0) if "visits" in sample else sample


class QuotesCells(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        try:
            return super().fit(X, y, **params)
        except ValueError as error:
            raise InputError(f"{error}: {X}") from None


class QuotesWhereMoneyIsShort(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        try:
            return super().fit(X, y, **params)
        except BudgetExceededError as error:
            raise BudgetExceededError(f"{error}: {X['remark'].iloc[3]}") from None


class WarnsOfCells(DPMERFSynthesizer):
    def fit(self, X, y=None, **params):
        if "height" in X and np.isinf(np.asarray(X["height"], dtype=float)).any():
            warnings.warn("clipped", stacklevel=2)
        return super().fit(X, y, **params)


class DropsLabels(DPMERFSynthesizer):
    def sample(self, n_samples=1, random_state=None, *, y=None):
        return super().sample(n_samples, random_state)


class MakesOtherRows(DPMERFSynthesizer):
    @classmethod
    def from_release(cls, release, *, template=None, **params):
        return super().from_release(release, **{**params, "random_state": None})


FLAWS = {
    KeepsRows: "check_no_row_survives_a_fit",
    KeepsACell: "check_no_row_survives_a_fit",
    FixesItsNoise: "check_a_seed_does_not_fix_the_noise",
    ForgetsItsSpends: "check_ledger_grows_on_refit",
    HasAClone: "check_clone_keeps_the_budget",
    CallsEpsilonFree: "check_parameters_say_what_they_are",
    HasUnknownParameters: "check_parameters_say_what_they_are",
    ChangesParameters: "check_fit_leaves_parameters_alone",
    SetsAttributesInInit: "check_fit_leaves_parameters_alone",
    Scores: "check_nothing_reads_rows_for_free",
    RetrainsOnRows: "check_retrain_is_post_processing",
    SpendsForRetraining: "check_ledger_grows_on_refit",
    CountsWrongly: "check_numbers_of_samples",
    TakesEveryNumber: "check_numbers_of_samples",
    IgnoresSeeds: "check_samples_follow_their_seed",
    GivesTexts: "check_dtypes_come_back",
    LeavesTheBounds: "check_samples_are_inside_the_schema",
    QuotesCells: "check_bad_input_is_refused",
    QuotesWhereMoneyIsShort: "check_budget_is_checked_before_rows_are_read",
    WarnsOfCells: "check_neighbors_look_alike",
    DropsLabels: "check_y_is_a_column_like_others",
    MakesOtherRows: "check_release_round_trip",
}


@pytest.mark.parametrize("flawed", FLAWS, ids=lambda cls: cls.__name__)
def test_each_check_finds_its_flaw(flawed):
    checks = {check.func.__name__: check for _, check in synthesizer_checks(mixture(flawed))}
    with pytest.raises(AssertionError):
        checks[FLAWS[flawed]](mixture(flawed))


def test_every_check_has_a_flaw_to_find():
    names = [check.func.__name__ for _, check in synthesizer_checks(mixture())]
    assert set(names) == set(FLAWS.values())


def test_all_checks_in_one_call():
    check_synthesizer(mixture())
    with pytest.raises(AssertionError, match="score"):
        check_synthesizer(mixture(Scores))
