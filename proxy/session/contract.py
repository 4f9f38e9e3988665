"""What does the relay ask of the session, and what comes back?

The relay speaks bytes and messages; the session understands statements, charges and releases.
Between them pass only the values of `proxy.wire.exchange`, named here again so that a session needs this
module alone. The session never sees a socket, the relay never a query plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from proxy.errors import HushError
from proxy.wire.exchange import Array, Asking, NoRefusal, Notice, Parameter, Piece, Refusal, Row, Spliced

__all__ = [
    "Array",
    "Asking",
    "NoRefusal",
    "Notice",
    "Parameter",
    "Piece",
    "Refusal",
    "Row",
    "Session",
    "Sessions",
    "Spliced",
]


class Session(Protocol):
    """One client session's understanding, created after login and closed with the connection.

    All calls may be made again and again; `prepare` and `release` run CPU work off the event
    loop and raise nothing but HushError. Cancelling `release` never gives a charge back.
    """

    #: names of the settings whose values `release` wants, read by the relay from the front:
    #: hush.* and what else of PostgreSQL's settings bears on a release
    setting_names: tuple[str, ...]

    def may_be_private(self, text: str) -> bool:
        """Fast lexical test on the event loop: False means the whole string is forwarded verbatim."""
        ...

    def known(self, text: str, settings: Mapping[str, str]) -> tuple[Piece, ...]:
        """What `prepare` would answer, if that is at hand on the event loop; nothing if it is not."""
        ...

    async def prepare(
        self, text: str, settings: Mapping[str, str], told: tuple[tuple[Row, ...], ...] = ()
    ) -> tuple[Piece, ...]:
        """Split a query string into statements and understand each; costs nothing.

        told: the rows that the front gave for each thing the only statement asked for, in order.
        """
        ...

    async def release(
        self, piece: Piece, parameters: tuple[Parameter, ...], settings: Mapping[str, str]
    ) -> Spliced | Asking:
        """Charge, compute and splice one private statement. Raises HushError when refused.

        It may ask the front something first, once for each of the statement's stages.
        """
        ...

    def refused(self, error: HushError) -> None:
        """The client was shown this refusal, whoever made it; called once for each."""
        ...

    async def close(self) -> None:
        """Release what the session holds."""
        ...


class Sessions(Protocol):
    """Opens sessions for authenticated logins; one for each served dataset."""

    async def open(self, login: str, database: str, session_id: str) -> Session: ...
