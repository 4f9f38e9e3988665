"""What stands around the SELECT of a statement?

EXPLAIN, COPY (...) TO, DECLARE ... FOR, CREATE TEMP TABLE ... AS and SELECT ... INTO are taken apart by their
tokens. What the SELECT itself says is not looked at.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported
from proxy.sql.syntax.names import token_name
from proxy.sql.syntax.parse import Statement


class Wrapper(enum.Enum):
    """The kinds of statement around a SELECT."""

    NONE = "none"
    EXPLAIN_TEXT = "explain"
    EXPLAIN_JSON = "explain json"
    COPY = "copy"
    DECLARE = "declare"
    CREATE_TABLE = "create table as"


EXPLAINS = frozenset((Wrapper.EXPLAIN_TEXT, Wrapper.EXPLAIN_JSON))
QUERY_STARTS = frozenset(("SELECT", "WITH", "(", "VALUES", "TABLE"))
_CALL = "EXECUTE"
_NAMES_AND_TEXTS = (TokenType.IDENTIFIER, TokenType.STRING)
_TEMPORARY = frozenset(("TEMP", "TEMPORARY"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """A SELECT taken out of its statement.

    text: the SELECT, `start` characters into the statement, as long as the piece that it stands for. before, after:
    what the front is to see around it. creates: the name of the table that keeps its rows, each part with its place.
    cursor: the name of the cursor that does, "" for none. would_create: of the statement that EXPLAIN is asked about.
    """

    wrapper: Wrapper
    before: str
    text: str
    start: int
    after: str = ""
    creates: tuple[tuple[str, int], ...] = ()
    cursor: str = ""
    needs_transaction: bool = False
    would_create: tuple[tuple[str, int], ...] = ()

    @property
    def is_call(self) -> bool:
        """Whether EXECUTE of a prepared statement stands for the SELECT."""
        return self.text[: len(_CALL)].upper() == _CALL


def unwrap(statement: Statement) -> Wrapped | None:
    """The SELECT of a statement; None: there is none, or the front runs it without reading a row.

    Raises Unsupported for an EXPLAIN that is not offered.
    """
    match _word(statement.tokens, 0):
        case "EXPLAIN":
            return _explain(statement)
        case "COPY":
            return _copy(statement)
        case "DECLARE":
            return _declare(statement)
        case "CREATE":
            return _create_table(statement)
        case _:
            return _select(statement, 0)


def _select(statement: Statement, first: int) -> Wrapped | None:
    """A SELECT from that token on; with INTO it is a CREATE TABLE."""
    tokens = statement.tokens
    if _word(tokens, first) not in (*QUERY_STARTS, _CALL):
        return None
    start = tokens[first].start
    found = Wrapped(wrapper=Wrapper.NONE, before=statement.text[:start], text=statement.text[start:], start=start)
    into = next((i for i in _top_level(tokens, first) if _word(tokens, i) == "INTO"), 0)
    return found if not into else _select_into(statement, found, into)


def _select_into(statement: Statement, found: Wrapped, into: int) -> Wrapped | None:
    """The INTO clause makes room for as many spaces: what follows keeps its place."""
    tokens, text = statement.tokens, statement.text
    at = into + 1
    is_temporary = _word(tokens, at) in _TEMPORARY
    while _word(tokens, at) in (*_TEMPORARY, "UNLOGGED", "TABLE"):
        at += 1
    name = _name(tokens, at)
    if not name or not (is_temporary or _is_in_temporary_schema(name)):
        return None
    start, end = tokens[into].start, name[-1].end + 1
    kept = f"{text[found.start : start]}{' ' * (end - start)}{text[end:]}"
    named = text[name[0].start : end]
    temporary = "TEMP " if is_temporary else ""
    return replace(
        found,
        wrapper=Wrapper.CREATE_TABLE,
        before=f"SELECT * INTO {temporary}TABLE {named} FROM (",
        text=kept,
        after=") AS kept",
        creates=_placed(name),
    )


def _create_table(statement: Statement) -> Wrapped | None:
    tokens = statement.tokens
    kind = next((i for i in range(1, min(4, len(tokens))) if _word(tokens, i) == "TABLE"), 0)
    as_ = next((i for i in _top_level(tokens, kind) if _word(tokens, i) == "AS"), 0)
    if not kind or not as_ or _word(tokens, as_ + 1) not in (*QUERY_STARTS, _CALL):
        return None
    at = kind + 4 if _words(tokens, kind + 1, 3) == "IF NOT EXISTS" else kind + 1
    name = _name(tokens, at)
    is_temporary = any(_word(tokens, i) in _TEMPORARY for i in range(1, kind)) or _is_in_temporary_schema(name)
    if not is_temporary or _words(tokens, len(tokens) - 3, 3) == "WITH NO DATA":
        return None
    last = len(tokens) - (2 if _words(tokens, len(tokens) - 2, 2) == "WITH DATA" else 0)
    return replace(_between(statement, Wrapper.CREATE_TABLE, as_ + 1, last), creates=_placed(name))


def _declare(statement: Statement) -> Wrapped | None:
    tokens = statement.tokens
    for_ = next((i for i in _top_level(tokens, 2) if _word(tokens, i) == "FOR"), 0)
    if not for_ or _word(tokens, for_ + 1) not in QUERY_STARTS:
        return None
    is_held = any(_words(tokens, i, 2) == "WITH HOLD" for i in range(2, for_))
    found = _between(statement, Wrapper.DECLARE, for_ + 1, len(tokens))
    return replace(found, needs_transaction=not is_held, cursor=token_name(tokens[1]))


def _copy(statement: Statement) -> Wrapped | None:
    """COPY (query) TO ...; COPY table TO is left to the front, whose guard refuses it."""
    tokens = statement.tokens
    if _word(tokens, 1) != "(" or _word(tokens, 2) not in QUERY_STARTS:
        return None
    closing = next(_top_level(tokens, 1), len(tokens))
    if _word(tokens, closing) != ")":
        raise Unsupported("COPY has no closing parenthesis")
    return _between(statement, Wrapper.COPY, 2, closing)


def _explain(statement: Statement) -> Wrapped | None:
    tokens = statement.tokens
    at, options = 1, []
    if _word(tokens, 1) == "(":
        end = next(_top_level(tokens, 1), len(tokens))
        options, at = [t.text.upper() for t in tokens[2:end]], end + 1
    else:
        while _word(tokens, at) in ("ANALYZE", "ANALYSE", "VERBOSE"):
            options.append(_word(tokens, at))
            at += 1
    if at >= len(tokens):
        raise Unsupported("EXPLAIN needs a statement")
    explained = _explained(statement, at)
    if explained is None:
        return None
    _check_offered(options)
    wrapper = Wrapper.EXPLAIN_JSON if "JSON" in options else Wrapper.EXPLAIN_TEXT
    before = statement.text[: tokens[at].start]
    return Wrapped(wrapper=wrapper, before=before, text=explained.text, start=explained.start,
                   would_create=explained.creates)  # fmt: skip


def _explained(statement: Statement, at: int) -> Wrapped | None:
    """The SELECT of what EXPLAIN is asked about, which PostgreSQL does not run either."""
    offset = statement.tokens[at].start
    moved = Statement(statement.text, 0, statement.tokens[at:])
    match _word(moved.tokens, 0):
        case "CREATE":
            found = _create_table(moved)
        case "DECLARE":
            found = _declare(moved)
        case _:
            found = _select(moved, 0)
    assert found is None or found.start >= offset
    return found


def _check_offered(options: Sequence[str]) -> None:
    text = " ".join(options)
    for option in ("ANALYZE", "ANALYSE"):
        if option in options and f"{option} FALSE" not in text and f"{option} OFF" not in text:
            raise Unsupported(
                "EXPLAIN ANALYZE of private tables is not supported",
                detail="Timings and row counts would tell about private rows.",
                hint="Use EXPLAIN, which prints the privacy plan and costs nothing.",
            )
    if any(form in options for form in ("XML", "YAML")):
        raise Unsupported("the privacy plan is available as text and JSON", hint="Use EXPLAIN (FORMAT JSON) ...")


# --- tokens -------------------------------------------------------------------------------------------------


def _between(statement: Statement, wrapper: Wrapper, first: int, last: int) -> Wrapped:
    """The SELECT of the tokens [first, last)."""
    start, end = statement.tokens[first].start, statement.tokens[last - 1].end + 1
    text = statement.text
    return Wrapped(wrapper=wrapper, before=text[:start], text=text[start:end], start=start, after=text[end:])


def _word(tokens: Sequence[Token], position: int) -> str:
    """A token in upper case; "" past the end, for a quoted name and for a text."""
    if not 0 <= position < len(tokens) or tokens[position].token_type in _NAMES_AND_TEXTS:
        return ""
    return tokens[position].text.upper()


def _words(tokens: Sequence[Token], first: int, count: int) -> str:
    return " ".join(_word(tokens, i) for i in range(first, first + count))


def _top_level(tokens: Sequence[Token], first: int) -> Iterator[int]:
    """Tokens after that one outside any parentheses, the closing ones included."""
    depth = {"(": 1}.get(_word(tokens, first), 0)
    for position in range(first + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(_word(tokens, position), 0)
        if depth == 0:
            yield position


def _name(tokens: Sequence[Token], at: int) -> tuple[Token, ...]:
    """A table's name from that token on: parts with full stops between them."""
    end = at + 1
    while _word(tokens, end) == ".":
        end += 2
    return tuple(tokens[at:end])


def _placed(name: Sequence[Token]) -> tuple[tuple[str, int], ...]:
    return tuple((token_name(token), token.start) for token in name)


def _is_in_temporary_schema(name: Sequence[Token]) -> bool:
    return len(name) == 3 and name[0].text.lower() == "pg_temp"
