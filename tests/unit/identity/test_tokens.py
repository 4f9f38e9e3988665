"""Which tokens let somebody in? Every way in which one is not as it should be refuses it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proxy.identity.keys import FileKeys
from proxy.identity.refusals import NotVouched, RefusalReason
from proxy.identity.tokens import Tokens
from proxy.policy.outside.logins import KeysIn, TokenLogins
from tests.issuer import AUDIENCE, ISSUER, claims, ec_key, key_set, public_jwk, rsa_key, token

KEY, OTHER, CURVE, EDWARDS = rsa_key(), rsa_key(), ec_key(), Ed25519PrivateKey.generate()
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
SETTINGS = TokenLogins(
    issuer=ISSUER, audience=AUDIENCE, keys=KeysIn("keys.json"), algorithms=ALGORITHMS, login_claim="sub",
    groups_claim="groups", groups=(("chiefs", "boss"), ("analysts", "analyst")), scope="openid",
    required_scope=("hushql",), leeway_s=10.0, max_session_s=3600.0, timeout_s=5.0,
)  # fmt: skip
KEYS = FileKeys(
    key_set(public_jwk(KEY, "one"), public_jwk(CURVE, "curve"), public_jwk(EDWARDS, "edwards"),
            public_jwk(OTHER, "pss", alg="PS256")), "keys.json", ALGORITHMS,
)  # fmt: skip


def refusal(shown: str, settings: TokenLogins = SETTINGS) -> RefusalReason:
    with pytest.raises(NotVouched) as caught:
        Tokens(settings, KEYS).vouch(shown)
    assert shown not in caught.value.words
    return caught.value.reason


def test_a_good_token_tells_name_groups_and_how_long() -> None:
    now = int(time.time())
    tokens = Tokens(SETTINGS, KEYS, clock=lambda: now)
    found = tokens.vouch(token(KEY, sub="Alice", groups=["others", "analysts"], exp=now + 600))
    assert (found.name, found.groups, found.life_s) == ("alice", frozenset({"analysts"}), 610.0)
    assert tokens.vouch(token(KEY, exp=now + 99_999)).life_s == 3600.0
    assert tokens.vouch(token(KEY, exp=now - 5)).life_s == 5.0  # clocks may differ by the leeway


@pytest.mark.parametrize(
    "key, kid, algorithm", [(CURVE, "curve", "ES256"), (EDWARDS, "edwards", "EdDSA"), (OTHER, "pss", "PS256")]
)
def test_keys_of_other_kinds(key: object, kid: str, algorithm: str) -> None:
    assert Tokens(SETTINGS, KEYS).vouch(token(key, kid, algorithm)).name == "alice"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example.org"}, {"iss": ...}, {"aud": "another"}, {"aud": ...}, {"exp": ...},
        {"exp": int(time.time()) - 60}, {"nbf": int(time.time()) + 600}, {"iat": int(time.time()) + 600},
        {"exp": "soon"}, {"exp": str(int(time.time()) + 600)}, {"scope": "openid"}, {"scope": ...}, {"scope": 7},
        {"aud": 7},
    ],
)  # fmt: skip
def test_claims_that_are_wrong_or_missing(changes: dict[str, Any]) -> None:
    assert refusal(token(KEY, **changes)) is RefusalReason.TOKEN


def test_a_signature_of_anybody_else_is_refused() -> None:
    assert refusal(token(OTHER)) is RefusalReason.TOKEN
    assert refusal(token(KEY, kid="of nobody")) is RefusalReason.TOKEN
    assert refusal(token(KEY, kid="")) is RefusalReason.TOKEN  # there are several keys
    good = token(KEY)
    assert refusal(good[:-4] + "AAAA") is RefusalReason.TOKEN
    head, body, signature = token(KEY, sub="bob").split(".")
    assert refusal(".".join((head, good.split(".")[1], signature))) is RefusalReason.TOKEN
    assert body


def test_only_signatures_without_a_shared_secret_count() -> None:
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert refusal(jwt.encode(claims(), "", algorithm="none", headers={"kid": "one"})) is RefusalReason.TOKEN
    head = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"one","typ":"JWT"}')
    body = token(KEY).split(".")[1].encode()
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = jwt.utils.base64url_encode(hmac.sign(head + b"." + body, public))
    assert refusal((head + b"." + body + b"." + signature).decode()) is RefusalReason.TOKEN
    assert refusal(token(KEY, algorithm="RS384")) is RefusalReason.TOKEN
    assert refusal(token(OTHER, "pss", "RS256")) is RefusalReason.TOKEN  # its key is for PS256 alone
    assert refusal(token(KEY), replace(SETTINGS, algorithms=("ES256",))) is RefusalReason.TOKEN


@pytest.mark.parametrize("shown", ["", "abc", "a.b.c", "....", token(KEY).replace(".", "", 1)])
def test_what_is_no_token(shown: str) -> None:
    assert refusal(shown or "=") is RefusalReason.TOKEN


@pytest.mark.parametrize("header", [{"kid": 7}, {"kid": "one", "crit": ["exp"]}])
def test_headers_that_are_not_understood(header: dict[str, object]) -> None:
    try:
        shown = jwt.encode(claims(), KEY, algorithm="RS256", headers=header)
    except jwt.PyJWTError:
        head = jwt.utils.base64url_encode(b'{"alg":"RS256","kid":7}').decode()
        shown = f"{head}.{token(KEY).split('.', 1)[1]}"
    assert refusal(shown) is RefusalReason.TOKEN


def test_names_that_cannot_be_logins() -> None:
    for name in ("", "al ice", "Älice", "a" * 64, 7, None, ["alice"], "alice+2"):
        assert refusal(token(KEY, preferred=name), replace(SETTINGS, login_claim="preferred")) is RefusalReason.BAD_NAME


def test_an_email_must_be_verified() -> None:
    by_mail = replace(SETTINGS, login_claim="email")
    assert refusal(token(KEY, email="a@b.example"), by_mail) is RefusalReason.TOKEN
    assert refusal(token(KEY, email="a@b.example", email_verified="true"), by_mail) is RefusalReason.TOKEN
    found = Tokens(by_mail, KEYS).vouch(token(KEY, email="A@b.example", email_verified=True))
    assert found.name == "a@b.example"


@pytest.mark.parametrize(
    "groups, known",
    [("analysts", {"analysts"}), (["chiefs", 7], {"chiefs"}), ({"chiefs": 1}, set()), (..., set()), (None, set())],
)
def test_groups_as_issuers_write_them(groups: object, known: set[str]) -> None:
    assert Tokens(SETTINGS, KEYS).vouch(token(KEY, groups=groups)).groups == known


def test_scopes_as_a_list() -> None:
    assert Tokens(SETTINGS, KEYS).vouch(token(KEY, scope=..., scp=["hushql"])).name == "alice"
