"""How does an error or a notice look on the wire?

Builds ErrorResponse and NoticeResponse from our own errors, and reads or edits the front's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.errors import HushError, ProtocolViolation
from proxy.wire.messages import BodyReader, build

SEVERITY = "S"
SEVERITY_PLAIN = "V"
SQLSTATE = "C"
MESSAGE = "M"
DETAIL = "D"
HINT = "H"
POSITION = "P"
ROUTINE = "R"

#: Fields that speak of the statement the front saw rather than of the one the client sent.
_INTERNAL_FIELDS = frozenset({"p", "q", "P"})


def _fields(kind: bytes, fields: Iterable[tuple[str, str]], codec: str) -> bytes:
    body = b"".join(
        code.encode("ascii") + value.replace("\0", " ").encode(codec, "replace") + b"\0"
        for code, value in fields
        if value
    )
    return build(kind, body + b"\0")


def error_response(error: HushError, *, codec: str = "utf-8", severity: str = "ERROR", shift: int = 0) -> bytes:
    """The ErrorResponse of one of our errors. shift: characters between the client's text and the error's.

    Claim: no client reads a path of the server, an environment variable, or what a data base or a check of rows said.
    """
    error = error.told()
    position = str(error.position + shift) if error.position else ""
    fields = (
        (SEVERITY, severity),
        (SEVERITY_PLAIN, severity),
        (SQLSTATE, error.sqlstate),
        (MESSAGE, error.message),
        (DETAIL, error.detail),
        (HINT, error.hint),
        (POSITION, position),
    )
    return _fields(b"E", fields, codec)


def notice_response(*, severity: str, sqlstate: str, message: str, detail: str = "", codec: str = "utf-8") -> bytes:
    fields = (
        (SEVERITY, severity),
        (SEVERITY_PLAIN, severity),
        (SQLSTATE, sqlstate),
        (MESSAGE, message),
        (DETAIL, detail),
    )
    return _fields(b"N", fields, codec)


def parse_fields(body: bytes, codec: str) -> Mapping[str, str]:
    """The fields of an ErrorResponse or NoticeResponse. Raises ProtocolViolation."""
    reader = BodyReader(body)
    fields: dict[str, str] = {}
    while (code := reader.take(1)) != b"\0":
        if not code.isalpha():
            raise ProtocolViolation("invalid field in error message")
        fields[code.decode("ascii")] = reader.string().decode(codec, "replace")
    reader.finish()
    return fields


def moved_error(fields: Mapping[str, str], shift: int, codec: str) -> bytes:
    """The front's error with its position moved by `shift` characters."""
    position = fields.get(POSITION, "")
    if position.isdigit():
        fields = {**fields, POSITION: str(int(position) + shift)}
    return _fields(b"E", fields.items(), codec)


def placeless_error(fields: Mapping[str, str], codec: str) -> bytes:
    """The front's error without any trace of the text it arose in."""
    return _fields(b"E", ((code, value) for code, value in fields.items() if code not in _INTERNAL_FIELDS), codec)
