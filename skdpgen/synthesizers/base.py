"""What all synthesizers share: one release, then training and sampling without rows."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdpgen.exceptions import (
    InputError,
    PrivacyParameterError,
    PrivacyWarning,
    SkdpgenWarning,
)
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.ledger_report import up
from skdpgen.privacy.processes import lock
from skdpgen.privacy.release import Release
from skdpgen.privacy.slicing_release import SlicingRelease
from skdpgen.synthesizers._callbacks import CallbackSupport, listening, running
from skdpgen.synthesizers._feature_maps import FeatureMap, feature_map_of
from skdpgen.synthesizers._labels import choose_labels, label_array
from skdpgen.synthesizers._parameters import check_number, checked_ledger, seed_sequence
from skdpgen.synthesizers._table import TableCodec

if TYPE_CHECKING:
    from skdpgen.synthesizers._mixture import MixturePlan
    from skdpgen.synthesizers._noisy_rows import RowsPlan
    from skdpgen.synthesizers._sliced import SlicedPlan
    from skdpgen.synthesizers._training import TrainingPlan

    Plan: TypeAlias = TrainingPlan | MixturePlan | SlicedPlan | RowsPlan

__all__ = ["ReleaseSynthesizer", "warn_of_large_delta"]


class ReleaseSynthesizer(CallbackSupport, BaseEstimator):  # type: ignore[misc]
    """Base of synthesizers that publish one release and work on from there.

    A subclass has ``fit``, which ends in :meth:`_adopt` and :meth:`_train`, and says how training
    is planned and run. Everything here works without rows.
    """

    #: Parameters that never touch rows: :meth:`retrain` changes them free of privacy cost.
    post_processing_parameters: ClassVar[tuple[str, ...]]

    ledger: PrivacyLedger | None
    #: How much of the training is printed. Of subclasses without this parameter: nothing.
    verbose: int = 0

    @abstractmethod
    def _plan(self, codec: TableCodec, features: FeatureMap) -> Plan:
        """The untrained generator, settings and seeds; raises for bad parameters."""

    def _train(self, plan: Plan) -> Self:
        """Train on :attr:`release_`."""
        # A plan is for the kind of release that its synthesizer makes.
        with listening(self):
            result = plan.train(self.release_)  # type: ignore[arg-type]
        self.generator_ = result.generator
        self.loss_curve_ = result.debiased_loss_curve
        self.noise_floor_ = result.noise_floor
        if result.status == "diverged":
            warnings.warn(
                f"training diverged after {len(result.loss_curve)} steps and was stopped there: "
                f"call retrain with a smaller learning_rate, which is free.",
                SkdpgenWarning,
                stacklevel=3,
            )
        self._sampling_rng = np.random.default_rng(plan.sampling_seed)
        return self

    def _plan_for_release(self) -> Plan:
        """The plan of another training on :attr:`release_`."""
        assert isinstance(self.release_, Release)
        return self._plan(self._codec, feature_map_of(self.release_))

    # -- training -------------------------------------------------------------------------------

    def retrain(self, **post_processing_params: Any) -> Self:
        """Train again on :attr:`release_`, with other post-processing parameters, free of cost.

        There are no rows in this signature: whatever it does is post-processing.

        Parameters
        ----------
        **post_processing_params
            New values of :attr:`post_processing_parameters`, or of their own parameters
            (``generator__n_components``); the others stay.

        Returns
        -------
        self : DPMERFSynthesizer

        Raises
        ------
        InputError
            If a parameter is a privacy parameter: that needs a new release, by :meth:`fit`. If a
            value is wrong.
        """
        check_is_fitted(self, "release_")
        changed = {name.partition("__")[0] for name in post_processing_params}
        for name in changed:
            if name not in self.post_processing_parameters:
                raise InputError(
                    f"{name!r} isn't a post-processing parameter: set it with set_params and fit "
                    f"again (which spends budget). Free to change: "
                    f"{', '.join(self.post_processing_parameters)}."
                )
        before = {name: getattr(self, name) for name in changed}
        try:
            self._set_copies(post_processing_params)
            plan = self._plan_for_release()
        except BaseException:
            # A refused value must not stay behind and describe a generator that it didn't make.
            self.set_params(**before)
            raise
        with running(self, "retrain", 1):
            return self._train(plan)

    def _set_copies(self, params: Mapping[str, Any]) -> None:
        """Set post-processing parameters, nested ones in copies of the objects they belong to."""
        nested = {name.partition("__")[0] for name in params if "__" in name}
        for name in nested - params.keys():
            setattr(self, name, clone(getattr(self, name), safe=False))
        for name in nested:
            value = params.get(name, getattr(self, name))
            if not hasattr(value, "set_params"):
                raise InputError(
                    f"{name} = {value!r} has no parameters of its own: give an object that has, "
                    f"such as generator=MixtureGenerator(), or whole objects as values."
                )
        self.set_params(**params)

    # -- sampling ---------------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        y: Any = None,
    ) -> Any:
        """Draw synthetic rows; post-processing, free of cost, as often as you like.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows, at least 0. Each row has the same distribution whatever the number.
        random_state : int, RandomState instance or None, default=None
            None continues the synthesizer's own stream: every call gives new rows. An int gives
            the same rows every time.
        y : None, "balanced", mapping or array-like of shape (n_samples,), default=None
            Labels of the rows, for labeled synthesizers: None draws from the noisy class
            proportions, "balanced" from equal shares, a mapping from its shares per label, and
            an array-like gives the label of each row.

        Returns
        -------
        DataFrame or ndarray, or tuple of two
            What was fitted: same columns, order, dtypes and frame type; ``(X, y)`` after
            ``fit(X, y)``.

        Raises
        ------
        InputError
            If ``n_samples`` is negative or no integer, ``random_state`` can't seed anything, or
            ``y`` names an unknown label.
        """
        check_is_fitted(self, "generator_")
        check_number("n_samples", n_samples, Integral)
        if n_samples < 0:
            raise InputError(f"n_samples must be at least 0, got {n_samples}.")
        if y is not None and self._codec.labels is None:
            raise InputError("y can only be asked for when the target has listed values.")
        rng = self._sampling_rng
        if random_state is not None:
            rng = np.random.default_rng(seed_sequence(random_state))
        proportions = self._codec.proportions(self.release_)
        labels = choose_labels(y, int(n_samples), proportions, self._codec.encode_labels, rng)
        rows = self.generator_.sample(labels, seed=int(rng.integers(2**63)))
        return self._codec.decode(rows, labels)

    def privacy_statement(self) -> str:
        """What the release promises, and what was spent in total, in plain words.

        Returns
        -------
        str
            The statement.
        """
        check_is_fitted(self, "release_")
        statement = self.release_.statement()
        ledger: PrivacyLedger | None = getattr(self, "ledger_", None)
        if ledger is None:
            return statement
        delta = self.release_.delta
        try:
            entries, total, summary = ledger.entries, ledger.spent(delta), ledger.statement(delta)
        except PrivacyParameterError:
            return f"{statement} Its ledger can't be read here."
        # The release speaks for the earlier ones that it needs; a selection's entry is its own.
        earlier = getattr(self.release_, "earlier", ())
        if len(entries) > 1 + sum(entry.repetitions is None for entry in earlier):
            statement += (
                f" {summary}"
                if total == math.inf
                else f" It is one of {len(entries)} releases in its ledger, which together spend "
                f"epsilon = {up(total)} at delta = {delta:g}."
            )
        return statement

    # -- scikit-learn -----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = False
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        # A clone reads the same rows in a grid search: it spends from the same ledger.
        clone: Self = super().__sklearn_clone__()
        clone._own_ledger = self._ensure_own_ledger()
        return clone

    def __getstate__(self) -> dict[str, Any]:
        # So does a copy that is fitted elsewhere, also if this was never fitted.
        self._ensure_own_ledger()
        state: dict[str, Any] = super().__getstate__()
        return state

    # -- internals --------------------------------------------------------------------------------

    def _ledger_in_use(self, *, stacklevel: int = 3) -> PrivacyLedger:
        ledger = checked_ledger(self.ledger)
        if ledger is not None:
            return ledger
        own = self._ensure_own_ledger()
        if own.detached:
            # In a worker this raises: what is spent there would get lost with it.
            own = self._own_ledger = own.continued()
            # Also if nothing was spent so far: other copies may be spending right now.
            warnings.warn(
                "this synthesizer comes from another process: its ledger goes on here with "
                "the spends so far, but the original won't see new ones, nor copies elsewhere. Use "
                "ledger=PrivacyLedger(path=...) where several processes fit on the same rows.",
                PrivacyWarning,
                stacklevel=stacklevel,
            )
        return own

    def _ensure_own_ledger(self) -> PrivacyLedger:
        with lock:  # threads that fit or clone this one must not get a ledger each
            if not hasattr(self, "_own_ledger"):
                self._own_ledger = PrivacyLedger()
            return self._own_ledger

    def _adopt(self, release: Release | SlicingRelease, codec: TableCodec) -> None:
        """Keep the release and the codec: all that is left of the arguments of ``fit``.

        What belongs to an earlier release goes, should training be interrupted.
        """
        self.release_ = release
        self.schema_ = codec.schema
        self._codec = codec
        preprocessor = codec.preprocessor
        self.n_features_in_ = preprocessor.n_features_in_
        for name in ("feature_names_in_", "classes_", "generator_", "loss_curve_", "noise_floor_"):
            self.__dict__.pop(name, None)
        if hasattr(preprocessor, "feature_names_in_"):
            self.feature_names_in_ = preprocessor.feature_names_in_
        if codec.labels is not None:
            self.classes_ = label_array(codec.classes)


def warn_of_large_delta(delta: float, n_rows: int, *, stacklevel: int = 3) -> None:
    """Warn where a public number of rows makes a delta meaningless."""
    if delta > 1 / n_rows:
        warnings.warn(
            "delta is larger than one over the number of rows: such a guarantee allows "
            "publishing a row as it is. Choose delta well below 1 / n.",
            PrivacyWarning,
            stacklevel=stacklevel,
        )
