"""What has happened, as one line of the log: with which fields, for programs that read it?

Names of fields and events are stable and in the guide. Nothing here may be built from private data: a field holds what
a client is told, what a policy or a users file says, or an amount of the ledger. What clients wrote is logged only
where the operator asks for it, since it may name people.
"""

from __future__ import annotations

import enum
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

_log = logging.getLogger("hushql")
_FIELDS = "hushql_fields"
_SPACES = " \t\n\r\f\v"  # as PostgreSQL has them
_TO_BLANKS = dict.fromkeys(map(ord, _SPACES), " ")
STATEMENT = "statement"  # the field that holds what a client wrote

EventValue = str | float | bool | Sequence[str] | Mapping[str, float]


class LoggedEvent(enum.Enum):
    """The kinds of lines. LOG: any other, of which only the words are said."""

    LOGIN = "login"
    LOGIN_FAILED = "login_failed"
    REVOKED = "revoked"  # somebody from outside the users file may no longer log in
    STATEMENT = "statement"
    ACCOUNT = "account"  # one has passed a share of its limit
    RELOAD = "reload"
    PROFILE = "profile"
    ENGINE = "engine"
    LOG = "log"


class LogFormat(enum.Enum):
    """How lines look: for people, or one JSON object each."""

    TEXT = "text"
    JSON = "json"


def tell(event: LoggedEvent, words: str, fields: Mapping[str, EventValue], level: int = logging.INFO) -> None:
    """Log one thing that happened: in words for people, in fields for programs."""
    _log.log(level, "%s", words, extra={_FIELDS: {"event": event.value, **fields}})


def fingerprint_of(statement: str) -> str:
    """The same for the same text, whatever its white space: 16 hexadecimal digits of its SHA-256.

    Statements of a megabyte are looked at between those of others, so whole texts are changed at once.
    """
    plain = statement.strip(_SPACES).translate(_TO_BLANKS)
    while "  " in plain:
        plain = plain.replace("  ", " ")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def tables_in(statement: str, tables: Iterable[str]) -> list[str]:
    """Which of these names stand in a statement as words, by the alphabet; it need not be one that can be parsed."""
    text = statement.lower()
    return sorted(name for name in tables if _has_word(text, name.lower()))


def tables_together(statement: str, tables: Iterable[str]) -> str:
    """The same as one text, by which charges are added up; "" if none of them stands there."""
    return " + ".join(tables_in(statement, tables))


def _has_word(text: str, word: str) -> bool:
    name = re.escape(word)
    return bool(re.search(rf"{name}(?<!\w{name})(?!\w)", text))  # the name first: that is what is searched for fast


class JsonLines(logging.Formatter):
    """Lines of JSON. with_statements: what clients wrote is in them."""

    def __init__(self, *, with_statements: bool) -> None:
        super().__init__()
        self._with_statements = with_statements

    def format(self, record: logging.LogRecord) -> str:
        """Time with its zone, level, event and message, then what belongs to the event."""
        fields = dict(getattr(record, _FIELDS, {"event": LoggedEvent.LOG.value}))
        if not self._with_statements:
            fields.pop(STATEMENT, None)
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "event": fields.pop("event")}
        return json.dumps({**line, "message": record.getMessage(), **fields}, ensure_ascii=False)


class TextLines(logging.Formatter):
    """Lines for people. with_statements: what clients wrote is added to them."""

    def __init__(self, *, with_statements: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._with_statements = with_statements

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        said = getattr(record, _FIELDS, {}).get(STATEMENT) if self._with_statements else None
        return line if said is None else f"{line}: {json.dumps(said, ensure_ascii=False)}"


def formatter_of(kind: LogFormat, *, with_statements: bool) -> logging.Formatter:
    """What writes lines of this kind. with_statements: with what clients wrote."""
    made = JsonLines if kind is LogFormat.JSON else TextLines
    return made(with_statements=with_statements)
