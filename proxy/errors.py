"""What can go wrong, and how is it said to a client?

One root class; the class carries the SQLSTATE, unless it is PostgreSQL's own, and the instance the words. Nothing here
may be built from private data: messages depend on the query text and the policy only.
"""

from __future__ import annotations

import enum


class HushError(Exception):
    """An error that may be shown to whoever caused it.

    message: lower case, no full stop. detail, hint: full sentences, may be empty.
    position: 1-based character offset in the statement, 0 when unknown.
    """

    sqlstate: str = "XX000"

    def __init__(self, message: str, *, detail: str = "", hint: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position

    def told(self) -> HushError:
        """What of it a client may read: all, unless its words are about the server's own files and neighbours."""
        return self

    def text(self) -> str:
        """The whole error as one readable line, for logs and the command line."""
        first = f"{self.message} at character {self.position}" if self.position else self.message
        first = f"{first}." if self.detail or self.hint else first
        return " ".join(part for part in (first, self.detail, self.hint) if part)


# --- the client's statement -------------------------------------------------------------------


class BudgetSpent(HushError):
    """An account that must pay has too little left."""

    sqlstate = "DP001"


class MissingBounds(HushError):
    """A measure has no bounds, so its sensitivity is unbounded."""

    sqlstate = "DP002"


class UnitNotJoined(HushError):
    """Private relations are combined other than along the privacy unit or a declared key."""

    sqlstate = "DP003"


class NotAggregate(HushError):
    """The statement would show private rows instead of aggregates over them."""

    sqlstate = "DP004"


class BadGroups(HushError):
    """The grouping cannot be released."""

    sqlstate = "DP005"


class Unsupported(HushError):
    """A construct outside the closed world of what is understood."""

    sqlstate = "DP006"


class PolicyForbids(HushError):
    """The policy or a setting forbids what was asked."""

    sqlstate = "DP007"


class NotConfirmed(HushError):
    """The answer is expected to say nothing, and the client wants to be asked before such a statement is charged."""

    sqlstate = "DP008"


class InvalidSetting(HushError):
    """A hush.* setting has a value outside its range."""

    sqlstate = "22023"


class UnknownUnit(HushError):
    """A text names no unit of time that PostgreSQL knows."""

    sqlstate = "22023"


class InvalidParameter(HushError):
    """A bind parameter cannot be read as its type."""

    sqlstate = "22P02"


class NotReadable(HushError):
    """PostgreSQL refuses a text as a value of its type; words and SQLSTATE are its own."""

    sqlstate = "22000"

    def __init__(
        self, message: str, *, sqlstate: str = "22000", detail: str = "", hint: str = "", position: int = 0
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, position=position)
        self.sqlstate = sqlstate


class NoParameter(HushError):
    """A statement of the simple protocol names a parameter."""

    sqlstate = "42P02"


class UndefinedName(HushError):
    """A column or table that the statement names does not exist."""

    sqlstate = "42703"


class QueryCanceled(HushError):
    """The client cancelled, or a time-out passed."""

    sqlstate = "57014"


class TooMuch(QueryCanceled):
    """A statement took more time, memory or room than it may. All depend on rows, so there is one word for them."""

    def __init__(self) -> None:
        super().__init__(
            "canceling statement due to statement timeout or memory limit",
            detail="What was reserved for it stays charged.",
            hint="Fewer groups, a shorter span of time or a simpler statement need less of both.",
        )


class ProtocolViolation(HushError):
    """The client's bytes are not the PostgreSQL protocol."""

    sqlstate = "08P01"


class TooManyConnections(HushError):
    """A limit on sessions is reached."""

    sqlstate = "53300"


class SessionLimit(HushError):
    """One session asks for more than it may hold: statement size, prepared statements, portals."""

    sqlstate = "54000"


class Untranslatable(HushError):
    """A text cannot be written in the client's encoding."""

    sqlstate = "22P05"


class UnknownDatabase(HushError):
    """No dataset of that name is served."""

    sqlstate = "3D000"


class NotEncrypted(HushError):
    """The server demands TLS and the client does without."""

    sqlstate = "28000"


class AuthenticationFailed(HushError):
    """Login refused; the message never says whether the user exists. reason: its kind, for the log alone."""

    sqlstate = "28P01"

    def __init__(self, message: str, *, reason: str = "", detail: str = "", hint: str = "", position: int = 0) -> None:
        super().__init__(message, detail=detail, hint=hint, position=position)
        self.reason = reason


class TokenRefused(AuthenticationFailed):
    """A login by a token was refused."""

    sqlstate = "28000"


# --- the admin's files and command lines --------------------------------------------------------


class OperatorError(HushError):
    """What an admin must mend. It names files, variables and what was found in the data, so no client reads it."""

    def told(self) -> HushError:
        return HushError("internal error")


class PolicyError(OperatorError):
    """A policy or users file is wrong. The message starts with file:line."""

    sqlstate = "F0000"


class ConfigError(OperatorError):
    """A command-line option, port, path or file mode is wrong."""

    sqlstate = "F0000"


# --- machinery ------------------------------------------------------------------------------------


class Failure(enum.Enum):
    """Of which kind a failure of the private engine is: it decides what is told, and whether asking again is paid for.

    LIMITS: of time, memory or room. OTHER: errors of values, locks, and all that is not known.
    """

    UNREACHABLE = "unreachable"
    LOST = "lost"
    CHANGED = "changed"
    LIMITS = "limits"
    OTHER = "other"


class EngineFailed(HushError):
    """The private engine failed. The message is fixed: engine text may quote a private row."""

    sqlstate = "58000"


class ThinkerLost(HushError):
    """A process that plans statements has ended in the middle of one."""

    sqlstate = "58000"


class LedgerFailed(HushError):
    """The ledger could not make a charge durable, or does not verify. Nothing may be answered."""

    sqlstate = "58030"

    def told(self) -> HushError:
        """Without paths, numbers of entries, and what a database says."""
        return LedgerFailed(
            "the ledger cannot be charged or read, so nothing is answered",
            hint="The server's log says why: its disk may have no free space, or its database may be out of reach.",
        )


class FrontFailed(HushError):
    """The public PostgreSQL is gone or could not start. The detail may hold its own words."""

    sqlstate = "57P01"

    def told(self) -> HushError:
        return type(self)(self.message, hint=self.hint)


class FrontRestarting(FrontFailed):
    """The public PostgreSQL is built anew: whoever asks again in a moment gets in."""

    sqlstate = "57P03"


class ShuttingDown(HushError):
    """The proxy ends the session because it stops."""

    sqlstate = "57P01"


class IdleTooLong(HushError):
    """The session sent nothing for longer than the policy allows."""

    sqlstate = "57P05"
