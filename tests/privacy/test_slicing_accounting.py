"""The exact profile against 40-digit arithmetic, sampling, autodp and the paper's bounds."""

import math
import sys
import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdpgen.exceptions import PrivacyParameterError
from skdpgen.privacy._autodp import slicing_autodp_mechanism
from skdpgen.privacy.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    noise_multiplier,
)
from skdpgen.privacy.slicing_accounting import (
    frame_sensitivity,
    proposition_3_noise_stddev,
    slicing_delta,
    slicing_epsilon,
    slicing_noise_stddev,
    slicing_renyi,
    theorem_1_noise_stddev,
)

# Directions, and noise at epsilon 0.2, 1 and 5; dimension 50, delta 1e-5.
TABLE = {
    50: ("17.03", "3.949", "0.9642"),
    200: ("32.99", "7.578", "1.824"),
    1000: ("73.09", "16.74", "4.007"),
}
CELLS = [
    (m, epsilon, noise)
    for m, row in TABLE.items()
    for epsilon, noise in zip((0.2, 1.0, 5.0), row, strict=True)
]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def exact_delta(epsilon, noise, m, d, diameter=1.0, gaussian_mu=0.0, value_step=0.0):
    """The mean over the chi distribution by tanh-sinh quadrature, in another variable (the root
    of W), with the Gaussian profile term by term in 40 digits."""
    with mpmath.workdps(40):
        epsilon, noise, diameter, gaussian_mu, value_step = map(
            mpmath.mpf, (epsilon, noise, diameter, gaussian_mu, value_step)
        )
        log_norm = (mpmath.mpf(m) / 2 - 1) * mpmath.log(2) + mpmath.loggamma(mpmath.mpf(m) / 2)

        def phi(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        def integrand(root):
            if root == 0:
                return mpmath.mpf(0)
            shift = diameter * root / mpmath.sqrt(d) + mpmath.sqrt(m) * value_step
            mu = mpmath.sqrt((shift / noise) ** 2 + gaussian_mu**2)
            profile = phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
            return mpmath.exp((m - 1) * mpmath.log(root) - root**2 / 2 - log_norm) * profile

        low, high = max(0.0, math.sqrt(m) - 30), math.sqrt(m) + 30
        scan = np.linspace(low + 1e-3, high, 60)
        logs = [float(mpmath.log(integrand(mpmath.mpf(x)))) for x in scan]
        peak, scale = scan[np.argmax(logs)], mpmath.exp(max(logs))
        around = peak + 2.0 * np.arange(-10, 11)
        points = sorted({low, high, *around[(around > low) & (around < high)].tolist()})
        # Scaled, for the quadrature ends at an absolute error.
        points = [mpmath.mpf(x) for x in points]
        return scale * mpmath.quad(lambda x: integrand(x) / scale, points, maxdegree=5)


@pytest.mark.parametrize(("m", "epsilon", "noise"), CELLS)
def test_known_noise(m, epsilon, noise):
    stddev = slicing_noise_stddev(epsilon, 1e-5, n_directions=m, dimension=50)
    assert f"{stddev:.4g}" == noise


@pytest.mark.parametrize(
    ("epsilon", "delta", "m", "d", "others"),
    [
        (1.0, 1e-5, 50, 50, {}),
        (0.01, 1e-12, 1, 50, {}),
        (0.01, 1e-5, 100_000, 50, {}),
        (1.0, 1e-12, 1000, 50, {}),
        (100.0, 1e-12, 1, 3, {}),
        (100.0, 1e-12, 50, 50, {}),
        (5.0, 1e-2, 63, 10, {}),
        (5.0, 1e-9, 64, 10, {"diameter": 2.5}),
        (1.0, 1e-12, 2, 10, {"gaussian_mu": 0.05}),
        (1.0, 1e-5, 200, 50, {"gaussian_mu": 0.2, "value_step": 0.01, "diameter": 0.5}),
    ],
)
def test_the_profile_against_40_digits(epsilon, delta, m, d, others):
    noise = slicing_noise_stddev(epsilon, delta, n_directions=m, dimension=d, **others)
    exact = exact_delta(epsilon, noise, m, d, **others)
    ours = slicing_delta(epsilon, noise, n_directions=m, dimension=d, **others)
    assert ours == pytest.approx(float(exact), rel=1e-11, abs=0)
    # The calibrated noise is safe in exact arithmetic, and hardly more than needed.
    assert exact <= delta
    less = noise * (1 - 1e-6)
    assert slicing_delta(epsilon, less, n_directions=m, dimension=d, **others) > delta


@pytest.mark.parametrize(
    ("epsilon", "noise", "m", "others"),
    [
        (0.0, 3.0, 50, {}),  # total variation distance
        (0.0, 1e7, 1, {}),  # tiny mu: erfcx without digits
        (1e-6, 3e5, 50, {"gaussian_mu": 1e-7}),
        (0.5, 1e6, 20, {"gaussian_mu": 0.3}),  # two scales, one peak
        (3e4, 0.005, 1, {}),  # a step, narrow compared with the chi-square
        (1.0, 1e-3, 5, {}),  # almost no noise
        (5.0, 0.25, 40, {}),  # far from calibrated: delta near 0.98
        (1.0, 40.0, 50, {}),  # and 1e-97
    ],
)
def test_the_profile_at_the_ends(epsilon, noise, m, others):
    ours = slicing_delta(epsilon, noise, n_directions=m, dimension=50, **others)
    exact = exact_delta(epsilon, noise, m, 50, **others)
    assert ours == pytest.approx(float(exact), rel=1e-9, abs=0)


def test_against_sampling():
    # The hockey-stick divergence of the joint law of (U, output) itself, from its definition and
    # with rows of a real table: nothing of the derivation (chi-square, erfc) enters. The standard
    # error is that of the mean; 5 of them are crossed by a right implementation in 6e-7 of seeds.
    rng = np.random.default_rng(20240607)
    m, d, noise, epsilon, n = 6, 4, 1.5, 0.5, 400_000
    change = np.array([0.1, -0.7, 0.5, 0.5])
    change /= np.linalg.norm(change)
    for sign in (1, -1):  # both directions
        shift = sign * np.einsum("d,ndm->nm", change, rng.normal(0, d**-0.5, (n, d, m)))
        output = shift + rng.normal(0, noise, (n, m))  # from p; q has mean 0
        log_ratio = ((output**2).sum(1) - ((output - shift) ** 2).sum(1)) / (2 * noise**2)
        # E_p (1 - e^epsilon q / p)_+
        values = np.maximum(0, 1 - np.exp(epsilon - log_ratio))
        error = values.std() / math.sqrt(n)
        delta = slicing_delta(epsilon, noise, n_directions=m, dimension=d)
        assert error < 0.005 * delta
        assert abs(values.mean() - delta) < 5 * error


def test_monotone():
    base = {"n_directions": 20, "dimension": 10}

    def strictly(values, sign):
        assert (sign * np.diff(values) > 0).all()

    strictly([slicing_delta(e, 2.0, **base) for e in (0, 0.01, 0.5, 1, 5, 30)], -1)
    strictly([slicing_delta(1.0, s, **base) for s in (0.2, 1, 2, 2.001, 5)], -1)
    strictly([slicing_delta(1.0, 2.0, n_directions=m, dimension=10) for m in range(1, 90)], 1)
    strictly([slicing_delta(1.0, 2.0, n_directions=20, dimension=d) for d in (1, 2, 10, 50)], -1)
    for name in ("diameter", "gaussian_mu", "value_step"):
        steps = [slicing_delta(1.0, 2.0, **base, **{name: x}) for x in (0.1, 0.2, 0.5, 1.0)]
        strictly(steps, 1)


def test_many_directions_are_a_gaussian():
    # W / m tends to 1, so the mean tends to the profile at mu = diameter sqrt(m / d) / noise.
    target = gaussian_delta(1.0, 0.5 / 2.0)
    gaps = [
        slicing_delta(1.0, 2.0, n_directions=4**k, dimension=4 ** (k + 1)) / target - 1
        for k in (3, 5, 7, 9, 11)
    ]
    # The first correction is of order 1 / m: a quarter per step of one, a sixteenth per two.
    assert all(gap > 0 for gap in gaps)
    assert np.array(gaps[2:]) / gaps[1:-1] == pytest.approx(1 / 16, rel=0.02)
    assert gaps[-1] < 1e-4


def test_a_gaussian_beside_it():
    # Without slices' help it is the Gaussian, and with both more than either.
    kwargs = {"n_directions": 50, "dimension": 50}
    alone = slicing_delta(1.0, 1e9, gaussian_mu=0.25, **kwargs)
    assert alone == pytest.approx(gaussian_delta(1.0, 0.25), rel=1e-9)
    # Directions without spread would give the sum of squares: the slices are close to that.
    both = slicing_epsilon(1e-5, 100.0, n_directions=10**6, dimension=100, gaussian_mu=0.7)
    assert both == pytest.approx(gaussian_epsilon(1e-5, math.hypot(1.0, 0.7)), rel=1e-3)
    # The composition by sampling W: mean of the profile of the two-part shift. The rate of a
    # false alarm at 5 standard errors is 6e-7.
    w = stats.chi2(3).rvs(200_000, random_state=1)
    profile = np.array([gaussian_delta(1.0, math.hypot(math.sqrt(x / 7) / 2, 0.5)) for x in w])
    ours = slicing_delta(1.0, 2.0, n_directions=3, dimension=7, gaussian_mu=0.5)
    assert abs(profile.mean() - ours) < 5 * profile.std() / math.sqrt(w.size)


def test_two_releases_of_equal_scale_add_their_directions():
    # Independently: the two conditional Gaussians have mu_1^2 + mu_2^2, a double mean over two
    # chi-squares, by Gauss-Laguerre quadrature (the density of W / 2 is x^(m/2 - 1) e^-x).
    m, d, noise, epsilon = 6, 5, 2.0, 1.0
    nodes, weights = np.polynomial.laguerre.laggauss(60)
    weights = weights * nodes ** (m / 2 - 1) / math.gamma(m / 2)
    total = sum(
        u * v * gaussian_delta(epsilon, math.hypot(math.sqrt(x), math.sqrt(y)))
        for u, x in zip(weights, 2 * nodes / d / noise**2, strict=True)
        for v, y in zip(weights, 2 * nodes / d / noise**2, strict=True)
    )
    ours = slicing_delta(epsilon, noise, n_directions=2 * m, dimension=d)
    assert ours == pytest.approx(total, rel=1e-8)
    assert ours > 1.2 * slicing_delta(epsilon, noise, n_directions=m, dimension=d)
    order = 1.5
    twice = 2 * slicing_renyi(order, noise, n_directions=m, dimension=d)
    once = slicing_renyi(order, noise, n_directions=2 * m, dimension=d)
    assert once == pytest.approx(twice, rel=1e-14)


@pytest.mark.parametrize("value_step", [0.0, 0.003, 0.2])
@pytest.mark.parametrize("gaussian_mu", [0.0, 0.4])
@pytest.mark.parametrize("alpha", [1.0, 1.0 + 1e-9, 1.7, 5.0])
def test_renyi_against_quadrature(alpha, gaussian_mu, value_step):
    m, d, noise, diameter = 12, 20, 1.9, 0.8
    others = {"diameter": diameter, "gaussian_mu": gaussian_mu, "value_step": value_step}
    ours = slicing_renyi(alpha, noise, n_directions=m, dimension=d, **others)
    with mpmath.workdps(40):
        alpha = mpmath.mpf(alpha)

        def mu_squared(w):
            shift = diameter * mpmath.sqrt(w / d) + mpmath.sqrt(m) * mpmath.mpf(value_step)
            return (shift / mpmath.mpf(noise)) ** 2 + mpmath.mpf(gaussian_mu) ** 2

        def mean(f):
            norm = mpmath.mpf(2) ** (m / 2) * mpmath.gamma(m / 2)
            return mpmath.quad(
                lambda w: w ** (m / 2 - 1) * mpmath.exp(-w / 2) / norm * f(w),
                [0, 5, 10, 20, 50, 100, 300, 1000],
            )

        if alpha == 1:
            exact = mean(mu_squared) / 2
        else:
            moment = mean(lambda w: mpmath.exp(alpha * (alpha - 1) / 2 * mu_squared(w)))
            exact = mpmath.log(moment) / (alpha - 1)
    if value_step == 0:
        assert ours == pytest.approx(float(exact), rel=1e-9)
    else:
        assert exact <= ours < 1.3 * exact


def test_renyi_ends_where_the_moment_does():
    kwargs = {"n_directions": 10, "dimension": 6, "diameter": 2.0}
    # alpha (alpha - 1) diameter^2 = dimension noise^2 at alpha = 3, noise = 2.
    assert slicing_renyi(2.999, 2.0, **kwargs) < 30
    assert slicing_renyi(3.0, 2.0, **kwargs) == math.inf
    assert slicing_renyi(1e100, 2.0, **kwargs) == math.inf
    assert slicing_renyi(1.0, 1e-300, **kwargs) == math.inf
    assert slicing_renyi(1.0, 0.0, **kwargs) == math.inf
    assert slicing_renyi(2.0, 10.0, gaussian_mu=math.inf, **kwargs) == math.inf


@pytest.mark.parametrize(("m", "epsilon", "noise"), CELLS)
def test_the_papers_bounds_need_more_noise(m, epsilon, noise):
    ours = slicing_noise_stddev(epsilon, 1e-5, n_directions=m, dimension=50)
    first = theorem_1_noise_stddev(epsilon, 1e-5, n_directions=m, dimension=50)
    third = proposition_3_noise_stddev(epsilon, 1e-5, n_directions=m)
    assert 1.19 < first / ours < 1.66
    assert 7.7 < third / ours < 10.5
    # They are Renyi bounds of their own noise: the conversion must hold for the exact profile.
    for stddev in (first, third):
        assert slicing_delta(epsilon, stddev, n_directions=m, dimension=50) < 0.5e-5


@pytest.mark.parametrize("dimension", [6, 10, 20, 100])
@pytest.mark.parametrize("m", [1, 10, 1000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-5), (20.0, 1e-6)])
def test_the_papers_bounds_elsewhere(epsilon, delta, m, dimension):
    kwargs = {"n_directions": m, "diameter": 3.0}
    ours = slicing_noise_stddev(epsilon, delta, dimension=dimension, **kwargs)
    assert theorem_1_noise_stddev(epsilon, delta, dimension=dimension, **kwargs) > 1.05 * ours
    if m >= dimension:  # else few directions may be longer than 1, which the bound rules out
        assert proposition_3_noise_stddev(epsilon, delta, **kwargs) > 1.8 * ours


