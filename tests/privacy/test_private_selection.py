"""A private selection: charged once, one reserved spend a run, total stated by its release."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError, ReleaseError
from skdpgen.privacy.accounting import gaussian_delta, noise_multiplier
from skdpgen.privacy.batches import RowBatch
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.mechanisms import MeanEmbeddingMechanism
from skdpgen.privacy.noise import insecure_noise
from skdpgen.privacy.private_selection import ChargedSelection, PrivateSelection
from skdpgen.privacy.release import Release
from skdpgen.privacy.selection import Repetitions, selection_epsilon
from skdpgen.privacy.shares import ReservedSpend, nominal_mu, selection_beside
from skdpgen.privacy.spec import EmbeddingSpec

LAW = Repetitions.with_mean(5, 0.0)
PLAN = PrivateSelection(1.0, 1e-5, LAW, 0.1)
ENTRIES = PLAN.entries("replace-one", "row", 1)
SPEC = EmbeddingSpec(n_signed=3000, group_widths=(), n_classes=1, count_weight=0.0)


def mechanism(**changes):
    return MeanEmbeddingMechanism(
        SPEC, **{"epsilon": 1.0, "delta": 1e-5, "earlier": ENTRIES} | changes
    )


def rows():
    one = np.zeros((1, 3000), dtype=np.int64)
    yield RowBatch(one, np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64))


def run_release(charged_mechanism=None):
    charged = PLAN.charge(PrivacyLedger(1.0, 1e-5), ENTRIES)
    made = charged_mechanism or mechanism()
    return charged.best(lambda spend: (0.0, made.release(rows(), spend)))


# -- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_yardstick_and_runs_use_up_the_guarantee(epsilon, share):
    plan = PrivateSelection(epsilon, 1e-5, LAW, share)
    single = noise_multiplier(epsilon, 1e-5)
    assert plan.yardstick_multiplier == pytest.approx(single / math.sqrt(share), rel=1e-5)
    total = selection_epsilon(
        1e-5, 1 / plan.run_multiplier, LAW, gaussian_mu=1 / plan.yardstick_multiplier
    )
    assert 0.9999 * epsilon < total <= epsilon
    assert gaussian_delta(plan.yardstick_epsilon, 1 / plan.yardstick_multiplier) <= 1e-5


@pytest.mark.parametrize("share", [0.0, 1.0, -1, math.nan, "0.1", True])
def test_shares_out_of_range_are_refused(share):
    with pytest.raises(PrivacyParameterError, match="share"):
        PrivateSelection(1.0, 1e-5, LAW, share)


def test_the_smallest_delta_is_taken_as_it_is():
    plan = PrivateSelection(1.0, 1e-200, LAW, 0.1)
    assert plan.run_multiplier > plan.yardstick_multiplier / 10
    with pytest.raises(PrivacyParameterError, match="or raise epsilon or delta"):
        PrivateSelection(1e-6, 1e-5, LAW, 0.1)


def test_a_tiny_yardstick_is_still_a_release():
    plan = PrivateSelection(1.0, 1e-5, LAW, 1e-12)
    assert plan.yardstick_epsilon == 1e-6
    assert 1.7 < plan.run_multiplier / noise_multiplier(1.0, 1e-5) < 1.75


def test_both_are_charged_at_once_or_not_at_all():
    ledger = PrivacyLedger(1.0, 1e-5)
    PLAN.charge(ledger, ENTRIES)
    assert ledger.entries == ENTRIES
    with pytest.raises(BudgetExceededError):
        PLAN.charge(ledger, ENTRIES)
    assert len(ledger.entries) == 2
    alone = [PrivacyLedger() for _ in ENTRIES]
    for entry, ledger in zip(ENTRIES, alone, strict=True):
        ledger.charge(entry)
        assert ledger.spent(1e-5) == pytest.approx(entry.epsilon, rel=1e-6)


def test_insecure_noise_is_written_into_the_entries():
    with insecure_noise(0):
        entries = PLAN.entries("replace-one", "row", 1)
    assert not any(entry.private for entry in entries)
    assert {entry.epsilon for entry in entries} == {math.inf}


# -- the runs ------------------------------------------------------------------------------------


def test_a_selection_is_made_once(monkeypatch):
    monkeypatch.setattr(Repetitions, "draw", lambda self: 4)
    ledger = PrivacyLedger()
    charged = PLAN.charge(ledger, ENTRIES)
    spends = []
    assert charged.best(lambda spend: (spends.append(spend) or -len(spends), len(spends))) == 4
    assert len(set(map(id, spends))) == 4
    assert ledger.entries == ENTRIES
    with pytest.raises(BudgetExceededError, match="was made"):
        charged.best(lambda spend: (0.0, None))


def test_copies_are_the_same_selection():
    charged = PLAN.charge(PrivacyLedger(), ENTRIES)
    copies = copy.copy(charged), copy.deepcopy(charged)
    charged.best(lambda spend: (0.0, None))
    for copied in copies:
        with pytest.raises(BudgetExceededError, match="was made"):
            copied.best(lambda spend: (0.0, None))
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(charged)


def test_a_run_makes_one_release_with_the_noise_that_was_charged():
    charged = ChargedSelection(*ENTRIES)

    def greedy(spend):
        mechanism().release(rows(), spend)
        return 0.0, mechanism().release(rows(), spend)

    with pytest.raises(BudgetExceededError, match="isn't the one"):
        charged.best(greedy)
    # Less noise than that of a run: half of it would do for a single release of epsilon = 1.
    with pytest.raises(BudgetExceededError, match="isn't the one"):
        run_release(mechanism(earlier=()))


def test_a_selection_is_not_covered_by_a_reserve():
    with pytest.raises(BudgetExceededError, match="isn't the one"):
        ReservedSpend(ENTRIES[0]).charge(ENTRIES[0])


def test_the_noise_of_a_run_is_the_calibrated_one():
    # 3000 coordinates of one table of zeros, chi-square at a false-alarm rate of 1e-6: halved
    # noise would give a quarter.
    made = mechanism()
    assert made.noise_stddev == pytest.approx(
        PLAN.run_multiplier * math.sqrt(made.sensitivity_squared), rel=1e-9
    )
    assert 1.9 < PLAN.run_multiplier / noise_multiplier(1.0, 1e-5) < 2.0
    release = run_release()
    statistic = np.square(release.noisy_sums / made.noise_stddev).sum()
    assert abs(statistic - 3000) < 4.9 * math.sqrt(2 * 3000) + 20


# -- what the release says -----------------------------------------------------------------------


def test_the_release_states_and_verifies_the_total(tmp_path):
    release = run_release()
    assert (release.epsilon, release.delta) == (1.0, 1e-5)
    assert "together with private selection and yardstick" in release.statement()
    # Its own noise would give less than half of that, which isn't the truth about it.
    own = nominal_mu(replace(ENTRIES[0], repetition_shape=0.0, repetition_gamma=0.0))
    assert gaussian_delta(0.5, own) < 1e-5
    assert 0.9999 < release.verify() <= 1.0
    # The selection's entry covers the published run, too.
    assert release.spends == release.earlier
    release.save(tmp_path / "a.release")
    again = Release.load(tmp_path / "a.release")
    assert again.earlier == ENTRIES
    assert again.verify() == release.verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.99},
        {"delta": 9e-6},
        {"earlier": (ENTRIES[0], ENTRIES[0])},
        {"earlier": (replace(ENTRIES[0], noise_stddev=2 * ENTRIES[0].noise_stddev), ENTRIES[1])},
        {"earlier": (ENTRIES[0], replace(ENTRIES[1], adjacency="add-remove"))},
        {"earlier": (replace(ENTRIES[0], unit="unit", rows_per_unit=2), ENTRIES[1])},
        {"earlier": (replace(ENTRIES[0], private=False), ENTRIES[1])},
        {"noise_stddev": run_release().noise_stddev * 0.999},
    ],
)
def test_a_release_that_promises_more_does_not_verify(changes):
    with pytest.raises(ReleaseError):
        replace(run_release(), **changes).verify()


def test_an_insecure_run_says_so():
    with insecure_noise(0):
        entries = PLAN.entries("replace-one", "row", 1)
        charged = PLAN.charge(PrivacyLedger(), entries)
        made = mechanism(earlier=entries)
        release = charged.best(lambda spend: (0.0, made.release(rows(), spend)))
    assert "NOT PRIVATE" in release.statement()
    assert release.verify() == math.inf


def test_a_mechanism_refuses_a_selection_that_spends_more():
    with pytest.raises(PrivacyParameterError, match="the selection spends more"):
        mechanism(epsilon=0.9)
    assert selection_beside((), "replace-one", "row", 1e-5) is None
