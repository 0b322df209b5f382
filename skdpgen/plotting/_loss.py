"""How training went: loss curves and the noise below which there is nothing to learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["LossDisplay"]

# The line is a mean over so many parts of the curve: single steps are noisy.
_N_PARTS = 50


@dataclass(frozen=True)
class _Curve:
    loss: npt.NDArray[np.float64]
    floor: float


class LossDisplay:
    """Loss of each training step, and the noise floor: what privacy noise leaves of it.

    A training that reaches the floor has learned what the release tells; further steps would learn
    its noise. The thin line is the loss of each step, the thick one its running mean.

    Make it with :meth:`from_synthesizer`.

    Parameters
    ----------
    curves : mapping of str to (loss, floor)
        By name: the loss of each step with the noise in it, and what the noise contributes in
        expectation; 0 where that isn't known.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure that holds it.
    lines_ : list of Line2D
        The thick lines, one a curve.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.plotting import LossDisplay
    >>> display = LossDisplay({"mixture": (0.1 + 2.0 ** -np.arange(9), 0.1)})
    >>> display.summary()
    'Training took 9 steps and ended at 1.04 times the noise floor.'
    """

    def __init__(self, curves: Mapping[str, tuple[npt.ArrayLike, float]]) -> None:
        self.curves = {
            name: _Curve(np.asarray(loss, dtype=np.float64), float(floor))
            for name, (loss, floor) in curves.items()
        }

    @classmethod
    def from_synthesizer(cls, synthesizer: Any) -> Self:
        """Loss curves of fitted synthesizers.

        Parameters
        ----------
        synthesizer : synthesizer, sequence or mapping of them
            One, or several to compare; a mapping gives their names.

        Returns
        -------
        LossDisplay

        Raises
        ------
        NotFittedError
            If one isn't fitted.
        """
        if isinstance(synthesizer, Mapping):
            named = dict(synthesizer)
        elif isinstance(synthesizer, Sequence):
            named = {f"{i}: {type(s).__name__}": s for i, s in enumerate(synthesizer, 1)}
        else:
            named = {type(synthesizer).__name__: synthesizer}
        curves = {}
        for name, one in named.items():
            one = getattr(one, "best_estimator_", one)
            check_is_fitted(one, "loss_curve_")
            curves[str(name)] = one.loss_curve_ + one.noise_floor_, one.noise_floor_
        return cls(curves)

    def summary(self) -> str:
        """How it went, as a sentence."""
        if not self.curves:
            return "There is no training."
        if len(self.curves) > 1:
            return f"Loss of {len(self.curves)} trainings."
        (curve,) = self.curves.values()
        n = len(curve.loss)
        if not n:
            return "Training made no step."
        steps = "1 step" if n == 1 else f"{n:,} steps"
        last = float(_running_mean(curve.loss)[-1])
        if curve.floor <= 0:
            first = float(curve.loss[0])
            return (
                f"Training took {steps}; the distance to the release went from {first:.3g} to "
                f"{last:.3g}."
            )
        if last <= curve.floor:
            return f"Training reached the noise floor after {steps}: there was no more to learn."
        return f"Training took {steps} and ended at {last / curve.floor:.2f} times the noise floor."

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw loss over steps, on a logarithmic axis where all losses are positive.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : LossDisplay
        """
        with styled():
            from matplotlib.ticker import MaxNLocator

            self.figure_, self.ax_ = figure_and_axes(ax, (6.0, 3.6))
            self.lines_: list[Line2D] = []
            drawn = [curve for curve in self.curves.values() if len(curve.loss)]
            self.ax_.set_title(wrapped(self.summary(), 5.0))
            if not drawn:
                say(self.ax_, "There are no losses to draw.")
                return self
            names = apart(list(self.curves), 34)
            for i, (curve, name) in enumerate(zip(self.curves.values(), names, strict=True)):
                self._draw(curve, name, CYCLE[i % len(CYCLE)])
            if all((curve.loss > 0).all() for curve in drawn):
                self.ax_.set_yscale("log")
            self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
            self.ax_.set_xlabel("training step")
            self.ax_.set_ylabel("distance to the release")
            if len(self.curves) > 1:
                self.ax_.legend()
            quiet(self.ax_, "y")
        return self

    def _draw(self, curve: _Curve, name: str, color: str) -> None:
        steps = np.arange(1, len(curve.loss) + 1)
        self.ax_.plot(steps, curve.loss, color=color, alpha=0.3, linewidth=0.8)
        mean = _running_mean(curve.loss)
        self.lines_ += self.ax_.plot(
            steps,
            mean,
            color=color,
            linewidth=2,
            label=name,
            marker="o" if len(steps) == 1 else None,
        )
        if curve.floor > 0:
            single = len(self.curves) == 1
            shade = MUTED if single else color
            self.ax_.axhline(curve.floor, color=shade, linestyle="--", linewidth=1.2)
            if single:
                self.ax_.annotate(
                    "noise floor", (0, curve.floor), xycoords=("axes fraction", "data"),
                    xytext=(3, 3), textcoords="offset points", ha="left", color=MUTED,
                )  # fmt: skip


def _running_mean(loss: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean over the last steps up to each one."""
    width = max(1, len(loss) // _N_PARTS)
    total = np.cumsum(np.concatenate([[0.0], loss]))
    ends = np.arange(1, len(loss) + 1)
    starts = np.maximum(0, ends - width)
    return np.asarray((total[ends] - total[starts]) / (ends - starts))