def test_the_best_orders_of_the_papers_bounds():
    # Closed form of the plain Gaussian conversion: eps = rho + 2 sqrt(rho log(1 / delta)).
    log_term = math.log(1e5)
    rho = (math.sqrt(log_term + 1.0) - math.sqrt(log_term)) ** 2
    stddev = proposition_3_noise_stddev(1.0, 1e-5, n_directions=50, diameter=2.0)
    assert stddev == pytest.approx(2 * math.sqrt(50 / 2 / rho), rel=1e-5)


def test_tight_frames():
    assert frame_sensitivity(50, 50) == 1.0
    assert frame_sensitivity(200, 50, diameter=3.0) == 6.0
    rng = np.random.default_rng(0)
    frame = np.hstack([np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(3)])
    stretch = np.linalg.svd(frame, compute_uv=False)
    assert stretch == pytest.approx(np.full(5, frame_sensitivity(15, 5)), rel=1e-12)
    # Without the spread of W it needs less noise than random directions do.
    assert noise_multiplier(1.0, 1e-5) < slicing_noise_stddev(
        1.0, 1e-5, n_directions=50, dimension=50
    )
    with pytest.raises(PrivacyParameterError, match="not a multiple of dimension=50"):
        frame_sensitivity(75, 50)


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-100])
@pytest.mark.parametrize(("noise", "m"), [(0.01, 1), (0.5, 3), (4.0, 50), (3.0, 1000)])
def test_epsilon_inverts_from_the_safe_side(noise, m, delta):
    kwargs = {"n_directions": m, "dimension": 50}
    epsilon = slicing_epsilon(delta, noise, **kwargs)
    assert slicing_delta(epsilon, noise, **kwargs) <= delta
    if epsilon > 0:
        assert slicing_delta(epsilon * (1 - 1e-6), noise, **kwargs) > delta


