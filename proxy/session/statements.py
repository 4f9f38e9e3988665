"""Which statements of a query string need the session, and as what?

A statement that names nothing private is left to the front untouched. A private one is reduced to the
SELECT inside it: EXPLAIN, COPY (...) TO, DECLARE ... FOR and CREATE TEMP TABLE ... AS keep their own
words around it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from proxy.errors import HushError, NotAggregate, PolicyForbids, Unsupported
from proxy.front.relations import RELATIONS, SCHEMA
from proxy.session.contract import Piece, Refusal
from proxy.session.dataset import Version
from proxy.session.settings import check_setting
from proxy.sql.parse import Statement, limited_depth, split_statements
from proxy.sql.probe import Probe, probe
from proxy.sql.scope import Catalog
from proxy.sql.split import Split, split
from proxy.sql.table_command import WrittenOut, write_out
from proxy.sql.widen import widen

SYSTEM_RELATIONS = frozenset(RELATIONS)


class Wrapper(enum.Enum):
    """What stands around the SELECT."""

    NONE = "none"
    EXPLAIN_TEXT = "explain"
    EXPLAIN_JSON = "explain json"
    COPY = "copy"
    DECLARE = "declare"
    CREATE_TABLE = "create table as"


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """The handle of a private piece: the policy version it was read under and its cut SELECT."""

    version: Version
    wrapper: Wrapper
    before: str
    query: Split | Probe
    after: str
    written: WrittenOut

    def position(self, position: int) -> int:
        """Where in the client's statement a 1-based position of the SELECT is; 0 stays unknown."""
        return len(self.before) + self.written.original(position) if position else 0


def understand(text: str, version: Version, login: str, *, has_intervals: bool) -> tuple[Piece, ...]:
    """Cut a query string into pieces. A private piece that is refused carries its refusal."""
    catalog = version.catalog(login)
    reader = _Reader(version, catalog, _private_names(catalog), has_intervals)
    return tuple(reader.piece(s) for s in split_statements(text))


def private_words(version: Version, login: str) -> frozenset[str]:
    """Lower-case words without which no statement can be private; a name's quotes are doubled in SQL."""
    names = _private_names(version.catalog(login))
    return frozenset((*names, *(n.replace('"', '""') for n in names), SCHEMA))


def _private_names(catalog: Catalog) -> frozenset[str]:
    return frozenset(t.name.lower() for t in catalog.tables.values() if not t.is_public)


class _Reader:
    def __init__(self, version: Version, catalog: Catalog, private: frozenset[str], has_intervals: bool) -> None:
        self._version = version
        self._catalog = catalog
        self._private = private
        self._has_intervals = has_intervals

    def piece(self, statement: Statement) -> Piece:
        try:
            with limited_depth():
                return self._piece(statement)
        except HushError as error:
            return _private(statement, error=error)

    def _piece(self, statement: Statement) -> Piece:
        words = statement.words(4)
        if words[0] == "SET":
            self._check_set(statement)
            return _forwarded(statement)
        if not self._names_private(statement):
            return _forwarded(statement)
        if words[0] == "CREATE" and not _is_create_table_as(statement):
            self._check_shadow(statement)
            return _forwarded(statement)
        wrapper, first, last = _unwrap(statement)
        if statement.tokens[first].text.upper() not in ("SELECT", "WITH", "(", "VALUES", "TABLE"):
            return _forwarded(statement)
        return self._select(statement, wrapper, first, last)

    def _names_private(self, statement: Statement) -> bool:
        names = [t.text.lower() for t in statement.tokens]
        return any(n in self._private for n in names) or (
            SCHEMA in names and any(n in SYSTEM_RELATIONS or n in _FUNCTIONS for n in names)
        )

    def _select(self, statement: Statement, wrapper: Wrapper, first: int, last: int) -> Piece:
        start, end = statement.tokens[first].start, statement.tokens[last - 1].end + 1
        inner = split_statements(statement.text[start:end])[0]
        written = write_out(inner)
        try:
            cut = self._cut(written.statement)
        except HushError as error:
            raise _moved(error, written, start) from None
        if not isinstance(cut, Probe) and not cut.blocks and not cut.system:
            return _forwarded(statement)
        is_explain = wrapper in (Wrapper.EXPLAIN_TEXT, Wrapper.EXPLAIN_JSON)
        if wrapper is Wrapper.CREATE_TABLE:
            self._check_shadow(statement)
        before, after = statement.text[:start], statement.text[end:]
        asked = inner.text if cut.text == written.statement.text else cut.text
        return Piece(
            text=statement.text,
            start=statement.start,
            is_private=True,
            describe_text=before + asked if is_explain else asked,
            prefix_chars=0 if is_explain else start,
            needs_transaction=wrapper is Wrapper.DECLARE and not _is_with_hold(statement, first),
            returns_rows=wrapper in (Wrapper.NONE, Wrapper.EXPLAIN_TEXT, Wrapper.EXPLAIN_JSON),
            handle=Understood(
                version=self._version, wrapper=wrapper, before=before, query=cut, after=after, written=written
            ),
        )

    def _cut(self, inner: Statement) -> Split | Probe:
        try:
            cut = split(inner, self._catalog, SYSTEM_RELATIONS)
            if self._has_intervals:
                widened = widen(cut)
                if widened != inner.text:
                    cut = split(split_statements(widened)[0], self._catalog, SYSTEM_RELATIONS)
            return cut
        except NotAggregate:
            found = probe(inner, self._catalog, allow_all=self._version.policy.privacy.raw_select_empty)
            if found is not None:
                return found
            raise

    def _check_shadow(self, statement: Statement) -> None:
        """A temporary object called like a private table would make later queries mean something else."""
        for token in statement.tokens:
            text = token.text.upper()
            if text in ("AS", "("):
                break
            if token.text.lower() in self._private:
                raise PolicyForbids(
                    f'"{token.text}" is a private table; nothing else may have its name',
                    hint="Choose another name.",
                    position=token.start + 1,
                )

    def _check_set(self, statement: Statement) -> None:
        """A bad value of a hush.* setting fails at SET."""
        words = [t.text for t in statement.tokens]
        at = 2 if words[1:2] and words[1].upper() in ("SESSION", "LOCAL") else 1
        if [w.lower() for w in words[at : at + 2]] != [SCHEMA, "."] or len(words) < at + 5:
            return
        value = "".join(words[at + 4 :])
        if words[at + 3].upper() not in ("=", "TO") or value.upper() == "DEFAULT":
            return
        check_setting(f"{SCHEMA}.{words[at + 2]}", value, self._version.policy.privacy)


