"""How does a client show its password as it is, and how is it asked to?

Source: PostgreSQL documentation, "Message Formats", AuthenticationCleartextPassword and PasswordMessage.
"""

from __future__ import annotations

from proxy.errors import ProtocolViolation
from proxy.wire.messages import build

ASK_FOR_PASSWORD = build(b"R", b"\0\0\0\3")


def parse_password(body: bytes) -> str:
    """The password in a PasswordMessage, maybe an empty one. Raises ProtocolViolation."""
    if not body.endswith(b"\0") or b"\0" in body[:-1]:
        raise ProtocolViolation("malformed password message")
    try:
        return body[:-1].decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation("passwords must be UTF-8") from None