def test_epsilon_at_the_ends():
    kwargs = {"n_directions": 50, "dimension": 50}
    assert slicing_epsilon(0.9, 1.0, **kwargs) == 0.0
    assert slicing_epsilon(1e-5, 0.0, **kwargs) == math.inf
    assert slicing_epsilon(1e-5, 1e-3, **kwargs) == math.inf
    assert slicing_epsilon(1e-5, 1e-320, **kwargs) == math.inf
    assert slicing_epsilon(1e-5, 4.0, gaussian_mu=math.inf, **kwargs) == math.inf
    assert 9e4 < slicing_epsilon(1e-5, 0.0033, **kwargs) < 1e5
    assert slicing_delta(1.0, 0.0, **kwargs) == 1.0
    assert slicing_delta(1.0, 5e-324, **kwargs) == 1.0
    assert slicing_delta(0.0, 1e100, **kwargs) == pytest.approx(3.97e-101, rel=1e-2)
    assert slicing_delta(1e-3, 1e100, **kwargs) == 0.0


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 100.0, 500.0])
@pytest.mark.parametrize("delta", [0.999, 1e-5, 1e-12, 1e-200])
@pytest.mark.parametrize("m", [1, 100, 10**9])
def test_calibration_over_the_whole_range(epsilon, delta, m):
    kwargs = {"n_directions": m, "dimension": 7, "diameter": 1e-3}
    noise = slicing_noise_stddev(epsilon, delta, **kwargs)
    assert slicing_delta(epsilon, noise, **kwargs) * (1 + 1e-8) <= delta
    assert slicing_delta(epsilon, noise * (1 - 1e-5), **kwargs) * (1 + 1e-8) > delta


