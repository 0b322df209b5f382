import json

import opendp.measurements
import pandas as pd
import pytest

from skdpgen import DPMERFSynthesizer, GaussianFeatures
from skdpgen.datasets import make_gaussian_grid
from skdpgen.evaluation import privacy_check


@pytest.fixture(scope="module")
def tables():
    real, schema = make_gaussian_grid(200, random_state=0)
    fresh, _ = make_gaussian_grid(100, random_state=1)
    return fresh, real[:100], real[100:], schema


def test_a_synthetic_table_alone_is_checked_for_copies(tables):
    fresh, train, held_out, schema = tables
    check = privacy_check(fresh, train, held_out, schema=schema)
    assert (check.alarms, check.audit, check.membership) == ((), None, None)
    assert "No fault was found." in check.summary()
    copied = privacy_check(train, train, held_out, schema=schema)
    assert copied.alarms == ("copies",)
    assert "FAULTS FOUND: copies" in copied.summary()
    both = pd.concat([train, held_out])
    repeating = privacy_check(both, train, held_out, schema=schema)
    assert repeating.alarms == ()
    assert "No fault was found." not in repeating.summary()
    assert "many rows equal real ones" in repeating.summary()
    unjudged = privacy_check(train, train, schema=schema)
    assert unjudged.alarms == ()
    assert "Copying was not judged" in unjudged.summary()


def test_with_the_synthesizer_all_three_run(tables):
    fresh, train, held_out, schema = tables
    synthesizer = DPMERFSynthesizer(
        1.0, 1e-5, schema=schema, features=GaussianFeatures(20), n_steps=2, random_state=0
    ).fit(train)
    before = synthesizer.ledger_.entries
    check = privacy_check(fresh, train, held_out, synthesizer=synthesizer, n_runs=20, n_shadows=10)
    assert check.audit.epsilon_lower < 5
    assert synthesizer.ledger_.entries == before
    assert "(1, 1e-05)-differentially private" in check.promise
    plain = json.loads(json.dumps(check.to_dict(), allow_nan=False))
    assert plain["audit"]["epsilon"] == 1.0
    assert plain["membership"]["shadow"]["fits"] == 60
    assert "no epsilon" in plain["reads"]
    assert [line.partition(":")[0] for line in check.summary().splitlines()][:4] == [
        "Promise",
        "Copies",
        "Audit",
        "Membership",
    ]
    assert "can show that a table is private" in str(check)


def test_a_fault_of_the_synthesizer_is_an_alarm(tables, monkeypatch):
    fresh, train, held_out, schema = tables
    make = opendp.measurements.make_gaussian

    class Liar:
        def __init__(self, domain, metric, scale):
            self.map = make(domain, metric, scale=scale).map
            self.sample = make(domain, metric, scale=scale / 50)

        def __call__(self, values):
            return self.sample(values)

    monkeypatch.setattr(opendp.measurements, "make_gaussian", Liar)
    synthesizer = DPMERFSynthesizer(1.0, 1e-5, schema=schema, features=GaussianFeatures(20))
    check = privacy_check(fresh, train, held_out, synthesizer=synthesizer, n_runs=20, n_shadows=20)
    assert check.alarms == ("audit", "membership")
    assert "once it is fitted" in check.promise
