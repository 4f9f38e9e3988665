"""What does a window say that names one of the WINDOW clause?

The named window is written out in its place, so that nothing else has to know of names.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from proxy.sql.syntax.names import identifier
from proxy.sql.syntax.refusal import refuse

_PARTS = ("partition_by", "order", "spec")


def windows_of(select: exp.Select) -> Mapping[str, exp.Expression]:
    """The windows of a SELECT's WINDOW clause by name, each written out. Raises Unsupported."""
    found: dict[str, exp.Expression] = {}
    for window in select.args.get("windows") or ():
        found[identifier(window.this)] = written_out(window, found)
    return found


def written_out(window: exp.Expression, named: Mapping[str, exp.Expression]) -> exp.Expression:
    """The same window without the name that it starts from. Raises Unsupported."""
    start = window.args.get("alias")
    if start is None:
        return window
    if identifier(start) not in named:
        raise refuse(window, f'window "{identifier(start)}" does not exist', "Name a window of the WINDOW clause.")
    base, found = named[identifier(start)], window.copy()
    found.set("alias", None)
    for part in _PARTS:
        if not found.args.get(part) and base.args.get(part):
            copied = base.copy()
            found.set(part, copied.args[part])
    return found
