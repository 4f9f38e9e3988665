"""A session that knows one private table, `users`, and answers with fixed rows.

What a statement says about `users` is run by the front over these rows, put in place of the table's name. Marks in
comments steer it: refuse, fail, slow, mistyped, unreadable, odd_error; asks: it wants to see a row of the front first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from proxy.errors import BudgetSpent, HushError, NotAggregate, Unsupported
from proxy.session.contract import Array, NoRefusal, Notice, Parameter, Piece, Refusal, Row, Session, Spliced
from proxy.wire.lexer import StatementSpan, statements

CITIES = ("Bern", "Bern", "Chur", "{,\"'} $1; --")
AGES = (30, 40, 50, 60)
SLOW_S = 1e6  # until it is cancelled

_PREFIX = re.compile(
    r"\s*(?:copy\s*\(|declare\s+[^;]*?\bfor\b|create\s+temp\s+table\s+(?:if\s+not\s+exists\s+)?\w+\s+as\b|insert\s+into\s+\w+\b)",
    re.IGNORECASE,
)
_NEEDS_TRANSACTION = re.compile(r"\s*declare\s+(?!.*\bwith\s+hold\b)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Released:
    """One call of release."""

    text: str
    parameters: tuple[Parameter, ...]
    settings: Mapping[str, str]


@dataclass(slots=True)
class Diary:
    """What all sessions of a test were asked."""

    opened: list[tuple[str, str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    closed: int = 0
    prepared: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    known: dict[tuple[str, str], tuple[Piece, ...]] = field(default_factory=dict)
    released: list[Released] = field(default_factory=list)
    cancelled: int = 0
    sleeping: asyncio.Event = field(default_factory=asyncio.Event)


class FakeSession:
    """See the module."""

    setting_names: tuple[str, ...] = (
        "hush.epsilon",
        "hush.intervals",
        "TimeZone",
        "DateStyle",
        "statement_timeout",
        "client_min_messages",
        "transaction_isolation",
        "search_path",
    )

    def __init__(self, diary: Diary) -> None:
        self._diary = diary

    def may_be_private(self, text: str) -> bool:
        return "users" in text.lower()

    def known(self, text: str, settings: Mapping[str, str]) -> tuple[Piece, ...]:
        return self._diary.known.get((text, settings.get("hush.intervals", "")), ())

    async def prepare(
        self, text: str, settings: Mapping[str, str], told: tuple[tuple[Row, ...], ...] = ()
    ) -> tuple[Piece, ...]:
        self._diary.prepared.append((text, settings))
        await asyncio.sleep(0)
        if "unreadable" in text:
            raise Unsupported("this statement cannot be read", position=8)
        if "odd_error" in text:
            raise ValueError("secret of a row")
        pieces = tuple(_as_told(_piece(text, span, settings), told) for span in statements(text))
        if not told:
            self._diary.known[text, settings.get("hush.intervals", "")] = pieces
        return pieces

    async def release(self, piece: Piece, parameters: tuple[Parameter, ...], settings: Mapping[str, str]) -> Spliced:
        self._diary.released.append(Released(piece.text, parameters, settings))
        if "/* slow */" in piece.text:
            self._diary.sleeping.set()
            try:
                await asyncio.sleep(SLOW_S)
            except asyncio.CancelledError:
                self._diary.cancelled += 1
                raise
        await asyncio.sleep(0)
        if "/* fail */" in piece.text:
            raise BudgetSpent("the budget is spent", detail="Nothing is left.", hint="Ask for more.", position=3)
        if "/* mistyped */" in piece.text:
            return Spliced(sql="select 1::int2", literal_sql="select 1::int2", arrays=(), notices=())
        if piece.text.lower().startswith("explain"):
            return _explained()
        return _spliced(piece, len(parameters))

    def refused(self, error: HushError) -> None:
        self._diary.refused.append(error.sqlstate)

    async def close(self) -> None:
        self._diary.closed += 1


class FakeSessions:
    """Opens fake sessions that share one diary."""

    def __init__(self) -> None:
        self.diary = Diary()

    async def open(self, login: str, database: str, session_id: str) -> Session:
        self.diary.opened.append((login, database, session_id))
        return FakeSession(self.diary)


def _as_told(piece: Piece, told: tuple[tuple[Row, ...], ...]) -> Piece:
    if "/* asks */" not in piece.text:
        return piece
    if told:
        assert told == ((("kept", None),),)
        return replace(piece, is_fleeting=True)
    return Piece(text=piece.text, start=piece.start, is_private=True, describe_text=piece.text,
                 needs_transaction=piece.needs_transaction, asks="select 'kept', null", is_fleeting=True)  # fmt: skip


def _piece(whole: str, span: StatementSpan, settings: Mapping[str, str]) -> Piece:
    text = whole[span.start : span.end]
    is_private = any(token.text == "users" for token in span.tokens)
    explain = re.match(r"explain\s+", text, re.IGNORECASE)
    prefix = explain or _PREFIX.match(text)
    describe_text = text
    if prefix and is_private:
        describe_text = text[prefix.end() :]
        if text.lower().startswith("copy"):
            describe_text = describe_text[: describe_text.lower().index(") to")]
    elif settings.get("hush.intervals") == "on" and is_private:
        describe_text = re.sub(r"(?i)count\(\*\)", "count(*), 0::int8 as count_low", text, count=1)
    is_refused = is_private and "/* refuse */" in text
    refusal = (
        Refusal(NotAggregate("rows are not shown", hint="Use count(*).", position=8)) if is_refused else NoRefusal()
    )
    return Piece(
        text=text,
        start=span.start,
        is_private=is_private,
        describe_text=describe_text,
        prefix_chars=prefix.end() if prefix and is_private else 0,
        needs_transaction=bool(_NEEDS_TRANSACTION.match(text)),
        refusal=refusal,
    )


def _spliced(piece: Piece, parameters: int) -> Spliced:
    cities = "{" + ",".join('"' + c.replace("\\", "\\\\").replace('"', '\\"') + '"' for c in CITIES) + "}"
    ages = "{" + ",".join(map(str, AGES)) + "}"
    arrays = Array(oid=1009, text=cities), Array(oid=1007, text=ages)
    numbered = [f"${parameters + i + 1}" for i in range(2)]
    types = ("pg_catalog.text[]", "pg_catalog.int4[]")
    literal = ["'" + a.text.replace("'", "''") + f"'::{t}" for a, t in zip(arrays, types, strict=True)]
    text = piece.text if piece.prefix_chars else piece.describe_text
    return Spliced(
        sql=_with_rows(text, numbered),
        literal_sql=_with_rows(text, literal),
        arrays=arrays,
        notices=(Notice(severity="NOTICE", sqlstate="00000", message="charged 0.5"),),
    )


def _with_rows(text: str, arrays: list[str]) -> str:
    rows = f"(select * from rows from (unnest({arrays[0]}), unnest({arrays[1]})) as r(city, age)) as users"
    return re.sub(r"(?i)\busers\b(?![.\"])", lambda _: rows, text)


def _explained() -> Spliced:
    array = Array(oid=1009, text='{"noise 1","noise 2"}')
    sql = 'select * from unnest({}) as r("QUERY PLAN")'
    literal = sql.format("'" + array.text + "'::text[]")
    return Spliced(sql=sql.format("$1"), literal_sql=literal, arrays=(array,), notices=(), tag="EXPLAIN")
