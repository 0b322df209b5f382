"""The ledger in words: statement, table, and why a charge was refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from skdpgen.privacy.accounting import gaussian_epsilon, noise_multiplier
from skdpgen.privacy.composition import Charge, fits, total_epsilon
from skdpgen.privacy.entries import Adjacency, LedgerEntry

__all__ = ["flat", "records", "refusal", "remaining_epsilon", "statement", "table"]

_LEAST_EPSILON = 1e-6


def flat(charges: Sequence[Charge]) -> Charge:
    """All entries, oldest first."""
    return tuple(entry for charge in charges for entry in charge)


def records(charges: Sequence[Charge]) -> list[dict[str, Any]]:
    """One dict of plain values an entry; ``charge`` counts charges, from 1."""
    return [
        {
            "charge": number,
            "mechanism": entry.mechanism,
            "epsilon": entry.epsilon,
            "delta": entry.delta,
            "private": entry.protected,
            "reason": entry.reason,
            "adjacency": entry.adjacency,
            "unit": entry.unit,
            "rows_per_unit": entry.rows_per_unit,
            "sensitivity": math.sqrt(entry.sensitivity_squared),
            "noise_stddev": entry.noise_stddev,
            "mu": None if entry.n_directions or entry.repetitions else entry.mu,
            "extra_delta": entry.extra_delta,
            # All that a total takes where there is no mu.
            "n_directions": entry.n_directions,
            "dimension": entry.dimension,
            "value_step": entry.value_step,
            "repetition_shape": entry.repetition_shape,
            "repetition_gamma": entry.repetition_gamma,
        }
        for number, charge in enumerate(charges, start=1)
        for entry in charge
    ]


def table(charges: Sequence[Charge]) -> str:
    """The most important columns of :func:`records` as aligned text."""
    head = ("charge", "mechanism", "epsilon", "delta", "private", "adjacency", "unit")
    rows: list[tuple[str, ...]] = [head]
    for record in records(charges):
        cells = {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in record.items()
        }
        cells["private"] = "yes" if record["private"] else f"NO: {_reason(record['reason'])}"
        rows.append(tuple(cells[name] for name in head))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def statement(charges: Sequence[Charge], relation: Adjacency, delta: float) -> str:
    """What was spent in total, in plain words."""
    entries = flat(charges)
    if not entries:
        return "Nothing was spent."
    spent = [entry for entry in entries if entry.protected]
    open_ones = Counter(_reason(entry.reason) for entry in entries if not entry.protected)
    if not open_ones:
        return f"{_protected(charges, relation, delta)}."
    times = [f"{reason} ({n} times)" if n > 1 else reason for reason, n in open_ones.items()]
    text = (
        f"NOT PRIVATE: epsilon is infinite. Rows were read without protection: {'; '.join(times)}."
    )
    if spent:
        kept = [tuple(entry for entry in charge if entry.protected) for charge in charges]
        protected = _protected([charge for charge in kept if charge], relation, delta)
        text += f" Without that: {protected}."
    return text


def _reason(reason: str) -> str:
    return reason or "made with insecure noise or none"


def _protected(charges: Sequence[Charge], relation: Adjacency, delta: float) -> str:
    entries = flat(charges)
    change = "replacing" if relation == "replace-one" else "adding or removing"
    # What each release promises is true for units of that many rows at most, so all of them
    # together are for the smallest number.
    most = min(entry.rows_per_unit for entry in entries)
    unit = "one row" if entries[0].unit == "row" else f"one unit (at most {most} rows each)"
    epsilon = total_epsilon(charges, relation, delta)
    total = f"({up(epsilon)}, {delta:g})-differentially private"
    if epsilon == math.inf:
        total = f"not private at delta = {delta:g}"
    releases = "1 release is" if len(entries) == 1 else f"{len(entries)} releases are together"
    return f"{releases} {total} for {change} {unit} ({relation} adjacency)"


def remaining_epsilon(
    charges: Sequence[Charge],
    relation: Adjacency,
    epsilon: float,
    delta: float,
    *,
    adjacency: Adjacency | None = None,
) -> float:
    """Largest epsilon at ``delta`` of one more Gaussian release under the cap, or 0.

    ``adjacency`` is that of the release, by default the relation of the total.
    """

    def affordable(multiplier: float) -> bool:
        own = adjacency or relation
        entry = LedgerEntry("one more", 1, multiplier, own, "row", 1, epsilon, delta)
        return fits([*charges, (entry,)], relation, epsilon, delta)

    low, high = noise_multiplier(epsilon, delta), noise_multiplier(_LEAST_EPSILON, delta)
    if affordable(low):
        return epsilon
    if not affordable(high):
        return 0.0
    while high > low * (1 + 1e-7):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if affordable(middle) else (middle, high)
    # What a mechanism calibrates for it keeps a slack; so this much less noise isn't asked for.
    return gaussian_epsilon(delta, 1 / high) * (1 - 1e-6)


def refusal(charges: Sequence[Charge], relation: Adjacency, epsilon: float, delta: float) -> str:
    """Why the last charge doesn't fit under the cap, and what would."""
    before, charge = charges[:-1], charges[-1]
    spend = "this spend" if len(charge) == 1 else f"these {len(charge)} spends"
    cap = f"the cap is {epsilon:g}"
    if not all(entry.protected for entry in charge):
        return (
            f"{spend} would make the total infinite, for it isn't protected by noise; {cap} at "
            f"delta = {delta:g}. Nothing was read or released."
        )
    needed, spent = (total_epsilon(c, relation, delta) for c in (charges, before))
    if needed > epsilon:
        needs = f"would take the total to epsilon = {up(needed)} at delta = {delta:g}"
    else:
        needs = (
            f"would take the total beyond what holds at delta = {delta:g} for spends that may be "
            f"chosen by looking at earlier releases"
        )
    if any(entry.extra_delta for entry in charge):
        needs += " (learned categories need a part of delta)"
    # Under replace-one an add-remove release counts double: less of that kind fits.
    adjacency = charge[0].adjacency
    left = remaining_epsilon(before, relation, epsilon, delta, adjacency=adjacency)
    advice = (
        f"lower epsilon to at most {down(left)} at delta = {delta:g} for one more Gaussian release "
        f"({adjacency})"
        if left > 0.01 * epsilon
        else "next to nothing is left"
    )
    return (
        f"{spend} {needs}; {cap} and {up(spent)} is spent. Nothing was read or released: {advice}, "
        f"or start a ledger with another cap."
    )


def up(number: float) -> str:
    """Four digits, never below the number: what was spent isn't rounded down."""
    return _rounded(number, math.ceil)


def down(number: float) -> str:
    """Four digits, never above the number: what is left isn't rounded up."""
    return _rounded(number, math.floor)


def _rounded(number: float, towards: Callable[[float], int]) -> str:
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    digits = 3 - math.floor(math.log10(number))
    return f"{towards(number * 10.0**digits) / 10.0**digits:.4g}"
