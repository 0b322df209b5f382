"""Search over settings that touch rows: many secret tries, one published, one price."""

from __future__ import annotations

import math
import secrets
import traceback
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from skdpgen.data.frames import as_series, as_table, n_rows
from skdpgen.exceptions import InputError, PrivacyWarning, SkdpgenError
from skdpgen.features.settings import InteractionFeatures
from skdpgen.model_selection._private_runs import PrivateTable, Trial, check_names, distance
from skdpgen.privacy.accounting import noise_multiplier
from skdpgen.privacy.entries import LedgerEntry, Unit, check_adjacency
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.private_selection import ChargedSelection, PrivateSelection
from skdpgen.privacy.release import Release
from skdpgen.privacy.selection import Repetitions
from skdpgen.privacy.shares import ReservedSpend
from skdpgen.synthesizers._embedding import EmbeddingSynthesizer
from skdpgen.synthesizers._parameters import check_number, seed_sequence, unit_column
from skdpgen.synthesizers.base import warn_of_large_delta
from skdpgen.synthesizers.dpmerf import DPMERFSynthesizer
from skdpgen.training.progress import unwatched

__all__ = ["PrivateSearchCV"]

# Of the yardstick. More would tell distances apart no better: the noise is what limits it.
_N_FREQUENCIES = 4000


