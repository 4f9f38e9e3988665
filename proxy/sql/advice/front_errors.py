"""Which hint goes with an error of PostgreSQL about a statement over private rows?"""

from __future__ import annotations

from proxy.sql.advice.calls import instead_of_call
from proxy.sql.syntax.written_calls import call_at, calls_around

_UNKNOWN_FUNCTION, _UNKNOWN_COLUMN, _SYNTAX = "42883", "42703", "42601"
_LONGEST = 20_000  # characters of a statement whose error of PostgreSQL is looked at


def advice_for_error(text: str, sqlstate: str, position: int) -> str:
    """What to write where PostgreSQL does not know a function, or what stands in its parentheses; "" for all else.

    position: 1-based, of the error in the text.
    """
    start = position - 1
    if start < 0 or len(text) > _LONGEST:
        return ""
    if sqlstate == _UNKNOWN_FUNCTION:
        written = call_at(text, start)
        return "" if written is None else instead_of_call(written)
    if sqlstate in (_UNKNOWN_COLUMN, _SYNTAX):
        return next((found for call in calls_around(text, start) if (found := instead_of_call(call))), "")
    return ""
