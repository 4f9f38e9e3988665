"""Messages of a client: right ones in any order, and ones that are wrong in every way a byte can be.

One stream of a seeded generator makes all choices, so that a seed stands for a conversation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random

from proxy.wire import messages
from proxy.wire.messages import Bind, build
from tests.unit.wire.fuzz.meanings import PRIVATE, PUBLIC, SCREENED

_NAMES = (b"", b"", b"", b"a", b"b", b"c")
_VALUES: Sequence[tuple[bytes | None, ...]] = (
    (),
    (),
    (),
    (b"7",),
    (b"7",),
    (None,),
    (b"bad",),
    (b"7", b"8"),
    (b"\xff",),
)
_TEXTS: Sequence[tuple[bytes | None, ...]] = (
    (b"7",),
    (b"7",),
    (None,),
    (b"bad",),
    (b"\xff",),
    (b"\xa4\xa2",),
)
_FORMATS: Sequence[tuple[int, ...]] = ((), (), (), (0,), (1,), (0, 1), (7,))
_KINDS = b"QPBDECSHFdcfX"
_LENGTHS = (0, 1, 3, 4, 5, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
_PIECES = (b"", b"\0", b"\0\0", b"\xff" * 4, b"S", b"P\0", b"'", b'"', b"$$", b"/*", b'U&"', b"E'\\", b"\x80", b"users")
#: How often a message of each kind is said. Extended ones come in groups as a driver sends them, or alone.
_HABITS: tuple[str, ...] = ("query",) * 3 + ("group",) * 5
_HABITS += (
    "parse",
    "bind",
    "describe",
    "execute",
    "close",
    "sync",
    "flush",
    "copy",
    "parse",
    "bind",
    "execute",
    "sync",
)


class Speaker:
    """One client. texts: what it asks."""

    def __init__(self, made: Random, texts: Sequence[str]) -> None:
        self._made = made
        self._texts = tuple(text.encode() for text in texts)

    def say(self) -> list[bytes]:
        """One message, or the few that belong together."""
        made = self._made
        choose = made.choice
        match choose(_HABITS):
            case "query":
                return [messages.query(choose(self._texts))]
            case "group":
                return self._group()
            case "parse":
                return [messages.parse(choose(_NAMES), choose(self._texts), choose(((), (), (20,))))]
            case "bind":
                return [self._bind(choose(_NAMES), choose(_NAMES))]
            case "describe":
                return [choose((messages.describe_statement, messages.describe_portal))(choose(_NAMES))]
            case "execute":
                return [messages.execute(choose(_NAMES), choose((0, 0, 1, 2)))]
            case "close":
                return [choose((messages.close_statement, messages.close_portal))(choose(_NAMES))]
            case "sync":
                return [messages.SYNC]
            case "flush":
                return [messages.FLUSH]
            case _:
                return [choose((build(b"d", b"x\n"), build(b"d"), build(b"c"), build(b"f", b"no\0")))]

    def _group(self) -> list[bytes]:
        choose = self._made.choice
        name, portal, text = choose(_NAMES), choose(_NAMES), choose(self._texts)
        values = choose(_TEXTS) if b"$1" in text else ()
        formats = choose(((), (0,), (1,)))
        parts = [
            messages.close_statement(name),
            messages.parse(name, text),
            messages.bind(Bind(portal=portal, statement=name, formats=(), values=values, result_formats=formats)),
            messages.describe_portal(portal),
            messages.execute(portal, choose((0, 0, 0, 1))),
            messages.SYNC,
        ]
        return parts if name else parts[1:]

    def _bind(self, portal: bytes, name: bytes) -> bytes:
        choose = self._made.choice
        bound = Bind(portal=portal, statement=name, formats=(), values=choose(_VALUES), result_formats=choose(_FORMATS))
        return messages.bind(bound)


def spoiled(made: Random, raw: bytes) -> bytes:
    """A message with something wrong with it."""
    kind, body = raw[:1], bytearray(raw[5:])
    at = made.randrange(len(body) + 1)
    match made.randrange(9):
        case 0 if body:
            body[at - 1] ^= 1 << made.randrange(8)
        case 1:
            del body[at:]
        case 2:
            body[at:at] = made.choice(_PIECES)
        case 3:
            body += made.randbytes(made.randrange(1, 30))
        case 4:
            body[at : at + 2] = struct.pack("!H", made.choice((1, 2, 255, 32767, 65535)))
        case 5:
            return build(bytes([made.choice(_KINDS)]), bytes(body))
        case 6:
            return build(kind, bytes(body)) * 2
        case 7:
            return build(b"Q", b"x" * made.choice((3000, 9000)) + b"\0")
        case _:
            body[at:at] = made.choice(_PIECES)
            del body[made.randrange(len(body) + 1) :]
    return build(kind, bytes(body))


def broken(made: Random, raw: bytes) -> bytes:
    """Bytes after which a stream is no longer one of messages, as a rule."""
    match made.randrange(5):
        case 0:
            return raw[:1] + struct.pack("!I", made.choice(_LENGTHS)) + raw[5:]
        case 1:
            return raw[: made.randrange(len(raw))]
        case 2:
            return made.randbytes(made.randrange(1, 40))
        case 3:
            return bytes([made.randrange(256)]) + raw[1:]
        case _:
            return raw[made.randrange(len(raw)) :]


_REPLIES = b"123ACDEGHINRSTZKdcnst?"


def garbled(made: Random, replies: list[bytes]) -> bytes:
    """Several messages of a front with something wrong about one of them."""
    at = made.randrange(len(replies))
    one = replies[at]
    match made.randrange(7):
        case 0:
            replies[at : at + 1] = []
        case 1:
            replies[at : at + 1] = [one, one]
        case 2:
            replies.insert(at, build(bytes([made.choice(_REPLIES)]), made.choice(_PIECES)))
        case 3:
            replies[at] = bytes([made.choice(_REPLIES)]) + one[1:]
        case 4:
            replies[at] = broken(made, one)
        case 5:
            made.shuffle(replies)
        case _:
            replies[at] = spoiled(made, one)
    return b"".join(replies)


ALL_TEXTS = (*PUBLIC, *PRIVATE, *PRIVATE, *SCREENED)
