"""A model of PostgreSQL's side of the protocol: every message is answered as it would be, in no time and without SQL.

It keeps back what it has to say until a Flush, a Sync or the end of a Query, as PostgreSQL does, so that a relay which
waits without having asked for the answer hangs. Source: PostgreSQL documentation, "Message Flow".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from proxy.errors import ProtocolViolation
from proxy.wire import messages
from proxy.wire.messages import HEADER_BYTES, build
from tests.unit.wire.fuzz.meanings import GUARD, Meaning, meanings
from tests.unit.wire.make import READY, STARTED, error, row

_KEPT_BYTES = 8192
_ENDS_BLOCK = frozenset({"commit", "rollback", "rollback to"})
_CODECS = {"latin1": "iso8859-1", "utf8": "utf-8", "euc_jp": "euc_jp"}
_NOTHING = build(b"n")


class Fails(Exception):
    """The message is answered with this error."""

    def __init__(self, sqlstate: str, message: str, **fields: str) -> None:
        super().__init__(message)
        self.raw = error(message, sqlstate, **fields)


@dataclass(frozen=True, slots=True)
class Prepared:
    """parameters: those the text names, and those the Parse gives a type to."""

    meaning: Meaning | None
    parameters: int


@dataclass(slots=True)
class Portal:
    """rows_left: -1 before it runs. formats: of the results."""

    meaning: Meaning | None
    formats: tuple[int, ...]
    rows_left: int = -1


@dataclass(slots=True)
class Model:
    """One session on the front. ran: the serial of each release that was run. said: how many messages.

    savepoints: each with the portals there were. is_alone: there is no proxy, and private tables are answered like
    others: with two rows each.
    """

    marker: str
    is_alone: bool = False
    said: int = 0
    ran: list[str] = field(default_factory=list)
    is_closed: bool = False
    status: str = "I"
    statements: dict[bytes, Prepared] = field(default_factory=dict)
    portals: dict[bytes, Portal] = field(default_factory=dict)
    skips: bool = False
    codec: str = "utf-8"
    savepoints: dict[str, dict[bytes, Portal]] = field(default_factory=dict)
    _said: list[bytes] = field(default_factory=list)
    _kept: list[bytes] = field(default_factory=list)
    _inbox: bytes = b""
    _copies: bool = False
    _rest: Iterator[None] = field(default_factory=lambda: iter(()))  # of the Query whose COPY waits for data
    _is_simple: bool = False

    # --- bytes -----------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take what was written to the front."""
        inbox, at = self._inbox + data, 0
        while not self.is_closed and len(inbox) - at >= HEADER_BYTES:
            end = at + 1 + int.from_bytes(inbox[at + 1 : at + 5], "big")
            if end > len(inbox):
                break
            self._message(inbox[at], inbox[at + HEADER_BYTES : end])
            at = end
        self._inbox = inbox[at:]

    def take(self) -> bytes:
        """What has left it since."""
        said = b"".join(self._said)
        self._said.clear()
        return said

    def start(self) -> None:
        self._said += (STARTED, READY)

    def _say(self, raw: bytes) -> None:
        self._kept.append(raw)
        self.said += 1
        if len(self._kept) > 50 and sum(map(len, self._kept)) > _KEPT_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._said += self._kept
        self._kept.clear()

    # --- messages ----------------------------------------------------------------------------------------

    def _message(self, kind: int, body: bytes) -> None:
        letter = chr(kind)
        if self._copies:
            self._in_copy(letter)
        elif letter == "X":
            self._hang_up()
        elif not self.skips or letter == "S":
            try:
                _HANDLERS[letter](self, body)
            except ProtocolViolation as violation:
                self._fail(letter, error(violation.message, "08P01"))
            except Fails as failure:
                self._fail(letter, failure.raw)

    def _hang_up(self) -> None:
        self._flush()
        self.is_closed = True

    def _fail(self, letter: str, raw: bytes) -> None:
        self._say(raw)
        if self.status == "T":
            self.status = "E"
        if self.status == "E":
            self.portals.clear()  # PostgreSQL keeps them and lets nobody use them
        if letter == "Q":
            self._ready()
        else:
            self.skips = True
            self._flush()

    def _ready(self) -> None:
        if self.status == "I":
            self.portals.clear()
            self.savepoints.clear()
        self._say(build(b"Z", self.status.encode()))
        self._flush()

    def _in_copy(self, letter: str) -> None:
        """PostgreSQL ignores Flush and Sync among the data and gives up on anything else."""
        if letter in "dHS":
            return
        self._copies = False
        if letter == "c":
            self._say(messages.command_complete(b"COPY 1"))
            if self._is_simple:
                self._goes_on()
        elif letter == "f":
            self._fail("Q" if self._is_simple else "E", error("COPY failed", "57014"))
        else:
            self._say(error("protocol synchronization was lost", "08P01", "FATAL"))
            self._hang_up()

    def _goes_on(self) -> None:
        """Run the statements of a Query until one wants data."""
        try:
            for _ in self._rest:
                self._copies = self._is_simple = True
                self._flush()
                return
        except Fails as failure:
            self._fail("Q", failure.raw)

    # --- simple ------------------------------------------------------------------------------------------

    def _query(self, body: bytes) -> None:
        text = messages.parse_query(body).decode(self.codec, "replace")
        self.statements.pop(b"", None)
        self.portals.pop(b"", None)
        self._rest = self._all(text)
        self._goes_on()

    def _all(self, text: str) -> Iterator[None]:
        found = meanings(text)
        self._check_grammar(text, found)
        if not found:
            self._say(build(b"I"))
        for meaning in found:
            self._check(meaning)
            if meaning.parameters:
                raise Fails("42P02", "there is no parameter $1", P=str(text.index("$1") + 1))
            if meaning.columns:
                self._say(messages.row_description(meaning.columns))
            yield from self._run(meaning, meaning.rows)
            if meaning.verb != "copyin":
                self._say(messages.command_complete(meaning.tag))
        self._ready()

    # --- extended ----------------------------------------------------------------------------------------

    def _parse(self, body: bytes) -> None:
        message = messages.parse_parse(body)
        text = message.text.decode(self.codec, "replace")
        found = meanings(text)
        self._check_grammar(text, found)
        if len(found) > 1:
            raise Fails("42601", "cannot insert multiple commands", R="exec_parse_message")
        if found:
            self._check(found[0])
        if message.name and message.name in self.statements:
            raise Fails("42P05", "prepared statement already exists")
        meaning = found[0] if found else None
        named = meaning.parameters if meaning else 0
        self.statements[message.name] = Prepared(meaning, max(named, len(message.oids)))
        self._say(build(b"1"))

    def _check_grammar(self, text: str, found: tuple[Meaning, ...]) -> None:
        if any(meaning.verb == "nope" for meaning in found):
            raise Fails("42601", 'syntax error at or near "nope"', P="1", F="scan.l", R="scanner_yyerror")
        if self.marker in text and "concat" not in text:
            raise Fails("22P02", f'invalid input syntax for type integer: "{self.marker}"', P="8")

    def _check(self, meaning: Meaning) -> None:
        if self.status == "E" and meaning.verb not in _ENDS_BLOCK:
            raise Fails("25P02", "current transaction is aborted")

    def _bind(self, body: bytes) -> None:
        message = messages.parse_bind(body)
        if message.statement not in self.statements:
            raise Fails("26000", "prepared statement does not exist")
        prepared = self.statements[message.statement]
        meaning = prepared.meaning
        if len(message.values) != prepared.parameters:
            raise Fails("08P01", "bind message supplies the wrong number of parameters")
        if meaning is not None:
            self._check(meaning)
            self._check_values(meaning, message)
        if message.portal and message.portal in self.portals:
            raise Fails("42P03", "cursor already exists")
        self.portals[message.portal] = Portal(meaning, message.result_formats)
        self._say(build(b"2"))

    def _check_values(self, meaning: Meaning, message: messages.Bind) -> None:
        if b"bad" in message.values:
            raise Fails("22P02", "invalid input syntax for type integer")
        if len(message.result_formats) not in (0, 1, len(meaning.columns)):
            raise Fails("08P01", "bind message has the wrong number of result formats")
        if meaning.serial and "bindfail" in meaning.says:
            raise Fails("22P02", "malformed array literal")
        if meaning.columns:
            self._check_guard(meaning)

    def _check_guard(self, meaning: Meaning) -> None:
        if meaning.is_private and not self.is_alone:
            raise Fails("42501", f"permission denied for table {GUARD}")

    def _describe(self, body: bytes) -> None:
        named = messages.parse_named(body)
        formats: tuple[int, ...] = ()
        if named.is_statement:
            if named.name not in self.statements:
                raise Fails("26000", "prepared statement does not exist")
            prepared = self.statements[named.name]
            meaning = prepared.meaning
            self._say(build(b"t", prepared.parameters.to_bytes(2, "big") + b"\0\0\0\x14" * prepared.parameters))
        else:
            portal = self._portal(named.name)
            meaning, formats = portal.meaning, portal.formats
        columns = meaning.columns if meaning else ()
        self._say(messages.row_description(columns, formats) if columns else _NOTHING)

    def _portal(self, name: bytes) -> Portal:
        if name not in self.portals:
            raise Fails("34000", "portal does not exist")
        return self.portals[name]

    def _execute(self, body: bytes) -> None:
        message = messages.parse_execute(body)
        portal = self._portal(message.portal)
        meaning = portal.meaning
        if meaning is None:
            self._say(build(b"I"))
            return
        self._check(meaning)
        if portal.rows_left < 0:
            portal.rows_left = meaning.rows
        elif not meaning.columns:
            raise Fails("34000", "portal does not exist")
        else:
            meaning = _without_effects(meaning)
        count = min(portal.rows_left, message.max_rows or portal.rows_left) if meaning.columns else meaning.rows
        portal.rows_left -= count
        for _ in self._run(meaning, count):
            self._copies, self._is_simple = True, False
            self._flush()
            return
        is_suspended = bool(meaning.columns and message.max_rows and count == message.max_rows)
        self._say(build(b"s") if is_suspended else messages.command_complete(meaning.tag))

    def _close(self, body: bytes) -> None:
        named = messages.parse_named(body)
        (self.statements if named.is_statement else self.portals).pop(named.name, None)
        self._say(build(b"3"))

    def _sync(self, _body: bytes) -> None:
        self.skips = False
        self._ready()

    def _flush_message(self, body: bytes) -> None:
        if body:
            raise Fails("08P01", "invalid message format")
        self._flush()

    def _ignored(self, _body: bytes) -> None:
        """Data of a COPY that is over."""

    # --- statements ----------------------------------------------------------------------------------------

    def _run(self, meaning: Meaning, count: int) -> Iterator[None]:
        """Everything but the tag. Yields once if it wants data from the client."""
        self._check_guard(meaning)
        if meaning.marked:
            raise Fails("22P02", f'invalid input syntax for type integer: "{self.marker}"')
        if meaning.serial:
            self.ran.append(meaning.serial)
        if meaning.verb == "copyin":
            self._say(build(b"G", b"\0\0\0"))
            yield
        elif meaning.verb == "copyout":
            self._say(build(b"H", b"\0\0\0"))
            for _ in range(count):
                self._say(build(b"d", b"line\n"))
            self._say(build(b"c"))
        elif meaning.columns:
            for number in range(count):
                self._say(_row(meaning, number))
        if "runfail" in meaning.says:
            raise Fails("22012", "division by zero", F="int.c", R="int4div")
        self._take_effect(meaning)

    def _take_effect(self, meaning: Meaning) -> None:
        match meaning.verb:
            case "begin":
                self.status = "T" if self.status == "I" else self.status
            case "commit" | "rollback":
                self.status = "I"
                self.portals.clear()
                self.savepoints.clear()
            case "savepoint":
                if self.status == "I":
                    raise Fails("25P01", "SAVEPOINT can only be used in transaction blocks")
                self.savepoints[_savepoint(meaning)] = dict(self.portals)
            case "rollback to":
                if _savepoint(meaning) not in self.savepoints:
                    raise Fails("3B001", "savepoint does not exist")
                self.status = "T"
                self.portals = dict(self.savepoints[_savepoint(meaning)])
            case "set":
                self._set(meaning)
            case "deallocate" | "discard":
                self.statements.clear()
            case "noticed":
                self._say(build(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mnoted\0\0"))
            case "changed":
                self._say(build(b"A", b"\0\0\0\1c\0p\0"))
            case _:
                pass

    def _set(self, meaning: Meaning) -> None:
        for name, codec in _CODECS.items():
            if name in meaning.says:
                self.codec = codec
                self._say(build(b"S", b"client_encoding\0" + name.upper().encode() + b"\0"))


def _without_effects(meaning: Meaning) -> Meaning:
    """A portal that is fetched from again only gives its rows."""
    return Meaning(verb="select", says=meaning.says, rows=meaning.rows, columns=meaning.columns, parameters=0)


def _savepoint(meaning: Meaning) -> str:
    return "_hush" if "_hush" in meaning.says else "a"


def _row(meaning: Meaning, number: int) -> bytes:
    if meaning.columns[0].name == b"setting":
        return row(*(b"" for _ in meaning.columns))
    value = "private" if meaning.serial or meaning.is_private else str(number)
    return row(*(value.encode() for _ in meaning.columns))


_HANDLERS: Mapping[str, Callable[[Model, bytes], None]] = {
    "Q": Model._query,
    "P": Model._parse,
    "B": Model._bind,
    "D": Model._describe,
    "E": Model._execute,
    "C": Model._close,
    "S": Model._sync,
    "H": Model._flush_message,
    "d": Model._ignored,
    "c": Model._ignored,
    "f": Model._ignored,
}
