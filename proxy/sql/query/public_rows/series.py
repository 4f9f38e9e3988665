"""Which values does a call of generate_series give, as far as its words show?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from proxy.sql.algebra.constants import names_clock
from proxy.sql.relations.scope import Ctes
from proxy.sql.syntax.names import table_name

_CALLS = (exp.GenerateSeries, exp.ExplodingGenerateSeries)
_CONSTANT = (exp.Literal, exp.Cast, exp.DataType, exp.CurrentDate, exp.CurrentTimestamp, exp.TimestampTrunc, exp.Add,
             exp.Sub, exp.Neg, exp.Interval, exp.Var, exp.Paren, exp.Parameter)  # fmt: skip
_ORDERED = frozenset(("date", "timestamp", "timestamptz", "smallint", "int", "bigint"))  # casts that keep the order
_SPAN = re.compile(r"([1-9][0-9]{0,5}) (second|minute|hour|day|week|month|year)s?")
_UNEVEN = ("month", "year")


@dataclass(frozen=True, slots=True)
class Series:
    """A call and the types that its values are cast to, in this order."""

    call: exp.Expression
    casts: tuple[exp.Expression, ...] = ()

    def within(self, moment: str) -> list[str]:
        """Conditions that a value passes if it is in the series; none if its ends are not known."""
        return self._between(moment, "<=", "")

    def within_steps(self, moment: str) -> list[str]:
        """The same for one between a value of the series and the next."""
        return self._between(moment, "<", f" + {self._part('step')}")

    def _between(self, moment: str, sign: str, after: str) -> list[str]:
        kinds = {str(c.sql(dialect="postgres")).lower() for c in self.casts}
        ends = [self.call.args.get(part) for part in ("start", "end")]
        if not kinds <= _ORDERED or not self._is_ascending() or not all(map(_is_constant, ends)):
            return []
        cast = "".join(f"::{c.sql(dialect='postgres')}" for c in self.casts)
        first, last = (f"({self._part(part)}){cast}" for part in ("start", "end"))
        return [f"{moment} >= {first}", f"{moment} {sign} {last}{after}"]

    def _part(self, name: str) -> str:
        return str(self.call.args[name].sql(dialect="postgres"))

    def _is_ascending(self) -> bool:
        step = self.call.args.get("step")
        return step is None or (isinstance(step, exp.Literal) and not step.is_string) or span_of(step) is not None

    def step(self) -> tuple[int, str] | None:
        """The number and the unit of the steps, if these are all as long and begin at a time that stays."""
        start, found = self.call.args.get("start"), span_of(self.call.args.get("step"))
        if self.casts or found is None or found[1] in _UNEVEN or not _is_constant(start) or not _is_steady(start):
            return None
        is_plain = isinstance(start, exp.Cast) and start.args["to"].sql(dialect="postgres").upper() == "TIMESTAMP"
        return found if is_plain or found[1] == "day" else None  # hours of a zone are not all as long

    def start_of(self, moment: str) -> str:
        """The value of the series at or before a time."""
        found = self.step()
        assert found is not None, "its caller asked for that"
        return f"date_bin(INTERVAL '{found[0]} {found[1]}', {moment}, ({self._part('start')})::timestamp)"


def series_of(node: exp.Expression, ctes: Ctes) -> Series | None:
    """The series whose values are the one column of a relation in FROM."""
    if isinstance(node, exp.Table) and isinstance(node.this, _CALLS):
        return None if node.args.get("ordinality") else Series(node.this)
    body: exp.Expression | None = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        body = ctes[table_name(node)].body
    if not isinstance(body, exp.Select) or len(body.expressions) != 1 or body.args.get("from_") is not None:
        return None
    item, casts = body.expressions[0].unalias(), list[exp.Expression]()
    while isinstance(item, (exp.Cast, exp.Paren)):
        casts += [item.args["to"]] if isinstance(item, exp.Cast) else []
        item = item.this
    return Series(item, tuple(reversed(casts))) if isinstance(item, _CALLS) else None


def span_of(node: object) -> tuple[int, str] | None:
    """A constant interval of one unit, more than none of it; weeks are days."""
    inner = node.this if isinstance(node, (exp.Interval, exp.Cast)) else node
    if not isinstance(inner, exp.Literal):
        return None
    kind = node.args["to"].this if isinstance(node, exp.Cast) else node  # of a bare text the parser makes an Interval
    unit = kind.args.get("unit") if isinstance(kind, exp.Interval) else None
    found = _SPAN.fullmatch(f"{inner.this} {unit or ''}".lower().strip())
    if found is None:
        return None
    number = int(found.group(1))
    return (number * 7, "day") if found.group(2) == "week" else (number, found.group(2))


def _is_constant(node: object) -> bool:
    return isinstance(node, exp.Expr) and all(isinstance(n, _CONSTANT) for n in node.walk())


def _is_steady(node: object) -> bool:
    """Whether a constant is the same when it is planned and when PostgreSQL computes it, a little later."""
    assert isinstance(node, exp.Expr)
    if any(names_clock(text.name) for text in node.find_all(exp.Literal)):
        return False
    return all(
        isinstance(n.parent, exp.TimestampTrunc)
        or (isinstance(n.parent, exp.Cast) and n.parent.args["to"].sql(dialect="postgres").upper() == "DATE")
        for n in node.find_all(exp.CurrentTimestamp)
    )
