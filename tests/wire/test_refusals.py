"""What the client sees when a statement is refused, and when the budget is spent."""

from __future__ import annotations

import pytest

from proxy.wire import messages
from proxy.wire.messages import SYNC, Bind
from tests.wire.raw import RawClient, Reply, kinds, statement, status
from tests.wire.serving import Serving

#: What makes the fake session refuse, the SQLSTATE and message that must show, and its position in the statement.
REFUSED = {
    "select /* refuse */ city from users": ("DP004", "rows are not shown", "8"),
    "select /* fail */ count(*) from users": ("DP001", "the budget is spent", "3"),
    "select /* unreadable */ city from users": ("DP006", "this statement cannot be read", "8"),
    "select /* mistyped */ count(*) from users": (
        "XX000",
        "the statement would return other columns than described",
        "",
    ),
    "copy (select /* fail */ city from users) to stdout": ("DP001", "the budget is spent", "3"),
    "explain select /* refuse */ city from users": ("DP004", "rows are not shown", "8"),
    "alter role alice password 'mine'": ("DP007", "logins cannot be changed through SQL", "1"),
    "set work_mem = '8GB'": ("DP007", 'the setting "work_mem" cannot be changed here', ""),
    "notify somebody": ("DP007", "NOTIFY is not available", "1"),
}


def send(client: RawClient, sql: str, *, is_extended: bool) -> list[Reply]:
    return client.sync(statement(sql)) if is_extended else client.query(sql)


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("sql", REFUSED)
def test_a_refusal_leaves_the_transaction_as_postgres_would(sql: str, is_extended: bool, serving: Serving) -> None:
    sqlstate, message, position = REFUSED[sql]
    with serving.raw() as client:
        for before, after in (((), "I"), (("begin",), "E")):
            for step in before:
                client.query(step)
            replies = send(client, sql, is_extended=is_extended)
            error = replies[-2].fields
            assert (error["C"], error["M"], error.get("P", "")) == (sqlstate, message, position)
            assert not {"F", "L", "R"} & set(error), "the front's source is none of the client's business"
            assert status(replies) == after
        assert client.query("select 1")[0].sqlstate == "25P02"
        failed = send(client, sql, is_extended=is_extended)
        assert (failed[0].sqlstate, status(failed)) == ("25P02", "E")
        assert status(client.query("rollback")) == "I"
        assert kinds(client.query("select 1")) == "TDCZ"


OWN_ERRORS = ("selec 1", "select nothing from users", "select /* refuse */ nothing from users", "select 1/0")


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("sql", (*REFUSED, 'table U&"\\0075sers"'))
def test_each_refusal_is_told_to_the_session_once(sql: str, is_extended: bool, serving: Serving) -> None:
    """Whether it was made while reading, while releasing, by the relay's own rules or by the guard."""
    with serving.raw() as client:
        shown = [r.sqlstate for _ in range(2) for r in send(client, sql, is_extended=is_extended) if r.kind == "E"]
        assert serving.call(lambda: list(serving.diary.refused)) == shown
        assert len(shown) == 2


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("sql", OWN_ERRORS)
def test_errors_of_postgres_are_no_refusals(sql: str, is_extended: bool, serving: Serving) -> None:
    with serving.raw() as client:
        assert [r.kind for r in send(client, sql, is_extended=is_extended)].count("E") == 1
    assert serving.call(lambda: list(serving.diary.refused)) == []


def test_a_refusal_after_a_savepoint_can_be_rolled_back(serving: Serving) -> None:
    with serving.raw() as client:
        client.query("begin; create temp table t (a int); savepoint s")
        assert status(client.query("select /* fail */ count(*) from users")) == "E"
        assert status(client.query("rollback to s")) == "T"
        assert status(client.query("insert into t select count(*) from users")) == "T"
        assert client.query("commit; select a from t")[2].row == (b"4",)


def test_a_refused_statement_of_a_string_undoes_the_earlier_ones(serving: Serving) -> None:
    with serving.raw() as client:
        replies = client.query("create temp table t (a int); select /* fail */ count(*) from users; select 1")
        assert kinds(replies) == "CEZ"
        assert client.query("select * from t")[0].sqlstate == "42P01"