_FUNCTIONS = frozenset(("low", "high", "sd"))


def _moved(error: HushError, written: WrittenOut, offset: int) -> HushError:
    position = written.original(error.position) + offset if error.position else 0
    return type(error)(error.message, detail=error.detail, hint=error.hint, position=position)


def _forwarded(statement: Statement) -> Piece:
    return Piece(text=statement.text, start=statement.start, is_private=False, describe_text=statement.text)


def _private(statement: Statement, *, error: HushError) -> Piece:
    """A refused piece; it is described as a whole so that the front's own errors come first."""
    return Piece(text=statement.text, start=statement.start, is_private=True, describe_text=statement.text,
                 refusal=Refusal(error))  # fmt: skip


# --- statements around a SELECT -----------------------------------------------------------------------------


def _unwrap(statement: Statement) -> tuple[Wrapper, int, int]:
    """The wrapper, and the tokens [first, last) of the SELECT inside it."""
    tokens = statement.tokens
    match statement.words(1)[0]:
        case "EXPLAIN":
            return _explain(statement)
        case "COPY":
            return _copy(statement)
        case "DECLARE":
            first = _after(statement, "FOR")
            return Wrapper.DECLARE, first, len(tokens)
        case "CREATE":
            return Wrapper.CREATE_TABLE, _after(statement, "AS"), len(tokens)
        case _:
            return Wrapper.NONE, 0, len(tokens)


def _explain(statement: Statement) -> tuple[Wrapper, int, int]:
    words = [t.text.upper() for t in statement.tokens]
    position, options = 1, []
    if words[1:2] == ["("]:
        end = words.index(")") if ")" in words else len(words) - 1
        options, position = words[2:end], end + 1
    else:
        while words[position : position + 1] and words[position] in ("ANALYZE", "ANALYSE", "VERBOSE"):
            options.append(words[position])
            position += 1
    text = " ".join(options)
    for option in ("ANALYZE", "ANALYSE"):
        if option in options and f"{option} FALSE" not in text and f"{option} OFF" not in text:
            raise Unsupported(
                "EXPLAIN ANALYZE of private tables is not supported",
                detail="Timings and row counts would tell about private rows.",
                hint="Use EXPLAIN, which prints the privacy plan and costs nothing.",
            )
    unknown = [f for f in ("XML", "YAML") if f in options]
    if unknown:
        raise Unsupported("the privacy plan is available as text and JSON", hint="Use EXPLAIN (FORMAT JSON) ...")
    if position >= len(words):
        raise Unsupported("EXPLAIN needs a statement")
    return (Wrapper.EXPLAIN_JSON if "JSON" in options else Wrapper.EXPLAIN_TEXT), position, len(words)


def _copy(statement: Statement) -> tuple[Wrapper, int, int]:
    """COPY (query) TO ...; COPY table TO is left to the front, whose guard refuses it."""
    depth = 0
    if len(statement.tokens) < 2 or statement.tokens[1].text != "(":
        return Wrapper.COPY, 0, len(statement.tokens)
    for position, token in enumerate(statement.tokens[1:], start=1):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return Wrapper.COPY, 2, position
    raise Unsupported("COPY has no closing parenthesis")


def _after(statement: Statement, word: str) -> int:
    for position, token in enumerate(statement.tokens[:-1]):
        if token.text.upper() == word:
            return position + 1
    return 0


def _is_create_table_as(statement: Statement) -> bool:
    words = statement.words(12)
    is_table = "TABLE" in words[:4] and any(w in words[:4] for w in ("TEMP", "TEMPORARY"))
    return is_table and "AS" in words and "(" not in words[: words.index("AS")]


def _is_with_hold(statement: Statement, first: int) -> bool:
    return "WITH HOLD" in " ".join(t.text.upper() for t in statement.tokens[:first])
