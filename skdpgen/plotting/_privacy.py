"""All that a release promises: not one epsilon at one delta, but a curve of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from skdpgen.exceptions import InputError, PrivacyParameterError
from skdpgen.plotting._style import (
    CYCLE,
    MUTED,
    apart,
    figure_and_axes,
    quiet,
    say,
    styled,
    wrapped,
)
from skdpgen.privacy.composition import total_epsilon
from skdpgen.privacy.entries import Adjacency, LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.ledger_report import up
from skdpgen.privacy.release import Release
from skdpgen.privacy.slicing_release import SlicingRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["PrivacyCurve", "PrivacyCurveDisplay"]

_N_POINTS = 49
# Deltas from here on are drawn; further down where a smaller one was promised.
_LEAST_DELTA, _BELOW_PROMISE = 1e-10, 1e-3
# Named by captions, next to that of the promise; or where there is none.
_NAMED_DELTAS, _USUAL_DELTA = (1e-9, 1e-2), 1e-5
# Spends of a ledger that are drawn one by one.
_MOST_SPENDS = 8


@dataclass(frozen=True)
class PrivacyCurve:
    """Which pairs of epsilon and delta hold for one release, or for several together.

    Parameters
    ----------
    name : str
        What it is the curve of.
    epsilon, delta : ndarray of shape (n,)
        Pairs that hold: epsilon is the smallest for its delta. Empty where nothing protects rows.
    promise : (float, float) or None
        The epsilon and delta that were promised, or the cap.
    main_delta : float
        The delta at which words name epsilon.
    guess : float
        The largest probability of guessing right which of two neighboring tables it was, of
        somebody who takes both for equally likely: 0.5 for perfect privacy, 1 for none.
    total : bool
        Whether it is the curve of several releases together.
    """

    name: str
    epsilon: npt.NDArray[np.float64] = field(repr=False)
    delta: npt.NDArray[np.float64] = field(repr=False)
    promise: tuple[float, float] | None
    main_delta: float
    guess: float
    total: bool = False


class PrivacyCurveDisplay:
    r"""Delta over epsilon: all guarantees that one noisy release gives at the same time.

    A release with Gaussian noise has not one epsilon but a curve: the smaller the delta, the larger
    the epsilon. It follows exactly from the noise; what was promised is one point of it.

    Make it with :meth:`from_release` or :meth:`from_ledger`.

    Parameters
    ----------
    curves : sequence of PrivacyCurve
        What is drawn.
    protects : str
        What a guarantee is about, such as "which of two versions of one row the table holds".
    note : str, default=""
        What is written instead of curves where there are none.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure that holds it.
    lines_ : list of Line2D
        One for each curve.

    Notes
    -----
    The probability of a right guess is :math:`(1 + \delta(0)) / 2`, as :math:`\delta(0)` is the
    total variation distance of what is released from two neighboring tables; for Gaussian noise it
    is :math:`\Phi(\mu / 2)` (Dong, Roth and Su, arXiv 1905.02383).

    Examples
    --------
    >>> from skdpgen import PrivacyLedger
    >>> from skdpgen.privacy import LedgerEntry
    >>> from skdpgen.plotting import PrivacyCurveDisplay
    >>> ledger = PrivacyLedger()
    >>> ledger.charge(LedgerEntry("demo", 4, 2 * 3.731, "replace-one", "row", 1, 1.0, 1e-5))
    >>> print(PrivacyCurveDisplay.from_ledger(ledger).caption())
    One release: epsilon = 0.9999 at delta = 1e-05. The same noise also gives epsilon = 0.3962 at
    delta = 0.01 and epsilon = 1.502 at delta = 1e-09. Whoever guesses which of two versions of one
    row the table holds, and knows everything else, is right with a probability of at most 55.4%
    (a coin: 50%).
    """

    def __init__(
        self, curves: Iterable[PrivacyCurve], *, protects: str = "", note: str = ""
    ) -> None:
        self.curves = tuple(curves)
        self.protects = protects
        self.note = note

    @classmethod
    def from_release(
        cls,
        release: Release
        | SlicingRelease
        | Sequence[Release | SlicingRelease]
        | Mapping[str, Release | SlicingRelease],
    ) -> Self:
        """The curve of a release, or of several to compare.

        Parameters
        ----------
        release : Release, SlicingRelease, or sequence or mapping of them
            A mapping gives their names. A release that needs earlier ones (learned bounds) has one
            curve with them. Several are compared, not added up: that does :meth:`from_ledger`.

        Returns
        -------
        PrivacyCurveDisplay

        Raises
        ------
        InputError
            If it is no release.
        ReleaseError
            If one doesn't verify.
        """
        if isinstance(release, Mapping):
            named = {str(name): one for name, one in release.items()}
        elif isinstance(release, Sequence):
            named = {f"release {i}": one for i, one in enumerate(release, 1)}
        else:
            named = {"release": release}
        curves, adjacencies, units = [], set(), set()
        notes = []
        for name, one in named.items():
            if not isinstance(one, Release | SlicingRelease):
                raise InputError(
                    f"a privacy curve is that of a Release, got a {type(one).__name__}: give "
                    f"release_ of a synthesizer, or load the file with Release.load."
                )
            one.verify()
            entries = one.spends
            if not one.private:
                notes.append(f"{name}: {one.statement()}")
                continue
            adjacencies.add(entries[0].adjacency)
            units.add(entries[0].unit)
            curves.append(_of_entries(name, entries, (one.epsilon, one.delta)))
        return cls(curves, protects=_protects(adjacencies, units), note=" ".join(notes))

    @classmethod
    def from_ledger(cls, ledger: PrivacyLedger) -> Self:
        """The curves of a ledger's spends, and of all of them together.

        Spends are drawn one by one where there are at most 8; the promised point is the cap.

        Parameters
        ----------
        ledger : PrivacyLedger
            Of a fitted synthesizer, or one of your own.

        Returns
        -------
        PrivacyCurveDisplay
        """
        entries = ledger.entries
        if not entries:
            return cls([], note="Nothing was spent so far.")
        if not all(entry.protected for entry in entries):
            return cls([], note=_statement(ledger))
        named = [entry.delta for entry in entries if 0 < entry.delta < 1]
        main = max(named, default=_USUAL_DELTA) if ledger.delta is None else ledger.delta
        deltas = _deltas([*named, main])
        curves = []
        if 1 < len(entries) <= _MOST_SPENDS:
            for i, entry in enumerate(entries, 1):
                curves.append(_of_entries(f"{i}: {entry.mechanism}", (entry,), None, deltas=deltas))
        cap = None
        if ledger.epsilon is not None and ledger.delta is not None:
            cap = ledger.epsilon, ledger.delta
        name = "one release" if len(entries) == 1 else f"all {len(entries)} together"
        curves.append(_curve(name, ledger.spent, cap, main, deltas, total=True))
        # The relation that the total is in: that of the ledger, or the stricter one of its spends.
        found = {entry.adjacency for entry in entries}
        relation: Adjacency = "replace-one" if "replace-one" in found else "add-remove"
        relations = {ledger.adjacency or relation}
        return cls(curves, protects=_protects(relations, {entry.unit for entry in entries}))

    # -- words ------------------------------------------------------------------------------------

    def caption(self) -> str:
        """What the picture says, in sentences, with figures rounded to the safe side."""
        curve = next((c for c in self.curves if c.total), None)
        if curve is None:
            curve = self.curves[0] if len(self.curves) == 1 else None
        if curve is None:
            parts = [f"{c.name}: {self._point(c)}." for c in self.curves]
            return " ".join([*parts, self.note]).strip()
        text = f"{_capital(curve.name)}: {self._point(curve)}."
        others = [d for d in reversed(_NAMED_DELTAS) if d != curve.main_delta]
        pairs = [(_epsilon_at(curve, d), d) for d in others]
        known = [f"epsilon = {up(e)} at delta = {d:g}" for e, d in pairs if math.isfinite(e)]
        if known:
            text += f" The same noise also gives {' and '.join(known)}."
        if self.protects and curve.guess < 0.9995:
            share = math.ceil(curve.guess * 1000) / 10
            text += (
                f" Whoever guesses {self.protects}, and knows everything else, is right with a "
                f"probability of at most {share:g}% (a coin: 50%)."
            )
        return text

    def _point(self, curve: PrivacyCurve) -> str:
        delta = curve.main_delta
        found = _epsilon_at(curve, delta)
        spent = f"epsilon = {up(found)} at delta = {delta:g}"
        if curve.promise is None or (curve.total and not math.isfinite(found)):
            return spent
        if curve.total:
            return f"{spent}, of the {curve.promise[0]:g} that the ledger allows"
        return f"epsilon = {curve.promise[0]:g} at delta = {delta:g}, as promised"

    # -- drawing ----------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw delta, on a logarithmic axis, over epsilon.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : PrivacyCurveDisplay
        """
        with styled():
            self.figure_, self.ax_ = figure_and_axes(ax, (6.4, 4.2))
            self.lines_: list[Line2D] = []
            if not self.curves:
                say(self.ax_, self.note or "There is no release.")
                return self
            ordered = enumerate(
                zip(self.curves, apart([c.name for c in self.curves], 34), strict=True)
            )
            for i, (curve, name) in ordered:
                self._draw(curve, name, "black" if curve.total else CYCLE[i % (len(CYCLE) - 1)])
            self.ax_.set_yscale("log")
            self.ax_.set_ylim(top=1.0)
            self.ax_.set_xlim(left=0)
            self.ax_.set_xlabel("epsilon")
            self.ax_.set_ylabel("delta")
            self.ax_.set_title(wrapped(self._headline(), 5.6))
            if len(self.curves) > 1:
                self.ax_.legend(loc="upper right")
            quiet(self.ax_, "both")
            self.ax_.tick_params(which="minor", length=0)
        return self

    def _headline(self) -> str:
        first = self.caption().partition(". ")[0].rstrip(".")
        if len(self.curves) > 1 and not any(c.total for c in self.curves):
            return f"What each of {len(self.curves)} releases promises."
        return f"{first}."

    def _draw(self, curve: PrivacyCurve, name: str, color: str) -> None:
        self.lines_ += self.ax_.plot(
            curve.epsilon, curve.delta, color=color, linewidth=2.5 if curve.total else 2, label=name
        )
        if curve.promise is None:
            return
        epsilon, delta = curve.promise
        self.ax_.plot(epsilon, delta, "o", color=color, markersize=7, clip_on=False)
        if len(self.curves) <= 1 or curve.total:
            # Left of a point near the right end, where the text would leave the picture.
            far = epsilon > 0.75 * max(float(np.max(c.epsilon, initial=0.0)) for c in self.curves)
            what = "allowed" if curve.total else "promised"
            self.ax_.annotate(
                f"{what}: epsilon = {epsilon:g},\ndelta = {delta:g}",
                (epsilon, delta),
                xytext=(-10, 8) if far else (10, 8),
                textcoords="offset points",
                ha="right" if far else "left",
                color=MUTED,
            )


