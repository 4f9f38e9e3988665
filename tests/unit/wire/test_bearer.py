"""Is a token read as PostgreSQL's server reads it, and everything else refused?"""

from __future__ import annotations

import json
import struct

import pytest

from proxy.errors import ProtocolViolation
from proxy.wire.bearer import (
    GO_ON,
    OFFER,
    NoResponse,
    NoToken,
    discovery_of,
    is_end,
    parse_initial,
    parse_token,
    refusal,
)


def initial(response: bytes, mechanism: bytes = b"OAUTHBEARER") -> bytes:
    return mechanism + b"\0" + struct.pack("!i", len(response)) + response


def test_the_mechanism_is_offered_alone() -> None:
    assert OFFER == b"R\0\0\0\x15\0\0\0\x0aOAUTHBEARER\0\0"
    assert GO_ON == b"R\0\0\0\x08\0\0\0\x0b"


def test_an_initial_response_is_what_it_says_it_is() -> None:
    assert parse_initial(initial(b"n,,\1\1")) == b"n,,\1\1"
    assert parse_initial(b"OAUTHBEARER\0" + struct.pack("!i", -1)) == NoResponse()


@pytest.mark.parametrize(
    "body",
    [
        initial(b"n,,", b"SCRAM-SHA-256"), b"OAUTHBEARER\0" + struct.pack("!i", -2), initial(b"n,,") + b"x",
        b"OAUTHBEARER\0" + struct.pack("!i", 9) + b"short", b"OAUTHBEARER",
    ],
)  # fmt: skip
def test_other_initial_responses_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        parse_initial(body)


@pytest.mark.parametrize(
    "response, token",
    [
        (b"n,,\1auth=Bearer abc.d-e_f~/+==\1\1", "abc.d-e_f~/+=="),
        (b"y,,\1auth=bEARER   abc  \1\1", "abc"),
        (b"n,,\1host=server\1port=5432\1auth=Bearer abc\1\1", "abc"),
    ],
)
def test_a_token_is_found(response: bytes, token: str) -> None:
    assert parse_token(response) == token


def test_no_token_asks_where_tokens_come_from() -> None:
    assert parse_token(b"n,,\1auth=\1\1") == NoToken()


@pytest.mark.parametrize(
    "response, words",
    [
        (b"p=tls-server-end-point,,\1auth=Bearer abc\1\1", "has no channel binding"),
        (b"n,a=alice,\1auth=Bearer abc\1\1", "has no authorization identity"),
        (b"x,,\1auth=Bearer abc\1\1", "malformed OAUTHBEARER"),
        (b"", "malformed OAUTHBEARER"),
        (b"n,,auth=Bearer abc\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1auth=Bearer abc\1", "malformed OAUTHBEARER"),
        (b"n,,\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1host=server\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1auth=Bearer a\1auth=Bearer b\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1a1=x\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1auth=Bearer a\0b\1\1", "malformed OAUTHBEARER"),
        (b"n,,\1auth=Basic abc\1\1", "malformed OAuth bearer token"),
        (b"n,,\1auth=Bearer a b\1\1", "malformed OAuth bearer token"),
        (b"n,,\1auth=Bearer \1\1", "malformed OAuth bearer token"),
    ],
)
def test_other_responses_are_refused(response: bytes, words: str) -> None:
    with pytest.raises(ProtocolViolation, match=words):
        parse_token(response)


def test_a_refusal_says_where_tokens_come_from() -> None:
    told = discovery_of("https://login.example.org/", "openid mail")
    assert json.loads(told) == {
        "status": "invalid_token", "scope": "openid mail",
        "openid-configuration": "https://login.example.org/.well-known/openid-configuration",
    }  # fmt: skip
    assert refusal(told)[5:] == b"\0\0\0\x0b" + told
    assert is_end(b"\1")
    assert not is_end(b"")
