"""How far a noisy random-feature MMD can be from the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import poch

from skdpgen.exceptions import InputError

__all__ = ["MMDErrorBound", "mmd_error_bound"]


@dataclass(frozen=True)
class MMDErrorBound:
    """The three terms of :func:`mmd_error_bound`, in units of squared MMD (at most 4).

    Parameters
    ----------
    noise : float
        Expected squared norm of the privacy noise: known exactly, a bias.
    cross : float
        Inner product of the noise with the difference of embeddings.
    features : float
        Error of the finite number of random features.
    """

    noise: float
    cross: float
    features: float

    @property
    def total(self) -> float:
        """Sum of the three terms: the bound."""
        return self.noise + self.cross + self.features


def mmd_error_bound(
    n_features: int,
    noise_multiplier: float,
    n_rows: int,
    *,
    n_classes: int = 1,
    tight: bool = True,
) -> MMDErrorBound:
    r"""Bound the expected error of the noisy random-feature squared MMD.

    Bounds :math:`E |MMD_{noisy}^2 - MMD^2|`, the mean over noise and frequencies, for embeddings of
    norm 1 released with replace-one sensitivity 2 / n_rows. It depends on no data, so it can
    be used to choose the number of features before anything is spent.

    Parameters
    ----------
    n_features : int
        Number D of real coordinates per class: D / 2 frequencies, a cosine and a sine each.
    noise_multiplier : float
        Noise standard deviation divided by the sensitivity, 0 for no noise. It is 3.73 at
        epsilon = 1, delta = 1e-5.
    n_rows : int
        Number m of private rows.
    n_classes : int, default=1
        Number of labels C. The noise has C D coordinates.
    tight : bool, default=True
        False gives Proposition 3.1 of DP-MERF (Harder, Adamczewski, Park 2021,
        arXiv 2002.11603), True the sharper form derived below.

    Returns
    -------
    MMDErrorBound
        The terms ``noise``, ``cross``, ``features`` and their sum ``total``.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    Write a and b for the random-feature mean embeddings of the rows and of the generator, in
    R^(CD), and s for the noise multiplier. The noise is N ~ N(0, t^2 I) with t = 2 s / m. Then

    .. math:: \|a + N - b\|^2 - MMD^2
              = \|N\|^2 + 2 \langle N, a - b \rangle + (\|a - b\|^2 - MMD^2),

    and the triangle inequality bounds the expected error term by term.

    *Noise.* :math:`E \|N\|^2 = C D t^2 = 4 C D s^2 / m^2`, exactly. Being known it can be
    subtracted, as the loss curves of this package do.

    *Cross.* :math:`\|a - b\| \le 2`. The paper uses Cauchy-Schwarz,
    :math:`2 \|N\| \|a - b\|`, and the mean of a chi variable with k = C D degrees of freedom,
    :math:`E \|N\| = t \sqrt 2\, \Gamma((k+1)/2) / \Gamma(k/2)`. The bound
    :math:`(8 \sqrt 2 s / m)\, \Gamma((k+1)/2) / \Gamma(k/2)` grows like :math:`\sqrt k`. But
    given the frequencies, :math:`\langle N, a - b \rangle` is one Gaussian of standard deviation
    :math:`t \|a - b\|`, so :math:`E |2 \langle N, a - b \rangle| = 2 t \|a - b\| \sqrt{2/\pi}
    \le (8 s / m) \sqrt{2/\pi}`: smaller by :math:`\sqrt{k \pi / 2}`, which is 125 at k = 10,000,
    and attained when :math:`\|a - b\| = 2`.

    *Features.* :math:`\|a - b\|^2` is the average over D / 2 independent frequencies of
    :math:`\sum_c |a_c(w) - b_c(w)|^2`, where :math:`a_c(w)` is the mean of
    :math:`e^{iwx} [y = c]`. As :math:`\sum_c |a_c(w)| \le 1`, each of these lies in [0, 4], and
    their expectation is :math:`MMD^2`. The paper's term follows from the concentration
    :math:`P(|error| > u) \le 2 \exp(-D u^2 / 128)` of a bounded difference argument: integrating
    the tail over u gives :math:`8 \sqrt{2 \pi / D}`. A variable in [0, 4] has variance at most 4,
    so the average has variance at most 8 / D, and by Jensen
    :math:`E |error| \le \sqrt{8 / D}`: 7 times smaller.

    Examples
    --------
    >>> bound = mmd_error_bound(10_000, 3.73, 60_000)
    >>> round(bound.cross, 6), round(bound.features, 4)
    (0.000397, 0.0283)
    >>> paper = mmd_error_bound(10_000, 3.73, 60_000, tight=False)
    >>> round(paper.cross / bound.cross), round(paper.features / bound.features, 1)
    (125, 7.1)
    """
    for name, value in (("n_features", n_features), ("n_rows", n_rows), ("n_classes", n_classes)):
        if not value >= 1:
            raise InputError(f"{name} must be at least 1; got {value!r}.")
    if not 0 <= noise_multiplier < math.inf:
        raise InputError(
            f"noise_multiplier must be a finite number, at least 0; got {noise_multiplier!r}."
        )
    dof = n_classes * n_features
    noise = 4 * dof * (noise_multiplier / n_rows) ** 2
    if tight:
        cross = 8 * noise_multiplier / n_rows * math.sqrt(2 / math.pi)
        features = math.sqrt(8 / n_features)
    else:
        # poch(a, 1/2) = Gamma(a + 1/2) / Gamma(a) without the overflow of either.
        cross = 8 * math.sqrt(2) * noise_multiplier / n_rows * float(poch(dof / 2, 0.5))
        features = 8 * math.sqrt(2 * math.pi / n_features)
    return MMDErrorBound(noise=noise, cross=cross, features=features)
