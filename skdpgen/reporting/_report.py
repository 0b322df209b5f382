"""The report: one HTML file that says what a synthetic table is worth and what was promised."""

from __future__ import annotations

import html
import os
import tempfile
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..data.schema import Schema
from ..evaluation._plain import plain
from ..exceptions import InputError, SchemaError
from ._contents import context_of
from ._measured import Measured, as_pandas, measure
from ._page import render
from ._promise import promise_of
from ._verdict import Verdict, judge

if TYPE_CHECKING:
    from ..privacy.ledger import PrivacyLedger
    from ..privacy.release import Release
    from ..privacy.slicing_release import SlicingRelease

__all__ = ["Report", "report"]


@dataclass(frozen=True, repr=False)
class Report:
    """A finished page. Made by :func:`report`; notebooks show it.

    Parameters
    ----------
    title : str
        Its title.
    html : str
        The whole page: one self-contained document without scripts.
    verdict : Verdict
        What the first screen says: ``columns``, ``links``, ``learning`` and ``privacy``.
    publishable : bool
        Whether it was made without private rows.
    """

    title: str
    html: str
    verdict: Verdict
    publishable: bool
    _facts: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which appears whole or not at all.

        Parameters
        ----------
        path : path-like
            The file; it is replaced if it exists.
        """
        target = Path(path)
        handle, part = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.html)
            # What is made here may be for others: as any new file, not as a temporary one.
            os.chmod(part, 0o666 & ~_umask())
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise

    def to_dict(self) -> dict[str, Any]:
        """Verdict, promise and measurements as JSON-ready values; NaN and infinity as None."""
        return plain(self._facts)

    def __repr__(self) -> str:
        kind = "publishable" if self.publishable else "not for publication"
        return f"Report({self.title!r}, {kind})\n{self.verdict}"

    def _repr_html_(self) -> str:
        # In a frame of its own: neither style sheet gets at the other's page.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox title="{html.escape(self.title)}" '
            f'style="width:100%;height:760px;border:1px solid #ccc"></iframe>'
        )


def report(
    synthetic: Any,
    *,
    release: Release | SlicingRelease | None = None,
    ledger: PrivacyLedger | None = None,
    real: Any = None,
    test: Any = None,
    target: Any = None,
    schema: Schema | None = None,
    privacy_check: Any = None,
    estimators: Any = "fast",
    publishable: bool = False,
    title: str | None = None,
    random_state: int | None = 0,
) -> Report:
    """One page on a synthetic table: whether it is good, and what was promised.

    Parameters
    ----------
    synthetic : DataFrame or ndarray
        The synthetic table.
    release : Release or SlicingRelease, optional
        What it was made from: the promise and its proof.
    ledger : PrivacyLedger, optional
        What else was spent on the same rows.
    real : DataFrame, optional
        The private rows that the release was made from. **Not private**: what is measured on them
        has no noise.
    test : DataFrame, optional
        Private rows that the release has not seen, to score models on. **Not private**.
    target : hashable, optional
        The column to predict; that of the schema if None.
    schema : Schema, optional
        Public facts of the columns; those of the release if None. Without either, they are observed
        on the real rows.
    privacy_check : PrivacyCheck, CopyResult, EpsilonAudit or MembershipResult, optional
        Result of :func:`skdpgen.evaluation.privacy_check` or of one of its checks, to be shown. A
        fault that it found decides the verdict. **Not private**.
    estimators : str or mapping, default="fast"
        See :func:`skdpgen.evaluation.tstr`.
    publishable : bool, default=False
        Whether to leave out everything that takes private rows. ``real``, ``test`` and
        ``privacy_check`` aren't touched then, so one call makes either page.
    title : str, optional
        Title of the page.
    random_state : int or None, default=0
        Seed of what is drawn in the measurements.

    Returns
    -------
    Report
        With ``html``, ``verdict``, ``save`` and ``to_dict``.

    Raises
    ------
    InputError
        If a table isn't one, or lacks a column.
    SchemaError
        If a column of the schema lacks its bounds or its list of values.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.reporting import report
    >>> page = report(pd.DataFrame({"age": [33, 51], "smoker": ["no", "yes"]}), publishable=True)
    >>> print(page.verdict.privacy)
    Privacy promised: Can't tell. No promise was given. ...
    """
    table = as_pandas(synthetic)
    title = "Synthetic table" if title is None else str(title)
    schema = _schema(schema, release)
    promise = promise_of(release, ledger)
    measured = Measured()
    if not publishable:
        measured = measure(
            table, real, test, target, schema, estimators, privacy_check, random_state
        )
    results = measured.fidelity, measured.tstr, measured.privacy_check
    verdict = judge(promise, *results, publishable=publishable)
    context = context_of(
        table,
        promise,
        release,
        ledger,
        measured,
        verdict,
        schema,
        None if publishable else real,
        publishable=publishable,
    )
    date = datetime.now(UTC).date().isoformat()
    about = {"title": title, "publishable": publishable, "version": __version__, "date": date}
    page = render({**context, **about})
    facts = {
        **about,
        "synthetic": {"n_rows": len(table), "columns": [str(name) for name in table.columns]},
        "verdict": verdict.to_dict(),
        "promise": None if promise is None else asdict(promise),
        **measured.to_dict(),
    }
    return Report(title, page, verdict, publishable, facts)


def _schema(schema: Schema | None, release: Release | SlicingRelease | None) -> Schema | None:
    if schema is not None:
        if not isinstance(schema, Schema):
            raise InputError("schema must be a Schema: read a file with Schema.from_json.")
        return schema
    facts = None if release is None else release.public.get("schema")
    try:
        return None if facts is None else Schema.from_dict(facts)
    except SchemaError:
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