def _of_entries(
    name: str,
    entries: tuple[LedgerEntry, ...],
    promise: tuple[float, float] | None,
    *,
    deltas: npt.NDArray[np.float64] | None = None,
) -> PrivacyCurve:
    adjacency = entries[0].adjacency
    main = _USUAL_DELTA if promise is None else promise[1]
    if deltas is None:
        deltas = _deltas([main])
    return _curve(name, lambda d: total_epsilon([entries], adjacency, d), promise, main, deltas)


def _curve(
    name: str,
    epsilon_of: Callable[[float], float],
    promise: tuple[float, float] | None,
    main_delta: float,
    deltas: npt.NDArray[np.float64],
    *,
    total: bool = False,
) -> PrivacyCurve:
    epsilon = np.array([epsilon_of(float(delta)) for delta in deltas])
    at_zero = _delta_at_zero(epsilon_of, deltas, epsilon)
    # Up to where epsilon is 0: larger deltas say nothing more.
    kept = np.isfinite(epsilon) & (deltas < at_zero)
    epsilon, delta = epsilon[kept], deltas[kept]
    if at_zero < 1:
        epsilon, delta = np.append(epsilon, 0.0), np.append(delta, at_zero)
    return PrivacyCurve(name, epsilon, delta, promise, main_delta, (1 + at_zero) / 2, total)


