import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.reporting._promise import promise_of
from skdpgen.reporting._rules import RULES
from skdpgen.reporting._verdict import judge


def fidelity(mean=0.01, worst=0.02, kept=0.9, note=""):
    row = {"order": 1, "mean": mean, "worst": worst, "worst_columns": ("age",), "note": note}
    other = {**row, "mean": mean / 2, "worst": worst / 2, "worst_columns": ("sex",)}
    pairs = {**row, "order": 2, "mean": 0.5, "worst_columns": ("age", "sex")}
    return SimpleNamespace(
        summary=pd.DataFrame([other, row, pairs]),
        dependence_kept=kept,
        dependence_note="the real columns do not depend on each other",
    )


def tstr(synthetic, real=None, chance=0.5, metric="roc_auc", note=""):
    rows = [("synthetic", f"model {i}", metric, score, note) for i, score in enumerate(synthetic)]
    rows += [("real", f"model {i}", metric, score, "") for i, score in enumerate(real or [])]
    rows += [("chance", "chance", metric, chance, "")]
    names = ["trained_on", "estimator", "metric", "score", "note"]
    return SimpleNamespace(
        scores=pd.DataFrame(rows, columns=names), metrics=(metric,), target="income"
    )


def verdict(promise=None, measured=None, scores=None, publishable=False):
    return judge(promise, measured, scores, publishable=publishable)


@pytest.mark.parametrize(
    ("topic", "number", "level"),
    [
        ("columns", 0.05, "good"),
        ("columns", 0.051, "fair"),
        ("columns", 0.151, "poor"),
        ("links", 0.8, "good"),
        ("links", 0.79, "fair"),
        ("links", 0.39, "poor"),
        ("learning", 0.9, "good"),
        ("learning", 0.6, "fair"),
        ("learning", 0.59, "poor"),
        ("privacy", 1.0, "good"),
        ("privacy", 1.001, "fair"),
        ("privacy", 10.1, "poor"),
        ("links", math.nan, "unknown"),
    ],
)
def test_limits(topic, number, level):
    assert RULES[topic].level(number) == level


def test_the_larger_distance_of_both_binnings_counts():
    found = verdict(measured=fidelity(mean=0.2, worst=0.5)).columns
    assert (found.level, found.value) == ("poor", 0.2)
    assert "20% of the rows" in found.detail
    assert "50% in the worst column (age)" in found.detail


@pytest.mark.parametrize(
    ("mean", "headline"),
    [
        (0.04, "Most single columns are close, but \u201cage\u201d is off."),
        (0.06, "Single columns are roughly right, but \u201cage\u201d is off."),
    ],
)
def test_one_lost_column_is_named_and_no_mean_hides_it(mean, headline):
    found = verdict(measured=fidelity(mean=mean, worst=0.9)).columns
    assert (found.level, found.headline) == ("fair", headline)
    assert verdict(measured=fidelity(mean=mean, worst=0.25)).columns.level != "poor"
    assert "off" not in verdict(measured=fidelity(mean=mean, worst=0.25)).columns.headline


def test_a_lost_column_shows_whichever_binning_sees_it():
    measured = fidelity(mean=0.04, worst=0.2)
    # The binning with the smaller mean is the first row.
    measured.summary.loc[measured.summary.index[0], "worst"] = 0.6
    found = verdict(measured=measured).columns
    assert found.level == "fair"
    assert found.value == 0.04
    assert "\u201csex\u201d is off" in found.headline
    assert "60% in the worst column (sex)" in found.detail


def test_a_distance_that_is_unknown_has_its_reason():
    found = verdict(measured=fidelity(mean=math.nan, note="the real table has no rows")).columns
    assert found.level == "unknown"
    assert found.detail == "The real table has no rows."


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (0.9, "are kept."),
        (0.5, "are kept in part."),
        (0.3, "are mostly lost."),
        (0.1, "are lost."),
    ],
)
def test_links(kept, words):
    found = verdict(measured=fidelity(kept=kept)).links
    assert found.headline == f"Links between columns {words}"


def test_the_worst_pair_is_named():
    found = verdict(measured=fidelity(kept=0.9, worst=0.25)).links
    assert found.level == "good"
    assert found.detail.endswith(
        "In the worst pair (age, sex) 25% of the rows would have to change."
    )


def test_links_that_are_not_there():
    found = verdict(measured=fidelity(kept=math.nan)).links
    assert found.level == "unknown"
    assert found.detail == "The real columns do not depend on each other."
    # Nothing is claimed of links where only the table is too small to tell.
    assert found.headline == "Not measured."


def test_the_share_of_the_gain_over_guessing():
    found = verdict(scores=tstr([0.7, 0.8], [0.9, 0.8])).learning
    assert found.value == pytest.approx(0.25 / 0.35)
    assert found.level == "fair"


def test_the_best_of_several_models_is_no_proof():
    # Four models that guess: one of them is lucky.
    found = verdict(scores=tstr([0.75, 0.4, 0.4, 0.45], [0.9] * 4)).learning
    assert found.level == "poor"
    assert found.headline == "Models do no better than guessing."


