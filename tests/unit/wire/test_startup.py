"""The first packets of a connection."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import PolicyForbids, ProtocolViolation
from proxy.wire.startup import (
    CancelRequest,
    EncryptionRequest,
    Startup,
    cancel_packet,
    front_packet,
    negotiation,
    packet_bytes,
    parse_packet,
)


def packet(code: int, body: bytes) -> bytes:
    return struct.pack("!II", len(body) + 8, code) + body


def startup(minor: int = 0, **parameters: str) -> Startup:
    body = b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items())
    parsed = parse_packet(packet(0x30000 + minor, body + b"\0"))
    assert isinstance(parsed, Startup)
    return parsed


def sent(made: Startup) -> dict[str, str]:
    parts = front_packet(made, role="r", database="d")[8:-2].decode().split("\0")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_requests() -> None:
    assert parse_packet(packet(80877103, b"")) == EncryptionRequest(True)
    assert parse_packet(packet(80877104, b"")) == EncryptionRequest(False)
    assert parse_packet(packet(80877102, b"12345678")) == CancelRequest(b"12345678")
    assert parse_packet(cancel_packet(b"1234" + b"k" * 32)) == CancelRequest(b"1234" + b"k" * 32)


def test_names_and_their_defaults() -> None:
    assert startup(user="a").database == "a"
    assert startup(user="a", database="").database == "a"
    assert startup(user="a", database="b").database == "b"
    assert startup().user == ""


@pytest.mark.parametrize(
    "raw",
    [
        packet(0x20000, b"\0"),
        packet(0x40000, b"\0"),
        packet(80877103, b"x"),
        packet(80877102, b"short"),
        packet(80877102, b"x" * 261),
        packet(0x30000, b""),
        packet(0x30000, b"user\0"),
        packet(0x30000, b"user\0a\0\0rest"),
        packet(0x30000, b"user\0\xff\0\0"),
    ],
)
def test_what_is_no_packet_is_a_violation(raw: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        parse_packet(raw)


def test_lengths_are_limited() -> None:
    assert packet_bytes(struct.pack("!I", 8)) == 8
    for length in (0, 7, 10_001, 2**32 - 1):
        with pytest.raises(ProtocolViolation):
            packet_bytes(struct.pack("!I", length))


@given(st.binary(min_size=8, max_size=80))
def test_only_violations_leave_the_parser(raw: bytes) -> None:
    try:
        parse_packet(raw)
    except ProtocolViolation:
        return


def test_versions_are_negotiated() -> None:
    assert negotiation(startup(minor=2)) == b""
    assert negotiation(startup(minor=3))[5:] == struct.pack("!II", 0x30002, 0)
    parsed = parse_packet(packet(0x30000, b"user\0a\0_pq_.b\0c\0\0"))
    assert isinstance(parsed, Startup)
    made = parsed
    assert negotiation(made)[5:] == struct.pack("!II", 0x30000, 1) + b"_pq_.b\0"
    assert sent(made) == {"user": "r", "database": "d"}
    assert front_packet(startup(minor=9), role="r", database="d")[4:8] == struct.pack("!I", 0x30002)


def test_settings_pass_under_the_fronts_names() -> None:
    made = startup(
        user="a",
        database="b",
        application_name="x",
        options=r"-c a.b=1  -cTimeZone=UTC --hush-x.y=a\ b\\",
        replication="off",
    )
    assert sent(made) == {
        "user": "r",
        "database": "d",
        "a.b": "1",
        "TimeZone": "UTC",
        "hush_x.y": "a b\\",
        "application_name": "x",
    }


@pytest.mark.parametrize(
    "options",
    ["-c work_mem=1", "-c", "-cx", "--", "-e", "x", "-c a.b", "-d 5", r"\\", "-c client_encoding=MULE_INTERNAL"],
)
def test_other_options_are_refused(options: str) -> None:
    with pytest.raises(PolicyForbids):
        front_packet(startup(user="a", options=options), role="r", database="d")


@pytest.mark.parametrize("value", ["true", "database", "on", "1"])
def test_replication_is_refused(value: str) -> None:
    with pytest.raises(PolicyForbids):
        front_packet(startup(user="a", replication=value), role="r", database="d")
