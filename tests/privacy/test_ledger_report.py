"""What a ledger says: totals that are never rounded down, all reasons, and what would still fit."""

import math
import re

import pandas as pd
import pytest

from skdpgen.exceptions import BudgetExceededError, PrivacyParameterError
from skdpgen.privacy.accounting import noise_multiplier
from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.ledger import PrivacyLedger
from skdpgen.privacy.ledger_report import down, up


def entry(epsilon=1.0, **kwargs):
    fields = {"adjacency": "replace-one", "unit": "row", "rows_per_unit": 1}
    fields |= {"epsilon": epsilon, "delta": 1e-5} | kwargs
    return LedgerEntry("mean embedding", 4, 2 * noise_multiplier(epsilon, 1e-5), **fields)


def test_the_statement_names_total_delta_releases_adjacency_and_unit():
    ledger = PrivacyLedger()
    assert ledger.statement() == "Nothing was spent."
    ledger.charge(entry())
    assert ledger.statement() == (
        "1 release is (1, 1e-05)-differentially private for replacing one row "
        "(replace-one adjacency)."
    )
    ledger.charge(entry())
    assert ledger.statement().startswith("2 releases are together (1.466, 1e-05)-differentially")
    assert ledger.statement(1e-6).startswith("2 releases are together (1.666, 1e-06)-")
    units = PrivacyLedger(2.0, 1e-4)
    units.charge(entry(adjacency="add-remove", unit="unit", rows_per_unit=3))
    assert units.statement().endswith(
        " 0.0001)-differentially private for adding or removing one unit (at most 3 rows each) "
        "(add-remove adjacency)."
    )


def test_the_statement_promises_no_more_rows_than_each_release_was_bought_for():
    # A unit of 40 rows would move the first release by 40 / 3 of what it was made for.
    units = PrivacyLedger()
    for rows in (3, 40, 7):
        units.charge(entry(unit="unit", rows_per_unit=rows))
    assert "for replacing one unit (at most 3 rows each)" in units.statement()


def test_the_statement_takes_a_delta_that_means_something():
    ledger = PrivacyLedger()
    ledger.charge(entry(delta=1.0))
    ledger.charge(entry(delta=0))
    with pytest.raises(PrivacyParameterError, match="no entry names a delta"):
        ledger.statement()
    assert "(1.466, 1e-05)" in ledger.statement(1e-5)
    ledger.charge(entry(delta=1e-6))
    assert ", 1e-06)-diff" in ledger.statement()


