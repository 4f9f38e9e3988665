"""What do aggregates of differences of times mean, avg(shipped - ordered) and avg(age(joined))?

The seconds of each difference are aggregated, a month of an age being thirty days, which is how PostgreSQL carries what
is left of months when it divides. Above the line they become an interval again.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Aggregate, AggregateKind, Call, Scalar
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.times.ages import SECOND, in_units
from proxy.sql.binding.times.intervals import bind_interval, counts_months
from proxy.sql.binding.times.spans import length_of
from proxy.sqltypes import SqlType

_LONGEST = "1e14"  # seconds: PostgreSQL's intervals have at most 2,147,483,647 days
_DAY, _MONTH = 86_400, 2_592_000


def measured(binder: Binder, node: exp.Expression) -> tuple[Scalar, bool]:
    """What is aggregated, and whether it is the seconds of a difference of times. Raises Unsupported."""
    bound = bind_interval(binder, node)
    if isinstance(bound, Call) and bound.type is SqlType.INTERVAL:
        return in_units(binder, node, length_of(bound), SECOND), True
    return (binder.scalar(node) if isinstance(bound, Untyped) else bound), False


def as_seconds(aggregate: Aggregate) -> Aggregate:
    """The aggregate as it is released."""
    if aggregate.type is not SqlType.INTERVAL:
        return aggregate
    is_between = aggregate.kind is AggregateKind.PERCENTILE_CONT
    return replace(aggregate, type=SqlType.FLOAT8 if is_between else SqlType.NUMERIC)


def spelled(seconds: str, of: Scalar) -> str:
    """A number of seconds as PostgreSQL's interval: in days and hours as a difference of times is, or with months."""
    number = f"{seconds}::numeric"
    months = f"div({number}, {_MONTH})::double precision * INTERVAL '1 month' + " if counts_months(of) else ""
    rest = f"mod({number}, {_MONTH})" if months else number
    days, clock = (f"{part}({rest}, {_DAY})::double precision" for part in ("div", "mod"))
    sum_ = f"{months}{days} * INTERVAL '1 day' + {clock} * INTERVAL '1 second'"
    return f"(CASE WHEN abs({number}) < {_LONGEST} THEN {sum_} END)"
