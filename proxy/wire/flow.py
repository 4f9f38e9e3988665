"""How does one private statement wait for the front and for the session?

A flow is a generator: it writes to the channel and yields what it waits for. Whoever drives it (`proxy.wire.relay`)
sends the answer in or throws: `FrontSaidNo` when the front has failed one of the flow's messages, and the client
has seen that error; HushError when the session refuses.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from proxy.wire.exchange import Asking, Parameter, Piece, Row, Spliced
from proxy.wire.expect import Ticket
from proxy.wire.understanding import Understanding

_Result = TypeVar("_Result")


class FrontSaidNo(Exception):
    """The front answered one of the flow's messages, or one before it, with an error; the client has seen it."""


@dataclass(frozen=True, slots=True)
class AskPrepare:
    """Wants Session.prepare."""

    text: str
    settings: Mapping[str, str]
    told: tuple[tuple[Row, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class AskRelease:
    """Wants Session.release."""

    piece: Piece
    parameters: tuple[Parameter, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A ticket is done; its replies are in the ticket."""


Ask = AskPrepare | AskRelease
Wait = Ticket | Ask
Answer = tuple[Piece, ...] | Spliced | Asking | NoAnswer
Flow = Generator[Wait, Answer, _Result]

NO_ANSWER = NoAnswer()


def wait_for(ticket: Ticket) -> Flow[None]:
    """Until all replies to a batch are there. Raises FrontSaidNo."""
    yield ticket


def ask_prepare(
    text: str, settings: Mapping[str, str], understanding: Understanding, told: tuple[tuple[Row, ...], ...] = ()
) -> Flow[tuple[Piece, ...]]:
    """Raises HushError."""
    known = () if told else understanding.known(text, settings)
    if known:
        return known
    answer = yield AskPrepare(text, settings, told)
    assert isinstance(answer, tuple)
    return answer


def ask_release(piece: Piece, parameters: tuple[Parameter, ...], settings: Mapping[str, str]) -> Flow[Spliced | Asking]:
    """Raises HushError when refused. From here on the charge stands, whatever becomes of the answer."""
    answer = yield AskRelease(piece, parameters, settings)
    assert isinstance(answer, (Spliced, Asking))
    return answer
