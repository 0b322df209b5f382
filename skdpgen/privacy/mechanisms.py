"""The mean-embedding mechanism: the only code that sees rows *and* adds noise.

A mechanism is built blind, from public facts, and fixes its sensitivity before it meets a row. It
takes structured integer input and enforces every bound itself; it trusts no caller.

One row contributes ``[phi ; c] (x) e_y`` and ``w e_y``: a signed block ``phi`` (random Fourier
features) with squared norm at most ``S``, one category index per one-hot group, of which the
mechanism makes a non-negative block of squared norm at most ``B``, and the label index ``y``, which
it turns into the position of both blocks and of the class-count coordinate of weight ``w``. All in
lattice steps, in integers. ``phi`` comes with the row, or is made here from the row's codes and
public tables; what either form adds up to is in ``batches.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy.accounting import check_epsilon_delta, gaussian_epsilon
from skdpgen.privacy.batches import (
    CodeBatch,
    RowBatch,
    check_structure,
    code_sums,
    row_sums,
)
from skdpgen.privacy.codes import CodeFourier
from skdpgen.privacy.entries import (
    Adjacency,
    LedgerEntry,
    Unit,
    check_adjacency,
    check_rows_per_unit,
)
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.noise import add_gaussian_noise, check_stddev, current_source
from skdpgen.privacy.release import Release, frozen
from skdpgen.privacy.shares import (
    ReservedSpend,
    earlier_spend,
    multiplier_beside,
    selection_beside,
)
from skdpgen.privacy.spec import EmbeddingSpec

__all__ = ["MeanEmbeddingMechanism"]


@dataclass(frozen=True)
class MeanEmbeddingMechanism:
    """Releases a noisy sum of row embeddings per class, and noisy class counts, at once.

    Parameters
    ----------
    spec : EmbeddingSpec
        Shape and weights of what one row contributes.
    epsilon, delta : float
        The guarantee, for one unit of privacy.
    adjacency : {"replace-one", "add-remove"}
        Under replace-one the number of rows is public and recorded (not with ``rows_bounded``,
        where a unit may be replaced by one with another number of rows); under add-remove it is
        private. Where it isn't recorded, nothing depends on it.
    rows_per_unit : int, default=1
        A unit of privacy contributes at most this many rows; the sensitivity grows by this factor.
    rows_bounded : bool, default=False
        Whether batches say by :attr:`RowBatch.keep` which rows may contribute. False with
        ``rows_per_unit > 1`` relies on the caller's promise.
    features : CodeFourier, optional
        Public tables that make the signed block of a row from its codes: batches are then
        :class:`CodeBatch`, and the codes are also the categories of the one-hot groups, if the
        spec has any. None takes :class:`RowBatch`, whose rows bring their signed block.
    earlier : tuple of LedgerEntry, default=()
        Spends that the guarantee covers too, and that leave the rest of it for this release. With
        a private selection among them, this is one of its runs and has the noise of a run.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, if the number of contributing rows is private (add-remove,
        or bounded units) and there are no class counts to estimate it, if the features can't serve
        the spec, or if the noise would be narrower than 2^10 or wider than 2^52 lattice steps.

    Notes
    -----
    Proof sketch and threat model: ``README.md`` in this folder.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.privacy import EmbeddingSpec, PrivacyLedger, RowBatch
    >>> spec = EmbeddingSpec(n_signed=2, group_widths=(2,), n_classes=2, count_weight=1.0)
    >>> mechanism = MeanEmbeddingMechanism(spec, epsilon=1.0, delta=1e-5)
    >>> signed = np.array([[1, 0], [0, 1], [1, 0]]) << spec.lattice_bits
    >>> rows = RowBatch(signed, codes=np.array([[1], [1], [0]]), labels=np.array([1, 1, 0]))
    >>> release = mechanism.release([rows], PrivacyLedger())
    >>> release.noisy_sums.shape, release.noisy_counts.shape
    ((2, 4), (2,))
    """

    spec: EmbeddingSpec
    epsilon: float
    delta: float
    adjacency: Adjacency = "replace-one"
    rows_per_unit: int = 1
    rows_bounded: bool = False
    features: CodeFourier | None = None
    earlier: tuple[LedgerEntry, ...] = ()
    _noise_multiplier: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        epsilon, delta = check_epsilon_delta(self.epsilon, self.delta)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        check_adjacency(self.adjacency)
        check_rows_per_unit(self.rows_per_unit)
        if not isinstance(self.rows_bounded, bool):
            raise PrivacyParameterError("rows_bounded must be True or False.")
        if (self.adjacency == "add-remove" or self.rows_bounded) and self.spec.count_steps == 0:
            raise PrivacyParameterError(
                "add-remove adjacency and bounded units need a positive count_weight: the number "
                "of contributing rows is private and has to be estimated from noisy counts."
            )
        if self.features is not None:
            if type(self.features) is not CodeFourier:
                raise PrivacyParameterError("features must be a CodeFourier or None.")
            self.features.check(self.spec)
        elif self.spec.n_harmonics > 1:
            raise PrivacyParameterError(
                "n_harmonics is for features that the mechanism makes itself: rows that bring "
                "their signed block may be opposite."
            )
        # Calibrated here, so that a target that can't be met fails before a row is read.
        selection = selection_beside(self.earlier, self.adjacency, self.unit, delta)
        if selection is None:
            mu, extra_delta = earlier_spend(self.earlier, self.adjacency, self.unit)
            multiplier = multiplier_beside(epsilon, delta, mu, extra_delta)
        else:
            run_mu, total = selection
            if not total <= epsilon:
                raise PrivacyParameterError("the selection spends more than epsilon and delta.")
            # Rounded up, so that the release's own mu is never above what was charged for a run.
            multiplier = (1 + 1e-12) / run_mu
        object.__setattr__(self, "_noise_multiplier", multiplier)
        check_stddev(self.noise_stddev)

    @property
    def sensitivity_squared(self) -> int:
        """Squared L2 sensitivity in lattice steps, for the unit of privacy, exactly."""
        return self.spec.sensitivity_squared(self.adjacency) * self.rows_per_unit**2

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of the ideal Gaussian noise in lattice steps, rounded up."""
        sensitivity = math.nextafter(math.sqrt(self.sensitivity_squared), math.inf)
        return math.nextafter(self._noise_multiplier * sensitivity, math.inf)

    @property
    def unit(self) -> Unit:
        """What the guarantee protects: one row, or all rows of one unit."""
        return "row" if self.rows_per_unit == 1 and not self.rows_bounded else "unit"

    @property
    def own_epsilon(self) -> float:
        """Epsilon of this release alone, at ``delta``."""
        if not self.earlier:
            return self.epsilon
        return gaussian_epsilon(self.delta, 1 / self._noise_multiplier)

    def release(
        self,
        batches: Iterable[RowBatch | CodeBatch],
        ledger: PrivacyLedger | ReservedSpend,
        *,
        public: Mapping[str, Any] | None = None,
        public_arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Release:
        """Charge the ledger, sum the rows exactly, add noise once.

        Parameters
        ----------
        batches : iterable of RowBatch, or of CodeBatch
            The private rows, in any order and any chunking: the sums are exact integers. Consumed
            only after the charge went through.
        ledger : PrivacyLedger or ReservedSpend
            Charged before the first batch is asked for.
        public, public_arrays : mapping, optional
            Public facts that the release should carry: feature map, schema. They must not depend
            on rows. JSON-ready, and arrays without Python objects.

        Returns
        -------
        Release

        Raises
        ------
        BudgetExceededError
            If the ledger refuses; no row was read then.
        PrivacyParameterError
            If a batch hasn't the form, shapes and dtypes of the spec. The charge stands, for rows
            were read, but nothing about them is released.
        ReleaseError, TypeError, ValueError
            If a public fact can't be stored; nothing was charged or read then.
        """
        source = current_source()
        sensitivity_squared, noise_stddev = self.sensitivity_squared, self.noise_stddev
        public_json = json.dumps(dict(public or {}), allow_nan=False)
        arrays = {name: frozen(array) for name, array in (public_arrays or {}).items()}
        ledger.charge(
            LedgerEntry(
                mechanism="mean embedding",
                sensitivity_squared=sensitivity_squared,
                noise_stddev=noise_stddev,
                adjacency=self.adjacency,
                unit=self.unit,
                rows_per_unit=self.rows_per_unit,
                epsilon=self.own_epsilon if source.secure else math.inf,
                delta=self.delta,
                private=source.secure,
            )
        )
        sums, counts, n_rows = self._accumulate(batches)
        exact = np.concatenate([sums.ravel(), counts if self.spec.count_steps else counts[:0]])
        noisy = add_gaussian_noise(exact, noise_stddev, sensitivity_squared, source)
        return Release(
            spec=self.spec,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            rows_per_unit=self.rows_per_unit,
            rows_bounded=self.rows_bounded,
            n_rows=n_rows if self.adjacency == "replace-one" and not self.rows_bounded else None,
            sensitivity_squared=sensitivity_squared,
            noise_stddev=noise_stddev,
            noise="discrete gaussian" if source.secure else "insecure",
            noisy_sums=noisy[: sums.size].reshape(sums.shape),
            noisy_counts=noisy[sums.size :],
            public_json=public_json,
            public_arrays=arrays,
            earlier=self.earlier,
        )

    def _accumulate(
        self, batches: Iterable[RowBatch | CodeBatch]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        """Exact sums (C, D), weighted counts (C,) and the number of rows."""
        spec = self.spec
        sums = np.zeros((spec.n_classes, spec.width), dtype=np.int64)
        counts = np.zeros(spec.n_classes, dtype=np.int64)
        n_rows = 0
        for batch in batches:
            check_structure(batch, spec, self.features, self.rows_bounded)
            n_rows += len(batch.labels)
            if isinstance(batch, RowBatch):
                more = row_sums(batch, spec)
            else:
                assert self.features is not None
                more = code_sums(batch, spec, self.features)
            sums += more[0]
            counts += more[1]
        return sums, counts, n_rows
