"""Named errors and warnings of skdpgen.

Every error derives from :class:`SkdpgenError` and also from the builtin that scikit-learn
users expect (``ValueError`` for bad input, ``RuntimeError`` for a refused operation), so both
``except SkdpgenError`` and ``except ValueError`` work.

Messages name the column and the rule that was broken and say what to do. They never quote a
cell, a value or a count of the private rows: an error is an output like any other, and it is
not covered by the privacy guarantee.
"""

__all__ = [
    "BudgetExceededError",
    "InputError",
    "PrivacyLeakError",
    "PrivacyParameterError",
    "PrivacyWarning",
    "ReleaseError",
    "SchemaError",
    "SkdpgenError",
    "SkdpgenWarning",
]


class SkdpgenError(Exception):
    """Base class of all errors raised on purpose by skdpgen."""


class SchemaError(SkdpgenError, ValueError):
    """A schema is malformed, or a column lacks a public fact that is needed."""


class InputError(SkdpgenError, ValueError):
    """The structure of an input (names, dtypes, shapes) does not fit; never its values."""


class PrivacyLeakError(SkdpgenError, ValueError):
    """A step would learn from private rows, or mix them, without being charged for it."""


class PrivacyParameterError(SkdpgenError, ValueError):
    """A privacy parameter (epsilon, delta, adjacency, ...) is outside its range."""


class BudgetExceededError(SkdpgenError, RuntimeError):
    """A spend would exceed the cap of a privacy ledger; nothing was read or released."""


class ReleaseError(SkdpgenError, ValueError):
    """A release file is damaged, of an unknown version, or does not verify."""


class SkdpgenWarning(UserWarning):
    """Base class of all warnings issued by skdpgen."""


class PrivacyWarning(SkdpgenWarning):
    """Legal but questionable privacy settings, decided from public facts only."""
