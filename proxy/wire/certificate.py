"""Which bytes bind a login to the server's certificate?

The channel binding `tls-server-end-point` (RFC 5929, section 4): the certificate's hash, by the hash of its
signature, with SHA-256 in the place of MD5 and SHA-1. Reads just as much DER as that takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

_SEQUENCE = 0x30
_OBJECT_ID = 0x06
_EXPLICIT_HASH = 0xA0
_RSA_PSS = bytes.fromhex("2a864886f70d01010a")

#: Object identifiers of signature algorithms, in DER, to the hash that binds.
_HASHES: Mapping[bytes, str] = {
    bytes.fromhex("2a864886f70d010104"): "sha256",  # md5WithRSAEncryption
    bytes.fromhex("2a864886f70d010105"): "sha256",  # sha1WithRSAEncryption
    bytes.fromhex("2a864886f70d01010e"): "sha224",
    bytes.fromhex("2a864886f70d01010b"): "sha256",
    bytes.fromhex("2a864886f70d01010c"): "sha384",
    bytes.fromhex("2a864886f70d01010d"): "sha512",
    bytes.fromhex("2a8648ce3d0401"): "sha256",  # ecdsa-with-SHA1
    bytes.fromhex("2a8648ce3d040301"): "sha224",
    bytes.fromhex("2a8648ce3d040302"): "sha256",
    bytes.fromhex("2a8648ce3d040303"): "sha384",
    bytes.fromhex("2a8648ce3d040304"): "sha512",
}
#: Object identifiers of hashes, as RSA-PSS names them.
_PSS_HASHES: Mapping[bytes, str] = {
    bytes.fromhex("2b0e03021a"): "sha256",  # sha1
    bytes.fromhex("608648016503040204"): "sha224",
    bytes.fromhex("608648016503040201"): "sha256",
    bytes.fromhex("608648016503040202"): "sha384",
    bytes.fromhex("608648016503040203"): "sha512",
}


@dataclass(frozen=True, slots=True)
class _Element:
    tag: int
    content: bytes
    rest: bytes


def end_point(certificate: bytes) -> bytes:
    """Binding data of a DER certificate; empty when its signature has no hash that both ends know (Ed25519)."""
    try:
        name = _hash_name(certificate)
    except (IndexError, ValueError):
        return b""
    return hashlib.new(name, certificate).digest() if name else b""


def _hash_name(certificate: bytes) -> str:
    to_be_signed = _read(_read(certificate, _SEQUENCE).content, _SEQUENCE)
    algorithm = _read(to_be_signed.rest, _SEQUENCE)
    identifier = _read(algorithm.content, _OBJECT_ID)
    if identifier.content != _RSA_PSS:
        return _HASHES.get(identifier.content, "")
    parameters = _read(identifier.rest, _SEQUENCE).content
    if not parameters or parameters[0] != _EXPLICIT_HASH:
        return "sha256"  # the default is SHA-1
    chosen = _read(_read(parameters, _EXPLICIT_HASH).content, _SEQUENCE)
    return _PSS_HASHES.get(_read(chosen.content, _OBJECT_ID).content, "")


def _read(data: bytes, tag: int) -> _Element:
    """The DER element at the start. Raises ValueError or IndexError."""
    if data[0] != tag:
        raise ValueError("unexpected element")
    length, start = data[1], 2
    if length & 0x80:
        start = 2 + (length & 0x7F)
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data):
        raise ValueError("truncated element")
    return _Element(tag, data[start : start + length], data[start + length :])
