"""The slicing mechanism as published: noisy projections of every row, then a network."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from skdpgen.data.frames import as_table, n_rows
from skdpgen.data.schema import Schema
from skdpgen.exceptions import InputError, ReleaseError, SkdpgenWarning
from skdpgen.privacy.accounting import check_epsilon_delta
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import current_source
from skdpgen.privacy.slicing import SlicingMechanism
from skdpgen.privacy.slicing_release import SlicingRelease
from skdpgen.synthesizers._callbacks import check_verbose, part_of, running
from skdpgen.synthesizers._parameters import as_schema, seed_sequence
from skdpgen.synthesizers._table import TableCodec
from skdpgen.synthesizers.base import ReleaseSynthesizer, warn_of_large_delta

if TYPE_CHECKING:
    from skdpgen.generators.base import GeneratorSpec
    from skdpgen.synthesizers._noisy_rows import RowsPlan
    from skdpgen.synthesizers.base import Plan
    from skdpgen.training.sliced_objective import Distance

__all__ = ["SlicedRowsSynthesizer"]

_P = TypeVar("_P")

_NETWORK_STEPS, _NETWORK_RATE = 3000, 2e-3
# A variance below this many standard errors of what noise alone does to it says nothing.
_STANDARD_ERRORS = 3.0
_ADVICE = (
    "More rows, a larger epsilon or fewer slices help; SlicedFDivSynthesizer and "
    "DPMERFSynthesizer, which add noise to sums and not to rows, need far less of each."
)


class SlicedRowsSynthesizer(ReleaseSynthesizer):
    """The slicing mechanism of the smoothed-sliced f-divergence: every row, projected and noisy.

    ``fit`` draws random directions, projects every encoded row on them, adds Gaussian noise to
    every value, and stores shuffled projections and directions as :attr:`release_`. A network is
    then trained so that its rows, projected and with noise of the same size, have the same
    distribution along the slices. The accounting is exact, which takes 16 to 39 percent off the
    noise of the published bound, and still this is noise on every record, as in local privacy:
    at common budgets nothing of a table of some 10,000 rows survives it, and a warning says so.
    Use it for comparison, or with a very large table or budget.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, in [1e-6, 500]. Privacy parameter.
    delta : float
        Privacy parameter, in (0, 1); well below one over the number of rows.
    schema : Schema, mapping or path, default=None
        Public facts about the columns, see :class:`~skdpgen.DPMERFSynthesizer`. A target is one
        more column: nothing beside the projections is released of a row. Privacy parameter.
    divergence : str, default="hellinger"
        What compares slices: "hellinger", "kl", "reverse_kl", "js", "pearson", "tv", "mmd" or, for
        slices of dimension 1, "sliced_wasserstein". Post-processing.
    n_slices : int, default=50
        Number of slices. Privacy parameter.
    slice_dim : int, default=1
        Dimension k of a slice; noise grows like the root of ``n_slices * slice_dim``. Privacy
        parameter.
    directions : {"gaussian", "frame"}, default="gaussian"
        Independent directions, or stacked random orthogonal matrices; the latter need
        ``n_slices * slice_dim`` to be a multiple of the width of an encoded row. Privacy parameter.
    ledger : PrivacyLedger, default=None
        Where spends are recorded. None keeps a ledger of this estimator, over all its fits.
        Privacy parameter.
    generator : {"auto", "mlp"}, Module or callable
        What makes rows, see :class:`~skdpgen.DPMERFSynthesizer`. Post-processing.
    n_steps : int, default=None
        Gradient steps; None is 3000. Post-processing.
    batch_size : int, default=None
        Rows a step; None is 256. Post-processing.
    learning_rate : float, default=None
        Largest learning rate of Adam; None is 2e-3. Post-processing.
    device : str, default="auto"
        Where to train. Post-processing.
    verbose : int, default=0
        1 prints about ten lines a training, 2 prints one a step. Post-processing.
    random_state : int, RandomState instance or None, default=None
        Seeds initial weights, training and sampling. Directions and noise always come from the
        operating system: the guarantee needs directions that nobody knew before.

    Attributes
    ----------
    release_ : SlicingRelease
        All that is left of the rows. Can be saved, published, and trained on elsewhere.
    ledger_ : PrivacyLedger
        What was spent, over all fits.
    schema_ : Schema
        Every column as it was encoded, what was learned included: as public as the release.
    generator_ : Generator
        The trained generator, on the CPU.
    loss_curve_ : ndarray of shape (n_steps,)
        Distance to the release, per step.
    noise_floor_ : float
        Always 0: the distances have no simple one.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Column names.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    The neighboring relation is replacing one row: one noisy row each says how many there are.

    References
    ----------
    arXiv 2410.19941.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Schema, SlicedRowsSynthesizer
    >>> df = pd.DataFrame({"age": [34, 51, 29] * 100, "smoker": ["no", "yes", "no"] * 100})
    >>> schema = Schema.from_dict({"columns": {
    ...     "age": {"kind": "numeric", "bounds": [18, 90], "dtype": "int"},
    ...     "smoker": {"kind": "categorical", "values": ["no", "yes"]}}})
    >>> synth = SlicedRowsSynthesizer(400.0, 1e-5, schema=schema, n_slices=4, n_steps=20,
    ...                               random_state=0).fit(df)
    >>> synth.release_.projections().shape
    (300, 4, 1)
    """

    post_processing_parameters = (
        "divergence",
        "generator",
        "n_steps",
        "batch_size",
        "learning_rate",
        "device",
        "verbose",
        "random_state",
    )

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        divergence: Distance = "hellinger",
        n_slices: int = 50,
        slice_dim: int = 1,
        directions: Literal["gaussian", "frame"] = "gaussian",
        ledger: PrivacyLedger | None = None,
        generator: GeneratorSpec = "auto",
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        device: str = "auto",
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.divergence = divergence
        self.n_slices = n_slices
        self.slice_dim = slice_dim
        self.directions = directions
        self.ledger = ledger
        self.generator = generator
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: None = None) -> Self:
        """Release noisy projections of the rows, then train a network on them.

        Everything that can be wrong with the parameters or with the structure of the table is
        reported before the budget is charged and any cell is read.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features_in_)
            The private table, its target included.
        y : None
            Not used: a target has to be a column.

        Returns
        -------
        self : SlicedRowsSynthesizer

        Raises
        ------
        ValueError
            (:class:`~skdpgen.exceptions.PrivacyParameterError`, ``SchemaError``, ``InputError``)
            If a parameter is out of range or the table doesn't fit the schema.
        BudgetExceededError
            If ``ledger`` has a cap that this spend would exceed.

        Warns
        -----
        PrivacyWarning
            If ``delta`` exceeds one over the number of rows.
        SkdpgenWarning
            If the noise leaves nothing to learn: before a row is read where that is certain
            whatever the rows are, after it by the noisy release. If training diverged.
        """
        with running(self, "fit", 2):
            with part_of(self, "release"):
                plan = self._make_release(X, y, self._rows_plan)
            return self._train(plan)

    def make_release(self, X: Any, y: None = None) -> SlicingRelease:
        """Make the release that :meth:`fit` makes, and don't train.

        What comes after it is free, and can be done later and elsewhere: :meth:`retrain` here,
        :meth:`from_release` wherever the release is.

        Parameters
        ----------
        X, y
            See :meth:`fit`, as for what is raised and warned of.

        Returns
        -------
        SlicingRelease
            :attr:`release_`.
        """
        self._make_release(X, y, lambda codec: None)
        assert isinstance(self.release_, SlicingRelease)
        return self.release_

    def _make_release(self, X: Any, y: None, plan_of: Callable[[TableCodec], _P]) -> _P:
        """Everything that :meth:`fit` does before it trains.

        ``plan_of`` is called before the budget is charged, to raise for parameters of the training
        that are wrong. What it returns is returned.
        """
        check_epsilon_delta(self.epsilon, self.delta)
        if y is not None:
            raise InputError("y isn't taken: the target has to be a column of X.")
        X = as_table(X)
        codec = TableCodec.build(X, None, as_schema(self.schema, X).unlabeled())
        n = n_rows(X)
        layout = codec.layout
        mechanism = SlicingMechanism(
            n_numeric=len(layout.numeric),
            group_widths=layout.group_widths,
            n_slices=self.n_slices,
            slice_dim=self.slice_dim,
            epsilon=self.epsilon,
            delta=self.delta,
            directions=self.directions,
        )
        plan = plan_of(codec)
        ledger = self._ledger_in_use(stacklevel=4)
        warn_of_large_delta(self.delta, n, stacklevel=4)
        noise = mechanism.noise_stddev / 2.0**mechanism.value_bits
        n_values = n * self.n_slices * self.slice_dim
        # Two rows are at most one apart, so their covariance has a trace of at most one half.
        hopeless = current_source().secure and not _detectable(0.5 / layout.width, noise, n_values)
        if hopeless:
            warnings.warn(
                f"the noise on every row hides everything: no table of {n} rows in this encoding "
                f"has enough variance along a slice to show at this epsilon. {_ADVICE}",
                SkdpgenWarning,
                stacklevel=3,
            )
        self.ledger_ = ledger
        from skdpgen.synthesizers._noisy_rows import row_batches

        release = mechanism.release(
            row_batches(codec, X),
            ledger,
            public={"schema": codec.public_schema()},
        )
        self._adopt(release, codec)
        found = float(np.mean(release.projections().var(axis=0))) - noise**2
        shows = not release.private or _detectable(found, noise, release.noisy_rows.size)
        if not hopeless and not shows:
            warnings.warn(
                f"the noisy projections have no more variance than their noise: expect nothing "
                f"of the table in the samples. {_ADVICE}",
                SkdpgenWarning,
                stacklevel=3,
            )
        return plan

    @classmethod
    def from_release(
        cls,
        release: SlicingRelease | str | os.PathLike[str],
        *,
        template: Any = None,
        **params: Any,
    ) -> Self:
        """Train a synthesizer on a release, without access to rows.

        Parameters
        ----------
        release : SlicingRelease or path
            What :attr:`release_` was, or the file it was saved to.
        template : DataFrame, default=None
            A frame, possibly without rows, with the names and dtypes that samples shall have. None
            gives pandas frames with the usual dtypes of the schema.
        **params
            Post-processing parameters.

        Raises
        ------
        ReleaseError
            If the release doesn't verify, carries no schema, or doesn't fit the template.
        """
        return cls._untrained(release, template).retrain(**params)

    @classmethod
    def _untrained(cls, release: SlicingRelease | str | os.PathLike[str], template: Any) -> Self:
        """Everything that :meth:`from_release` does before it trains."""
        if not isinstance(release, SlicingRelease):
            release = SlicingRelease.load(release)
        release.verify()
        facts = release.public.get("schema")
        if facts is None:
            raise ReleaseError("the release carries no schema, so samples could not be decoded.")
        schema = Schema.from_dict(facts)
        synthesizer = cls(
            release.epsilon,
            release.delta,
            schema=schema,
            n_slices=release.n_slices,
            slice_dim=release.slice_dim,
            directions=release.direction_kind,
        )
        codec = TableCodec.from_schema(schema, template)
        shape = len(codec.layout.numeric), codec.layout.group_widths
        if shape != (release.n_numeric, release.group_widths):
            raise ReleaseError("the template or the schema doesn't fit the release.")
        synthesizer._adopt(release, codec)
        return synthesizer

    # -- internals --------------------------------------------------------------------------------

    def _plan_for_release(self) -> Plan:
        return self._rows_plan(self._codec)

    def _rows_plan(self, codec: TableCodec) -> RowsPlan:
        from skdpgen.synthesizers._noisy_rows import plan_rows

        check_verbose(self.verbose)
        return plan_rows(
            self.divergence,
            self.slice_dim,
            codec.layout,
            generator=self.generator,
            n_steps=_NETWORK_STEPS if self.n_steps is None else self.n_steps,
            batch_size=self.batch_size,
            learning_rate=_NETWORK_RATE if self.learning_rate is None else self.learning_rate,
            device=self.device,
            seeds=seed_sequence(self.random_state),
        )


def _detectable(variance: float, noise_stddev: float, n_values: int) -> bool:
    """Whether a mean variance of the signal shows above what noise does to its estimate.

    The sample variance of n values of noise of variance s^2 has standard error s^2 sqrt(2 / n).
    """
    return variance > _STANDARD_ERRORS * noise_stddev**2 * math.sqrt(2 / n_values)