def test_where_real_rows_teach_nothing_synthetic_ones_are_not_praised():
    found = verdict(scores=tstr([0.52], [0.53])).learning
    assert (found.level, found.headline) == ("unknown", "Nothing to learn.")


def test_without_real_rows_a_score_is_compared_with_guessing():
    assert verdict(scores=tstr([0.8])).learning.level == "unknown"
    found = verdict(scores=tstr([0.51])).learning
    assert (found.level, found.headline) == ("poor", "No better than guessing.")


def test_a_synthetic_table_that_nothing_can_be_learned_from_is_poor():
    found = verdict(scores=tstr([math.nan], [0.9], note="class 'yes' is absent")).learning
    assert found.level == "poor"
    assert found.detail == "Class 'yes' is absent."


def _two_metrics(roc_auc, accuracy, f1_macro):
    parts = [
        tstr([scores[0]], [scores[1]], scores[2], metric, note)
        for metric, scores, note in (
            ("roc_auc", roc_auc, "class 'maybe' is absent"),
            ("accuracy", accuracy, ""),
            ("f1_macro", f1_macro, ""),
        )
    ]
    scores = pd.concat([part.scores for part in parts], ignore_index=True)
    metrics = ("roc_auc", "accuracy", "f1_macro")
    return SimpleNamespace(scores=scores, metrics=metrics, target="income")


def test_a_lost_class_is_told_and_accuracy_is_no_excuse():
    # Nine of ten rows have one class: guessing is accurate, and real rows teach a lot.
    nan = math.nan
    found = verdict(scores=_two_metrics((nan, 0.9, nan), (0.9, 0.93, 0.9), (0.5, 0.75, 0.45)))
    nothing = _two_metrics((nan, 0.9, 0.5), (0.9, 0.93, 0.9), (0.5, 0.75, 0.45))
    for learning in (found.learning, verdict(scores=nothing).learning):
        assert learning.level == "poor"
        assert learning.value == pytest.approx(0.05 / 0.3)
        assert " 0.50, real rows 0.75, guessing 0.45" in learning.detail
        assert learning.detail.endswith("Class 'maybe' is absent.")


def test_real_rows_that_are_there_are_not_asked_for():
    scores = _two_metrics((0.8, math.nan, 0.5), (0.9, 0.93, 0.85), (0.7, 0.75, 0.45))
    found = verdict(scores=scores).learning
    assert "real=" not in found.detail
    assert found.value == pytest.approx(0.25 / 0.3)


def test_more_than_all_of_the_gain_is_all_of_it():
    found = verdict(scores=tstr([0.9], [0.86])).learning
    assert found.detail.startswith("100% of the gain")


def test_scores_that_nobody_has_are_no_verdict():
    found = verdict(scores=tstr([math.nan], [math.nan], note="the test table has one class"))
    assert found.learning.level == "unknown"


def test_what_is_missing_is_asked_for():
    found = verdict()
    assert {finding.level for finding in found} == {"unknown"}
    assert "real=" in found.columns.detail
    assert "test=" in found.learning.detail
    assert "release=" in found.privacy.detail
    assert "real=" not in str(verdict(publishable=True))


@pytest.fixture
def promise():
    ledger = PrivacyLedger()
    ledger.charge(LedgerEntry("test", 4, 2 * 3.731, "replace-one", "row", 1, 1.0, 1e-5))
    return promise_of(None, ledger)


@pytest.mark.parametrize(
    ("changes", "level", "label"),
    [
        ({}, "good", "Strong"),
        ({"epsilon": 5.0}, "fair", "Reasonable"),
        ({"epsilon": 20.0}, "poor", "Weak"),
        ({"incomplete": True}, "fair", "Reasonable"),
        ({"private": False, "epsilon": math.inf}, "poor", "Not private"),
        ({"statement": "said", "refusal": "it lies"}, "poor", "Broken"),
        ({"foreign": True}, "poor", "Broken"),
        ({"n_rows": 1000}, "good", "Strong"),
        ({"n_rows": 200_000}, "poor", "Weak"),
        ({"odds": None}, "good", "Strong"),
    ],
)
def test_promises(promise, changes, level, label):
    found = verdict(replace(promise, **changes)).privacy
    assert (found.level, found.label) == (level, label)


def test_units_are_named(promise):
    found = verdict(replace(promise, unit="unit", rows_per_unit=4)).privacy
    assert "all rows of one unit" in found.headline


def test_plain_values_have_no_infinity(promise):
    facts = verdict(replace(promise, private=False, epsilon=math.inf)).to_dict()
    assert facts["privacy"]["value"] is None
    assert list(facts) == ["columns", "links", "learning", "privacy"]


def test_rows_that_equal_real_ones_put_the_promise_in_doubt(promise):
    copies = SimpleNamespace(copying=False, repeating=True)
    for check in (copies, SimpleNamespace(alarms=(), copies=copies)):
        found = judge(promise, None, None, check, publishable=False).privacy
        assert (found.level, found.label) == ("poor", "In doubt")
        assert found.headline == "Many of its rows equal real rows."
    assert judge(promise, None, None, None, publishable=False).privacy.level == "good"
