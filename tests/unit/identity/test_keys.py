"""Which keys of an issuer are used, and how often is it asked for them?"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from proxy.errors import ConfigError
from proxy.identity import keys
from proxy.identity.keys import FRESH_S, LEAST_S, MOST_BYTES, STALE_S, FileKeys, UrlKeys, found_in, read_keys
from proxy.identity.refusals import Unreachable
from tests.certificates import Certificates, make_certificates
from tests.issuer import Shown, ec_key, key_set, public_jwk, rsa_key, shown_over_https

RSA, CURVE = rsa_key(), ec_key()
ACCEPTED = ("RS256", "ES256", "EdDSA")
ONE = public_jwk(RSA, "one")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def shown(certificates: Certificates) -> Iterator[Shown]:
    with shown_over_https(certificates, key_set(ONE)) as found:
        yield found


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def keys_at(url: str, certificates: Certificates, clock: Clock, timeout_s: float = 5.0) -> UrlKeys:
    return UrlKeys(url, ssl.create_default_context(cafile=certificates.authority), timeout_s, ACCEPTED, clock)


def test_keys_have_the_signatures_that_fit_them() -> None:
    edwards = public_jwk(Ed25519PrivateKey.generate(), "four")
    found = read_keys(key_set(ONE, public_jwk(CURVE, "two"), public_jwk(RSA, "three", alg="RS256"), edwards), ACCEPTED)
    assert {name: key.algorithms for name, key in found.items()} == {
        "one": ("RS256",), "two": ("ES256",), "three": ("RS256",), "four": ("EdDSA",)
    }  # fmt: skip
    assert found_in(found, "two") is found["two"]
    assert found_in(found, "") is None
    assert found_in(read_keys(key_set(ONE), ACCEPTED), "") is not None


@pytest.mark.parametrize(
    "useless",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}, public_jwk(RSA, "e", use="enc"), public_jwk(RSA, "p", alg="PS256"),
        public_jwk(rsa_key(1024), "short"), {"kty": "RSA", "kid": "cut"}, {**ONE, "kid": 7},
        dict(ECAlgorithm.to_jwk(generate_private_key(SECP256K1()).public_key(), as_dict=True)),
        dict(OKPAlgorithm.to_jwk(Ed448PrivateKey.generate().public_key(), as_dict=True)), "no key",
    ],
)  # fmt: skip
def test_keys_that_are_of_no_use_are_left_out(useless: object) -> None:
    text = json.dumps({"keys": [useless, ONE]})
    assert list(read_keys(text, ACCEPTED)) == ["one"]
    with pytest.raises(ValueError, match="has no key for"):
        read_keys(json.dumps({"keys": [useless]}), ACCEPTED)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "is no JSON Web Key Set"), ("[]", "is no"), ('{"keys": 7}', "is no"), ("{}", "is no"),
        (key_set(ONE, ONE), "two keys of one name"), (key_set(*[ONE] * 101), "more than 100"),
    ],
)  # fmt: skip
def test_sets_that_are_none(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_keys(text, ACCEPTED)
    with pytest.raises(ConfigError, match="key set keys"):
        FileKeys(text, "keys.json", ACCEPTED)


def test_an_address_is_asked_when_a_key_is_needed_and_not_too_often(shown: Shown, certificates: Certificates) -> None:
    clock = Clock()
    found = keys_at(shown.url, certificates, clock)
    assert shown.asked == 0
    assert found.find("one") is not None
    assert found.find("one") is not None
    assert shown.asked == 1
    assert found.find("two") is None  # the last attempt is too young
    assert shown.asked == 1
    shown.body = key_set(ONE, public_jwk(CURVE, "two")).encode()
    clock.now += LEAST_S
    assert found.find("two") is not None
    assert shown.asked == 2
    clock.now += FRESH_S + 1
    shown.body = key_set(public_jwk(CURVE, "two")).encode()
    assert found.find("one") is None  # the issuer has it no more
    assert shown.asked == 3


def test_an_address_out_of_reach_leaves_the_keys_for_a_day(
    shown: Shown, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    found = keys_at(shown.url, certificates, clock)
    assert found.find("one") is not None
    shown.status = 500
    clock.now += FRESH_S + 1
    assert found.find("one") is not None
    assert "still count: the answer has status 500" in caplog.text
    clock.now += STALE_S
    with pytest.raises(Unreachable, match="there are no keys"):
        found.find("one")


@pytest.mark.parametrize("change", ["status", "redirect", "long", "no set", "no text"])
def test_answers_that_are_no_keys(change: str, shown: Shown, certificates: Certificates) -> None:
    match change:
        case "status":
            shown.status = 404
        case "redirect":
            shown.status, shown.headers = 302, {"Location": shown.url}
        case "long":
            shown.body = b" " * (MOST_BYTES + 1)
        case "no set":
            shown.body = b"<html>"
        case _:
            shown.body = b"\xff"
    with pytest.raises(Unreachable, match="cannot be read"):
        keys_at(f"{shown.url}?a=b", certificates, Clock()).find("one")
    assert shown.asked == 1


def test_another_authority_or_nobody_there(shown: Shown, certificates: Certificates) -> None:
    strict = UrlKeys(shown.url, ssl.create_default_context(), 5.0, ACCEPTED)
    with pytest.raises(Unreachable, match="cannot be read"):
        strict.find("one")
    with pytest.raises(Unreachable, match="no keys"):
        strict.find("one")  # not asked again so soon
    assert shown.asked == 0


def test_whoever_waits_for_keys_too_long_does_without(
    shown: Shown, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = keys_at(shown.url, certificates, Clock(), timeout_s=0.1)
    begun, may_end = threading.Event(), threading.Event()

    def slow(_self: UrlKeys) -> str:
        begun.set()
        assert may_end.wait(60)
        return key_set(ONE)

    monkeypatch.setattr(keys.UrlKeys, "_fetched", slow)
    first = threading.Thread(target=found.find, args=("one",))
    first.start()
    assert begun.wait(60)
    with pytest.raises(Unreachable):
        found.find("one")
    may_end.set()
    first.join()
    assert found.find("one") is not None


def test_an_issuer_that_answers_byte_by_byte_is_left(shown: Shown, certificates: Certificates) -> None:
    shown.trickles = True
    with pytest.raises(Unreachable, match="cannot be read"):
        keys_at(shown.url, certificates, Clock(), timeout_s=0.3).find("one")
    deadline = time.monotonic() + 60
    while not shown.was_left and time.monotonic() < deadline:
        time.sleep(0.05)
    assert shown.was_left


def test_keys_that_were_taken_back_are_known_no_more(shown: Shown, certificates: Certificates) -> None:
    clock = Clock()
    found = keys_at(shown.url, certificates, clock)
    assert found.find("one") is not None
    shown.body = key_set().encode()
    clock.now += FRESH_S + 1
    assert found.find("one") is None
    with pytest.raises(Unreachable, match="has no key for"):
        keys_at(shown.url, certificates, clock).find("one")


def test_a_key_that_is_known_is_not_waited_for(
    shown: Shown, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does an address that does not answer hold up tokens of keys that were read before."""
    clock = Clock()
    found = keys_at(shown.url, certificates, clock, timeout_s=60.0)
    assert found.find("one") is not None
    clock.now += FRESH_S + 1
    begun, may_end = threading.Event(), threading.Event()

    def slow(_self: UrlKeys) -> str:
        begun.set()
        assert may_end.wait(60)
        return key_set(ONE)

    monkeypatch.setattr(keys.UrlKeys, "_fetched", slow)
    first = threading.Thread(target=found.find, args=("two",))
    first.start()
    assert begun.wait(60)
    assert found.find("one") is not None
    assert not may_end.is_set()
    may_end.set()
    first.join()
