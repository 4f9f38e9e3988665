"""One made-up conversation through the relay: what it must never do, whatever is said to it and however it is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from proxy.wire import messages
from proxy.wire.channel import ErrorMarks
from proxy.wire.flow import Ask, NoAnswer
from proxy.wire.messages import build
from proxy.wire.relay import Relay, RelayLimits
from proxy.wire.responses import parse_fields
from proxy.wire.understanding import Understanding
from tests.unit.wire.fuzz.greetings import greet
from tests.unit.wire.fuzz.meanings import ANSWERED, GUARD, PUBLIC
from tests.unit.wire.fuzz.model_front import Model
from tests.unit.wire.fuzz.model_session import SessionModel
from tests.unit.wire.fuzz.speech import ALL_TEXTS, Speaker, broken, garbled, spoiled

MARKER = "0123456789abcdef"
_LIMITS = RelayLimits(
    max_statement_bytes=2000, max_message_bytes=8000, max_buffered_bytes=4000, max_statements=6, max_portals=5
)
_SETTINGS = ("hush.epsilon", "TimeZone")
_BACKEND_KINDS = frozenset(b"123ACDEGHINRSTZKcdnst")
#: What the relay or the model may say, and nothing else may: see proxy.errors and the model.
DOCUMENTED = frozenset({
    "08P01", "22012", "22P02", "22P05", "25P01", "25P02", "26000", "34000", "3B001", "42501", "42601", "42P02",
    "42P03", "42P05", "54000", "57014", "58000", "58030", "57P01", "DP001", "DP004", "DP006", "DP007",
})  # fmt: skip
#: The one internal error: the model of a session says on purpose what no session may say.
MISTYPED = "the statement would return other columns than described"
_END = "select rows 1"


@dataclass(frozen=True, slots=True)
class Manners:
    """Of how many in a thousand messages each goes wrong. front: of its answers.

    is_compared: the client gets, but for notices, what it would get from the front alone.
    """

    spoiled: int = 0
    broken: int = 0
    front: int = 0
    texts: Sequence[str] = ALL_TEXTS
    is_compared: bool = False


@dataclass(slots=True)
class Tally:
    """What was said in some conversations. greetings, from_clients, from_fronts: messages."""

    conversations: int = 0
    greetings: int = 0
    from_clients: int = 0
    from_fronts: int = 0
    charged: int = 0
    ended: int = 0
    sqlstates: Counter[str] = field(default_factory=Counter)


class Conversation:
    """A client, the relay, a session and a front; every byte of it follows from the seed."""

    def __init__(self, made: Random, manners: Manners, tally: Tally) -> None:
        self.made, self.manners, self.tally = made, manners, tally
        self.session = SessionModel()
        understanding = Understanding(
            may_be_private=self.session.may_be_private,
            known=self.session.known,
            setting_names=_SETTINGS,
            refused=self.session.note_refusal,
        )
        self.relay = Relay(ErrorMarks(MARKER, GUARD), understanding, _LIMITS)
        self.front = Model(MARKER)
        self.heard = bytearray()
        self._asked: list[Ask] = []
        self._to_come = bytearray()  # from the front
        self.relay.start(build(b"?", b"hello"))
        self.relay.take_front()
        self.front.start()
        self._turn(is_patient=True)
        self.heard.clear()

    # --- driving ------------------------------------------------------------------------------------------

    def say(self, raw: bytes) -> None:
        """Send some bytes, perhaps cut, and perhaps let something happen before and after."""
        self.tally.from_clients += 1
        made = self.made
        if made.random() < 0.3:
            cut = made.randrange(len(raw) + 1)
            self.relay.from_client(raw[:cut])
            self._turn(is_patient=False)
            raw = raw[cut:]
        self.relay.from_client(raw)
        if made.random() < 0.7:
            self._turn(is_patient=made.random() < 0.5)

    def settle(self) -> None:
        """Let everything happen that can."""
        self._turn(is_patient=True)

    def _turn(self, *, is_patient: bool) -> None:
        """Bytes and questions in any order; if patient, until none is left."""
        while self._move_once() and (is_patient or self.made.random() < 0.6):
            pass
        self.heard += self.relay.take_client()

    def _move_once(self) -> bool:
        relay, front = self.relay, self.front
        front.feed(relay.take_front())
        self._to_come += self._as_told(front.take())
        ask = relay.take_ask()
        if not isinstance(ask, NoAnswer):
            self._asked.append(ask)
        if self._asked and (not self._to_come or self.made.random() < 0.5):
            relay.answer(self.session.answer(self._asked.pop()))
            return True
        if self._to_come:
            self._pass_on()
            return True
        return False

    def _pass_on(self) -> None:
        """Give the relay some of the front's bytes."""
        size = len(self._to_come)
        some = size if self.made.random() < 0.6 else self.made.randrange(1, size + 1)
        part = bytes(self._to_come[:some])
        del self._to_come[:some]
        self.relay.from_front(part)

    def _as_told(self, said: bytes) -> bytes:
        """What a front without manners makes of it."""
        if not (said and self.manners.front and self.made.randrange(1000) < self.manners.front):
            return said
        return garbled(self.made, [bytes([kind]) + _size(body) + body for kind, body in _messages(said)])

    # --- what must be so ------------------------------------------------------------------------------------

    def check_always(self) -> None:
        """Nothing is kept that was not asked for, and nothing runs that was not charged, or twice."""
        assert len(self.front.ran) == len(set(self.front.ran)), "a release was run twice"
        assert all(int(serial) <= self.session.charged for serial in self.front.ran), "uncharged"
        assert len(self._asked) <= 1, "two questions at once"

    def check_said(self) -> None:
        """What an honest front and the relay have said are messages with nothing of the relay's own in them."""
        said = bytes(self.heard)
        assert MARKER.encode() not in said
        assert b"_hush" not in said
        assert GUARD.encode() not in said
        for kind, body in _messages(said, may_break_off=self.relay.is_over):
            assert kind in _BACKEND_KINDS, chr(kind)
            if kind == ord("E"):
                fields = parse_fields(body, "utf-8")
                state = fields["C"]
                assert state in DOCUMENTED or fields["M"] == MISTYPED, fields
                self.tally.sqlstates[state] += 1

    def check_end(self) -> None:
        """Whatever was said, the next Query is answered, unless the session is over and the client knows why."""
        for raw in (build(b"f", b"\0"), messages.SYNC, messages.query(b"rollback")):
            self.relay.from_client(raw)
            self.settle()
        self.heard.clear()
        self.relay.from_client(messages.query(_END.encode()))
        self.settle()
        if self.relay.is_over:
            return
        kinds = "".join(chr(kind) for kind, _ in _messages(bytes(self.heard)))
        assert kinds == "TDCZ", kinds
        assert self.relay.is_idle
        assert self.heard[-1:] == b"I"
        assert not self.relay.channel.skips


