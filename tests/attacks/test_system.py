"""Randomness, time, files, settings, statistics and other people: what lies around a query gives nothing away."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import psycopg
import pytest

from proxy.sql.query.split import RESERVED
from proxy.wire import messages
from tests.attacks.hostile import Attacked, Client, refusal, rows, spent, value
from tests.wire.raw import statement

COUNT = "SELECT count(*) FROM people"


@pytest.mark.parametrize(
    "condition",
    [
        "random() < 0.5", "gen_random_uuid() IS NULL", "nextval('s') > 1", "setseed(0.5) IS NULL",
        "clock_timestamp() > now()", "pg_sleep(v) IS NULL", "CASE WHEN name = 'alice' THEN pg_sleep(5) IS NULL END",
        "getenv('HOME') = 'x'", "current_setting('data_directory') = name", "pg_read_file(name) IS NULL",
        "name IN (SELECT * FROM read_csv('/etc/passwd'))", "dblink(name, 'x') IS NULL", "lo_import(name) > 0",
        "version() = name", "current_user = name", "txid_current() > i", "pg_backend_pid() = i", "hush.sd(v) > 1",
        "query_to_xml(name, true, true, '') IS NULL", "set_config('hush.epsilon', name, false) IS NULL",
        "(SELECT count(*) FROM generate_series(1, i)) > 0", "name = ANY (string_to_array(name, 'a'))",
    ],
)  # fmt: skip
def test_functions_with_a_life_of_their_own_never_see_rows(condition: str, eve: Client) -> None:
    state, said = refusal(eve, f"{COUNT} WHERE {condition}")
    assert state.startswith(("DP", "42", "0A")), (condition, state, said)


@pytest.mark.parametrize(
    "relation", ["read_csv('/etc/passwd')", "read_parquet('x')", "'/etc/passwd'", "glob('*')", "duckdb_tables()",
                 "sqlite_master", "pg_read_file('x')", "information_schema.duckdb", "duckdb_settings()"]
)  # fmt: skip
def test_files_and_the_engine_s_own_tables_are_out_of_reach(relation: str, eve: Client) -> None:
    assert refusal(eve, f"SELECT count(*) FROM {relation}")[0].startswith(("42", "DP"))
    assert refusal(eve, f"SELECT count(*) FROM people p JOIN {relation} AS f ON true")[0].startswith(("42", "DP"))


@pytest.mark.parametrize(
    "sql", ["ATTACH '/tmp/x'", "INSTALL httpfs", "PRAGMA database_list", "EXPORT DATABASE 'x'", "DETACH source",
            "USE x", "CHECKPOINT", "SUMMARIZE people", "DESCRIBE people", "FROM people",
            "PIVOT people ON kind USING count(*)"]
)  # fmt: skip
def test_the_engine_s_own_statements_are_unknown(sql: str, eve: Client) -> None:
    assert refusal(eve, sql)[0].startswith(("42", "DP"))


def test_now_is_one_constant_of_a_statement(attacked: Attacked) -> None:
    with attacked.connect() as client:
        assert value(client, f"{COUNT} WHERE seen < now() OR seen >= now() OR seen IS NULL") > 100
        assert value(client, f"{COUNT} WHERE born < current_date") > 100


@pytest.mark.parametrize("name", ["salt", "seed", "noise", "random", "delta", "sensitivity", "login", "policy"])
def test_no_setting_reaches_noise_or_salt(name: str, attacked: Attacked) -> None:
    with attacked.connect(epsilon=0.1) as client:  # sd 41: seven equal answers are one run in 10^12
        assert refusal(client, f"SET hush.{name} = '1'")[0] == "22023"
        client.execute(f"SELECT set_config('hush.{name}', '1', false)".encode())
        first = value(client, COUNT)
        client.execute("SET hush.fresh = on")
        assert {value(client, COUNT) for _ in range(6)} != {first}


def test_a_plan_shows_no_secret_and_no_figure_of_the_data(attacked: Attacked) -> None:
    salts = [p.read_bytes().hex() for p in (attacked.folder / "state").glob("*.salt")]
    assert salts
    told = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset) as client:
            before = spent(client)
            sql = "SELECT e.what, count(*), sum(e.x) FROM events e GROUP BY e.what"
            text = "\n".join(str(row[0]) for row in rows(client, f"EXPLAIN {sql}"))
            data = json.dumps(rows(client, f"EXPLAIN (FORMAT JSON) {sql}")[0][0])
            assert spent(client) == before
            told.append(re.sub(r"Remaining.*|Charge.*", "", text))
            assert not any(salt in text + data for salt in salts)
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "words",
    [
        "EXPLAIN ANALYZE",
        "EXPLAIN (ANALYZE)",
        "EXPLAIN (ANALYZE, BUFFERS)",
        "EXPLAIN (COSTS, ANALYZE ON)",
        "EXPLAIN ANALYSE VERBOSE",
        "EXPLAIN (ANALYZE TRUE, TIMING OFF)",
        "EXPLAIN (ANALYZE 1)",
    ],
)
def test_the_run_of_a_private_query_is_not_explained(words: str, eve: Client) -> None:
    state, _ = refusal(eve, f"{words} {COUNT}")
    assert state == "DP006"


def test_statistics_know_no_counts(attacked: Attacked) -> None:
    questions = (
        "SELECT relname, reltuples, relpages, relallvisible FROM pg_class WHERE relname IN ('people', 'events')",
        "SELECT * FROM pg_stats WHERE tablename IN ('people', 'events')",
        "SELECT n_live_tup, n_tup_ins, seq_scan FROM pg_stat_all_tables WHERE relname IN ('people', 'events')",
        "SELECT pg_relation_size('people'), pg_total_relation_size('events')",
        "SELECT * FROM pg_prepared_statements",
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_name = 'people'",
    )
    found = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset) as client:
            value(client, COUNT)
            found.append([rows(client, sql) for sql in questions])
    assert found[0] == found[1]


def test_activity_shows_no_statement_of_anybody(attacked: Attacked) -> None:
    with attacked.connect(login="bob") as bob, attacked.connect(login="eve") as client:
        bob.execute(b"SELECT count(*) AS a_secret_name FROM people")
        seen = str(rows(client, "SELECT * FROM pg_stat_activity")) + str(rows(client, "SELECT * FROM pg_locks"))
        assert "a_secret_name" not in seen
        assert re.search(rf"\b{RESERVED}\b", seen) is None


def test_views_show_no_statement_of_anybody(attacked: Attacked) -> None:
    with attacked.connect(login="bob") as bob, attacked.connect(login="eve") as client:
        bob.execute(b"CREATE TEMP VIEW v AS SELECT count(*) FROM people WHERE name = 'a secret name'")
        bob.execute(b"CREATE TEMP VIEW w AS SELECT label FROM labels WHERE label = 'a secret name'")
        for sql in (
            "SELECT * FROM pg_views",
            "SELECT pg_get_viewdef(oid) FROM pg_class",
            "SELECT pg_get_ruledef(oid) FROM pg_rewrite",
            "SELECT * FROM information_schema.views",
        ):
            assert "a secret name" not in str(rows(client, sql))
        assert refusal(client, "SELECT ev_action FROM pg_rewrite")[0] == "42501"


def test_no_way_around_the_list_of_settings(attacked: Attacked) -> None:
    with attacked.connect() as client:
        client.execute("CREATE TEMP VIEW knobs AS SELECT * FROM pg_settings")
        for sql in (
            "UPDATE knobs SET setting = '8GB' WHERE name = 'work_mem'",
            "UPDATE U&\"pg\\005fsettings\" SET setting = '8GB' WHERE name = 'work_mem'",
            "CREATE AGGREGATE pg_temp.a(text, boolean) (SFUNC = set_config, STYPE = text, INITCOND = 'work_mem')",
            "SELECT set_config(name, '8GB', false) FROM pg_settings WHERE name = 'work_mem'",
            "SELECT \"set_config\" /* */ ('work_mem', '8GB', false)",
            "SELECT U&\"set_\\0063onfig\"('work_mem', '8GB', false)",
            "SET U&\"work\\005fmem\" = '8GB'",
        ):
            assert refusal(client, sql)[0] in ("42501", "DP007"), sql
        assert rows(client, "SHOW work_mem") == [("4MB",)]
    with pytest.raises(psycopg.OperationalError, match="cannot be changed here"):
        attacked.connect(options="-c work_mem=8GB")


def test_a_login_sees_own_accounts_and_history_only(attacked: Attacked) -> None:
    with (
        attacked.connect(login="bob") as bob,
        attacked.connect(login="eve") as client,
        attacked.connect(login="boss") as boss,
    ):
        bob.execute(b"SELECT count(*) AS of_bob FROM people")
        assert {row[0] for row in rows(client, "SELECT kind FROM hush.budget")} == {"user", "session"}
        assert {row[0] for row in rows(boss, "SELECT kind FROM hush.budget")} == {"dataset", "role", "user", "session"}
        assert "of_bob" not in str(rows(client, "SELECT query FROM hush.history"))
        assert "of_bob" not in str(rows(client, "SELECT * FROM hush.last_query"))
        assert "of_bob" in str(rows(bob, "SELECT query FROM hush.history"))


def _keep(notices: list[str]) -> Callable[[psycopg.errors.Diagnostic], None]:
    return lambda notice: notices.append(notice.message_primary or "")


def test_what_another_login_asked_is_not_told_by_price_or_notice(attacked: Attacked) -> None:
    """A stored release costs its first viewer the same, and EXPLAIN and notices say the same."""
    told = []
    for sql in (f"{COUNT} WHERE v > 0.611", f"{COUNT} WHERE v > 0.612"):
        with attacked.connect(login="bob") as bob:
            if sql.endswith("1"):
                value(bob, sql)
        with attacked.connect(login="eve") as client:
            notices: list[str] = []
            client.add_notice_handler(_keep(notices))
            plan = [line for (line,) in rows(client, f"EXPLAIN {sql}") if "Remaining" not in str(line)]
            before = spent(client)
            value(client, sql)
            price = spent(client) - before
            (reused,) = rows(client, "SELECT DISTINCT reused FROM hush.last_query")
            told.append(
                (str(plan).replace(sql[-5:], ""), round(price, 9), reused, [n.partition(";")[0] for n in notices])
            )
    assert told[0] == told[1]


def test_a_login_without_a_table_cannot_name_it_anywhere(attacked: Attacked) -> None:
    with attacked.connect(login="eve") as client:
        value(client, COUNT)  # a stored release exists
    with attacked.connect(login="clerk") as clerk:
        for sql in (
            COUNT,
            "SELECT count(*) FROM events e JOIN people p ON p.pid = e.pid",
            "SELECT count(*) FROM events WHERE pid IN (SELECT pid FROM people)",
            "SELECT (SELECT count(*) FROM people), count(*) FROM events",
            "EXPLAIN SELECT count(*) FROM people",
            "SELECT count(*) FROM labels",
        ):
            state, said = refusal(clerk, sql)
            assert state == "42P01", (sql, said)
        assert rows(clerk, "SELECT relname FROM pg_class WHERE relname IN ('people', 'labels')") == []
        assert {row[0] for row in rows(clerk, 'SELECT "table" FROM hush.policy')} == {"events"}
        assert "people" not in str(rows(clerk, "SELECT obj_description(oid) FROM pg_class WHERE relname = 'events'"))
        assert value(clerk, "SELECT count(*) FROM events") > 100


def test_prepared_statements_are_paid_when_they_run(attacked: Attacked) -> None:
    with attacked.raw() as client:
        client.query("SET hush.fresh = on")
        with attacked.connect() as watcher:
            before = spent(watcher)
            client.sync(messages.parse(b"p", b"SELECT count(*) FROM people WHERE v > $1::float8"),
                        messages.describe_statement(b"p"))  # fmt: skip
            bind = messages.bind(
                messages.Bind(portal=b"q", statement=b"p", formats=(), values=(b"3",), result_formats=())
            )
            client.sync(bind, messages.describe_portal(b"q"))
            assert spent(watcher) == before
            spendings = []
            for _ in range(3):
                client.sync(bind.replace(b"q", b"r", 1), messages.execute(b"r"))
                spendings.append(spent(watcher))
            assert before < spendings[0] < spendings[1] < spendings[2]


def test_other_parameters_are_other_questions(attacked: Attacked) -> None:
    with attacked.connect(epsilon=100) as client:
        found = [
            client.execute("SELECT count(*) FROM people WHERE v > %s", (x,), prepare=True).fetchone() for x in (1, 9)
        ]
        assert found[0] != found[1]
        again = client.execute("SELECT count(*) FROM people WHERE v > %s", (1,), prepare=True).fetchone()
        assert again == found[0]


def test_fetching_in_pieces_shows_one_release(attacked: Attacked) -> None:
    with attacked.raw() as client:
        client.query("BEGIN; SET LOCAL hush.fresh = on")
        sql = "SELECT kind, count(*) FROM people GROUP BY kind"
        with attacked.connect() as watcher:
            client.send(statement(sql, portal=b"c", max_rows=1), messages.FLUSH)
            client.read_until("s")
            before = spent(watcher)
            replies = client.sync(messages.execute(b"c", 1), messages.execute(b"c", 9))
            assert [r.kind for r in replies].count("D") == 3
            assert spent(watcher) == before


def test_the_protocol_s_side_doors_are_closed(attacked: Attacked) -> None:
    with attacked.raw() as client:
        call = messages.build(b"F", b"\0\0\x04\xd2\0\0\0\0\0\0")
        client.send(call)
        assert [r.sqlstate for r in client.read_until("Z") if r.kind == "E"] == ["DP007"]
    with attacked.connect() as client:
        for sql in (
            "COPY people TO STDOUT",
            "COPY people (name) TO STDOUT",
            "COPY (SELECT name FROM people) TO STDOUT",
            "COPY (TABLE people) TO STDOUT",
            "START_REPLICATION SLOT x LOGICAL 0/0",
            "IDENTIFY_SYSTEM",
        ):
            assert refusal(client, sql)[0].startswith(("DP", "42"))


def test_a_string_of_statements_is_refused_before_it_is_paid(attacked: Attacked) -> None:
    with attacked.connect() as client:
        before = spent(client)
        for sql in (f"{COUNT} WHERE v > 0.71; SELECT * FROM", f"{COUNT} WHERE v > 0.72; SELEC 1"):
            refusal(client, sql)
        assert spent(client) == before
        refusal(client, f"SELECT * FROM people; {COUNT} WHERE v > 0.73")
        assert spent(client) == before


def test_two_releases_in_a_transaction_are_two_prices(attacked: Attacked) -> None:
    with attacked.connect() as client:
        client.execute("SET hush.fresh = on")
        start = spent(client)
        value(client, COUNT)
        price = spent(client) - start
        client.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
        value(client, COUNT)
        value(client, COUNT)
        client.execute("ROLLBACK")
        assert spent(client) - start == pytest.approx(3 * price)


def test_the_log_has_no_query_and_no_value(attacked: Attacked) -> None:
    with attacked.connect() as client:
        value(client, f"{COUNT} WHERE name = 'a very private question'")
        refusal(client, f"{COUNT} WHERE name::json = 'another private question'")
    said = attacked.log.read_text()
    assert "private question" not in said
    assert "alice" not in said


def test_displayed_noise_is_public(attacked: Attacked) -> None:
    """Standard deviations and intervals come from the plan: equal for all data."""
    found = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset) as client:
            found.append(rows(client, "SELECT hush.sd(count(*)), hush.sd(sum(v)), count(*), sum(v) FROM people")[0][:2])
            value(client, "SELECT sum(num) FROM people")
            found.append(rows(client, 'SELECT "column", mechanism, bound, sd, half_width_95 FROM hush.last_query')[0])
    assert found[0] == found[2]
    assert found[1] == found[3]
