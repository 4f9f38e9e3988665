"""How far off were the answers of the demo's tour?

The demo made its data up, so it may count them itself, in the file that it wrote. The proxy has no part in that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

_FEW = 5


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """A question of the tour once more, with its interval, and the same over the rows themselves.

    asked: gives a name, the answer and its two ends. exact: gives a name and the truth.
    """

    asked: str
    exact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """An answer beside the truth."""

    name: str
    answer: float
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def off(self) -> str:
        """How far the answer is off, in per cent of the truth."""
        return f"{100 * abs(self.answer - self.truth) / abs(self.truth):.2f} %" if self.truth else ""


def _check(name: str, value: str, rest: str, *, shown: str = "", domain: str = "") -> CheckedAnswer:
    asked = f"SELECT {name}, {value}, hush.low({value}), hush.high({value}) FROM {rest}"
    return CheckedAnswer(f"{asked} {shown}".rstrip(), f"SELECT {name}, {value} FROM {rest} {domain}".rstrip())


CHECKS = (
    _check("'customers of 40 or more'", "count(*)", "users WHERE age >= 40", domain="AND age <= 110"),
    _check("status", "sum(amount)", "orders WHERE status IS NOT NULL GROUP BY status", shown="ORDER BY status"),
    _check("city", "count(*)", "users GROUP BY city", shown=f"ORDER BY count(*) DESC LIMIT {_FEW}"),
)
#: Why one of them does not count all rows.
DOMAIN = "Ages of 999, a form's way to say unknown, are outside the policy's bounds and in neither number."


def truth(shop: Path, check: CheckedAnswer) -> dict[str, float]:
    """What the made-up rows say, by name."""
    with duckdb.connect(str(shop), read_only=True) as database:
        return {str(name): float(value) for name, value in database.execute(check.exact).fetchall()}


def compared(rows: Sequence[Sequence[object]], truths: Mapping[str, float]) -> Iterator[Compared]:
    """Answers beside the truth. What nobody answered is not told of."""
    for name, *numbers in rows:
        answer, low, high = (float(str(number)) for number in numbers)
        yield Compared(name=str(name), answer=answer, low=low, high=high, truth=truths.get(str(name), 0.0))


def verdict(found: Sequence[Compared]) -> str:
    """What it comes to, in words."""
    held = sum(one.holds for one in found)
    return f"{held} of {len(found)} intervals hold the truth; each is meant to miss it once in twenty times."
