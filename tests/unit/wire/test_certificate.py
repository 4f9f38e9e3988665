"""Channel binding data of certificates; real ones are in tests/wire/test_login.py."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.certificate import end_point


def der(tag: int, content: bytes) -> bytes:
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes(2, "big")
    return bytes([tag, 0x82]) + length + content


def certificate(algorithm: bytes) -> bytes:
    return der(0x30, der(0x30, b"x" * 200) + der(0x30, algorithm) + der(3, b"signature"))


def oid(text: str) -> bytes:
    return der(6, bytes.fromhex(text))


RSA = "2a864886f70d0101"
SHA384 = "608648016503040202"


def pss(parameters: bytes) -> bytes:
    return oid(RSA + "0a") + der(0x30, parameters)


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [
        (oid(RSA + "04"), "sha256"),
        (oid(RSA + "05"), "sha256"),
        (oid(RSA + "0b"), "sha256"),
        (oid(RSA + "0d"), "sha512"),
        (oid("2a8648ce3d040303"), "sha384"),
        (pss(der(0xA0, der(0x30, oid(SHA384)))), "sha384"),
        (pss(b""), "sha256"),
        (pss(der(0xA1, b"")), "sha256"),
    ],
)
def test_the_hash_is_that_of_the_signature(algorithm: bytes, name: str) -> None:
    made = certificate(algorithm)
    assert end_point(made) == hashlib.new(name, made).digest()


@pytest.mark.parametrize(
    "made",
    [
        certificate(oid("2b6570")),
        certificate(pss(der(0xA0, der(0x30, oid("2b6570"))))),
        b"",
        b"\x30",
        b"\x31\0",
        b"\x30\x82\xff\xff",
    ],
)
def test_without_a_known_hash_there_is_no_binding(made: bytes) -> None:
    assert end_point(made) == b""


@given(st.binary(max_size=60))
def test_no_bytes_break_it(raw: bytes) -> None:
    assert isinstance(end_point(raw), bytes)
    assert isinstance(end_point(b"\x30" + raw), bytes)
