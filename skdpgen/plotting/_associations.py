"""Which columns go together, in the real and in the synthetic table, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from skdpgen.plotting._style import EDGE, apart, head, pyplot, say, styled

if TYPE_CHECKING:
    from skdpgen.evaluation import FidelityResult

__all__ = ["AssociationDisplay"]

Square = npt.NDArray[np.float64]

# Blue and red with white between: told apart by people who see red and green alike.
_COLORS = "RdBu_r"
_NO_VALUE = "#D9D9D9"
# More columns than this are drawn one square below the other.
_SIDE_BY_SIDE = 16
_SMALLEST_LIMIT = 0.2
# A difference that two digits don't show.
_NOTHING = 0.005


class AssociationDisplay:
    """Heat maps of the association of each two columns: real, synthetic, and their difference.

    All three have one scale of colors: red for two columns that go together, white for independent
    ones; in the difference red for what the synthetic table made up and blue for what it lost.
    Gray is undefined (a constant column) or a column with itself.

    Make it with :meth:`from_fidelity`.

    Parameters
    ----------
    columns : sequence of names
        The columns.
    real, synthetic : array-like of shape (n_columns, n_columns)
        Associations, 0 to 1; NaN where undefined.

    Attributes
    ----------
    difference : ndarray of shape (n_columns, n_columns)
        Synthetic less real.
    axes_ : ndarray of Axes, shape (3,)
        Real, synthetic, difference.
    figure_ : Figure
        The figure that holds them.
    colorbar_ : Colorbar
        The scale of all three.

    Examples
    --------
    >>> from skdpgen.plotting import AssociationDisplay
    >>> display = AssociationDisplay(["a", "b"], [[1, 0.5], [0.5, 1]], [[1, 0.25], [0.25, 1]])
    >>> display.difference
    array([[ 0.  , -0.25],
           [-0.25,  0.  ]])
    >>> print(display.summary())
    The association that changed most is that of a and b: 0.50 in the real rows, 0.25 in the
    synthetic ones.
    """

    def __init__(self, columns: Sequence[Any], real: Any, synthetic: Any) -> None:
        self.columns = tuple(columns)
        self.real = np.asarray(real, dtype=np.float64)
        self.synthetic = np.asarray(synthetic, dtype=np.float64)
        self.difference: Square = self.synthetic - self.real

    @classmethod
    def from_fidelity(cls, result: FidelityResult) -> Self:
        """Take the associations of a result.

        Parameters
        ----------
        result : FidelityResult
            Of :func:`skdpgen.evaluation.fidelity`.

        Returns
        -------
        AssociationDisplay
        """
        real, synthetic = result.associations["real"], result.associations["synthetic"]
        return cls(list(real.columns), real, synthetic)

    def summary(self) -> str:
        """The pair that changed most, as a sentence."""
        size = np.abs(self._pairs(self.difference))
        if not np.isfinite(size).any():
            return "No two columns have an association in both tables."
        if np.nanmax(size) < _NOTHING:
            return "No association of two columns differs between the tables."
        i, j = np.unravel_index(int(np.nanargmax(size)), size.shape)
        first, second = apart([self.columns[i], self.columns[j]], 40)
        return (
            f"The association that changed most is that of {first} and {second}: "
            f"{self.real[i, j]:.2f} in the real rows, {self.synthetic[i, j]:.2f} in the "
            f"synthetic ones."
        )

    def plot(self) -> Self:
        """Draw the three heat maps.

        Returns
        -------
        self : AssociationDisplay
        """
        n = max(1, len(self.columns))
        across, down = (3, 1) if n <= _SIDE_BY_SIDE else (1, 3)
        side = max(2.2, 0.17 * n + 0.2)
        size = (side * across + 3.0, (side + 1.7) * down + 0.8)
        with styled():
            plt = pyplot()
            self.figure_, axes = plt.subplots(down, across, figsize=size, layout="constrained")
            self.axes_ = np.asarray(axes)
            head(self.figure_, self.summary(), "Read off the real rows: no epsilon covers it.")
            if not self.columns:
                for ax in self.axes_:
                    say(ax, "no columns")
                return self
            limit = self._limit()
            names = apart(self.columns, 22)
            parts = ("real", self.real), ("synthetic", self.synthetic), ("", self.difference)
            for k, (what, values) in enumerate(parts):
                self._draw(self.axes_[k], values, limit, names, labeled=down == 3 or k == 0)
                self.axes_[k].set_title(what or "synthetic less real")
            image = self.axes_[0].images[0]
            self.colorbar_ = self.figure_.colorbar(
                image,
                ax=list(self.axes_),
                label="association (0: independent)",
                shrink=0.8 if down == 1 else 0.25,
                aspect=15,
            )
        return self

    def _draw(
        self, ax: Any, values: Square, limit: float, names: list[str], *, labeled: bool
    ) -> None:
        plt = pyplot()
        colors = plt.get_cmap(_COLORS).with_extremes(bad=_NO_VALUE)
        ax.imshow(
            self._pairs(values),
            cmap=colors,
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="none",
        )
        ticks = np.arange(len(names))
        ax.set_xticks(ticks, names, rotation=90)
        ax.set_yticks(ticks, names if labeled else [])
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(True)
            spine.set_color(EDGE)

    @staticmethod
    def _pairs(values: Square) -> Square:
        """Without the diagonal, where nothing is to be seen."""
        return np.where(np.eye(len(values), dtype=bool), np.nan, values)

    def _limit(self) -> float:
        """Where the colors end: nothing of a picture of weak associations would be seen at 1."""
        size = [np.abs(self._pairs(v)) for v in (self.real, self.synthetic, self.difference)]
        known = np.concatenate([s[np.isfinite(s)] for s in size])
        largest = float(known.max()) if known.size else 0.0
        return max(_SMALLEST_LIMIT, float(np.ceil(largest * 10) / 10))
