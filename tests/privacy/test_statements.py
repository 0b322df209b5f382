"""What a guarantee says: all of its digits, what it covers, and what it doesn't."""

import pytest

from skdpgen.privacy.entries import LedgerEntry
from skdpgen.privacy.statements import guarantee

ENTRY = LedgerEntry("private bounds", 2, 16.0, "replace-one", "row", 1, 0.3, 1e-5)
SELECTION = LedgerEntry(
    "private selection",
    *(1, 16.0, "replace-one", "row", 1, 0.4, 1e-5),
    repetition_shape=0.0,
    repetition_gamma=0.1,
)


def facts(*learned, named=False):
    columns = {
        f"x{i}": {"kind": "numeric"} | ({} if value is None else {"learned": value})
        for i, value in enumerate(learned)
    }
    if named:
        return {"schema": {"columns": [{"name": n, **c} for n, c in columns.items()]}}
    return {"schema": {"columns": columns}}


def test_words():
    assert guarantee(1.0000004, 1e-5, "that", {}) == (
        "(1.0000004, 1e-05)-differentially private for that."
    )
    assert guarantee(1, 0.1, "that", {}, (ENTRY, SELECTION)) == (
        "(1, 0.1)-differentially private for that, together with private bounds and private "
        "selection."
    )
    assert guarantee(1, 0.1, "that", facts("before"), (ENTRY,)) == (
        "(1, 0.1)-differentially private for that, together with private bounds; bounds or values "
        "of its schema were learned by an earlier release, whose cost is not included."
    )


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("learned", "earlier", "missing"),
    [
        ([], (), False),
        ([None, False], (), False),
        ([None, True], (), True),
        ([None, True], (SELECTION,), True),
        ([True, None], (ENTRY,), False),
        ([True, "before"], (ENTRY,), True),
        (["before"], (), True),
        ([{"by": "somebody"}], (ENTRY,), True),
    ],
)
def test_what_was_learned_by_others_is_named(learned, earlier, missing, named):
    words = guarantee(1.0, 1e-5, "that", facts(*learned, named=named), earlier)
    assert ("whose cost is not included" in words) == missing


@pytest.mark.parametrize(
    "public", [None, [], {"schema": 3}, {"schema": {"columns": "x"}}, {"schema": {"columns": [1]}}]
)
def test_facts_of_any_form(public):
    assert guarantee(1, 0.1, "that", public) == "(1, 0.1)-differentially private for that."
