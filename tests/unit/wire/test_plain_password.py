"""Is a password that is shown as it is read whole, or not at all?"""

from __future__ import annotations

import pytest

from proxy.errors import ProtocolViolation
from proxy.wire.plain_password import ASK_FOR_PASSWORD, parse_password


def test_a_password_ends_with_a_zero() -> None:
    assert ASK_FOR_PASSWORD == b"R\0\0\0\x08\0\0\0\3"
    assert parse_password("päss\0".encode()) == "päss"
    assert parse_password(b"\0") == ""


@pytest.mark.parametrize("body", [b"", b"pass", b"pa\0ss\0", b"\xff\0"])
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        parse_password(body)