class PrivateSearchCV(BaseEstimator):
    """Search over settings that change the release: a secret number of tries, the best published.

    Settings such as the number of frequencies, the bandwidth or the kind of features need a release
    each. This search makes one *yardstick* release, then draws a secret random number of tries:
    each takes a candidate at random, makes a release of it, trains a generator, and measures the
    distance of its rows to the yardstick. The try with the least distance is published, with its
    release; of the others nothing comes out, not even how many there were. Therefore the price
    doesn't grow with the number of candidates: five expected tries at epsilon = 1 cost as much as
    1.95 times the noise of a single release, yardstick included. It is still a high price, and
    rarely worth it:

    * settings that never touch rows (generator, learning rate, steps) are free to search, with
      :class:`~skdpgen.model_selection.ReleaseSearchCV`;
    * up to three candidates it is cheaper to release all of them, at sqrt(k) times the noise, and
      to choose afterwards, which is free. The search warns then.

    Parameters
    ----------
    estimator : DPMERFSynthesizer or SlicedFDivSynthesizer
        What is tried. It is cloned; its ``epsilon``, ``delta`` and ``random_state`` are those of
        the search. It needs a complete schema: domains are not learned here.
    param_grid : mapping or list of mappings
        Lists of values for its parameters, nested ones included (``features__n_frequencies``), as
        in scikit-learn's ``GridSearchCV``. Not for what is the same for all candidates: epsilon,
        delta, schema, adjacency, units, ledger.
    epsilon, delta : float
        The guarantee of all that comes out: yardstick, best release, and which one it was. Privacy
        parameters.
    expected_tries : float, default=5
        Expected number of tries, above 1. Each is a candidate drawn uniformly, with replacement.
        Privacy parameter.
    eta : float, default=0.0
        Shape of the distribution of the number of tries (a truncated negative binomial), in
        (-1, 1]. 0 is the logarithmic distribution: often one try, sometimes many; 1 is the
        geometric one, more even and dearer. Privacy parameter.
    yardstick_share : float, default=0.1
        Share of the budget (of the squared privacy parameter of Gaussian noise) that the yardstick
        gets, in (0, 1). Privacy parameter.
    ledger : PrivacyLedger, default=None
        Where it is charged: once, before any row is read, with one entry for the selection and one
        for the yardstick. None is the ledger of the estimator. In a ledger with a cap it has to be
        the first spend. Privacy parameter.
    random_state : int, RandomState instance or None, default=None
        Seeds what is public: frequencies, initial weights, training, sampling. The number of tries,
        the candidates and all noise come from the operating system.

    Attributes
    ----------
    best_estimator_ : synthesizer
        The best candidate with its release, trained; its ``epsilon`` is that of the search.
    best_params_ : dict
        Its settings.
    release_ : Release
        Its release. It states the guarantee of the whole search, which is larger than what its own
        noise would give.
    yardstick_release_ : Release
        The yardstick, which may be used for anything.
    ledger_ : PrivacyLedger
        What was spent.
    n_candidates_ : int
        Number of candidates; the number of tries is secret.
    classes_, feature_names_in_, n_features_in_
        As in the estimator.

    See Also
    --------
    skdpgen.model_selection.ReleaseSearchCV : Free search over what never touches rows.

    Notes
    -----
    The price is Theorem 2 of Papernot and Steinke for tries that are private together with their
    score: here each try is a Gaussian release, and its score a function of that and of the
    yardstick. There are no scores of candidates to see, no ``cv_results_``, no ``verbose`` and no
    ``n_jobs``, because the theorem pays for one outcome only.

    **The number of tries can be guessed from the running time of** ``fit`` **, from the memory of
    the process and from what libraries count in it** (torch numbers its operations). Publish the
    outcome, not how long it took, and don't let others watch or run code in the process. Nor should
    a generator of your own print or write anything while it is trained.

    References
    ----------
    N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022,
    arXiv 2110.03620.

    Examples
    --------
    >>> from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator
    >>> from skdpgen.datasets import make_gaussian_grid
    >>> from skdpgen.model_selection import PrivateSearchCV
    >>> points, schema = make_gaussian_grid(1000, random_state=0)
    >>> synth = DPMERFSynthesizer(
    ...     1.0, 1e-5, schema=schema, n_steps=20, features=InteractionFeatures(100, n_bins=16),
    ...     generator=MixtureGenerator(10, n_mixtures=1))
    >>> grid = {"features__orders": [(1,), (2,), (1, 2)], "features__n_frequencies": [50, 200]}
    >>> search = PrivateSearchCV(synth, grid, epsilon=1.0, delta=1e-5, random_state=0).fit(points)
    >>> len(search.ledger_.entries), round(search.ledger_.spent(1e-5), 3)
    (2, 1.0)
    >>> search.sample(5).shape
    (5, 3)
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        epsilon: float,
        delta: float,
        *,
        expected_tries: float = 5,
        eta: float = 0.0,
        yardstick_share: float = 0.1,
        ledger: PrivacyLedger | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.expected_tries = expected_tries
        self.eta = eta
        self.yardstick_share = yardstick_share
        self.ledger = ledger
        self.random_state = random_state

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, unit_id: Any = None) -> Self:
        """Charge the ledger, make the yardstick, try candidates, keep the best.

        All candidates are checked before the charge, and before any cell is read.

        Parameters
        ----------
        X, y, unit_id
            As in ``fit`` of the estimator.

        Returns
        -------
        self : the search itself

        Raises
        ------
        ValueError
            (:class:`~skdpgen.exceptions.InputError` and others) If a parameter or a candidate is
            wrong. Nothing was charged then.
        BudgetExceededError
            If the ledger has a cap that the search would exceed, or that isn't empty.
        SkdpgenError
            If a release failed while rows were read. It isn't said which, and the charge stands.

        Warns
        -----
        PrivacyWarning
            If releasing all candidates would be cheaper, or ``delta`` exceeds one over a public
            number of rows.
        SkdpgenWarning
            If training of the published candidate diverged.
        """
        selection = self._priced()
        candidates = self._candidates()
        estimator = self._common_estimator()
        check_adjacency(estimator.adjacency)
        X = as_table(X)
        y = None if y is None else as_series(y)
        n = n_rows(X)
        units = None if unit_id is None else unit_column(unit_id, n)
        bounded = units is not None
        public = estimator.adjacency == "replace-one" and not bounded
        table = PrivateTable(X, y, units, n if public else None)
        unit: Unit = "unit" if bounded or estimator.rows_per_unit != 1 else "row"
        yardstick = self._yardstick(estimator, selection, table)
        entries = selection.entries(estimator.adjacency, unit, estimator.rows_per_unit)
        trials = self._trials(estimator, candidates, table, entries)
        ledger = estimator._ledger_in_use()
        if public:
            warn_of_large_delta(self.delta, n)
        self._warn_of_price(selection, len(trials))
        charged = selection.charge(ledger, entries)
        self._forget()
        self.ledger_ = ledger
        self.n_candidates_ = len(trials)
        self.yardstick_release_ = yardstick.release(table, charged.yardstick, ledger)
        best, release = _best_of(trials, table, charged, self.yardstick_release_, ledger)
        self.release_ = release
        self.best_params_ = dict(best.settings)
        self.best_estimator_ = best.published(release, ledger)
        for name in ("classes_", "feature_names_in_", "n_features_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    # -- what comes of it -------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        y: Any = None,
    ) -> Any:
        """Draw synthetic rows from the best candidate; see ``sample`` of the estimator.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            None gives new rows each time.
        y : array-like, mapping or "balanced", default=None
            Wanted labels, or shares of them.

        Returns
        -------
        DataFrame, or a pair of data and labels
            Rows of the kind that was fitted.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.sample(n_samples, random_state, y=y)

    def privacy_statement(self) -> str:
        """What the search promises, and what was spent in total, in plain words.

        Returns
        -------
        str
            The statement.
        """
        check_is_fitted(self, "best_estimator_")
        statement = self.best_estimator_.privacy_statement()
        if not self.release_.private:
            return statement
        return (
            f"{statement} The choice among {self.n_candidates_} candidates is covered: the number "
            f"of tries and all but the best are secret."
        )

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        tags.non_deterministic = True
        return tags

    # -- internals --------------------------------------------------------------------------------

    def _priced(self) -> PrivateSelection:
        for name in ("expected_tries", "eta"):
            check_number(name, getattr(self, name), Real)
        repetitions = Repetitions.with_mean(float(self.expected_tries), float(self.eta))
        return PrivateSelection(self.epsilon, self.delta, repetitions, self.yardstick_share)

    def _candidates(self) -> list[dict[str, Any]]:
        try:
            candidates = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"param_grid must map names to lists of values, or be a list of such: {error}"
            ) from None
        if not candidates:
            raise InputError("param_grid holds no candidate: give lists of values.")
        check_names(self._checked_estimator(), candidates)
        return candidates

    def _checked_estimator(self) -> EmbeddingSynthesizer:
        if isinstance(self.estimator, EmbeddingSynthesizer):
            return self.estimator
        raise InputError(
            f"{type(self.estimator).__name__} can't be searched privately: only what makes one "
            f"Gaussian release of means can, DPMERFSynthesizer and SlicedFDivSynthesizer."
        )

    def _common_estimator(self) -> EmbeddingSynthesizer:
        """The estimator with what all tries have in common."""
        estimator: EmbeddingSynthesizer = clone(self._checked_estimator())
        # An integer, so that every try of a candidate starts alike.
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        estimator.set_params(epsilon=self.epsilon, delta=self.delta, random_state=seed)
        if self.ledger is not None:
            estimator.set_params(ledger=self.ledger)
        return estimator

    def _trials(
        self,
        estimator: EmbeddingSynthesizer,
        candidates: list[dict[str, Any]],
        table: PrivateTable,
        entries: tuple[LedgerEntry, ...],
    ) -> list[Trial]:
        trials = []
        for settings in candidates:
            try:
                trials.append(Trial.prepare(estimator, settings, table, entries))
            except ValueError as error:
                # Else sklearn's, for a nested parameter that doesn't exist.
                kind = type(error) if isinstance(error, SkdpgenError) else InputError
                raise kind(
                    f"the candidate {settings} isn't possible: {error} Nothing was charged."
                ) from None
        return trials

    def _yardstick(
        self, estimator: EmbeddingSynthesizer, selection: PrivateSelection, table: PrivateTable
    ) -> Trial:
        """Fixed features, the same for all searches, that no candidate is made of."""
        maker = DPMERFSynthesizer(
            selection.yardstick_epsilon,
            self.delta,
            schema=estimator.schema,
            adjacency=estimator.adjacency,
            rows_per_unit=estimator.rows_per_unit,
            features=InteractionFeatures(_N_FREQUENCIES),
            # Frequencies of its own: a candidate of the same kind would be fitted to the same.
            random_state=int(estimator.random_state) + 1,  # type: ignore[arg-type]
        )
        return Trial.prepare(maker, {}, table)

    def _warn_of_price(self, selection: PrivateSelection, n_candidates: int) -> None:
        single = noise_multiplier(selection.epsilon, selection.delta)
        price, all_of_them = selection.run_multiplier / single, math.sqrt(n_candidates)
        if n_candidates <= 3 or all_of_them <= price:
            warnings.warn(
                f"releasing all {n_candidates} candidates would cost {all_of_them:.2f} times the "
                f"noise of a single release, and choosing among them afterwards nothing; this "
                f"search costs {price:.2f} times the noise. Fit each with a share of the budget.",
                PrivacyWarning,
                stacklevel=3,
            )

    def _forget(self) -> None:
        """Drop what belongs to an earlier search, should this one fail."""
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)