def test_positions_of_a_refusal_count_from_the_start_of_the_string(serving: Serving) -> None:
    with serving.raw() as client:
        replies = client.query("select 'ä'; select /* refuse */ city from users")
        assert replies[-2].fields["P"] == str(len("select 'ä'; ") + 8)
        replies = client.query("select 1; notify x")
        assert replies[-2].fields["P"] == str(len("select 1; ") + 1)
        replies = client.query("select count(*) from users; notify x")
        assert replies[-2].fields["P"] == str(len("select count(*) from users; ") + 1)


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
def test_native_errors_come_before_refusals(is_extended: bool, serving: Serving) -> None:
    with serving.raw() as client:
        for mark in ("refuse", "unreadable", "fail"):
            error = send(client, f"select /* {mark} */ nope from users", is_extended=is_extended)[-2]
            assert error.sqlstate == "42703"
            error = send(client, f"selec /* {mark} */ users", is_extended=is_extended)[-2]
            assert error.sqlstate == "42601"
    assert serving.diary.released == []


def test_an_unreadable_string_of_several_statements_is_refused(serving: Serving) -> None:
    with serving.raw() as client:
        replies = client.query("select 1; select /* unreadable */ city from users")
        assert kinds(replies) == "EZ"
        assert replies[0].sqlstate == "DP006"


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
def test_what_the_session_does_not_recognise_is_stopped_by_the_guard(is_extended: bool, serving: Serving) -> None:
    hidden = 'select count(*) from U&"\\0075sers"'
    with serving.raw() as client:
        for sql in (hidden, "select 1 where exists (select from pg_class) and (" + hidden + ") = 0"):
            replies = send(client, sql, is_extended=is_extended)
            assert replies[-2].fields["C"] == "DP006"
            assert "hush_guard" not in str(replies[-2].fields)
    assert serving.diary.prepared == []


def test_an_error_of_the_session_itself_ends_in_an_error_without_its_words(serving: Serving) -> None:
    with serving.raw() as client:
        replies = client.query("select /* odd_error */ count(*) from users")
        assert replies[-2].sqlstate == "XX000"
        assert "secret" not in str(replies[-2].fields)
        assert kinds(client.query("select 1")) == "TDCZ"


def test_the_budget_is_spent_at_the_first_execute_and_not_before(serving: Serving) -> None:
    with serving.raw() as client:
        bind = Bind(portal=b"p", statement=b"s", formats=(), values=(b"30",), result_formats=())
        client.query("begin")
        client.sync(messages.parse(b"s", b"select age from users where age > $1"))
        client.sync(messages.describe_statement(b"s"))
        client.sync(messages.bind(bind))
        client.sync(messages.describe_portal(b"p"))
        assert serving.diary.released == []
        client.sync(messages.execute(b"p", 1))
        client.sync(messages.execute(b"p", 1))
        assert len(serving.diary.released) == 1
        parameter = serving.diary.released[0].parameters[0]
        assert (parameter.oid, parameter.format, parameter.data) == (23, 0, b"30")
        client.sync(messages.close_portal(b"p"), messages.bind(bind), messages.execute(b"p"))
        assert len(serving.diary.released) == 2, "another execution is another release"


def test_a_portal_that_is_gone_spends_nothing(serving: Serving) -> None:
    with serving.raw() as client:
        bind = Bind(portal=b"p", statement=b"", formats=(), values=(), result_formats=())
        client.query("begin; savepoint a")
        client.sync(messages.parse(b"", b"select age from users"), messages.bind(bind))
        client.query("rollback to a")
        assert client.sync(messages.execute(b"p"))[0].sqlstate == "34000"
    assert serving.diary.released == []


def test_a_failed_pipeline_spends_nothing(serving: Serving) -> None:
    with serving.raw() as client:
        client.sync(statement("select nope"), statement("select count(*) from users"))
        client.sync(statement("select 1/0"), statement("select count(*) from users"))
        client.query("select count(*) from users; selec 1")
        client.query("declare c cursor for select city from users")
        client.sync(statement("declare c cursor for select city from users"))
    assert serving.diary.released == []


