"""Which private statements and portals does a session hold, and how many names has it taken?

Public statements have no record: what is not in the book is forwarded. A record may be ahead of the front (the
client pipelines), so each change can be taken back when the front skips the message that caused it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from proxy.wire.exchange import NoRefusal, Parameter, Piece, Refusal
from proxy.wire.messages import Bind, ResultColumn

_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateStatement:
    """A prepared statement that names private tables.

    piece: what the session made of it. refusal: why it may not run. oids: all parameter types as the front resolved
    them. columns: the front's description of it. has_plan: binding it would start a plan.
    """

    name: bytes
    piece: Piece
    refusal: Refusal | NoRefusal
    oids: tuple[int, ...]
    columns: tuple[ResultColumn, ...]
    has_plan: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatePortal:
    """A bound private statement. has_run: its release exists, further Executes fetch from it.

    is_sure: the Bind cannot fail as long as the front has the statement. tag: the message that tells its end, empty for
    the front's own.
    """

    statement: PrivateStatement
    bound: Bind
    parameters: tuple[Parameter, ...]
    has_run: bool = False
    is_sure: bool = False
    tag: bytes = b""


class Book:
    """The private statements and portals of one session, and the names it has taken on the front."""

    def __init__(self, *, max_statements: int, max_portals: int) -> None:
        self._max_statements = max_statements
        self._max_portals = max_portals
        self._statements: dict[bytes, PrivateStatement] = {}
        self._portals: dict[bytes, PrivatePortal] = {}
        self._statement_names: set[bytes] = set()
        self._doubtful: set[bytes] = set()
        self._last_change: dict[bytes, int] = {}  # of the names of statements, since everything was answered
        self._changes = 0
        self._portal_names: dict[bytes, int] = {}
        self._ends_sent = 0
        self._ends_seen = 0
        self._sql_prepares = 0

    # --- records ---------------------------------------------------------------------------------

    def statement(self, name: bytes) -> PrivateStatement | None:
        """The private statement of that name; None: there is no such record."""
        return self._statements.get(name)

    def portal(self, name: bytes) -> PrivatePortal | None:
        """The private portal of that name; None: there is no such record."""
        return self._portals.get(name)

    def put_statement(self, name: bytes, record: PrivateStatement) -> None:
        self._statements[name] = record

    def put_portal(self, name: bytes, record: PrivatePortal) -> None:
        self._portals[name] = record

    def drop_statement(self, name: bytes) -> Callable[[], None]:
        """Forget a statement; the result takes that back, unless the name has changed hands since."""
        if name in self._statements:
            self._doubtful.add(name)
        restore, before = _dropped(self._statements, name), self._last_change.get(name, 0)
        self._changes += 1
        mine = self._last_change[name] = self._changes

        def take_back() -> None:
            if self._last_change.get(name) == mine:
                self._last_change[name] = before
                restore()

        return take_back

    def is_doubtful(self, name: bytes) -> bool:
        """Whether a record of that name was dropped by a message that the front may yet skip."""
        return name in self._doubtful

    def settled(self) -> None:
        """Everything sent has been answered."""
        self._doubtful.clear()
        self._last_change.clear()

    def drop_portal(self, name: bytes) -> Callable[[], None]:
        """Forget a portal; the result takes that back."""
        return _dropped(self._portals, name)

    def drop_unnamed(self) -> Callable[[], None]:
        """Forget what a Query destroys; the result takes that back."""
        return _both(self.drop_statement(b""), self.drop_portal(b""))

    # --- limits ------------------------------------------------------------------------------------

    def has_room_for_statement(self, name: bytes) -> bool:
        taken = len(self._statement_names) + self._sql_prepares
        return not name or name in self._statement_names or taken < self._max_statements

    def has_room_for_portal(self, name: bytes) -> bool:
        return not name or name in self._portal_names or len(self._portal_names) < self._max_portals

    def take_statement_name(self, name: bytes) -> Callable[[], None]:
        """A new statement goes by this name, which has no record yet; the result takes that back."""
        return _both(self.drop_statement(name), _added(self._statement_names, name))

    def take_portal_name(self, name: bytes) -> Callable[[], None]:
        """A new portal goes by this name, which has no record yet; the result takes that back."""
        return _both(lambda: self._portals.pop(name, None), self.drop_portal(name), self._added_portal(name))

    def free_statement_name(self, name: bytes) -> Callable[[], None]:
        """The statement is closed; the result takes that back."""
        return _both(self.drop_statement(name), _removed(self._statement_names, name))

    def free_portal_name(self, name: bytes) -> Callable[[], None]:
        """The portal is closed; the result takes that back."""
        return _both(self.drop_portal(name), _dropped(self._portal_names, name))

    def _added_portal(self, name: bytes) -> Callable[[], object]:
        is_new = name not in self._portal_names
        self._portal_names[name] = self._ends_sent  # a second Bind of the name replaces the portal or fails
        return (lambda: self._portal_names.pop(name, None)) if is_new else _nothing

    # --- what the front says -------------------------------------------------------------------------

    def transaction_may_end(self) -> None:
        """A message was sent that ends the transaction, unless it is an explicit one."""
        self._ends_sent += 1

    def ready(self, *, is_idle: bool) -> None:
        """One such message was answered. Portals made before it was sent do not outlive their transaction."""
        self._ends_seen += 1
        if not is_idle or not self._portal_names:
            return
        for name in [name for name, made_at in self._portal_names.items() if made_at < self._ends_seen]:
            del self._portal_names[name]
            self._portals.pop(name, None)

    def completed(self, tag: bytes) -> None:
        """Follow the SQL statements that make or drop prepared statements."""
        if tag == b"PREPARE":
            self._sql_prepares += 1
        elif tag == b"DEALLOCATE":
            self._sql_prepares = max(0, self._sql_prepares - 1)
        elif tag in (b"DEALLOCATE ALL", b"DISCARD ALL"):
            self._sql_prepares = 0
            self._statements.clear()
            self._statement_names.clear()


def _dropped(records: dict[bytes, _Record], name: bytes) -> Callable[[], None]:
    if name not in records:
        return _nothing
    record = records.pop(name)
    return lambda: records.__setitem__(name, record)


def _added(names: set[bytes], name: bytes) -> Callable[[], None]:
    if not name or name in names:
        return _nothing
    names.add(name)
    return lambda: names.discard(name)


def _removed(names: set[bytes], name: bytes) -> Callable[[], None]:
    if name not in names:
        return _nothing
    names.discard(name)
    return lambda: names.add(name)


def _both(*steps: Callable[[], object]) -> Callable[[], None]:
    """All steps in order; nothing at all when none has anything to do."""
    needed = [step for step in steps if step is not _nothing]
    if not needed:
        return _nothing

    def take_back() -> None:
        for step in needed:
            step()

    return take_back


def _nothing() -> None:
    """There is nothing to take back."""
