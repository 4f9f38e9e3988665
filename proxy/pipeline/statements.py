"""Which statements of a query string need the session, and as what?

A statement that names nothing private is left to the front untouched. A private one is reduced to the
SELECT inside it; what stands around that is told by `wrappers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from proxy.errors import HushError, NotAggregate, PolicyForbids, Unsupported
from proxy.pipeline.front_state import KEPT_SQL, NOTHING_KEPT, Answers, Noted, Taken, names_made, read_kept, values_sql
from proxy.pipeline.outline import Cuts, Outline, outline_of
from proxy.pipeline.premises import Premises
from proxy.pipeline.settings import check_setting
from proxy.policy.model import RawSelect
from proxy.sql.query.front.interval_columns import widen, with_note
from proxy.sql.query.probe import Probe, emptied, is_without_rows, probe
from proxy.sql.query.public_rows.aggregate_below_join import split_lifted
from proxy.sql.query.side_effects import is_inert
from proxy.sql.query.split import SYSTEM_SCHEMA, Split, split
from proxy.sql.query.stages import WrittenStatement
from proxy.sql.syntax.parse import NO_STATEMENT, Statement, limited_depth, split_statements
from proxy.sql.syntax.prepared import call_of, prepared_text, with_values
from proxy.sql.syntax.system_calls import CALLS
from proxy.sql.syntax.table_command import WrittenOut, write_out
from proxy.sql.syntax.views import NOT_EXPANDED, Expanded, expand
from proxy.sql.syntax.wrappers import EXPLAINS, QUERY_STARTS, Wrapped, Wrapper, unwrap
from proxy.wire.exchange import Piece, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """The handle of a private piece: what it was read under and the outline of its SELECT.

    written: by which constants released sub-queries were replaced in it, in order. profiled: tables of a profile that
    it names, or something of their name.
    """

    premises: Premises
    wrapped: Wrapped
    query: Outline | Probe
    placed: PlacedSelect
    told: Answers
    written: tuple[WrittenStatement, ...] = ()
    profiled: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many characters there are to read."""
        return len(self.query.text)

    def position(self, position: int) -> int:
        """Where in the client's statement a 1-based position of the SELECT is; 0 stays unknown."""
        for step in reversed(self.written if position else ()):
            position = step.original(position)
        return self.placed.original(position)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSelect:
    """How the SELECT that is understood came from the client's statement. is_call: it was prepared, so it has no place.

    start: where it began.
    """

    start: int
    written: WrittenOut
    is_call: bool
    expanded: Expanded = NOT_EXPANDED
    lifted: Expanded = NOT_EXPANDED

    def original(self, position: int) -> int:
        """The place in the client's statement of a 1-based position; 0 is unknown."""
        if not position or self.is_call:
            return 0
        return self.start + self.written.original(self.expanded.original(self.lifted.original(position)))

    def without_texts(self) -> PlacedSelect:
        """The same for those who ask for positions alone."""
        return replace(
            self,
            written=replace(self.written, statement=NO_STATEMENT),
            expanded=replace(self.expanded, statement=NO_STATEMENT),
            lifted=replace(self.lifted, statement=NO_STATEMENT),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryString:
    """A query string and all that its meaning depends on.

    has_notes: notices are wanted in a column. noted: names that views and prepared statements of the session may have.
    told: what the front said about those.
    """

    premises: Premises
    text: str
    has_intervals: bool
    has_notes: bool = False
    noted: frozenset[str] = frozenset()
    told: Answers = ()


def understand(cuts: Cuts, asked: QueryString) -> tuple[Piece, ...]:
    """Cut a query string into pieces. A private piece that is refused carries its refusal."""
    reader = _Reader(cuts, asked)
    return tuple(reader.piece(s) for s in split_statements(asked.text))


def private_words(premises: Premises) -> frozenset[str]:
    """Lower-case words without which no statement can be private; a name's quotes are doubled in SQL."""
    names = premises.private_names
    return frozenset((*names, *(n.replace('"', '""') for n in names), SYSTEM_SCHEMA))


class _Reader:
    """Reads the statements of a string in order: one may name a view that an earlier one makes."""

    def __init__(self, cuts: Cuts, asked: QueryString) -> None:
        self._cuts = cuts
        self._premises = asked.premises
        self._catalog = asked.premises.catalog
        self._private = asked.premises.private_names
        self._has_intervals = asked.has_intervals
        self._has_notes = asked.has_notes
        self._noted = set(asked.noted)
        self._told = asked.told
        self._kept = read_kept(asked.told[0]).only_of(self._private | {SYSTEM_SCHEMA}) if asked.told else NOTHING_KEPT
        self._views = frozenset(name.lower() for name in self._kept.views)

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
        is_noted = any(t.text.lower() in self._noted for t in statement.tokens)
        if not is_noted and not self._names_private(statement):
            return _forwarded(statement)
        if words[0] == "CREATE":
            self._check_shadow((t.text, t.start) for t in statement.tokens)
        made = names_made(statement)
        if made:
            return self._making(statement, made)
        wrapped = unwrap(statement)
        if wrapped is None or (wrapped.is_call and not is_noted):
            return _forwarded(statement)
        if (is_noted or wrapped.creates or wrapped.cursor) and not self._told:
            return _asking(statement, wrapped, KEPT_SQL)
        return self._call(statement, wrapped) if wrapped.is_call else self._select(statement, wrapped, wrapped.text)

    def _making(self, statement: Statement, made: tuple[str, ...]) -> Piece:
        """A statement that may make a view or a prepared statement over private tables."""
        if statement.words(1) == ("ALTER",):
            self._check_shadow((t.text, t.start) for t in statement.tokens[-1:])
        self._noted.update(made)
        return replace(_forwarded(statement), handle=Noted(made))

    def _call(self, statement: Statement, wrapped: Wrapped) -> Piece:
        """EXECUTE is what it executes, with its values written out; errors in the call are the front's to find."""
        call = call_of(split_statements(wrapped.text)[0])
        prepared = self._kept.prepared.get(call.name)
        if prepared is None or len(prepared.types) != len(call.arguments) or call.cannot_run:
            return _forwarded(statement)
        text = prepared_text(prepared.source, call.name)
        if not any(self._names_private(s) for s in split_statements(text)):
            return _forwarded(statement)
        if not call.arguments:
            return self._select(statement, wrapped, text)
        if len(self._told) < 2:
            return _asking(statement, wrapped, values_sql(call, prepared.types))
        if len(self._told[1]) != 1:
            raise Unsupported("an argument of EXECUTE gives other than one value")
        values = tuple(zip(self._told[1][0], prepared.types, strict=True))
        return self._select(statement, wrapped, with_values(text, values))

    def _names_private(self, statement: Statement) -> bool:
        names = [t.text.lower() for t in statement.tokens]
        return any(n in self._private or n in self._views for n in names) or (
            SYSTEM_SCHEMA in names and any(n in self._premises.relations or n in _FUNCTIONS for n in names)
        )

    def _select(self, statement: Statement, wrapped: Wrapped, text: str) -> Piece:
        """What a SELECT is that stands, or is executed, in a statement."""
        inner = split_statements(text)[0]
        if not self._names_private(inner) or inner.words(1)[0] not in QUERY_STARTS:
            return _forwarded(statement)
        written = write_out(inner)
        placed = PlacedSelect(start=wrapped.start, written=written, is_call=wrapped.is_call)
        try:
            placed = replace(placed, expanded=expand(written.statement, self._kept.views))
            cut, lifted = self._cut(placed.expanded.statement)
        except HushError as error:
            raise _moved(error, placed) from None
        placed = replace(placed, lifted=lifted)
        if not isinstance(cut, Probe) and not cut.blocks and not cut.system:
            return _forwarded(statement)
        made = wrapped.creates or wrapped.would_create
        self._check_shadow(made)
        if isinstance(cut, Probe) and cut.is_made_up and made:
            raise NotAggregate("made-up rows cannot be kept in a table", hint=_SHOW_INSTEAD)
        is_explain = wrapped.wrapper in EXPLAINS
        shown = wrapped.text if wrapped.is_call else inner.text
        asked = shown if cut.text == lifted.statement.text else cut.text
        return Piece(
            text=statement.text,
            start=statement.start,
            is_private=True,
            describe_text=wrapped.before + asked if is_explain else asked,
            prefix_chars=0 if is_explain else wrapped.start,
            needs_transaction=wrapped.needs_transaction,
            returns_rows=is_explain or wrapped.wrapper is Wrapper.NONE,
            is_fleeting=bool(self._told),
            is_inert=wrapped.wrapper is Wrapper.NONE and not self._told and isinstance(cut, Split) and is_inert(cut),
            handle=Taken() if self._is_taken(wrapped) else self._understood(wrapped, cut, placed),
        )

    def _understood(self, wrapped: Wrapped, cut: Split | Probe, placed: PlacedSelect) -> Understood:
        if isinstance(cut, Split):
            self._cuts.keep(self._premises, cut)
        query = outline_of(cut) if isinstance(cut, Split) else cut
        words = {t.text.lower() for t in placed.lifted.statement.tokens}
        return Understood(
            premises=self._premises, wrapped=wrapped, query=query, placed=placed.without_texts(), told=self._told,
            profiled=frozenset(p.table for p in self._premises.profiles if p.table.lower() in words),
        )  # fmt: skip

    def _is_taken(self, wrapped: Wrapped) -> bool:
        """Whether the name under which it would keep its rows is one already."""
        is_table = bool(wrapped.creates) and wrapped.creates[-1][0] in self._kept.relations
        return is_table or (bool(wrapped.cursor) and wrapped.cursor in self._kept.cursors)

    def _cut(self, inner: Statement) -> tuple[Split | Probe, Expanded]:
        """A SELECT cut at the noise line, or a probe, and what was lifted in it."""
        try:
            cut, lifted = self._split(inner)
        except HushError as error:
            may_hide = isinstance(error, NotAggregate)
            raw = self._premises.privacy.raw_select
            found = probe(inner, self._catalog, may_hide=may_hide, raw=raw)
            if found is None:
                raise (_with_made_up(error) if may_hide and raw is RawSelect.MADE_UP else error) from None
            return found, Expanded(inner)
        is_probe = bool(cut.blocks) and not cut.system and is_without_rows(cut.root)
        return (emptied(cut.text, cut.root, self._catalog) if is_probe else None) or cut, lifted

    def _split(self, inner: Statement) -> tuple[Split, Expanded]:
        cut, lifted = split_lifted(inner, self._catalog, self._premises.relations)
        for adds, widened in ((self._has_intervals, widen), (self._has_notes, with_note)):
            text = widened(cut) if adds else cut.text
            if text != cut.text:
                cut = split(split_statements(text)[0], self._catalog, self._premises.relations)
        return cut, lifted

    def _check_shadow(self, words: Iterable[tuple[str, int]]) -> None:
        """A temporary object called like a private table would make later queries mean something else."""
        for word, start in words:
            if word.upper() in ("AS", "("):
                break
            if word.lower() in self._private:
                raise PolicyForbids(
                    f'"{word}" is a private table; nothing else may have its name',
                    hint="Choose another name.",
                    position=start + 1,
                )

    def _check_set(self, statement: Statement) -> None:
        """A bad value of a hush.* setting fails at SET."""
        words = [t.text for t in statement.tokens]
        at = 2 if words[1:2] and words[1].upper() in ("SESSION", "LOCAL") else 1
        if [w.lower() for w in words[at : at + 2]] != [SYSTEM_SCHEMA, "."] or len(words) < at + 5:
            return
        value = "".join(words[at + 4 :])
        if words[at + 3].upper() not in ("=", "TO") or value.upper() == "DEFAULT":
            return
        check_setting(f"{SYSTEM_SCHEMA}.{words[at + 2]}", value, self._premises.privacy)


_FUNCTIONS = frozenset(("low", "high", "sd", *CALLS))


_MADE_UP = "Made-up rows are shown by one SELECT of columns, with joins, WHERE, ORDER BY and LIMIT, and nothing else."
_SHOW_INSTEAD = "Run the SELECT alone, or keep aggregates, which are answered from the private rows."


def _with_made_up(error: HushError) -> HushError:
    """The refusal of rows, where the policy has made-up ones for other statements."""
    detail = " ".join(part for part in (error.detail, _MADE_UP) if part)
    return type(error)(error.message, detail=detail, hint=error.hint, position=error.position)


def _moved(error: HushError, placed: PlacedSelect) -> HushError:
    position = placed.original(error.position)
    return type(error)(error.message, detail=error.detail, hint=error.hint, position=position)


def _asking(statement: Statement, wrapped: Wrapped, sql: str) -> Piece:
    """A piece that is understood once the front has said what it keeps."""
    return Piece(text=statement.text, start=statement.start, is_private=True, describe_text=statement.text,
                 needs_transaction=wrapped.needs_transaction, asks=sql, is_fleeting=True)  # fmt: skip


def _forwarded(statement: Statement) -> Piece:
    return Piece(text=statement.text, start=statement.start, is_private=False, describe_text=statement.text)


def _private(statement: Statement, *, error: HushError) -> Piece:
    """A refused piece; it is described as a whole so that the front's own errors come first."""
    return Piece(text=statement.text, start=statement.start, is_private=True, describe_text=statement.text,
                 refusal=Refusal(error))  # fmt: skip