def _deltas(promised: Sequence[float]) -> npt.NDArray[np.float64]:
    least = max(1e-100, min([_LEAST_DELTA, *(delta * _BELOW_PROMISE for delta in promised)]))
    grid = np.logspace(math.log10(least), 0, _N_POINTS, endpoint=False)
    # Those that captions name are exact.
    return np.unique(np.concatenate([grid, _NAMED_DELTAS, promised]))


def _delta_at_zero(
    epsilon_of: Callable[[float], float],
    deltas: npt.NDArray[np.float64],
    epsilon: npt.NDArray[np.float64],
) -> float:
    """The smallest delta for which epsilon is 0, from above; 1 where there is none."""
    zero = deltas[epsilon <= 0]
    high = float(zero.min()) if zero.size else 1.0
    below = deltas[deltas < high]
    low = float(below.max()) if below.size else high
    for _ in range(20):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon_of(middle) <= 0 else (middle, high)
    # Where only a delta of 1 would do, none does.
    return 1.0 if high > 1 - 1e-6 else high


def _epsilon_at(curve: PrivacyCurve, delta: float) -> float:
    """Smallest epsilon of the curve's points that holds at a delta."""
    holds = curve.epsilon[curve.delta <= delta]
    return float(holds.min()) if holds.size else math.inf


def _protects(adjacencies: Iterable[str], units: Iterable[str]) -> str:
    """What is guessed: the words of the neighboring relation, where there is one."""
    adjacencies, units = set(adjacencies), set(units)
    if len(adjacencies) != 1 or len(units) != 1:
        return ""
    unit = "one row" if units == {"row"} else "the rows of one unit"
    if adjacencies == {"replace-one"}:
        return f"which of two versions of {unit} the table holds"
    return f"whether the table holds {unit}"


def _statement(ledger: PrivacyLedger) -> str:
    try:
        return ledger.statement()
    except PrivacyParameterError:
        return "NOT PRIVATE: rows were read without protection."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
