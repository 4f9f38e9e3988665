"""Messages and relays for the tests of the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.errors import HushError
from proxy.wire import messages
from proxy.wire.channel import ErrorMarks
from proxy.wire.exchange import Array, Notice, Piece, Spliced
from proxy.wire.flow import AskPrepare, AskRelease
from proxy.wire.messages import ResultColumn, build
from proxy.wire.relay import Relay, RelayLimits
from proxy.wire.understanding import Understanding, no_advice

MARKER = "0123456789abcdef"
MARKS = ErrorMarks(marker=MARKER, guard="hush_guard")
NAMES = ("hush.epsilon", "TimeZone")
STARTED = build(b"R", b"\0\0\0\0") + build(b"S", b"client_encoding\0UTF8\0") + build(b"K", b"12345678")
READY = messages.build(b"Z", b"I")


def column(name: bytes = b"n", oid: int = 20) -> ResultColumn:
    return ResultColumn(name=name, table_oid=0, attribute=0, oid=oid, size=8, typmod=-1, format=0)


def error(message: str, sqlstate: str = "42601", severity: str = "ERROR", **fields: str) -> bytes:
    given = {"S": severity, "V": severity, "C": sqlstate, "M": message, **fields}
    return build(b"E", b"".join(k.encode() + v.encode() + b"\0" for k, v in given.items()) + b"\0")


def row(*values: bytes | None) -> bytes:
    sizes = (b"\xff\xff\xff\xff" if v is None else len(v).to_bytes(4, "big") for v in values)
    parts = [len(values).to_bytes(2, "big"), *(size + (v or b"") for size, v in zip(sizes, values, strict=True))]
    return build(b"D", b"".join(parts))


def relay(
    limits: RelayLimits | None = None,
    refused: Callable[[HushError], None] = lambda _error: None,
    known: Callable[[str, Mapping[str, str]], tuple[Piece, ...]] = lambda _text, _settings: (),
    advice: Callable[[str, str, int], str] = no_advice,
) -> Relay:
    """A relay whose session has begun; texts with `users` may be private."""
    understanding = Understanding(
        may_be_private=lambda text: "users" in text,
        known=known,
        setting_names=NAMES,
        refused=refused,
        advice=advice,
    )
    made = Relay(MARKS, understanding, limits or RelayLimits())
    made.start(b"hello")
    made.from_front(STARTED + READY)
    made.take_client()
    made.take_front()
    return made


def kinds(raw: bytes) -> str:
    """The types of the messages in some bytes."""
    found = ""
    while raw:
        found += chr(raw[0])
        raw = raw[1 + int.from_bytes(raw[1:5], "big") :]
    return found


# --- what a front answers, and a session

SETTINGS_REPLY = build(b"3") + build(b"1") + build(b"2") + row(b"0.5", b"UTC") + messages.command_complete(b"SELECT 1")
SETTINGS_REPLY += build(b"3") + build(b"3")
SPLICED = Spliced(
    sql="select $1::int8[]",
    literal_sql="select '{7}'::int8[]",
    arrays=(Array(oid=1016, text="{7}"),),
    notices=(Notice(severity="NOTICE", sqlstate="00000", message="charged"),),
)
COLUMNS = messages.row_description([column()])
ONE, TWO, THREE, NO_DATA = build(b"1"), build(b"2"), build(b"3"), build(b"n")
DONE = messages.command_complete(b"SELECT 1")
FINISHED = READY + THREE + THREE + READY
DESCRIBED = ONE + build(b"t", b"\0\0") + COLUMNS
ROWS = row(b"7") + DONE + THREE + THREE + READY

#: What the front says to a statement of the relay's own for a block of a transaction.
BLOCK = THREE + ONE + TWO + messages.command_complete(b"BEGIN") + THREE + THREE

PRIVATE = "select count(*) from users"
PIECE = Piece(text=PRIVATE, start=0, is_private=True, describe_text=PRIVATE)


def answered_query(made: Relay) -> bytes:
    """Run one private Query to its end; what the client has got."""
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    assert made.take_ask() == AskPrepare(PRIVATE, {"hush.epsilon": "0.5", "TimeZone": "UTC"})
    made.answer((PIECE,))
    made.from_front(DESCRIBED)
    ask = made.take_ask()
    assert isinstance(ask, AskRelease)
    made.answer(SPLICED)
    made.from_front(ONE + TWO + COLUMNS)
    made.from_front(ROWS)
    return made.take_client()


def fresh() -> Relay:
    """A relay that the front has told nothing yet."""
    made = relay()
    made.channel.queue.clear()
    again = Relay(made.channel.marks, made._dispatch._understanding, RelayLimits())
    again.start(b"hello")
    return again
