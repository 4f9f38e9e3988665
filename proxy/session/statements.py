"""Which statements of a query string need the session, and as what?

A statement that names nothing private is left to the front untouched. A private one is reduced to the
SELECT inside it; what stands around that is told by `wrappers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from proxy.errors import HushError, NotAggregate, PolicyForbids
from proxy.front.relations import RELATIONS, SCHEMA
from proxy.session.contract import Piece, Refusal
from proxy.session.dataset import Version
from proxy.session.settings import check_setting
from proxy.sql.parse import Statement, limited_depth, split_statements
from proxy.sql.probe import Probe, emptied, is_without_rows, probe
from proxy.sql.scope import Catalog
from proxy.sql.split import Split, split
from proxy.sql.table_command import WrittenOut, write_out
from proxy.sql.widen import widen
from proxy.sql.wrappers import EXPLAINS, Wrapped, Wrapper, unwrap

SYSTEM_RELATIONS = frozenset(RELATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """The handle of a private piece: the policy version it was read under and its cut SELECT."""

    version: Version
    wrapped: Wrapped
    query: Split | Probe
    written: WrittenOut

    def position(self, position: int) -> int:
        """Where in the client's statement a 1-based position of the SELECT is; 0 stays unknown."""
        return self.wrapped.start + self.written.original(position) if position else 0


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
        if words[0] == "CREATE":
            self._check_shadow((t.text, t.start) for t in statement.tokens)
        wrapped = unwrap(statement)
        return _forwarded(statement) if wrapped is None else self._select(statement, wrapped)

    def _names_private(self, statement: Statement) -> bool:
        names = [t.text.lower() for t in statement.tokens]
        return any(n in self._private for n in names) or (
            SCHEMA in names and any(n in SYSTEM_RELATIONS or n in _FUNCTIONS for n in names)
        )

    def _select(self, statement: Statement, wrapped: Wrapped) -> Piece:
        inner = split_statements(wrapped.text)[0]
        written = write_out(inner)
        try:
            cut = self._cut(written.statement)
        except HushError as error:
            raise _moved(error, written, wrapped.start) from None
        if not isinstance(cut, Probe) and not cut.blocks and not cut.system:
            return _forwarded(statement)
        self._check_shadow(wrapped.creates)
        is_explain = wrapped.wrapper in EXPLAINS
        asked = inner.text if cut.text == written.statement.text else cut.text
        return Piece(
            text=statement.text,
            start=statement.start,
            is_private=True,
            describe_text=wrapped.before + asked if is_explain else asked,
            prefix_chars=0 if is_explain else wrapped.start,
            needs_transaction=wrapped.needs_transaction,
            returns_rows=is_explain or wrapped.wrapper is Wrapper.NONE,
            handle=Understood(version=self._version, wrapped=wrapped, query=cut, written=written),
        )

    def _cut(self, inner: Statement) -> Split | Probe:
        try:
            cut = self._split(inner)
        except HushError as error:
            may_hide = isinstance(error, NotAggregate)
            found = probe(
                inner, self._catalog, may_hide=may_hide, hides_all=self._version.policy.privacy.raw_select_empty
            )
            if found is None:
                raise
            return found
        is_probe = bool(cut.blocks) and not cut.system and is_without_rows(cut.root)
        return (emptied(cut.text, cut.root, self._catalog) if is_probe else None) or cut

    def _split(self, inner: Statement) -> Split:
        cut = split(inner, self._catalog, SYSTEM_RELATIONS)
        if self._has_intervals:
            widened = widen(cut)
            if widened != inner.text:
                cut = split(split_statements(widened)[0], self._catalog, SYSTEM_RELATIONS)
        return cut

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