def test_settings_are_those_of_the_moment(serving: Serving) -> None:
    with serving.raw(options="-c hush.epsilon=0.25") as client:
        client.query("select count(*) from users")
        client.query("set hush.epsilon = 0.5; select count(*) from users")
        client.query("begin; set local hush.epsilon = 1")
        client.sync(statement("select count(*) from users"))
        client.query("rollback")
        client.query("select count(*) from users")
        client.query("reset hush.epsilon; set local hush.intervals = on")
        client.query("select count(*) from users")
        client.query("set timezone = 'Asia/Tokyo'; set statement_timeout = '30s'")
        client.query("select count(*) from users")
    settings = [released.settings for released in serving.diary.released]
    assert [s.get("hush.epsilon") for s in settings] == ["0.25", "0.5", "1", "0.5", "0.25", "0.25"]
    assert "hush.intervals" not in settings[4]
    assert (settings[5]["TimeZone"], settings[5]["statement_timeout"]) == ("Asia/Tokyo", "30s")
    assert settings[5]["search_path"] == '"$user", public'


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
def test_a_widened_statement_shows_its_further_columns(is_extended: bool, serving: Serving) -> None:
    with serving.raw() as client:
        client.query("set hush.intervals = on")
        replies = send(client, "  select count(*) from users", is_extended=is_extended)
        shown = next(r for r in replies if r.kind == "T")
        names = [c.name for c in messages.parse_row_description(shown.body)]
        assert names == [b"count", b"count_low"]
        error = send(client, "  select nope, count(*) from users", is_extended=is_extended)[-2]
        assert error.fields["P"] == "10"


def test_notices_come_before_the_first_row(serving: Serving) -> None:
    with serving.raw() as client:
        for replies in (client.query("select city from users"), client.sync(statement("select city from users"))):
            order = "".join(r.kind for r in replies)
            assert order.index("N") < order.index("D")
            notice = next(r for r in replies if r.kind == "N").fields
            assert (notice["S"], notice["C"], notice["M"]) == ("NOTICE", "00000", "charged 0.5")


@pytest.mark.parametrize("is_extended", [False, True], ids=["simple", "extended"])
def test_remarks_of_postgres_are_shown_once(is_extended: bool, serving: Serving) -> None:
    long = "a" * 70
    with serving.raw() as client:
        for sql in (
            f"select 1 as {long}",
            f"select age as {long} from users",
            f"copy (select 1 as {long} from users) to stdout",
        ):
            replies = send(client, sql, is_extended=is_extended)
            remarks = [r.fields["C"] for r in replies if r.kind == "N" and "charged" not in r.fields["M"]]
            assert remarks == ["42622"]


def test_explain_shows_the_sessions_answer_under_its_own_tag(serving: Serving) -> None:
    with serving.raw() as client:
        simple = client.query("explain select city from users")
        extended = client.sync(statement("explain select city from users"))
        for replies in (simple, extended):
            assert [r.row[0] for r in replies if r.kind == "D"] == [b"noise 1", b"noise 2"]
            assert next(r for r in replies if r.kind == "C").tag == "EXPLAIN"


def test_hostile_values_stay_values(serving: Serving) -> None:
    hostile = b"{,\"'} $1; --"
    with serving.raw() as client:
        for sql in ("select city from users", "copy (select city from users) to stdout"):
            for replies in (client.query(sql), client.sync(statement(sql))):
                bodies = [r.row[0] if r.kind == "D" else r.body.strip() for r in replies if r.kind in "Dd"]
                assert hostile in bodies
        client.query("begin; declare c cursor for select city from users where city like '{%'")
        assert client.query("fetch all from c")[1].row == (hostile,)


def test_the_prepared_statements_of_the_relay_do_not_stay(serving: Serving) -> None:
    with serving.raw() as client:
        client.sync(statement("select count(*) from users", name=b"mine"))
        client.query("select count(*) from users")
        client.sync(statement("select /* fail */ count(*) from users"))
        rows = [r.row for r in client.query("select name from pg_prepared_statements") if r.kind == "D"]
        assert rows == [(b"mine",)]


def test_a_client_encoding_other_than_utf8_is_translated_both_ways(serving: Serving) -> None:
    with serving.raw(client_encoding="LATIN1") as client:
        client.send(messages.query("select 'ä', city from users".encode("latin-1")))
        replies = client.read_until("Z")
        assert next(r for r in replies if r.kind == "D").row[0] == b"\xe4"
        client.send(statement("select age from users where city <> $1", b"\xe4"), SYNC)
        client.read_until("Z")
        assert serving.diary.released[-1].parameters[0].data == "ä".encode()
        client.send(messages.query(b"set client_encoding = 'UTF8'"))
        client.read_until("Z")
        assert next(r for r in client.query("select 'ä' from users") if r.kind == "D").row == ("ä".encode(),)
