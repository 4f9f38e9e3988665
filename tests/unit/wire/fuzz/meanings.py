"""What does a text do on the model of a front?

A handful of words with PostgreSQL's rules about transactions, errors and COPY; no SQL. Texts say themselves how many
rows they give (`rows 3`), how they fail (`nope` at once, `runfail` while they run) and if they are private (`users`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from proxy.wire.lexer import Sort, statements, tokens
from proxy.wire.messages import ResultColumn

#: What the client may ask for: public, private (with `users`), and what the relay screens.
PUBLIC = (
    "select rows 1", "select rows 3", "select rows 40", "select rows 0", "select rows 2 $1", "begin", "commit",
    "rollback", "nope", "select runfail", "", "set client_encoding to latin1", "set client_encoding to utf8",
    "noticed rows 1", "copyout rows 3", "copyin", "prepare p as x", "deallocate all", "discard all", "savepoint a",
    "rollback to savepoint a", "select rows 1; select rows 2", "begin; select rows 1", "select rows 1; nope",
    "select rows 1; copyin; select rows 2", "changed rows 1", "changed rows 0; commit", ";;",
)  # fmt: skip
PRIVATE = (
    "set client_encoding to euc_jp", "select users", "select users $1", "select users refuse",
    "select users unreadable", "select users asks",
    "select users staged", "select users staged $1", "select users mistyped", "select users broke", "nope users",
    "select users bindfail", "select users latin", "select users runfail", "copyout users", "declare users",
    "select rows 2; select users", "select users; select users", "begin; select users", "select users; nope",
    "set client_encoding to latin1; select users", "select users; copyin; select users", "select users; runfail",
    "select users asks turned", "select users tagged", "select users widened", "select users inert",
    "rollback; select users; begin", "select users inert; select users inert", "select users nothing",
)  # fmt: skip
#: Private texts that are answered as if the table were a public one.
ANSWERED = (
    "select users", "select users $1", "select users asks", "select users staged", "select users staged $1",
    "nope users", "copyout users", "select users widened", "select users inert",
    "select rows 2; select users", "select users; select users", "begin; select users", "select users; nope",
    "set client_encoding to latin1; select users", "select users; copyin; select users",
    "rollback; select users; begin", "select users inert; select users inert", "select users nothing",
    "select users; select runfail", "select users; commit", "commit; select users", "select users; savepoint a",
    "begin; select users; savepoint a", "rollback to savepoint a; select users", "commit; nope; select users",
    "select users; begin; select runfail", "select users; rollback; select runfail",
)  # fmt: skip
SCREENED = ("alter role a password 'x'", "select rows 1; notify c", "set work_mem = 1", "select set_config(x, 'y')")

INT8, INT2, TEXT = 20, 21, 25
GUARD = "hush_guard"


def column(name: bytes, oid: int) -> ResultColumn:
    return ResultColumn(name=name, table_oid=0, attribute=0, oid=oid, size=8, typmod=-1, format=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One statement. verb: its first word. parameters: how many. serial: of the release it shows, "" for none.

    says: words that steer it. is_private: it reads what is guarded. marked: it raises the marker when it runs.
    """

    verb: str
    says: frozenset[str]
    rows: int
    columns: tuple[ResultColumn, ...]
    parameters: int
    serial: str = ""
    is_private: bool = False
    marked: bool = False

    @property
    def tag(self) -> bytes:
        words = {
            "savepoint": "SAVEPOINT",
            "release": "RELEASE",
            "deallocate": "DEALLOCATE ALL",
            "discard": "DISCARD ALL",
        }
        return words.get(self.verb, self.verb.upper() or "SELECT").encode()


_ROWS = re.compile(r"\brows (\d+)")
_SERIAL = re.compile(r"\bserial(\d+)\b")
_PARAMETERS = re.compile(r"\$(\d+)")
_RETURN_ROWS = frozenset({"select", "noticed", "changed", "show"})


@lru_cache(maxsize=4096)
def meanings(text: str) -> tuple[Meaning, ...]:
    """The statements of a text."""
    return tuple(_meaning(text[span.start : span.end]) for span in statements(text))


def _meaning(text: str) -> Meaning:
    said = [token.text for token in tokens(text) if token.sort is Sort.WORD]
    verb = said[0] if said else ""
    if verb == "rollback" and "savepoint" in said:
        verb = "rollback to"
    serial = _SERIAL.search(text)
    named = [int(number) for number in _PARAMETERS.findall(text)]
    rows = _ROWS.search(text)
    return Meaning(
        verb=verb,
        says=frozenset(said),
        rows=int(rows[1]) if rows else 2 if "users" in said else 1,
        columns=_columns(text, verb, said),
        parameters=max(named, default=0),
        serial=serial[1] if serial else "",
        is_private="users" in said and not serial,
        marked="concat" in said,
    )


def _columns(text: str, verb: str, said: list[str]) -> tuple[ResultColumn, ...]:
    if verb not in _RETURN_ROWS or "nothing" in said:
        return ()
    if "current_setting" in said or verb == "show":
        return tuple(column(b"setting", TEXT) for _ in range(max(1, said.count("current_setting"))))
    if "null" in said:
        return tuple(column(b"?column?", TEXT) for _ in range(said.count("null") - 1))
    return (column(b"n", INT2 if "mistyped" in said and "serial" in text else INT8),)
