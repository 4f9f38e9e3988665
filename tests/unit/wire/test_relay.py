"""The relay without a socket: messages and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from proxy.errors import BudgetSpent
from proxy.wire import messages
from proxy.wire.exchange import Piece
from proxy.wire.expect import REPLIES, ReplyStep, SentKind
from proxy.wire.flow import AskRelease, NoAnswer
from proxy.wire.messages import Bind, build
from proxy.wire.relay import Relay, RelayLimits
from tests.unit.wire.make import (
    COLUMNS,
    DESCRIBED,
    DONE,
    FINISHED,
    MARKER,
    ONE,
    PIECE,
    PRIVATE,
    READY,
    ROWS,
    SETTINGS_REPLY,
    SPLICED,
    STARTED,
    THREE,
    TWO,
    answered_query,
    column,
    error,
    fresh,
    kinds,
    relay,
    row,
)


def test_a_private_query_shows_what_a_query_shows() -> None:
    made = relay()
    assert kinds(answered_query(made)) == "NTDCZ"
    assert kinds(made.take_front()) == "CCPBECCHPDHPBDECCS"
    assert made.is_idle
    assert made.take_client() == made.take_front() == b""


def known(text: str, _settings: Mapping[str, str]) -> tuple[Piece, ...]:
    return (PIECE,) if text == PRIVATE else ()


def test_a_known_query_is_described_while_the_settings_are_read() -> None:
    made = relay(known=known)
    made.from_client(messages.query(PRIVATE.encode()))
    assert kinds(made.take_front()) == "CCPBECCPDH"
    made.from_front(THREE + SETTINGS_REPLY + DESCRIBED)
    ask = made.take_ask()
    assert isinstance(ask, AskRelease)
    made.answer(SPLICED)
    assert kinds(made.take_front()) == "PBDECCS"
    made.from_front(ONE + TWO + COLUMNS + ROWS)
    assert kinds(made.take_client()) == "NTDCZ"
    assert made.is_idle


def test_a_known_query_that_now_means_something_else_is_described_again() -> None:
    answers = [(PIECE,), (replace(PIECE, describe_text="select count(*), 1 from users"),)]
    made = relay(known=lambda _text, _settings: answers.pop(0))
    made.from_client(messages.query(PRIVATE.encode()))
    remark = build(b"N", b"SNOTICE\0\0")
    made.from_front(THREE + SETTINGS_REPLY + remark + DESCRIBED)
    assert made.take_front().endswith(messages.describe_statement(b"") + messages.FLUSH)
    made.from_front(remark + DESCRIBED)
    assert isinstance(made.take_ask(), AskRelease)
    made.answer(SPLICED)
    made.from_front(ONE + TWO + COLUMNS + ROWS)
    assert kinds(made.take_client()) == "NNTDCZ", "PostgreSQL's remark is shown once"


def test_a_known_query_that_the_front_refuses_is_not_released() -> None:
    made = relay(known=known)
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY + error("no such column", "42703") + FINISHED)
    assert kinds(made.take_client()) == "EZ"
    assert isinstance(made.take_ask(), NoAnswer)
    assert made.is_idle


def said_in_place(text: str, sqlstate: str, position: int) -> str:
    return f"{sqlstate} at {position} of {text}" if sqlstate == "42883" else ""


def test_an_error_about_a_private_text_gets_the_hint_for_its_place() -> None:
    unknown = error("function f() does not exist", "42883", P="8", H="No function matches.")
    in_query, in_parse = relay(advice=said_in_place), relay(advice=said_in_place)
    in_query.from_client(messages.query(PRIVATE.encode()))
    in_query.from_front(THREE + SETTINGS_REPLY)
    in_query.take_ask()
    in_query.answer((PIECE,))
    in_query.from_front(unknown + FINISHED)
    in_parse.from_client(messages.parse(b"s", PRIVATE.encode()) + messages.SYNC)
    in_parse.from_front(SETTINGS_REPLY + READY + unknown + READY)
    for made in (in_query, in_parse):
        told = made.take_client()
        assert f"H42883 at 8 of {PRIVATE}\0".encode() in told
        assert b"No function matches." not in told
        assert b"P8\0" in told


@pytest.mark.parametrize("fields", [{}, {"P": "x"}, {"P": "3"}])
def test_other_errors_pass_as_they_are(fields: dict[str, str]) -> None:
    made = relay(advice=said_in_place)
    raw = error("no such column", "42703", **fields)
    made.from_client(messages.parse(b"s", PRIVATE.encode()) + messages.SYNC)
    made.from_front(SETTINGS_REPLY + READY + raw + READY)
    assert raw in made.take_client()


def asked_to_execute(made: Relay, then: bytes = b"") -> None:
    """Prepare, bind and execute a private statement, up to the question for its release."""
    made.from_client(messages.parse(b"s", PRIVATE.encode()))
    made.from_front(SETTINGS_REPLY + READY + DESCRIBED)
    made.take_ask()
    made.answer((PIECE,))
    bind = Bind(portal=b"", statement=b"s", formats=(), values=(), result_formats=())
    made.from_client(messages.bind(bind) + messages.execute(b"") + then)
    made.take_client()
    made.from_front(build(b"t", b"\0\0") + COLUMNS + THREE + ONE + TWO + THREE + COLUMNS + SETTINGS_REPLY)
    assert isinstance(made.take_ask(), AskRelease)
    made.take_front()


REBOUND = THREE + THREE + ONE + TWO + THREE


@pytest.mark.parametrize("cut", range(6))
def test_an_execute_takes_the_sync_after_it_along_if_that_has_come(cut: int) -> None:
    made = relay()
    asked_to_execute(made, messages.SYNC[:cut])
    made.answer(SPLICED)
    made.from_client(messages.SYNC[cut:])
    sent = kinds(made.take_front())
    made.from_front(REBOUND + COLUMNS + row(b"7") + DONE)
    assert sent == ("CCPBCDES" if cut == 5 else "CCPBCDEH")
    assert kinds(made.take_front()) == ("" if cut == 5 else "S")
    made.from_front(READY)
    assert kinds(made.take_client()) == "2NDCZ"
    assert made.is_idle


def test_a_tag_of_our_own_ends_what_is_read_in_portions() -> None:
    made = relay()
    asked_to_execute(made)
    made.answer(replace(SPLICED, tag="EXPLAIN"))
    made.from_front(REBOUND + COLUMNS + row(b"7") + build(b"s"))
    made.from_client(messages.execute(b"", 1) + messages.execute(b"") + messages.SYNC)
    made.from_front(row(b"8") + build(b"s") + row(b"9") + DONE + READY)
    seen = made.take_client()
    assert kinds(seen) == "2NDsDsDCZ"
    assert b"EXPLAIN" in seen
    assert b"SELECT" not in seen


@pytest.mark.parametrize("then", [b"", messages.SYNC])
def test_rows_that_were_not_described_are_withheld(then: bytes) -> None:
    made = relay()
    asked_to_execute(made, then)
    made.answer(SPLICED)
    made.take_front()
    other = messages.row_description([column(oid=23)])
    made.from_front(REBOUND + other + row(b"7") + DONE + (READY if then else b""))
    assert kinds(made.take_front()) == ("CPS" if then else "CP")
    made.from_front(THREE + error(f'invalid "{MARKER}"', "22P02"))
    made.from_client(b"" if then else messages.SYNC)
    made.from_front(build(b"Z", b"E"))
    seen = made.take_client()
    assert kinds(seen) == "2EZ"
    assert b"other columns than described" in seen


def test_rows_of_a_query_that_were_not_described_are_withheld() -> None:
    made = relay(known=known)
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY + DESCRIBED)
    made.take_ask()
    made.answer(SPLICED)
    made.from_front(ONE + TWO + messages.row_description([column(oid=23)]) + ROWS)
    made.from_front(THREE + error(f'invalid "{MARKER}"', "22P02") + FINISHED)
    seen = made.take_client()
    assert kinds(seen) == "EZ"
    assert b"other columns than described" in seen
    assert made.is_idle


@pytest.mark.parametrize(("rows", "shown"), [(b"", "EZ"), (ONE + TWO + COLUMNS + row(b"7"), "NTDEZ")])
def test_a_query_that_fails_after_its_release_leaves_nothing_on_the_front(rows: bytes, shown: str) -> None:
    made = relay(known=known)
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY + DESCRIBED)
    made.take_ask()
    made.answer(SPLICED)
    made.take_front()
    made.from_front(rows + error("division by zero", "22012"))
    assert kinds(made.take_front()) == "SCCS"
    made.from_front(READY + FINISHED)
    assert kinds(made.take_client()) == shown
    assert made.is_idle


@pytest.mark.parametrize(("before", "is_kept"), [(b"", True), (READY, False), (row(b"x" * 8192), False)])
def test_what_postgres_would_keep_back_waits_for_the_release(before: bytes, is_kept: bool) -> None:
    made = relay()
    made.from_client(messages.parse(b"s", PRIVATE.encode()))
    made.from_front(SETTINGS_REPLY + READY + ONE + build(b"t", b"\0\0"))
    made.channel.tell(before)
    made.channel.has_ended = before == READY
    made.from_front(COLUMNS)
    assert made.is_asking
    assert made.take_client() == (b"" if is_kept else ONE + before)
    made.answer((PIECE,))
    assert made.take_client() == (ONE if is_kept else b"")


def test_a_widened_statement_takes_the_place_of_the_clients() -> None:
    made = relay()
    made.from_client(messages.parse(b"s", PRIVATE.encode()))
    made.from_front(SETTINGS_REPLY + READY + DESCRIBED)
    made.take_ask()
    made.take_front()
    made.answer((replace(PIECE, describe_text="select count(*), 1 from users"),))
    sent = made.take_front()
    assert kinds(sent) == "CPDH"
    assert b"count(*), 1" in sent
    made.from_front(THREE + error("too many columns", "54011"))
    assert made.channel.book.statement(b"s") is None
    assert kinds(made.take_client()) == "1E"


@pytest.mark.parametrize("kind", SentKind)
def test_replies_outside_the_table_end_the_session(kind: SentKind) -> None:
    """One reply that is not in the table for each kind of message; the table itself is the specification."""
    steps = {reply: step for (of, reply), step in REPLIES.items() if of is kind}
    assert set(steps.values()) <= {ReplyStep.STAY, ReplyStep.DONE}
    assert (ReplyStep.DONE in steps.values()) == (kind not in (SentKind.COPY_END, SentKind.BAD_FLUSH))
    unanswered = relay()
    unanswered.from_front(READY)
    assert unanswered.is_over
    assert b"57P01" in unanswered.take_client()


def test_a_status_that_is_missing_ends_the_session() -> None:
    made = relay()
    made.from_client(messages.SYNC)
    made.from_front(build(b"Z"))
    assert made.is_over


def test_a_password_request_of_the_front_ends_the_session() -> None:
    made = fresh()
    made.from_front(build(b"R", b"\0\0\0\3"))
    assert made.is_over


def test_a_long_reply_that_must_be_whole_ends_the_session() -> None:
    made = relay()
    made.from_client(messages.query(b"select 1"))
    made.from_front(b"C\x7f\xff\xff\xffabc")
    assert made.is_over


def test_startup_shows_the_key_and_hides_the_fronts_login() -> None:
    made = fresh()
    made.from_front(build(b"v", b"\0\3\0\0\0\0\0\0") + STARTED + READY)
    assert kinds(made.take_client()) == "SKZ"
    assert made.channel.backend_key == b"12345678"


@pytest.mark.parametrize("kind", ["E", "N"])
@pytest.mark.parametrize("cut", [70_000, 5, 100_000])
def test_long_errors_and_notices_pass_unread(kind: str, cut: int) -> None:
    body = b"SERROR\0VERROR\0M" + b"x" * 90_000 + MARKER.encode() + b"\0\0"
    raw = build(kind.encode(), body)
    made = relay()
    made.from_client(messages.query(b"select 1"))
    made.from_front(raw[:cut])
    made.from_front(raw[cut:] + READY)
    assert made.take_client() == raw + READY


def test_errors_of_a_skipped_pipeline_belong_to_it_alone() -> None:
    made = relay()
    made.from_client(messages.parse(b"", b"nope"))
    made.take_front()
    made.from_front(error("nope"))
    made.from_client(messages.execute(b"") + messages.query(b"select 1") + build(b"P", b"x" * 1_000_001))
    assert made.take_front() == b""
    made.from_client(messages.SYNC)
    made.from_front(READY)
    made.from_client(messages.query(b"select 1"))
    assert kinds(made.take_front()) == "SQ"


def test_a_release_is_refused_without_an_answer_after_the_end() -> None:
    made = relay()
    made.from_client(messages.query(PRIVATE.encode()))
    made.from_front(THREE + SETTINGS_REPLY)
    assert made.is_asking
    made.end(BudgetSpent("over"))
    made.end(BudgetSpent("again"))
    made.answer((PIECE,))
    assert kinds(made.take_client()) == "E"
    assert not made.is_asking


def test_a_marker_without_a_refusal_shows_the_guards_words() -> None:
    made = relay()
    made.from_client(messages.query(b"select 1"))
    made.from_front(error(f"x {MARKER}") + READY)
    assert b"DP006" in made.take_client()


def test_an_error_with_odd_fields_ends_the_session() -> None:
    made = relay()
    made.from_client(messages.query(b"select 1"))
    made.from_front(build(b"E", b"1x\0\0"))
    assert made.is_over


def test_an_error_without_a_question_is_shown() -> None:
    made = relay()
    made.from_front(error("out of the blue"))
    assert kinds(made.take_client()) == "E"
    assert not made.is_over


def test_a_fatal_error_ends_the_session_in_the_fronts_words() -> None:
    made = relay()
    raw = error("terminating connection", "57P01", severity="FATAL")
    made.from_front(raw)
    assert made.is_over
    assert made.take_client() == raw


def test_a_client_ahead_of_a_flow_is_to_be_slowed_down() -> None:
    made = relay(RelayLimits(max_buffered_bytes=100))
    assert made.wants_client_bytes
    made.from_client(messages.query(PRIVATE.encode()) + messages.query(b"x" * 200))
    assert not made.wants_client_bytes


def test_stray_copy_messages_are_passed_and_forgotten() -> None:
    made = relay()
    made.from_client(build(b"c") + build(b"f", b"x\0") + messages.query(b"select 1"))
    made.from_front(COLUMNS + DONE + READY)
    assert made.is_idle


def test_a_copy_whose_data_was_sent_ahead_ignores_the_sync_within() -> None:
    made = relay()
    execute = messages.execute(b"")
    made.from_client(execute + messages.SYNC + build(b"d", b"1\n") + build(b"c") + messages.SYNC)
    made.from_front(build(b"G", b"\0\0\0"))
    assert not made.channel.copies_in
    made.from_front(messages.command_complete(b"COPY 1") + READY)
    assert made.is_idle


def test_a_sync_within_a_copy_is_not_answered() -> None:
    made = relay()
    made.from_client(messages.execute(b"") + messages.SYNC)
    made.from_front(build(b"G", b"\0\0\0"))
    made.from_client(messages.SYNC + build(b"d", b"1\n") + build(b"c") + messages.SYNC)
    made.from_front(messages.command_complete(b"COPY 1") + READY)
    assert made.is_idle
    assert kinds(made.take_front()) == "ESSdcS"


def test_the_stand_in_of_a_portal_raises_when_it_is_run() -> None:
    """A record that got lost must not turn into an empty answer."""
    made = relay()
    made.from_client(messages.parse(b"", PRIVATE.encode()))
    made.from_front(SETTINGS_REPLY + READY + DESCRIBED)
    made.take_ask()
    made.answer((PIECE,))
    made.take_front()
    bind = Bind(portal=b"", statement=b"", formats=(), values=(), result_formats=())
    made.from_client(messages.bind(bind))
    assert f"concat('{MARKER}', pg_catalog.random())".encode() in made.take_front()


def test_an_error_without_a_position_is_moved_nowhere() -> None:
    described = Piece(text="copy (x) to stdout", start=4, is_private=True, describe_text="x", prefix_chars=6)
    made = relay()
    made.from_client(messages.query(b"    copy (users) to stdout"))
    made.from_front(THREE + SETTINGS_REPLY)
    made.take_ask()
    made.answer((described,))
    made.from_front(error("out of memory", "53200") + FINISHED)
    seen = made.take_client()
    assert kinds(seen) == "EZ"
    assert b"\0P" not in seen
