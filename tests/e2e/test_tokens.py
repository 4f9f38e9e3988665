"""Do clients with tokens of an issuer log in to a running proxy, as libpq 18 and as a client of our own?"""

from __future__ import annotations

import ctypes
import json
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from proxy.wire import messages
from tests.certificates import Certificates, make_certificates
from tests.e2e.outside import Site, site, visitor
from tests.issuer import AUDIENCE, ISSUER, Shown, key_set, public_jwk, rsa_key, shown_over_https, token
from tests.wire.raw import SSL_REQUEST, RawClient, Reply, startup_packet

KEY = rsa_key()
_CONFIGURATION = f"{ISSUER}/.well-known/openid-configuration"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def section(url: str, more: str = "") -> str:
    return f"""
oauth:
  issuer: {ISSUER}
  audience: {AUDIENCE}
  keys: {url}
  ca_file: ca.pem
  scope: openid hushql
  required_scope: hushql
  leeway: 0
  groups: {{chiefs: boss, analysts: analyst}}
{more}"""


@pytest.fixture(scope="module")
def shown(certificates: Certificates) -> Iterator[Shown]:
    with shown_over_https(certificates, key_set(public_jwk(KEY, "one"))) as found:
        yield found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, shown: Shown) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with site(folder, certificates, section(shown.url), {"ann": "analyst"}) as found:
        yield found


@contextmanager
def encrypted(site: Site, user: str, database: str = "shop") -> Iterator[RawClient]:
    """A raw client under TLS that has sent its first packet."""
    with RawClient(site.served.port) as client:
        client.send(SSL_REQUEST)
        assert client.socket.recv(1) == b"S"
        context = ssl.create_default_context(cafile=site.certificates.authority)
        client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
        client.send(startup_packet({"user": user, "database": database}))
        yield client


def initial(shown_token: str, mechanism: bytes = b"OAUTHBEARER") -> bytes:
    auth = f"Bearer {shown_token}" if shown_token else ""
    response = f"n,,\1auth={auth}\1\1".encode()
    return messages.build(b"p", mechanism + b"\0" + struct.pack("!i", len(response)) + response)


def log_in(client: RawClient, shown_token: str) -> list[Reply]:
    offer = client.read()
    assert (offer.kind, offer.body) == ("R", struct.pack("!I", 10) + b"OAUTHBEARER\0\0")
    client.send(initial(shown_token))
    reply = client.read()
    if reply.kind == "E" or reply.body[:4] == struct.pack("!I", 11):
        return [reply]
    return [reply, *client.read_until("ZE")]


def test_a_token_opens_a_session_of_its_login_and_role(place: Site) -> None:
    with encrypted(place, "Alice") as client:
        assert log_in(client, token(KEY))[-1].kind == "Z"
        assert client.query("SELECT current_user")[1].row == (b"alice",)
        assert client.query("SELECT count(*) FROM users")[-2].kind == "C"
    last = place.logged("login")[-1]
    assert (last["login"], last["role"], last["method"]) == ("alice", "analyst", "oauth")


def test_a_name_with_signs_is_a_login_like_any(place: Site) -> None:
    for name in ("jane.doe@example.org", "0-_all.", "all"):
        with encrypted(place, name) as client:
            assert log_in(client, token(KEY, sub=name))[-1].kind == "Z"
            assert client.query("SELECT current_user")[1].row == (name.encode(),)


def test_who_shows_no_token_is_told_where_tokens_come_from(place: Site) -> None:
    for wrong, reason in (("", "no_token"), (token(rsa_key()), "bad_token"), (token(KEY, sub="b"), "token_of_another"),
                          (token(KEY, groups=["others"]), "no_group"), (token(KEY, aud="other"), "bad_token"),
                          (token(KEY, exp=int(time.time()) - 5), "bad_token"),
                          (token(KEY, scope="openid"), "bad_token")):  # fmt: skip
        with encrypted(place, "alice") as client:
            told = log_in(client, wrong)[0]
            assert (told.kind, told.body[:4]) == ("R", struct.pack("!I", 11))
            assert json.loads(told.body[4:]) == {
                "status": "invalid_token", "openid-configuration": _CONFIGURATION, "scope": "openid hushql"
            }  # fmt: skip
            client.send(messages.build(b"p", b"\1"))
            error = client.read().fields
            assert (error["S"], error["C"]) == ("FATAL", "28000")
            assert error["M"] == 'OAuth bearer authentication failed for user "alice"'
            assert client.is_closed()
        last = place.logged("login_failed")[-1]
        assert (last["method"], last["reason"]) == ("oauth", reason)


