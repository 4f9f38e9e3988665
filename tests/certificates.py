"""Certificates for servers of tests: an authority of one's own, and names it vouches for."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files. authority: to be trusted. cert, key: of a server at `localhost` and 127.0.0.1."""

    authority: Path
    cert: Path
    key: Path


def make_certificates(folder: Path, host: str = "localhost") -> Certificates:
    """A new authority and a server's certificate, valid for an hour. host: beside the address 127.0.0.1."""
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of tests")])
    authority = _builder(issuer, issuer, authority_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    own = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = authority.add_extension(own, critical=False)
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ip_address("127.0.0.1"))])
    by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
    server = _builder(named, issuer, server_key).add_extension(names, critical=False).add_extension(by, critical=False)
    made = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    for path, builder in ((made.authority, authority), (made.cert, server)):
        signed = builder.sign(authority_key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    made.key.chmod(0o600)
    return made


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(hours=1))
    )
