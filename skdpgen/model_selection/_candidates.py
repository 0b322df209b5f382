"""What a search over one release tries: candidates as scikit-learn estimators, without rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from skdpgen.exceptions import InputError
from skdpgen.model_selection._held_out import held_out_error
from skdpgen.privacy.release import Release
from skdpgen.synthesizers._callbacks import CallbackSupport, running
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._feature_maps import FeatureMap
from skdpgen.synthesizers._table import TableCodec
from skdpgen.synthesizers.sliced_rows import SlicedRowsSynthesizer

__all__ = [
    "Candidate",
    "Rehearsal",
    "check_estimator",
    "check_names",
    "plan_candidates",
    "with_settings",
]


class Candidate(CallbackSupport, BaseEstimator):  # type: ignore[misc]
    """Settings of a synthesizer, trained on some parts of its release and scored on others.

    This is all that scikit-learn's searches see, and all that travels to their workers: the
    release, what is public about the table, and parameters. "Samples" are numbers of parts.

    Parameters
    ----------
    synthesizer : EmbeddingSynthesizer
        With a release. Whether it was trained, and on what, doesn't matter.
    """

    def __init__(self, synthesizer: EmbeddingSynthesizer) -> None:
        self.synthesizer = synthesizer
        self.settings: dict[str, Any] = {}

    @classmethod
    def of(cls, synthesizer: EmbeddingSynthesizer) -> Self:
        """A candidate that has nothing of the synthesizer but its release and parameters."""
        bare = copy.copy(synthesizer)
        bare.ledger = None
        for name in ("_own_ledger", "_skl_callbacks", "ledger_", "generator_", "loss_curve_"):
            bare.__dict__.pop(name, None)
        return cls(bare)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that may be searched."""
        names = self.synthesizer.post_processing_parameters
        return {name: getattr(self.synthesizer, name) for name in names} | self.settings

    def set_params(self, **settings: Any) -> Self:
        """Set parameters of the synthesizer, in this candidate only."""
        self.settings = {**self.settings, **settings}
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(self.synthesizer)

    def fit(self, parts: npt.NDArray[np.int64], y: None = None) -> Self:
        """Train on some parts of the release."""
        release = self.synthesizer.release_
        assert isinstance(release, Release)
        plan: Any = with_settings(self.synthesizer, self.settings)._plan_for_release()
        with running(self, "fit"):
            self.generator_ = plan.train(release, parts).generator
        self.seed_ = plan.sampling_seed
        return self

    def score(self, parts: npt.NDArray[np.int64], y: None = None) -> float:
        """Minus the error on other parts, its noise subtracted: the larger the better."""
        release = self.synthesizer.release_
        assert isinstance(release, Release)
        return -held_out_error(self.generator_, release, parts, self.seed_)


class Rehearsal(Candidate):
    """A candidate that trains nothing: a search over it finds what is wrong with the search."""

    def fit(self, parts: npt.NDArray[np.int64], y: None = None) -> Self:
        """Do nothing."""
        return self

    def score(self, parts: npt.NDArray[np.int64], y: None = None) -> float:
        """All candidates are as good."""
        return 0.0


def with_settings(
    synthesizer: EmbeddingSynthesizer, settings: Mapping[str, Any]
) -> EmbeddingSynthesizer:
    """A copy of a synthesizer, same release and all, with other post-processing parameters."""
    copied = copy.copy(synthesizer)
    for name in copied.post_processing_parameters:
        # Copies: a RandomState must give every candidate the same stream.
        setattr(copied, name, clone(getattr(copied, name), safe=False))
    copied._set_copies({name: clone(value, safe=False) for name, value in settings.items()})
    return copied


def check_estimator(estimator: object) -> EmbeddingSynthesizer:
    """Refuse what has no release that can be cut into parts.

    Raises
    ------
    InputError
        If it isn't a synthesizer whose release is a table of frequencies or slices.
    """
    if isinstance(estimator, EmbeddingSynthesizer):
        return estimator
    reason = "a search over one release needs DPMERFSynthesizer or SlicedFDivSynthesizer"
    if isinstance(estimator, SlicedRowsSynthesizer):
        reason = (
            "its release is one noisy line a row and not a table of means, so no part of it can be "
            "held out with a known error; retrain it with each setting, which is free, and compare"
        )
    raise InputError(f"{type(estimator).__name__} can't be searched on its release: {reason}.")


def check_names(estimator: EmbeddingSynthesizer, space: object) -> None:
    """Refuse parameters that aren't free of privacy cost.

    Parameters
    ----------
    estimator : EmbeddingSynthesizer
        Says which parameters never touch rows.
    space : mapping or iterable of mappings
        From names to values; what is wrong with its form is left to scikit-learn.

    Raises
    ------
    InputError
        If a name is that of a privacy parameter, or of none.
    """
    grids = [space] if isinstance(space, Mapping) else space
    free = estimator.post_processing_parameters
    for grid in grids if isinstance(grids, Iterable) else ():
        for name in grid if isinstance(grid, Mapping) else ():
            owner = str(name).partition("__")[0]
            if owner in free:
                continue
            if owner not in estimator.get_params(deep=False):
                raise InputError(
                    f"{name!r} isn't a parameter of {type(estimator).__name__}. Free to search: "
                    f"{', '.join(free)}."
                )
            raise InputError(
                f"{name!r} is a privacy parameter: each of its values needs a release of its own, "
                f"which reads rows and costs privacy. Set it once and fit, or search over "
                f"features and slices with PrivateSearchCV, which accounts for it. Nothing was "
                f"charged. Free to search: {', '.join(free)}."
            )


def plan_candidates(
    estimator: EmbeddingSynthesizer,
    codec: TableCodec,
    features: FeatureMap,
    candidates: Iterable[Mapping[str, Any]],
) -> None:
    """Plan the training of each candidate: bad settings are found before budget is spent.

    Raises
    ------
    InputError
        If one can't be trained, with the reason.
    """
    for settings in candidates:
        try:
            with_settings(estimator, settings)._plan(codec, features)
        except ValueError as error:
            raise InputError(f"the candidate {dict(settings)} can't be trained: {error}") from error