def test_a_client_that_gives_no_response_at_first_is_asked_for_it(place: Site) -> None:
    with encrypted(place, "alice") as client:
        client.read()
        client.send(messages.build(b"p", b"OAUTHBEARER\0" + struct.pack("!i", -1)))
        assert client.read().body == struct.pack("!I", 11)
        client.send(messages.build(b"p", f"n,,\1auth=Bearer {token(KEY)}\1\1".encode()))
        assert client.read().body == struct.pack("!I", 0)


def test_what_does_not_end_a_refusal_is_no_protocol(place: Site) -> None:
    with encrypted(place, "alice") as client:
        log_in(client, "")
        client.send(messages.build(b"p", b"more"))
        assert client.read().sqlstate == "08P01"


def test_tokens_are_asked_for_under_tls_only(place: Site) -> None:
    with RawClient(place.served.port) as client:
        client.send(startup_packet({"user": "alice", "database": "shop"}))
        assert client.read().sqlstate == "28000"
    with place.connect("ann", "a pass word", require_auth="scram-sha-256"):  # logins of the file do as ever
        pass


def test_a_session_ends_with_its_token(place: Site) -> None:
    with encrypted(place, "carol") as client:
        assert log_in(client, token(KEY, sub="carol", exp=int(time.time()) + 4))[-1].kind == "Z"
        ended = client.read_until("E")[-1].fields
        assert (ended["S"], ended["C"]) == ("FATAL", "57P01")
        assert ended["M"] == "terminating connection because what let it in has expired"


def test_a_key_that_is_new_is_looked_up_and_not_too_often(place: Site, shown: Shown) -> None:
    asked = shown.asked
    for _ in range(3):
        with encrypted(place, "alice") as client:
            log_in(client, token(KEY, kid="of nobody"))
    assert shown.asked - asked <= 1


@pytest.fixture
def shows_token() -> Iterator[list[str]]:
    """Let libpq take its tokens from a list, as its documentation has it for programs with a flow of their own."""

    class Request(ctypes.Structure):
        _fields_ = (
            ("openid_configuration", ctypes.c_char_p), ("scope", ctypes.c_char_p), ("run", ctypes.c_void_p),
            ("cleanup", ctypes.c_void_p), ("token", ctypes.c_char_p), ("user", ctypes.c_void_p),
        )  # fmt: skip

    shown: list[str] = []
    libraries = Path(psycopg.__file__).parents[1] / "psycopg_binary.libs"
    libpq = ctypes.CDLL(str(next(libraries.glob("libpq-*"))))
    hook_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Request))

    def hook(kind: int, _connection: object, request: ctypes._Pointer[Request]) -> int:
        if kind != 1:
            return 0
        assert request.contents.openid_configuration == _CONFIGURATION.encode()
        assert request.contents.scope == b"openid hushql"
        request.contents.token = shown[-1].encode()
        return 1

    held = hook_type(hook)
    libpq.PQsetAuthDataHook(held)
    yield shown
    libpq.PQsetAuthDataHook(None)


def test_libpq_18_finds_the_issuer_and_logs_in(place: Site, shows_token: list[str]) -> None:
    shows_token.append(token(KEY))
    own = {"oauth_issuer": ISSUER, "oauth_client_id": "psql", "require_auth": "oauth"}
    with place.connect("alice", "", **own) as client:
        assert client.execute("SELECT current_user").fetchall() == [("alice",)]
    shows_token.append(token(KEY, aud="other"))
    assert 'OAuth bearer authentication failed for user "alice"' in place.refused("alice", "", **own)


def test_a_reload_ends_sessions_of_groups_without_a_role(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "keys.json").write_text(key_set(public_jwk(KEY, "one")))
    written = section("keys.json").replace("  ca_file: ca.pem\n", "")
    with site(tmp_path, certificates, written, {"ann": "analyst"}) as place, encrypted(place, "alice") as client:
        assert log_in(client, token(KEY))[-1].kind == "Z"
        place.edit(", analysts: analyst", "")
        ended = client.read_until("E")[-1].fields
        assert ended["C"] == "57P01"


def test_the_console_says_that_it_takes_no_tokens(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "keys.json").write_text(key_set(public_jwk(KEY, "one")))
    written = section("keys.json").replace("  ca_file: ca.pem\n", "")
    with (
        site(tmp_path, certificates, written, {"ann": "analyst"}, "--console", "127.0.0.1:0") as place,
        visitor(place) as browser,
    ):
        answer = browser.log_in("alice", "shop", "anything")
        assert answer.status_code == 401
        assert "the console takes passwords, and other logins of this database show tokens" in answer.text.lower()
        assert browser.log_in("ann", "shop", "a pass word").status_code == 303