@pytest.mark.parametrize("share", [0.5, 0.999, 1 - 1e-7])
def test_calibration_beside_a_gaussian(share):
    kwargs = {"n_directions": 50, "dimension": 50}
    mu = share / noise_multiplier(1.0, 1e-5)
    noise = slicing_noise_stddev(1.0, 1e-5, gaussian_mu=mu, **kwargs)
    assert noise > 1 / math.sqrt(1 - share**2)
    assert slicing_delta(1.0, noise, gaussian_mu=mu, **kwargs) * (1 + 1e-8) <= 1e-5


@pytest.mark.parametrize("share", [1.0001, 2.0, math.inf])
def test_a_gaussian_that_takes_all(share):
    mu = share / noise_multiplier(1.0, 1e-5)
    with pytest.raises(PrivacyParameterError, match="gaussian_mu alone exceeds epsilon=1, delta"):
        slicing_noise_stddev(1.0, 1e-5, n_directions=50, dimension=50, gaussian_mu=mu)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("n_directions", value) for value in (0, -1, 1.5, 10**400, math.nan, True, "1", None)],
        *[("dimension", value) for value in (0, 2.5, np.inf, False)],
        *[("diameter", value) for value in (0, -1.0, 1e101, math.nan, None)],
        *[("gaussian_mu", value) for value in (-1e-9, math.nan, "0")],
        *[("value_step", value) for value in (-1.0, math.inf, 1j)],
    ],
)
def test_wrong_mechanisms(name, value):
    kwargs = {"n_directions": 5, "dimension": 5, name: value}
    for function in (slicing_delta, slicing_noise_stddev, slicing_renyi):
        with pytest.raises(PrivacyParameterError, match=name):
            function(1.0, 1e-5, **kwargs)
    with pytest.raises(PrivacyParameterError, match=name):
        slicing_epsilon(1e-5, 1.0, **kwargs)
    if name in ("n_directions", "dimension", "diameter"):
        with pytest.raises(PrivacyParameterError, match=name):
            frame_sensitivity(**kwargs)
        with pytest.raises(PrivacyParameterError, match=name):
            theorem_1_noise_stddev(1.0, 1e-5, **kwargs)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, None, True])