def test_what_cannot_be_read_can_be_printed(tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger.db")
    (tmp_path / "ledger.db").unlink()
    assert str(ledger) == repr(ledger) == "PrivacyLedger(no cap, in a file that can't be read)"


def test_the_statement_gives_all_reasons_and_what_the_rest_would_be():
    ledger = PrivacyLedger()
    ledger.record_unprotected("read rows for selection")
    assert ledger.statement() == (
        "NOT PRIVATE: epsilon is infinite. Rows were read without protection: read rows for "
        "selection."
    )
    ledger.charge_all([entry(), entry(private=False)])
    ledger.record_unprotected("read rows for selection")
    ledger.record_unprotected("a plot")
    assert ledger.statement() == (
        "NOT PRIVATE: epsilon is infinite. Rows were read without protection: read rows for "
        "selection (2 times); made with insecure noise or none; a plot. Without that: 1 release is "
        "(1, 1e-05)-differentially private for replacing one row (replace-one adjacency)."
    )


def test_a_delta_that_is_used_up_is_said_to_protect_nothing():
    ledger = PrivacyLedger()
    ledger.charge(entry(extra_delta=1e-6))
    assert ledger.statement(1e-7).startswith("1 release is not private at delta = 1e-07 for")


def test_records_are_plain_values_for_a_frame():
    ledger = PrivacyLedger()
    ledger.charge_all([entry(extra_delta=1e-6), entry(0.5)])
    slicing = LedgerEntry("slicing", 4, 9.0, "replace-one", "row", 1, 1.0, 1e-5, True, 5, 3)
    ledger.charge(slicing)
    ledger.record_unprotected("a look")
    frame = pd.DataFrame(ledger.to_records())
    assert frame["charge"].tolist() == [1, 1, 2, 3]
    assert frame["private"].tolist() == [True, True, True, False]
    assert frame["reason"].tolist() == ["", "", "", "a look"]
    assert frame["mu"][1] == pytest.approx(1 / noise_multiplier(0.5, 1e-5))
    assert math.isnan(frame["mu"][2])  # no mu describes it
    assert set(frame["sensitivity"]) == {1.0, 2.0}


def test_str_is_a_table():
    ledger = PrivacyLedger(epsilon=3, delta=1e-5)
    ledger.charge_all([entry(), entry(0.5)])
    assert str(ledger).splitlines() == [
        "PrivacyLedger(2 entries, cap (3, 1e-05), in memory)",
        "charge  mechanism       epsilon  delta  private  adjacency    unit",
        "1       mean embedding  1        1e-05  yes      replace-one  row",
        "1       mean embedding  0.5      1e-05  yes      replace-one  row",
    ]
    open_one = PrivacyLedger()
    open_one.record_unprotected("a look")
    assert "NO: a look" in str(open_one)


def test_a_refusal_names_what_is_needed_spent_and_left():
    ledger = PrivacyLedger(1.2, 1e-5)
    ledger.charge(entry())
    with pytest.raises(BudgetExceededError) as refused:
        ledger.charge(entry())
    message = str(refused.value)
    found = re.fullmatch(
        r"this spend would take the total to epsilon = (\S+) at delta = 1e-05; the cap is 1.2 and "
        r"1 is spent\. Nothing was read or released: lower epsilon to at most (\S+) at delta = "
        r"1e-05 for one more Gaussian release \(replace-one\), or start a ledger with another "
        r"cap\.",
        message,
    )
    assert found[1] == "1.466"
    # What it advises does fit, and not much more.
    most = float(found[2])
    assert most == pytest.approx(ledger.remaining(), rel=1e-3)
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(most * 1.01))
    ledger.charge(entry(most))
    with pytest.raises(BudgetExceededError, match=r"1\.2 is spent.* next to nothing is left"):
        ledger.charge(entry(0.1))


def test_under_replace_one_the_advice_for_an_add_remove_spend_is_for_such_a_spend():
    ledger = PrivacyLedger(1.0, 1e-5, adjacency="replace-one")
    ledger.charge(entry(0.4))
    with pytest.raises(BudgetExceededError) as refused:
        ledger.charge(entry(0.9, adjacency="add-remove"))
    found = re.search(r"at most (\S+) at delta = 1e-05 .* \(add-remove\)", str(refused.value))
    most = float(found[1])
    assert most < 0.5 * ledger.remaining()
    with pytest.raises(BudgetExceededError):
        ledger.charge(entry(most * 1.01, adjacency="add-remove"))
    ledger.charge(entry(most, adjacency="add-remove"))


def test_a_refusal_that_only_a_cap_needs_says_so():
    # As planned spends the total would be within the cap; half of delta is kept, though.
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.charge(entry(0.1, extra_delta=1e-7))
    planned = PrivacyLedger()
    planned.charge_all([*ledger.entries, entry(0.98)])
    assert planned.spent(1e-5) < 1.0
    with pytest.raises(BudgetExceededError, match="chosen by looking at earlier releases"):
        ledger.charge(entry(0.98))
    with pytest.raises(BudgetExceededError, match="learned categories need a part of delta"):
        ledger.charge(entry(0.98, extra_delta=1e-9))


@pytest.mark.parametrize("number", [1e-7, 0.3, 0.99999, 1.0, 1.00001, 12.345678, 499.99, 1e-5])
def test_rounding_is_to_the_safe_side(number):
    assert float(down(number)) <= number <= float(up(number))
    assert float(up(number)) == pytest.approx(number, rel=2e-3)
    assert float(down(number)) == pytest.approx(number, rel=2e-3)


def test_what_cannot_be_rounded():
    assert (up(0.0), up(math.inf), down(0.0)) == ("0", "inf", "0")
