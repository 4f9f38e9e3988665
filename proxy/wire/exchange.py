"""Which values do the relay and a session hand each other?

The relay speaks bytes and messages; the session understands statements, charges and releases. The two calls
between them are described in `proxy.session.contract`; these are their arguments and results.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.errors import HushError

#: A row that the front has shown to the session, as text.
Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class NoRefusal:
    """The statement may be executed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The statement is refused at Execute (native errors of the front win before that)."""

    error: HushError


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One statement of a query string.

    text: the statement exactly as sent, without its semicolon; start: its offset in characters.
    is_private: it names a private table or a relation of the proxy, so it must not be forwarded.
    describe_text: what the front parses and describes in its place (the inner query of COPY,
        DECLARE, ...; the statement itself, or its widened form, otherwise).
    prefix_chars: characters of `text` before the part that `describe_text` stands for, for error positions.
    needs_transaction: it can only fail outside a transaction block (DECLARE without HOLD).
    returns_rows: Describe of the whole statement gives a RowDescription.
    asks: what the front is to be asked before this is understood, "" for nothing; it is prepared again then.
    is_fleeting: it depends on what the front was asked, so it is to be prepared again each time it is run.
    is_inert: running it on the front changes no setting, nor anything else that the next statement could see.
    told: what the front said when it was asked in the middle of a release.
    """

    text: str
    start: int
    is_private: bool
    describe_text: str
    prefix_chars: int = 0
    needs_transaction: bool = False
    returns_rows: bool = True
    asks: str = ""
    is_fleeting: bool = False
    is_inert: bool = False
    told: tuple[Row, ...] = ()
    refusal: NoRefusal | Refusal = NoRefusal()
    handle: object = None

    @property
    def is_part(self) -> bool:
        """Whether `describe_text` is what the statement runs, not what it returns: COPY, DECLARE, SELECT INTO, ..."""
        return bool(self.prefix_chars) or not self.returns_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A bound parameter as the client sent it. format: 0 text, 1 binary; data None is NULL."""

    oid: int
    format: int
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """An array parameter that carries one released column, in PostgreSQL's text format."""

    oid: int
    text: str


#: SQLSTATEs of the notice that says what a statement cost, so that programs need not read its words: of the class of
#: successes, with subclasses of our own.
CHARGED, FREE = "00P01", "00P02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A NoticeResponse to write before the statement's first row. severity: NOTICE or WARNING."""

    severity: str
    sqlstate: str
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spliced:
    """The statement to run on the front in place of the client's.

    sql uses $n .. for `arrays`, n being the number of client parameters plus one.
    literal_sql is the same statement with arrays as literals, for the simple protocol, COPY, DECLARE.
    tag: command tag to show instead of the front's ("" keeps the front's), e.g. EXPLAIN.
    """

    sql: str
    literal_sql: str
    arrays: tuple[Array, ...]
    notices: tuple[Notice, ...]
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What the front is to be asked before a release can go on. piece: to be released again, with what it has said.

    sql uses the client's parameters, and those after them for `arrays`.
    """

    sql: str
    arrays: tuple[Array, ...]
    piece: Piece