def test_wrong_arguments(value):
    kwargs = {"n_directions": 5, "dimension": 5}
    with pytest.raises(PrivacyParameterError, match="epsilon"):
        slicing_delta(value, 1.0, **kwargs)
    with pytest.raises(PrivacyParameterError, match="noise_stddev"):
        slicing_delta(1.0, value, **kwargs)
    with pytest.raises(PrivacyParameterError, match="delta"):
        slicing_epsilon(value, 1.0, **kwargs)
    with pytest.raises(PrivacyParameterError, match="noise_stddev"):
        slicing_epsilon(1e-5, value, **kwargs)
    with pytest.raises(PrivacyParameterError, match="epsilon"):
        slicing_noise_stddev(value, 1e-5, **kwargs)
    with pytest.raises(PrivacyParameterError, match="delta"):
        slicing_noise_stddev(1.0, value, **kwargs)
    with pytest.raises(PrivacyParameterError, match="alpha"):
        slicing_renyi(value, 1.0, **kwargs)
    with pytest.raises(PrivacyParameterError, match="noise_stddev"):
        slicing_renyi(2.0, value, **kwargs)
    with pytest.raises(PrivacyParameterError, match="epsilon"):
        proposition_3_noise_stddev(value, 1e-5, n_directions=5)


@pytest.mark.parametrize(("m", "epsilon", "noise"), CELLS)
def test_autodp_agrees(m, epsilon, noise):
    from autodp import mechanism_zoo, transformer_zoo

    stddev, kwargs = float(noise), {"n_directions": m, "dimension": 50}
    mechanism = slicing_autodp_mechanism(stddev, m, 50)
    exact = slicing_epsilon(1e-5, stddev, **kwargs)
    assert exact == pytest.approx(epsilon, rel=1e-3)
    assert mechanism.get_approxDP(1e-5) == exact
    assert mechanism.get_eps(1e-5) == exact
    assert mechanism.get_approx_delta(epsilon) == slicing_delta(epsilon, stddev, **kwargs)
    assert mechanism.get_RDP(1.5) == slicing_renyi(1.5, stddev, **kwargs)
    assert mechanism.neighboring == "replace_one"
    # Its composition goes through the Renyi curve: a bound on the exact values, not a bad one.
    compose = transformer_zoo.Composition()
    warnings.simplefilter("ignore", RuntimeWarning)  # its search meets the infinite orders
    gaussian = mechanism_zoo.ExactGaussianMechanism(4.0)
    for mechanisms, counts, expected in [
        ([mechanism], [1], exact),
        ([mechanism], [3], slicing_epsilon(1e-5, stddev, n_directions=3 * m, dimension=50)),
        ([mechanism, gaussian], [1, 1], slicing_epsilon(1e-5, stddev, gaussian_mu=0.25, **kwargs)),
    ]:
        bound = compose(mechanisms, counts).get_approxDP(1e-5)
        assert expected < bound < 1.2 * expected


