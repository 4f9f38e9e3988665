"""What do AT TIME ZONE and instants counted in seconds mean?

An instant is computed as the time that clocks of the policy's zone show. Once a year that tells two instants apart no
more, where clocks are turned back; so only from UTC does a way lead to the clocks of another zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.functions.domains.zones import UNIVERSAL, name_of, zone_of
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_LOCAL, _INSTANT = "local time", "instant"


def at_zone(binder: Binder, node: exp.Expression, value: exp.Expression, zone: exp.Expression) -> Scalar:
    """value AT TIME ZONE zone: an instant as clocks there show it, or the instant at which they show a time."""
    there, policy = _zone(binder, node, zone), policy_zone(binder)
    inner = unwrapped(value)
    if isinstance(inner, exp.AtTimeZone):  # from clocks to clocks, whatever the policy's zone is
        local = binder.scalar(inner.this)
        if local.type is SqlType.TIMESTAMP:
            return _shown(binder, node, _LOCAL, local, _zone(binder, inner, inner.args["zone"]), there)
    bound = binder.bind(value)
    if isinstance(bound, Untyped):
        bound = binder.read(node, bound.text, SqlType.TIMESTAMPTZ)
    if bound.type is SqlType.TIMESTAMP:
        return _shown(binder, node, _INSTANT, bound, there, policy)
    if bound.type is SqlType.DATE:
        bound = binder.convert(node, bound, SqlType.TIMESTAMPTZ)
    return on_clocks(binder, node, bound, there)


def on_clocks(binder: Binder, node: exp.Expression, instant: Scalar, there: str) -> Scalar:
    """An instant as clocks of a zone show it."""
    policy = policy_zone(binder)
    if policy not in (UNIVERSAL, there):
        raise refuse(node, f"instants are shown in the policy's time zone here, {policy}, not in {there}",
                     "Leave the time zone out, or ask for a policy in UTC.")  # fmt: skip
    return _shown(binder, node, _LOCAL, instant, policy, there)


def universal(binder: Binder, node: exp.Expression, instant: Scalar) -> Scalar:
    """An instant as a clock of UTC shows it. Of two that look alike in the policy's zone, the later."""
    return _shown(binder, node, _LOCAL, instant, policy_zone(binder), UNIVERSAL)


def policy_zone(binder: Binder) -> str:
    return name_of(binder.constants.zone)


def _zone(binder: Binder, node: exp.Expression, part: exp.Expression) -> str:
    value = binder.scalar(part)
    name = value.value if isinstance(value, Literal) else None
    try:
        return zone_of(name if isinstance(name, str) else "")
    except ValueError:
        raise refuse(node, "a time zone is a constant name like 'Europe/Zurich' or 'UTC' here") from None


def _shown(binder: Binder, node: exp.Expression, row: str, value: Scalar, here: str, there: str) -> Scalar:
    if here == there:
        return binder.convert(node, value, SqlType.TIMESTAMP if row == _LOCAL else SqlType.TIMESTAMPTZ)
    return binder.call(node, row, value, *(Literal(zone, SqlType.TEXT) for zone in (here, there)))


def _at_time_zone(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "zone")
    return at_zone(binder, node, node.this, node.args["zone"])


def truncated_there(binder: Binder, node: exp.Expression, unit: str) -> Scalar:
    """date_trunc(unit, instant, zone)."""
    value, there = binder.scalar(node.this), _zone(binder, node, node.args["zone"])
    if value.type is not SqlType.TIMESTAMPTZ:
        raise refuse(node, "date_trunc takes a time zone for timestamps with time zone")
    start = binder.call(node, f"date_trunc {unit}", on_clocks(binder, node, value, there))
    return _shown(binder, node, _INSTANT, start, there, policy_zone(binder))


def _of_seconds(binder: Binder, node: exp.Expression) -> Scalar:
    """to_timestamp(seconds since 1970)."""
    only(node, "this")
    clocks = binder.call(node, "to_timestamp", binder.scalar(node.this))
    return _shown(binder, node, _INSTANT, clocks, UNIVERSAL, policy_zone(binder))


RULES: Mapping[type, Rule] = MappingProxyType({exp.AtTimeZone: _at_time_zone, exp.UnixToTime: _of_seconds})
