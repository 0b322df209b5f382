"""The one place that imports autodp, the accountant.

autodp is imported inside the functions: importing skdpgen stays fast, and the order of autodp's
own imports is pinned here (``autodp.privacy_calibrator`` first would fail on a circular import,
and its ``gaussian_mech`` calibration is a Renyi bound, 31 % above the exact value at (1, 1e-5)).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autodp.autodp_core import Mechanism

__all__ = ["exact_gaussian_noise_multiplier", "slicing_autodp_mechanism"]


def exact_gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Noise multiplier of autodp's exact Gaussian mechanism for (epsilon, delta).

    The caller must confirm the result: it is accurate to about 1e-5 and may fall on either side
    of the target, and far outside the usual range autodp's search ends too early.
    """
    from autodp import calibrator_zoo, mechanism_zoo

    calibrate = calibrator_zoo.ana_gaussian_calibrator()
    mechanism = calibrate(mechanism_zoo.ExactGaussianMechanism, epsilon, delta)
    return float(mechanism.params["sigma"])


def slicing_autodp_mechanism(
    noise_stddev: float,
    n_directions: int,
    dimension: int,
    diameter: float = 1.0,
    name: str = "Slicing",
) -> Mechanism:
    """The slicing mechanism as an autodp ``Mechanism``, for its transformers and calibrators.

    Its epsilon, delta and f-DP functions come from the exact profile, its Renyi function is the
    exact curve. autodp's ``Composition`` uses the Renyi function only: an upper bound, 9 to 13 %
    above the exact epsilon in ordinary cases, ``inf`` where order 2 has no finite divergence. Its
    ``ComposeGaussian`` takes nothing but Gaussians; the exact way to add those is ``gaussian_mu``
    in :mod:`~skdpgen.privacy.slicing_accounting`. To calibrate, within 1e-3 in epsilon::

        calibrate = calibrator_zoo.eps_delta_calibrator()
        calibrate(lambda s: slicing_autodp_mechanism(s, 50, 50), 1.0, 1e-5, [1.0, 10.0])
    """
    from autodp import autodp_core

    from skdpgen.privacy.slicing_accounting import slicing_delta, slicing_epsilon, slicing_renyi

    def epsilon(delta: float) -> float:
        if not 1e-200 <= delta < 1:  # autodp also asks at the ends
            return math.inf if delta < 1 else 0.0
        return slicing_epsilon(
            delta, noise_stddev, n_directions=n_directions, dimension=dimension, diameter=diameter
        )

    def delta(epsilon: float) -> float:
        return slicing_delta(
            epsilon, noise_stddev, n_directions=n_directions, dimension=dimension, diameter=diameter
        )

    def renyi(alpha: float) -> float:
        # autodp's searches also try orders below 1; the divergence grows with the order.
        return slicing_renyi(
            max(float(alpha), 1.0),
            noise_stddev,
            n_directions=n_directions,
            dimension=dimension,
            diameter=diameter,
        )

    class SlicingMechanism(autodp_core.Mechanism):  # type: ignore[misc]  # autodp has no types
        def __init__(self) -> None:
            super().__init__()
            self.name = name
            self.params = {
                "noise_stddev": noise_stddev,
                "n_directions": n_directions,
                "dimension": dimension,
                "diameter": diameter,
            }
            self.neighboring = "replace_one"
            self.propagate_updates(epsilon, "approxDP_func")
            # Set, not propagated: autodp would convert to a worse epsilon and keep the smaller.
            self.approx_delta = delta
            self.RenyiDP = renyi

    return SlicingMechanism()
