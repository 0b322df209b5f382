"""The one place that imports autodp, the accountant.

autodp is imported inside the function: importing skdpgen stays fast, and the order of autodp's
own imports is pinned here (``autodp.privacy_calibrator`` first would fail on a circular import,
and its ``gaussian_mech`` calibration is a Renyi bound, 31 % above the exact value at (1, 1e-5)).
"""

from __future__ import annotations

__all__ = ["exact_gaussian_noise_multiplier"]


def exact_gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Noise multiplier of autodp's exact Gaussian mechanism for (epsilon, delta).

    The caller must confirm the result: it is accurate to about 1e-5 and may fall on either side
    of the target, and far outside the usual range autodp's search ends too early.
    """
    from autodp import calibrator_zoo, mechanism_zoo

    calibrate = calibrator_zoo.ana_gaussian_calibrator()
    mechanism = calibrate(mechanism_zoo.ExactGaussianMechanism, epsilon, delta)
    return float(mechanism.params["sigma"])
