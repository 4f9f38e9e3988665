"""Start-up and logins."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial

import pytest

from proxy.identity.refusals import NotVouched, RefusalReason
from proxy.policy.outside.logins import Vouched
from proxy.server.datasets import DirectoryVouches, ServedDataset
from proxy.wire import messages
from proxy.wire.scram import make_verifier
from tests.wire.raw import GSS_REQUEST, PASSWORD, SSL_REQUEST, RawClient, kinds, startup_packet
from tests.wire.serving import Serving

# --- passwords -----------------------------------------------------------------------------------------------


def test_a_right_password_opens_a_session_with_a_key(serving: Serving) -> None:
    with RawClient(serving.port) as client:
        replies = client.log_in(application_name="tést")
        assert kinds(replies) == "RKZ"
        assert len(client.key) >= 8
        shown = dict(messages.parse_parameter_status(r.body) for r in replies if r.kind == "S")
        assert shown[b"application_name"] == b"t\\xc3\\xa9st"
        login, database, session_id = serving.diary.opened[-1]
        assert (login, database, len(session_id)) == ("alice", "shop", 32)


def transcript(port: int, user: str, password: str, database: str = "shop") -> list[tuple[str, int, str]]:
    """Kind, length and readable part of each message of a login that fails, with the salt left out."""
    with RawClient(port) as client:
        client.send(startup_packet({"user": user, "database": database}))
        final = client.answer_scram(user, password)[-1]
        return [("E", 0, str({**final.fields, "M": final.fields["M"].replace(user, "somebody")}))]


def challenge(port: int, user: str) -> dict[str, str]:
    """What the server says before it can know the password."""
    with RawClient(port) as client:
        client.send(startup_packet({"user": user, "database": "shop"}))
        offer = client.read()
        client.send(messages.build(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", 12) + b"n,,n=,r=abcd"))
        first = client.read()
        fields = dict(part.split("=", 1) for part in first.body[4:].decode().split(","))
        return {
            "offer": str(offer),
            "kind": first.kind,
            "salt": fields["s"],
            "iterations": fields["i"],
            "nonce": str(len(fields["r"])),
        }


def test_wrong_password_and_unknown_user_look_the_same(serving: Serving) -> None:
    wrong = transcript(serving.port, "alice", "wrong")
    assert "28P01" in wrong[0][2]
    assert wrong == transcript(serving.port, "nobody", PASSWORD)
    assert wrong == transcript(serving.port, "nobody", PASSWORD, database="nowhere")
    known, unknown = challenge(serving.port, "alice"), challenge(serving.port, "nobody")
    assert len(known.pop("salt")) == len(unknown.pop("salt"))
    assert known == unknown


def test_a_password_counts_that_is_the_logins_when_the_exchange_ends(serving: Serving) -> None:
    """Whoever is slow on purpose does not get in as somebody whose name it is by then."""
    known, other = serving.dataset.users, make_verifier("another", salt=b"0123456789abcdef").text()
    for logins in (
        {"bob": known.logins["bob"]},
        {**known.logins, "alice": replace(known.logins["alice"], scram=other)},
    ):
        now = replace(serving.dataset, users=replace(known, logins=logins))
        try:
            with RawClient(serving.port) as client:
                client.send(startup_packet({"user": "alice", "database": "shop"}))
                serve = partial(serving.server.serve, {"shop": now})
                replies = client.answer_scram("alice", PASSWORD, partial(serving.call, serve))
                assert replies[-1].fields["M"] == "the login was changed meanwhile"
        finally:
            serving.call(partial(serving.server.serve, {"shop": serving.dataset}))


def test_an_unknown_users_salt_is_the_same_each_time(serving: Serving) -> None:
    salts = [challenge(serving.port, user)["salt"] for user in ("nobody", "nobody", "noone")]
    assert salts[0] == salts[1] != salts[2]


def test_a_password_for_no_database_is_shown_to_no_directory_of_several(serving: Serving) -> None:
    """Whoever mistypes the name of their database does not show the password to a directory of others."""
    asked: list[str] = []

    async def vouch(login: str, password: str) -> Vouched:
        asked.append(login)
        raise NotVouched(RefusalReason.PASSWORD, "it is wrong")

    def with_directory(*, is_clear: bool) -> ServedDataset:
        return replace(serving.dataset, outsiders=DirectoryVouches(vouch=vouch, clear_on_loopback=is_clear))

    def shown(database: str, others: ServedDataset) -> str:
        served = {"shop": with_directory(is_clear=True), "other": others}
        serving.call(partial(serving.server.serve, served))
        with RawClient(serving.port) as client:
            client.send(startup_packet({"user": "carol", "database": database}))
            if (reply := client.read()).kind == "E":
                return reply.sqlstate
            client.send(messages.build(b"p", b"secret\0"))
            return client.read().sqlstate

    try:
        assert shown("nowhere", with_directory(is_clear=True)) == "28P01"
        assert asked == []
        assert shown("nowhere", with_directory(is_clear=False)) == "28000"
        assert shown("nowhere", serving.dataset) == shown("shop", with_directory(is_clear=True)) == "28P01"
        assert asked == ["carol", "carol"]
    finally:
        serving.call(partial(serving.server.serve, {"shop": serving.dataset}))


def test_a_database_that_is_not_served_is_told_to_those_with_a_password(serving: Serving) -> None:
    with RawClient(serving.port) as client:
        error = client.log_in(database="nowhere")[-1].fields
        assert (error["S"], error["C"], error["M"]) == ("FATAL", "3D000", 'database "nowhere" does not exist')


def test_a_failed_login_ends_the_connection_and_opens_no_session(serving: Serving) -> None:
    opened = len(serving.diary.opened)
    with RawClient(serving.port) as client:
        client.log_in(password="wrong")
        assert client.is_closed()
    assert len(serving.diary.opened) == opened


@pytest.mark.parametrize(
    "first",
    [
        b"SCRAM-SHA-1\0" + struct.pack("!I", 12) + b"n,,n=,r=abcd",
        b"SCRAM-SHA-256-PLUS\0" + struct.pack("!I", 12) + b"n,,n=,r=abcd",
        b"SCRAM-SHA-256\0" + struct.pack("!i", -1),
        b"SCRAM-SHA-256\0" + struct.pack("!I", 99) + b"n,,n=,r=abcd",
        b"SCRAM-SHA-256\0" + struct.pack("!I", 4) + b"\xff\xff\xff\xff",
        b"no zero",
        b"SCRAM-SHA-256\0" + struct.pack("!I", 5000) + b"n,,n=,r=" + b"a" * 4992,
    ],
)
def test_broken_exchanges_end_in_a_documented_error(first: bytes, serving: Serving) -> None:
    with RawClient(serving.port) as client:
        client.send(startup_packet({"user": "alice", "database": "shop"}))
        client.read()
        client.send(messages.build(b"p", first))
        error = client.read().fields
        assert (error["S"], error["C"]) == ("FATAL", "08P01")
        assert client.is_closed()


@pytest.mark.parametrize("raw", [messages.query(b"select 1"), b"p\0\0\0\3", b"p\xff\xff\xff\xff"])
def test_other_messages_in_the_place_of_a_password_are_refused(raw: bytes, serving: Serving) -> None:
    with RawClient(serving.port) as client:
        client.send(startup_packet({"user": "alice", "database": "shop"}))
        client.read()
        client.send(raw)
        assert client.read().sqlstate == "08P01"


# --- start-up --------------------------------------------------------------------------------------------------


def test_settings_of_the_start_are_filtered_by_the_list(serving: Serving) -> None:
    with serving.raw(
        options="-c extra_float_digits=2 --hush.epsilon=0.5 -cTimeZone=Asia/Tokyo", DateStyle="German"
    ) as client:
        assert client.query("show timezone")[1].row == (b"Asia/Tokyo",)
        assert client.query("show hush.epsilon")[1].row == (b"0.5",)
        assert client.query("show datestyle")[1].row == (b"German, DMY",)
    for bad in (
        {"options": "-c work_mem=1GB"},
        {"work_mem": "1GB"},
        {"options": "-B 7"},
        {"replication": "true"},
        {"options": "-c x"},
    ):
        with RawClient(serving.port) as client:
            error = client.log_in(**bad)[-1].fields
            assert (error["S"], error["C"]) == ("FATAL", "DP007")


def test_the_fronts_own_objections_to_the_start_reach_the_client(serving: Serving) -> None:
    with RawClient(serving.port) as client:
        error = client.log_in(options="-c datestyle=nonsense")[-1].fields
        assert (error["S"], error["C"]) == ("FATAL", "22023")
        assert client.is_closed()


@pytest.mark.parametrize(
    "packet",
    [
        b"\0\0\0\7",
        b"\0\0\x27\x11",
        b"GET / HTTP/1.1\r\n\r\n",
        startup_packet({"user": "alice"}, code=0x20000),
        startup_packet({"user": "alice"})[:-1] + b"x",
        struct.pack("!II", 12, 80877103) + b"more",
        struct.pack("!II", 8, 80877102),
        GSS_REQUEST + GSS_REQUEST + SSL_REQUEST + SSL_REQUEST,
    ],
)
def test_garbage_instead_of_a_start_ends_the_connection(packet: bytes, serving: Serving) -> None:
    with RawClient(serving.port) as client, serving.raw() as other:
        client.send(packet)
        assert client.is_closed()
        assert kinds(other.query("select 1")) == "TDCZ"


def test_a_user_must_be_named(serving: Serving) -> None:
    with RawClient(serving.port) as client:
        client.send(startup_packet({"database": "shop"}))
        assert client.read().sqlstate == "28P01"


def test_newer_protocols_are_negotiated(serving: Serving) -> None:
    for code in (0x30002, 0x30009):
        with RawClient(serving.port) as client:
            client.send(startup_packet({"user": "alice", "database": "shop"}, code=code))
            assert client.answer_scram("alice", PASSWORD)[-1].kind == "Z"
            assert len(client.key) > 8, "the front's long cancel key"
    with RawClient(serving.port) as client:
        client.send(startup_packet({"user": "alice", "database": "shop"}, code=0x30009))
        assert client.read().body == struct.pack("!II", 0x30002, 0)
    with RawClient(serving.port) as client:
        client.send(startup_packet({"user": "alice", "database": "shop", "_pq_.what": "1"}))
        assert client.read().body == struct.pack("!II", 0x30000, 1) + b"_pq_.what\0"
