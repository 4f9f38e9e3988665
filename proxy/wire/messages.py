"""What is inside a message, and how is one built?

Typed parsing and building of the messages that the relay looks into; all others pass as raw bytes.
Parsers raise ProtocolViolation and nothing else. Format: PostgreSQL documentation, "Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proxy.errors import ProtocolViolation

_INT16 = struct.Struct("!H")
_INT32 = struct.Struct("!I")
_SIGNED32 = struct.Struct("!i")
_COLUMN = struct.Struct("!IHIhiH")  # table oid, attribute, type oid, size, typmod, format

NULL_LENGTH = -1
#: Type byte and length of a message.
HEADER_BYTES = 5


class BodyReader:
    """Walks a message body from front to back."""

    __slots__ = ("_at", "_body")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def string(self) -> bytes:
        """A string up to its zero byte, which is consumed."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        found = self._body[self._at : end]
        self._at = end + 1
        return found

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._body):
            raise ProtocolViolation("insufficient data left in message")
        found = self._body[self._at : end]
        self._at = end
        return found

    def int16(self) -> int:
        return int(_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def signed32(self) -> int:
        return int(_SIGNED32.unpack(self.take(4))[0])

    def finish(self) -> None:
        """Raises ProtocolViolation if bytes are left over."""
        if self._at != len(self._body):
            raise ProtocolViolation("invalid message format")


def build(kind: bytes, body: bytes = b"") -> bytes:
    """A whole message."""
    return kind + _INT32.pack(len(body) + 4) + body


# --- from the client ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parse:
    """A statement to prepare. oids: the types the client states, 0 for unspecified."""

    name: bytes
    text: bytes
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A portal to make from a statement. formats: 0, 1 or one for each value; None is NULL."""

    portal: bytes
    statement: bytes
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedName:
    """What Describe and Close speak about. is_statement: else a portal."""

    is_statement: bool
    name: bytes


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal. max_rows: 0 for all."""

    portal: bytes
    max_rows: int


def parse_query(body: bytes) -> bytes:
    """Text of a Query message."""
    reader = BodyReader(body)
    text = reader.string()
    reader.finish()
    return text


def parse_parse(body: bytes) -> Parse:
    reader = BodyReader(body)
    name, text = reader.string(), reader.string()
    oids = tuple(reader.int32() for _ in range(reader.int16()))
    reader.finish()
    return Parse(name, text, oids)


def parse_bind(body: bytes) -> Bind:
    reader = BodyReader(body)
    portal, statement = reader.string(), reader.string()
    formats = tuple(reader.int16() for _ in range(reader.int16()))
    values = tuple(_value(reader) for _ in range(reader.int16()))
    result_formats = tuple(reader.int16() for _ in range(reader.int16()))
    reader.finish()
    if len(formats) not in (0, 1, len(values)):
        raise ProtocolViolation("bind message has the wrong number of parameter formats")
    return Bind(portal=portal, statement=statement, formats=formats, values=values, result_formats=result_formats)


def parse_bind_names(body: bytes) -> tuple[bytes, bytes]:
    """Portal and statement of a Bind, without reading the values."""
    reader = BodyReader(body)
    return reader.string(), reader.string()


def _value(reader: BodyReader) -> bytes | None:
    length = reader.signed32()
    if length == NULL_LENGTH:
        return None
    if length < 0:
        raise ProtocolViolation("invalid message format")
    return reader.take(length)


def parse_named(body: bytes) -> DescribedName:
    """Body of a Describe or a Close."""
    reader = BodyReader(body)
    kind = reader.take(1)
    name = reader.string()
    reader.finish()
    if kind not in (b"S", b"P"):
        raise ProtocolViolation("invalid subtype in message")
    return DescribedName(kind == b"S", name)


def parse_execute(body: bytes) -> Execute:
    reader = BodyReader(body)
    portal, max_rows = reader.string(), reader.int32()
    reader.finish()
    return Execute(portal, max_rows)


def query(text: bytes) -> bytes:
    return build(b"Q", text + b"\0")


def parse(name: bytes, text: bytes, oids: Sequence[int] = ()) -> bytes:
    return build(b"P", name + b"\0" + text + b"\0" + _INT16.pack(len(oids)) + b"".join(map(_INT32.pack, oids)))


def bind(message: Bind) -> bytes:
    parts = [message.portal, b"\0", message.statement, b"\0", _codes(message.formats), _INT16.pack(len(message.values))]
    for value in message.values:
        if value is None:
            parts.append(_SIGNED32.pack(NULL_LENGTH))
        else:
            parts += (_SIGNED32.pack(len(value)), value)
    parts.append(_codes(message.result_formats))
    return build(b"B", b"".join(parts))


def _codes(codes: Iterable[int]) -> bytes:
    packed = b"".join(map(_INT16.pack, codes))
    return _INT16.pack(len(packed) // 2) + packed


def describe_statement(name: bytes) -> bytes:
    return build(b"D", b"S" + name + b"\0")


def describe_portal(name: bytes) -> bytes:
    return build(b"D", b"P" + name + b"\0")


def close_statement(name: bytes) -> bytes:
    return build(b"C", b"S" + name + b"\0")


def close_portal(name: bytes) -> bytes:
    return build(b"C", b"P" + name + b"\0")


def execute(portal: bytes, max_rows: int = 0) -> bytes:
    return build(b"E", portal + b"\0" + _INT32.pack(max_rows))


SYNC = build(b"S")
FLUSH = build(b"H")
TERMINATE = build(b"X")

# --- from the front -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumn:
    """One column of a RowDescription."""

    name: bytes
    table_oid: int
    attribute: int
    oid: int
    size: int
    typmod: int
    format: int


def parse_row_description(body: bytes) -> tuple[ResultColumn, ...]:
    reader = BodyReader(body)
    columns = tuple(_column(reader) for _ in range(reader.int16()))
    reader.finish()
    return columns


def _column(reader: BodyReader) -> ResultColumn:
    name = reader.string()
    table_oid, attribute, oid, size, typmod, code = _COLUMN.unpack(reader.take(_COLUMN.size))
    return ResultColumn(
        name=name, table_oid=table_oid, attribute=attribute, oid=oid, size=size, typmod=typmod, format=code
    )


def row_description(columns: Sequence[ResultColumn], formats: Sequence[int] = ()) -> bytes:
    """A RowDescription with the format codes of a Bind: none for all text, one for all, or one each."""
    codes = tuple(formats) if len(formats) > 1 else tuple(formats or (0,)) * len(columns)
    parts = [_INT16.pack(len(columns))]
    for column, code in zip(columns, codes, strict=True):
        fixed = _COLUMN.pack(column.table_oid, column.attribute, column.oid, column.size, column.typmod, code)
        parts += (column.name, b"\0", fixed)
    return build(b"T", b"".join(parts))


def parse_parameter_description(body: bytes) -> tuple[int, ...]:
    reader = BodyReader(body)
    oids = tuple(reader.int32() for _ in range(reader.int16()))
    reader.finish()
    return oids


def parse_data_row(body: bytes) -> tuple[bytes | None, ...]:
    reader = BodyReader(body)
    values = tuple(_value(reader) for _ in range(reader.int16()))
    reader.finish()
    return values


def parse_parameter_status(body: bytes) -> tuple[bytes, bytes]:
    reader = BodyReader(body)
    name, value = reader.string(), reader.string()
    reader.finish()
    return name, value


def command_complete(tag: bytes) -> bytes:
    return build(b"C", tag + b"\0")
