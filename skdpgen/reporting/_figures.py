"""Pictures of the whole table and of the promise, each with its caption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plotting import AssociationDisplay, PrivacyCurveDisplay, TSTRDisplay
from ._measured import Measured
from ._pictures import Pictures
from ._promise import Promise

if TYPE_CHECKING:
    from ..privacy.ledger import PrivacyLedger

__all__ = ["privacy_curve", "wide_pictures"]

_N_LINKS = 16
_CURVE = (5.8, 3.2)


def privacy_curve(
    promise: Promise | None, release: Any, ledger: PrivacyLedger | None
) -> PrivacyCurveDisplay | None:
    """The curve of what counts: of the ledger, or else of the release."""
    if promise is None or not promise.private:
        return None
    if ledger is not None and promise.entries:
        return PrivacyCurveDisplay.from_ledger(ledger)
    if promise.verified is None:
        return None
    return PrivacyCurveDisplay.from_release(release)


def wide_pictures(
    measured: Measured, pictures: Pictures, curve: PrivacyCurveDisplay | None
) -> dict[str, dict[str, Any] | None]:
    """Pictures of the whole table, each with its caption."""
    names = ("privacy", "tstr", "links", "all_links")
    found: dict[str, dict[str, Any] | None] = dict.fromkeys(names)
    if curve is not None:
        caption = curve.caption()
        found["privacy"] = {"svg": pictures.small(curve.plot, _CURVE, caption), "caption": caption}
    if measured.tstr is not None:
        scores = TSTRDisplay.from_result(measured.tstr)
        caption = scores.summary(measured.tstr.metrics[0])
        found["tstr"] = _picture(scores, caption, pictures)
    if measured.fidelity is not None:
        links = AssociationDisplay.from_fidelity(measured.fidelity)
        most = _changed_most(links)
        found["links"] = _picture(most, most.summary(), pictures)
        if most is not links:
            words = f"Association of all {len(links.columns)} columns."
            found["all_links"] = _picture(links, words, pictures)
    return found


def _picture(display: Any, caption: str, pictures: Pictures) -> dict[str, Any]:
    return {"svg": pictures.whole(display.plot().figure_, caption), "caption": caption}


def _changed_most(links: AssociationDisplay) -> AssociationDisplay:
    """The columns whose associations changed most, in their order, as far as they fit a page."""
    if len(links.columns) <= _N_LINKS:
        return links
    change = np.nan_to_num(np.abs(links.difference)).max(axis=1)
    kept = np.sort(np.argsort(-change, kind="stable")[:_N_LINKS])
    square = np.ix_(kept, kept)
    names = [links.columns[i] for i in kept]
    return AssociationDisplay(names, links.real[square], links.synthetic[square])
