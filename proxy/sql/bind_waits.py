"""What do aggregates of differences of times mean, avg(shipped - ordered)?

The seconds of each difference are aggregated. Above the line they become an interval again.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from proxy.sql.algebra import Aggregate, AggregateKind, Call, Scalar
from proxy.sql.bind_spans import field_of_difference, unwrapped
from proxy.sql.binder import Binder
from proxy.sql.constants import Untyped
from proxy.sqltypes import SqlType

_LONGEST = "1e14"  # seconds: PostgreSQL's intervals have at most 2,147,483,647 days


def measured(binder: Binder, node: exp.Expression) -> tuple[Scalar, bool]:
    """What is aggregated, and whether it is the seconds of a difference of times. Raises Unsupported."""
    bound = binder.bind(unwrapped(node), intervals=True)
    if isinstance(bound, Call) and bound.type is SqlType.INTERVAL:
        return field_of_difference(binder, node, "epoch", bound), True
    return (binder.scalar(node) if isinstance(bound, Untyped) else bound), False


def as_seconds(aggregate: Aggregate) -> Aggregate:
    """The aggregate as it is released."""
    if aggregate.type is not SqlType.INTERVAL:
        return aggregate
    is_between = aggregate.kind is AggregateKind.PERCENTILE_CONT
    return replace(aggregate, type=SqlType.FLOAT8 if is_between else SqlType.NUMERIC)


def spelled(seconds: str) -> str:
    """A number of seconds as PostgreSQL's interval, in days and hours as a difference of times is."""
    number = f"{seconds}::numeric"
    days, rest = (f"{part}({number}, 86400)::double precision" for part in ("div", "mod"))
    return f"(CASE WHEN abs({number}) < {_LONGEST} THEN {days} * INTERVAL '1 day' + {rest} * INTERVAL '1 second' END)"