def _best_of(
    trials: list[Trial],
    table: PrivateTable,
    charged: ChargedSelection,
    yardstick: Release,
    ledger: PrivacyLedger,
) -> tuple[Trial, Release]:
    """The best try. Nothing of the others leaves this function: no score, warning or error."""

    def run(spend: ReservedSpend) -> tuple[float, tuple[Trial, Release]]:
        # Drawn by the operating system: whoever knows the seed must not know what was tried.
        trial = trials[secrets.randbelow(len(trials))]
        release = trial.release(table, spend, ledger)
        try:
            score = distance(trial.trained(release), yardstick, 0)
        except Exception:
            # A training that fails has lost. If it is published all the same, because all have,
            # its error shows when it is trained again.
            score = math.inf
        return score, (trial, release)

    with warnings.catch_warnings(), unwatched():
        warnings.simplefilter("ignore")
        try:
            return charged.best(run)
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
            # Whoever keeps the error, as interactive shells do, would have the frames of the loop.
            traceback.clear_frames(error.__traceback__)
    # Outside of the handler: an error would carry along the one that tells about a try.
    if interrupted:
        raise KeyboardInterrupt
    raise SkdpgenError(
        "a release failed while the search ran, after the charge. Why isn't said: it would tell "
        "about tries that stay secret. Fit the candidates one by one to find out."
    )
