"""Small tables with links between their columns, and what was released about them."""

from collections.abc import Callable
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skdpgen import DPMERFSynthesizer, InteractionFeatures, MixtureGenerator, PrivacyLedger, Schema
from skdpgen.reporting import Report, report

matplotlib.use("agg")


def table(n: int, seed: int) -> pd.DataFrame:
    """A label that depends on a number and a color."""
    rng = np.random.default_rng(seed)
    size = rng.gamma(2.0, 10.0, n).clip(0, 100).round(1)
    color = np.where(rng.random(n) < 0.2 + size / 150, "red", rng.choice(["green", "blue"], n))
    sold = np.where(rng.random(n) < 1 / (1 + np.exp(2 - size / 10)), "yes", "no")
    note = pd.Series(rng.choice(["a", "b"], n)).mask(rng.random(n) < 0.1)
    return pd.DataFrame({"size": size, "color": color, "note": note, "sold": sold})


SCHEMA = Schema.from_dict(
    {
        "target": "sold",
        "columns": {
            "size": {"kind": "numeric", "bounds": [0, 100]},
            "color": {"kind": "categorical", "values": ["red", "green", "blue"]},
            "note": {"kind": "categorical", "values": ["a", "b"], "missing": True},
            "sold": {"kind": "label", "values": ["no", "yes"]},
        },
    }
)


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    """The same columns without their links."""
    rng = np.random.default_rng(7)
    return pd.DataFrame({c: frame[c].to_numpy()[rng.permutation(len(frame))] for c in frame})


@pytest.fixture(scope="session")
def shop() -> SimpleNamespace:
    """Private rows, held-out rows, a release from a ledger with a cap; and two synthetic tables.

    The good one is a fresh sample, so what is said of it doesn't depend on how well a generator was
    trained.
    """
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)
    real = table(1500, 0)
    synth = DPMERFSynthesizer(
        1.0,
        1e-5,
        schema=SCHEMA,
        ledger=ledger,
        features=InteractionFeatures(200, n_bins=16),
        generator=MixtureGenerator(16),
        n_steps=2,
        random_state=0,
    ).fit(real)
    return SimpleNamespace(
        real=real,
        test=table(1000, 1),
        good=table(1500, 2),
        bad=shuffled(table(1500, 2)),
        schema=SCHEMA,
        release=synth.release_,
        ledger=ledger,
        estimators={"logistic regression": LogisticRegression(max_iter=200)},
    )


@pytest.fixture(scope="session")
def page_of(shop) -> Callable[..., Report]:
    """Make a page with everything that there is, but for what is changed."""

    def page_of(synthetic: pd.DataFrame, **changes) -> Report:
        given = {
            "release": shop.release,
            "ledger": shop.ledger,
            "real": shop.real,
            "test": shop.test,
            "estimators": shop.estimators,
            "title": "Shop",
        }
        return report(synthetic, **{**given, **changes})

    return page_of


@pytest.fixture(scope="session")
def good_page(shop, page_of):
    return page_of(shop.good)


@pytest.fixture(scope="session")
def bad_page(shop, page_of):
    return page_of(shop.bad)


@pytest.fixture(scope="session")
def public_page(shop, page_of):
    return page_of(shop.good, publishable=True)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</svg></style></title><script>alert(2)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202eesrever\u05d0\u05d1",
    "\U0001f600 \U0001f469\u200d\U0001f4bb",
    "\x00\x07\ud800 control",
    "$\\frac{x}$",
    "&lt;b&gt; &amp;",
    "x" * 500,
]


@pytest.fixture(scope="session")
def hostile_page():
    """A page whose names, values and title try to be more than texts."""

    def frame(seed):
        rng = np.random.default_rng(seed)
        columns = {name: rng.choice(HOSTILE[:7], 120) for name in HOSTILE if "\ud800" not in name}
        columns["\x00\x07 control"] = rng.choice(["a\x00", "b\x1b[31m", "c"], 120)
        return pd.DataFrame(columns)

    real = frame(0)
    return report(
        frame(1),
        real=real,
        test=frame(2),
        target=HOSTILE[0],
        estimators={"logistic regression": LogisticRegression(max_iter=200)},
        title="".join(HOSTILE[:5]),
    )
