"""Which files does a users file need to be vouched by somebody else?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.identity.refusals import NotVouched, RefusalReason
from proxy.identity.vouchers import open_voucher
from proxy.policy.outside.logins import Anonymous, KeysFrom, KeysIn, NoOutside, ServiceAccount
from tests.certificates import make_certificates
from tests.issuer import key_set, public_jwk, rsa_key, token
from tests.unit.identity.directory import FakeDirectory
from tests.unit.identity.test_ldap import settings
from tests.unit.identity.test_tokens import SETTINGS

LDAP = settings(FakeDirectory(1))


def test_nobody_vouches_by_default() -> None:
    with pytest.raises(NotVouched) as caught:
        open_voucher(NoOutside()).by_password("alice", "right")
    assert caught.value.reason is RefusalReason.CHANGED


def test_a_directory_needs_the_password_of_its_account(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    ldap = replace(LDAP, service=ServiceAccount("cn=x", str(secret)))
    with pytest.raises(ConfigError, match="cannot be read"):
        open_voucher(ldap)
    secret.write_text("service\n")
    secret.chmod(0o644)
    with pytest.raises(ConfigError, match="mode 0644"):
        open_voucher(ldap)
    secret.chmod(0o600)
    found = open_voucher(ldap)
    with pytest.raises(NotVouched):
        found.by_token("a token")
    secret.write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        open_voucher(ldap)
    secret.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        open_voucher(ldap)
    secret.write_bytes(b" " * 1_000_001)
    with pytest.raises(ConfigError, match="larger than"):
        open_voucher(ldap)
    open_voucher(replace(LDAP, service=Anonymous()))


def test_authorities_are_read_at_once(tmp_path: Path) -> None:
    missing = replace(LDAP, service=Anonymous(), ca_file=str(tmp_path / "ca.pem"))
    with pytest.raises(ConfigError, match="certificates in"):
        open_voucher(missing)
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match="certificates in"):
        open_voucher(missing)
    make_certificates(tmp_path)
    open_voucher(missing)
    open_voucher(replace(SETTINGS, keys=KeysFrom("https://localhost/keys", str(tmp_path / "ca.pem"))))


def test_keys_of_a_file_are_read_at_once(tmp_path: Path) -> None:
    key, path = rsa_key(), tmp_path / "keys.json"
    by_file = replace(SETTINGS, keys=KeysIn(str(path)))
    with pytest.raises(ConfigError, match="key set"):
        open_voucher(by_file)
    path.write_text(key_set(public_jwk(key, "one")))
    assert open_voucher(by_file).by_token(token(key)).name == "alice"
