"""Which rows around a row does the frame of a window function take?

Frames are counted in rows of the unit, or in groups of rows that are equal in the window's order. Those by values are
accepted where they end with such a group.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.algebra.nodes import UpToPeers, WindowFrame
from proxy.sql.syntax.refusal import only, refuse

_FARTHEST = 1000
_HINT = "Write ROWS or GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW, with UNBOUNDED or numbers from 0 to 1000."


def frame_of(spec: exp.Expression | None) -> WindowFrame | UpToPeers:
    """The frame that a window gives. Raises Unsupported."""
    if spec is None:
        return UpToPeers()
    only(spec, "kind", "start", "start_side", "end", "end_side")
    start, end = _end(spec, "start", -1), _end(spec, "end", 1)
    if start is not None and end is not None and start > end:
        raise refuse(spec, "a frame that ends before it starts is not supported", _HINT)
    kind = str(spec.args.get("kind")).upper()
    if kind == "ROWS":
        return WindowFrame(start, end)
    if kind == "RANGE" and (start or end):
        raise refuse(spec, "a frame by values is not supported over private rows", _HINT)
    if (start, end) == (None, 0):
        return UpToPeers()
    return WindowFrame(start, end, by_peers=(start, end) != (None, None))


def _end(spec: exp.Expression, name: str, unbounded: int) -> int | None:
    """One end, in rows after this one; None for the first row as a start (-1), for the last as an end (1)."""
    bound, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    sign = {"PRECEDING": -1, "FOLLOWING": 1}.get(side, 0)
    if bound is None or (isinstance(bound, str) and bound.upper() == "CURRENT ROW"):
        return 0
    if isinstance(bound, str) and bound.upper() == "UNBOUNDED" and sign == unbounded:
        return None
    text = str(bound.this) if isinstance(bound, exp.Literal) and not bound.args.get("is_string") else ""
    if not text.isdigit() or int(text) > _FARTHEST or sign == 0:
        raise refuse(spec, "this frame is not supported over private rows", _HINT)
    return sign * int(text)