def test_autodp_at_the_ends():
    from autodp import mechanism_zoo, transformer_zoo

    mechanism = slicing_autodp_mechanism(4.0, 50, 50, diameter=2.0, name="Rows")
    assert mechanism.name == "Rows"
    assert mechanism.get_approxDP(0) == math.inf
    assert mechanism.get_approxDP(1) == 0.0
    # f-DP is the dual of the profile: the tangent at epsilon gives a point on it.
    epsilon, rate = 1.0, 0.05
    delta = slicing_delta(epsilon, 4.0, n_directions=50, dimension=50, diameter=2.0)
    assert mechanism.get_fDP(rate) >= 1 - delta - math.exp(epsilon) * rate - 1e-6
    kl = slicing_renyi(1.0, 4.0, n_directions=50, dimension=50, diameter=2.0)
    assert mechanism.get_RDP(0.5) == mechanism.get_RDP(1) == kl
    gaussian = mechanism_zoo.ExactGaussianMechanism(4.0)
    with pytest.raises(AssertionError):  # it isn't a Gaussian, and autodp doesn't take it for one
        transformer_zoo.ComposeGaussian()([mechanism, gaussian], [1, 1])


def test_autodp_calibrates():
    from autodp import calibrator_zoo

    calibrate = calibrator_zoo.eps_delta_calibrator()
    found = calibrate(lambda s: slicing_autodp_mechanism(s, 200, 50), 1.0, 1e-5, [5.0, 10.0])
    exact = slicing_noise_stddev(1.0, 1e-5, n_directions=200, dimension=50)
    assert found.params["noise_stddev"] == pytest.approx(exact, rel=1e-3)


def test_autodp_is_imported_late():
    import subprocess

    code = "import sys, skdpgen.privacy.slicing_accounting; assert 'autodp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