def _size(body: bytes) -> bytes:
    return (len(body) + 4).to_bytes(4, "big")


def _messages(said: bytes, *, may_break_off: bool = False) -> Iterator[tuple[int, bytes]]:
    """may_break_off: a session that ends in the middle of a row says nothing more."""
    at = 0
    while at < len(said):
        end = at + 1 + int.from_bytes(said[at + 1 : at + 5], "big")
        if may_break_off and end > len(said):
            return
        assert end <= len(said), "half a message"
        yield said[at], said[at + 5 : end]
        at = end


#: Four in twelve conversations are honest; in three of them the front is not.
MANNERS = (
    Manners(texts=PUBLIC, is_compared=True),
    Manners(texts=(*PUBLIC, *ANSWERED), is_compared=True),
    Manners(),
    Manners(),
    Manners(spoiled=60),
    Manners(spoiled=60),
    Manners(spoiled=300),
    Manners(spoiled=30, broken=15),
    Manners(broken=60),
    Manners(spoiled=10, front=40),
    Manners(front=20),
    Manners(front=150),
)


def converse(seed: int, tally: Tally) -> None:
    """One conversation. Raises AssertionError, or what the relay raised."""
    made = Random(seed)
    tally.greetings += greet(made)
    manners = MANNERS[seed % len(MANNERS)]
    speaker = Speaker(made, manners.texts)
    talk = Conversation(made, manners, tally)
    direct = Model(MARKER, is_alone=True)
    for _ in range(made.randrange(10, 60)):
        for raw in speaker.say():
            said = _as_said(made, manners, raw)
            talk.say(said)
            if manners.is_compared:
                direct.feed(said)
            if talk.relay.is_over:
                break
        if talk.relay.is_over:
            break
    if manners.is_compared and not talk.relay.is_over:
        for raw in (build(b"f", b"\0"), messages.SYNC):
            talk.say(raw)
            direct.feed(raw)
    talk.settle()
    tally.conversations += 1
    tally.from_fronts += talk.front.said
    tally.charged += talk.session.charged
    tally.ended += talk.relay.is_over
    talk.check_always()
    if manners.front:
        return
    if manners.is_compared and not talk.relay.is_over and b"C54000" not in talk.heard:  # a limit of ours alone
        heard = [one for one in _messages(bytes(talk.heard)) if b"charged" not in one[1]]
        assert heard == list(_messages(direct.take())), "not what PostgreSQL would say"
    talk.check_said()
    if not manners.broken:
        talk.check_end()


def _as_said(made: Random, manners: Manners, raw: bytes) -> bytes:
    if manners.spoiled and made.randrange(1000) < manners.spoiled:
        return spoiled(made, raw)
    if manners.broken and made.randrange(1000) < manners.broken:
        return broken(made, raw)
    return raw
