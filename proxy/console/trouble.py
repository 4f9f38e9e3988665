"""Why is there no answer, in values that a page can show?"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from proxy.errors import HushError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why there is no answer. position: 1-based character of the statement, 0 if unknown.

    proposed: the statement that the hint names, to be put into the editor; "" if it names none.
    """

    message: str
    detail: str
    hint: str
    code: str
    position: int
    proposed: str


def trouble_of(error: Exception, statement: str) -> Trouble:
    """What PostgreSQL or the proxy said, as values."""
    if isinstance(error, HushError):
        return Trouble(message=error.message, detail=error.detail, hint=error.hint, code=error.sqlstate, position=0,
                       proposed="")  # fmt: skip
    assert isinstance(error, psycopg.Error), "nothing else is raised on the way"
    said = error.diag
    hint, place = said.message_hint or "", said.statement_position or "0"
    return Trouble(
        message=said.message_primary or "the connection was lost", detail=said.message_detail or "", hint=hint,
        code=error.sqlstate or "", position=int(place), proposed=proposed(hint, statement),
    )  # fmt: skip


def proposed(hint: str, statement: str) -> str:
    """The whole statement that a hint proposes, or "". A setting goes before the statement."""
    for start in ("SELECT ", "SET ", "WITH "):
        _, found, rest = hint.partition(f": {start}")
        text = f"{start}{rest}".rstrip().removesuffix(".").rstrip()
        if found and text:
            return f"{text};\n{statement}" if start == "SET " else text
    return ""
