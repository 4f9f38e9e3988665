"""What does the page show on which people ask: a forecast before they pay, and the answer with its intervals?

Every figure comes over the wire, from EXPLAIN, from the answer's own columns and from its notices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from starlette.responses import JSONResponse, Response

from proxy.console.completion import completion_of
from proxy.console.trouble import trouble_of
from proxy.console.visits import Console, Visit
from proxy.console.wire import ConsoleAnswer, ShownNotice
from proxy.errors import HushError
from proxy.sqltypes import SqlType
from proxy.wire.exchange import CHARGED, FREE

#: An answer is shown up to here; all of it is in the download.
MOST_SHOWN = 500
_LOW, _HIGH = "_low", "_high"
NUMBERS = frozenset(t.oid for t in SqlType if t.is_number)


@dataclass(frozen=True, slots=True)
class ColumnInterval:
    """Where the ends of a number's interval stand in a row."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class NoInterval:
    """A column that is no number, or whose numbers are exact."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """One column as people see it. at: where its values stand in a row."""

    name: str
    at: int
    is_number: bool
    interval: ColumnInterval | NoInterval

    @property
    def has_interval(self) -> bool:
        return isinstance(self.interval, ColumnInterval)


def columns_of(answer: ConsoleAnswer) -> tuple[ShownColumn, ...]:
    """The columns, each with the interval that `hush.intervals` put at the end of the row.

    Of two columns of one name the first has the first interval.
    """
    numbers: dict[str, list[int]] = {}
    for at, (name, kind) in enumerate(zip(answer.columns, answer.kinds, strict=True)):
        if kind in NUMBERS:
            numbers.setdefault(name, []).append(at)
    found: dict[int, ColumnInterval] = {}
    taken: set[int] = set()
    for at, name in enumerate(answer.columns):
        low = next((i for i in numbers.get(name + _LOW, ()) if i > at and i not in taken), None)
        high = next((i for i in numbers.get(name + _HIGH, ()) if low is not None and i > low and i not in taken), None)
        if low is not None and high is not None and at in numbers.get(name, ()) and at not in taken:
            found[at] = ColumnInterval(low, high)
            taken |= {low, high}
    return tuple(
        ShownColumn(name, at, answer.kinds[at] in NUMBERS, found.get(at, NoInterval()))
        for at, name in enumerate(answer.columns)
        if at not in taken
    )


def forecast_of(plan: Mapping[str, object]) -> dict[str, object]:
    """What a privacy plan says before anything is paid, for people."""
    releases = [r for r in _list(plan.get("releases")) if isinstance(r, dict)]
    outputs = [
        {"name": o["aggregate"], "error": o.get("half_width_95"), "times_rows": o.get("half_width_95_times_rows")}
        for r in releases for o in _list(r.get("outputs")) if isinstance(o, dict)
    ]  # fmt: skip
    # of the session that is asked for forecasts, which is not the one that pays
    accounts = [a for a in _list(plan.get("accounts")) if isinstance(a, dict)]
    thresholds = [float(r["threshold"]) for r in releases if r.get("threshold") is not None]
    return {
        "epsilon": plan.get("epsilon"), "charge": plan.get("charge_epsilon"), "delta": plan.get("delta"),
        "remaining": [f"{a['account']}: {a['remaining']}" for a in accounts if a["account"] != "session"],
        "outputs": outputs, "threshold": max(thresholds, default=None),
        "unit": next((r.get("unit") for r in releases), ""),
        "expected": [str(e) for r in releases for e in _list(r.get("expected"))],
        "is_reused": bool(releases) and all(r.get("reused") for r in releases),
        "later": len(_list(plan.get("later"))),
    }  # fmt: skip


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class AskPages:
    """The page and its parts."""

    console: Console

    async def page(self, visit: Visit) -> Response:
        """The editor, with what the login may name for its completion."""
        usual = str((await visit.browser.wires.looking.rows("SHOW hush.epsilon"))[0][0])
        known = await visit.browser.wires.looking.rows('SELECT "table", "column" FROM hush.policy')
        completion = completion_of(self.console.served(visit).policy(), [(str(t), str(c)) for t, c in known])
        statement = visit.form.get("statement", "")  # of an example, from another page
        return self.console.page("ask.html", visit, usual=usual, completion=completion, statement=statement)

    async def forecast(self, visit: Visit) -> Response:
        """What the statement would cost and how far off its answer would be; free, and runs nothing."""
        statement = visit.form.get("statement", "")
        explained = f"EXPLAIN (FORMAT JSON) {statement}"
        try:
            answer = await visit.browser.wires.looking.ask(explained, _epsilon(visit))
            plan = json.loads(answer.rows[0][0] or "null")
        except (psycopg.Error, HushError) as error:
            return self.console.page("forecast.html", visit, trouble=trouble_of(error, statement), forecast=None)
        except (json.JSONDecodeError, IndexError):
            plan = None
        first = plan[0] if isinstance(plan, list) and plan and isinstance(plan[0], dict) else {}
        forecast = forecast_of(first) if "releases" in first else {}
        return self.console.page("forecast.html", visit, trouble=None, forecast=forecast)

    async def run(self, visit: Visit) -> Response:
        """Run one statement as this login and show what came."""
        statement = visit.form.get("statement", "")
        settings: list[tuple[LiteralString, str]] = [*_epsilon(visit), ("hush.intervals", "on")]
        try:
            answer = await visit.browser.wires.running.ask(statement, settings)
        except (psycopg.Error, HushError) as error:
            return self.console.page("trouble.html", visit, trouble=trouble_of(error, statement), statement=statement)
        columns = columns_of(answer)
        return self.console.page(
            "answer.html", visit, answer=answer, columns=columns, shown=answer.rows[:MOST_SHOWN],
            is_free=any(n.code == FREE for n in answer.notices), notices=_ordered(answer.notices),
            data=_data(answer, columns), tag=answer.tag,
        )  # fmt: skip

    async def cancel(self, visit: Visit) -> Response:
        """End what this browser runs."""
        await visit.browser.wires.running.cancel()
        return JSONResponse({})


def _epsilon(visit: Visit) -> list[tuple[LiteralString, str]]:
    epsilon = visit.form.get("epsilon", "").strip()
    return [("hush.epsilon", epsilon)] if epsilon else []


def _ordered(notices: Sequence[ShownNotice]) -> list[ShownNotice]:
    """What was paid first, then warnings, then the rest."""
    return sorted(notices, key=lambda n: (n.code not in {CHARGED, FREE}, n.severity != "WARNING"))


def _data(answer: ConsoleAnswer, columns: Sequence[ShownColumn]) -> dict[str, object]:
    """The answer for the chart and the download."""
    return {
        "columns": [
            {
                "name": c.name,
                "at": c.at,
                "number": c.is_number,
                "interval": [c.interval.low, c.interval.high] if isinstance(c.interval, ColumnInterval) else None,
            }
            for c in columns
        ],
        "names": answer.columns, "rows": answer.rows,
    }  # fmt: skip
