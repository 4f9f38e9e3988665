"""What a role may not see does not exist for it: neither columns nor rows, by whatever way they are asked for.

What the clerk gets of all data is compared with what is served where nothing else is there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import places
from tests.attacks.hostile import Client, refusal, rows
from tests.attacks.rights import CLERK, OUTSIDE, SECRET, policies, serving
from tests.e2e import served
from tests.e2e.served import Served

Row = tuple[object, ...]

#: Each is answered as if the rest did not exist.
ASKED = (
    "SELECT count(*) FROM visits",
    "SELECT count(*) FROM people",
    "SELECT count(DISTINCT pid) FROM visits",
    "SELECT kind, count(*) FROM visits GROUP BY kind ORDER BY kind",
    "SELECT sum(minutes), avg(minutes) FROM visits",
    'SELECT "group", count(*) FROM people GROUP BY 1 ORDER BY 1',
    "SELECT city, count(*) FROM people GROUP BY city ORDER BY city",
    f"SELECT count(*) FROM visits WHERE kind = '{OUTSIDE}' OR minutes = 90",
    f"SELECT count(*) FILTER (WHERE kind = '{OUTSIDE}') FROM visits",
    "SELECT count(*) FROM visits WHERE true OR minutes > 0",
    "SELECT count(*) FROM (SELECT * FROM visits) v",
    "SELECT count(*) FROM (SELECT kind, minutes FROM visits WHERE minutes > 80) v WHERE kind <> 'x'",
    "WITH v AS (SELECT * FROM visits) SELECT kind, count(*) FROM v GROUP BY kind ORDER BY kind",
    "SELECT p.city, count(*) FROM visits v JOIN people p ON v.pid = p.pid GROUP BY 1 ORDER BY 1",
    "SELECT p.city, count(*) FROM visits v JOIN people p USING (pid) GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM visits NATURAL JOIN people",
    "SELECT count(*), count(kind) FROM people p LEFT JOIN visits v ON v.pid = p.pid",
    "SELECT count(*), count(city) FROM visits v LEFT JOIN people p ON v.pid = p.pid",
    "SELECT count(*), count(age) FROM people p RIGHT JOIN visits v ON v.pid = p.pid",
    "SELECT count(*), count(kind), count(city) FROM people p FULL JOIN visits v ON v.pid = p.pid",
    "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid AND v.minutes > 85)",
    "SELECT count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid)",
    "SELECT count(*) FROM people WHERE pid IN (SELECT pid FROM visits WHERE minutes = 90)",
    "SELECT count(*) FROM people WHERE pid NOT IN (SELECT pid FROM visits WHERE pid IS NOT NULL)",
    "SELECT count(*) FROM (SELECT pid FROM people EXCEPT SELECT pid FROM visits) t",
    "SELECT count(*) FROM (SELECT pid FROM people INTERSECT SELECT pid FROM visits) t",
    "SELECT sum(minutes) FROM (SELECT minutes FROM visits UNION ALL SELECT minutes FROM visits) t",
    "SELECT avg(n), avg(m) FROM (SELECT pid, count(*) AS n, max(minutes) AS m FROM visits GROUP BY pid) t",
    "SELECT count(*) FROM (SELECT rank() OVER (PARTITION BY pid ORDER BY day) AS n FROM visits) t WHERE n = 1",
    "SELECT percentile_cont(ARRAY[0.9, 0.99]) WITHIN GROUP (ORDER BY minutes) FROM visits",
    "SELECT mode() WITHIN GROUP (ORDER BY kind) FROM visits",
    "SELECT count(DISTINCT kind) FROM visits",
    "SELECT kind, city, count(*) FROM visits JOIN people USING (pid) GROUP BY CUBE (kind, city) ORDER BY 1, 2, 3",
    "SELECT town, count(*) FROM visits JOIN shops USING (shop) GROUP BY town ORDER BY town",
    "SELECT town, count(kind) FROM shops LEFT JOIN visits USING (shop) GROUP BY town ORDER BY town",
    "SELECT count(*) FROM visits WHERE minutes > (SELECT avg(minutes) FROM visits)",
    "SELECT (SELECT count(*) FROM visits), (SELECT count(*) FROM people)",
    "SELECT place, count(*) FROM told GROUP BY place ORDER BY place",
    "SELECT count(*), count(*) FILTER (WHERE smokes) FROM told",
    "SELECT * FROM shops ORDER BY shop",
    "SELECT shops FROM shops ORDER BY 1",
    "SELECT count(*) FROM shops s JOIN shops t ON s = t",
    "TABLE shops",
    "SELECT row_to_json(s)::text FROM shops s ORDER BY 1",
)
#: Each is refused, in the very words in which it is where the column does not exist.
REFUSED = (
    "SELECT zz_rent FROM shops",
    "SELECT s.zz_rent FROM shops s",
    "SELECT (s).zz_rent FROM shops s",
    "SELECT count(*) FROM shops s WHERE (s.*) IS NOT NULL AND zz_rent > 0",
    "SELECT zz_shop, count(*) FROM visits GROUP BY 1",
    "SELECT count(*) FROM visits WHERE zz_shop = 3",
    "SELECT count(*) FROM visits v WHERE v.zz_shop = 3",
    "SELECT sum(zz_income) FROM people",
    "SELECT count(*) FROM people ORDER BY max(zz_income)",
    "SELECT count(*) FROM (SELECT zz_shop FROM visits) v",
    "SELECT count(*) FROM (SELECT * FROM visits) v WHERE zz_shop = 3",
    "WITH v AS (SELECT * FROM visits) SELECT max(zz_shop) FROM v",
    "SELECT count(*) FROM visits JOIN shops ON zz_shop = shop",
    "SELECT count(*) FROM visits a JOIN visits b USING (zz_shop)",
    "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid AND v.zz_shop = 3)",
    "SELECT count(*) FROM people WHERE pid IN (SELECT zz_shop FROM visits)",
    "SELECT max(visits) FROM visits",
    "SELECT count(*) FROM visits WHERE (visits).zz_shop = 3",
    "SELECT count(visits.*) FROM visits",
    "SELECT row_to_json(v) FROM visits v",
    "SELECT * FROM visits",
    "SELECT zz_shop FROM visits LIMIT 3",
    "SELECT * FROM told",
    "SELECT zz_code, count(*) FROM told GROUP BY 1",
    "COPY visits TO STDOUT",
    "COPY (SELECT zz_shop, count(*) FROM visits GROUP BY 1) TO STDOUT",
    "COPY shops (zz_rent) TO STDOUT",
    "COPY (SELECT zz_rent FROM shops) TO STDOUT",
    "PREPARE p AS SELECT count(*) FROM visits WHERE zz_shop = 3",
    "SELECT hush.low(sum(zz_income)) FROM people",
    "SELECT age FROM people WHERE zz_income > 80",
    "SELECT row_number() OVER (ORDER BY zz_income) FROM people",
    "SELECT max(n) FROM (SELECT pid, max(zz_shop) AS n FROM visits GROUP BY pid) t",
    "SELECT count(*) FROM visits v, shops s WHERE v.minutes = s.shop",
    "SELECT count(*) FROM visits a JOIN visits b ON a.kind = b.kind",
    "SELECT count(*) FROM people WHERE pid = 5",
    "SELECT max(city) FROM people",
    "CREATE TEMP VIEW w AS SELECT zz_rent FROM shops",
    "SELECT count(*) FROM visits, people",
    "SELECT count(*) FROM people LEFT JOIN visits ON minutes = age",
)
CATALOGUE = (
    "SELECT * FROM hush.policy",
    "SELECT * FROM hush.messages",
    "SELECT description FROM pg_description",
    "SELECT attname FROM pg_attribute",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT indexname, indexdef FROM pg_indexes",
    "SELECT table_schema, table_name, column_name FROM information_schema.columns",
    "SELECT * FROM information_schema.key_column_usage",
    "SELECT attname, most_common_vals::text FROM pg_stats",
    "SELECT nspname FROM pg_namespace",
    "SELECT name, setting, reset_val FROM pg_settings WHERE name LIKE 'hush%'",
    "SELECT setdatabase, setconfig FROM pg_db_role_setting",
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("rights")) as running:
        yield running


@pytest.fixture
def clerk(parts: Served) -> Iterator[Client]:
    with parts.connect("parts", "clerk") as client:
        yield client


@pytest.fixture
def cut(parts: Served) -> Iterator[Client]:
    with parts.connect("cut", "clerk") as client:
        yield client


def secrets(found: object, sql: str = "") -> list[str]:
    """What is said that the role must not hear of and that does not stand in the statement."""
    return [name for name in SECRET if name in str(found) and name not in sql]


def is_near(ours: object, theirs: object) -> bool:
    """Whether two answers are of the same data, with noise of an epsilon of 100 around both.

    The most noise has the cube, of some 20 numbers: the distance of two has a standard deviation of about 2.5, so that
    15 are passed less than once in 10^6 times.
    """
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(is_near, ours, theirs))
    if isinstance(ours, str) or ours is None or theirs is None:
        return ours == theirs
    return abs(float(ours) - float(theirs)) <= 15 + 0.02 * abs(float(theirs))  # type: ignore[arg-type] # numbers


@pytest.mark.parametrize("sql", ASKED)
def test_a_role_reads_what_is_there_where_nothing_else_is(sql: str, clerk: Client, cut: Client) -> None:
    ours, theirs = rows(clerk, sql), rows(cut, sql)
    assert theirs
    assert is_near(ours, theirs), (ours, theirs)
    assert secrets(ours) == []


@pytest.mark.parametrize("sql", ASKED)
def test_a_prepared_statement_and_copy_read_no_more(sql: str, clerk: Client, cut: Client) -> None:
    found: list[list[Row]] = []
    for client in (clerk, cut):
        client.execute(f"PREPARE asked AS {sql}")
        found.append(rows(client, "EXECUTE asked"))
        found.append(client.execute(sql.encode(), prepare=True).fetchall())
        with client.cursor().copy(f"COPY ({sql}) TO STDOUT".encode()) as copy:
            assert secrets(b"".join(bytes(part) for part in copy)) == []
    assert is_near(found[0], found[2])
    assert is_near(found[1], found[3])


@pytest.mark.parametrize("sql", REFUSED)
def test_a_hidden_column_is_refused_like_one_that_is_not_there(sql: str, clerk: Client, cut: Client) -> None:
    ours, theirs = refusal(clerk, sql), refusal(cut, sql)
    assert ours == theirs
    assert secrets(ours, sql) == []


@pytest.mark.parametrize("words", ["EXPLAIN", "EXPLAIN (FORMAT JSON)"])
@pytest.mark.parametrize("sql", ASKED)
def test_a_plan_names_no_hidden_column(words: str, sql: str, clerk: Client) -> None:
    assert secrets(rows(clerk, f"{words} {sql}")) == []
    rows(clerk, sql)
    assert secrets(rows(clerk, "SELECT * FROM hush.last_query")) == []
    assert secrets(rows(clerk, "SELECT * FROM hush.messages")) == []
    assert secrets(rows(clerk, f"SELECT * FROM hush.estimate($q${sql}$q$)")) == []


@pytest.mark.parametrize("sql", CATALOGUE)
def test_the_catalogue_names_no_hidden_column(sql: str, clerk: Client) -> None:
    assert secrets(rows(clerk, sql)) == []


def test_two_roles_never_share_an_answer_about_other_rows(parts: Served) -> None:
    sql = "SELECT kind, count(*) FROM visits GROUP BY kind ORDER BY kind"
    with parts.connect("parts", "eve") as eve, parts.connect("parts", "clerk") as clerk:
        eve.execute("SET hush.digits = 'all'")
        whole = {str(kind): int(str(n)) for kind, n in rows(eve, sql)}
        part = {str(kind): int(str(n)) for kind, n in rows(clerk, sql)}
        again = rows(clerk, sql)
        coarser = rows(clerk, "SELECT count(*) FROM visits")
    assert whole[OUTSIDE] > 3000
    assert part[OUTSIDE] < 100
    assert {str(kind): n for kind, n in again} == part
    assert int(str(coarser[0][0])) < 9000


@pytest.mark.parametrize(
    "setting", ["DateStyle = 'SQL, DMY'", "TimeZone = 'Pacific/Kiritimati'", "hush.max_groups = 1"]
)
def test_no_setting_of_a_client_moves_the_condition(setting: str, clerk: Client, cut: Client) -> None:
    for client in (clerk, cut):
        client.execute(f"SET {setting}")
    sql = f"SELECT count(*) FROM visits WHERE kind = '{OUTSIDE}'"
    assert is_near(rows(clerk, sql), rows(cut, sql))


def test_parameters_of_a_client_are_not_those_of_the_condition(clerk: Client, cut: Client) -> None:
    sql = "SELECT count(*) FROM visits WHERE minutes > %s AND kind = %s"
    found = [client.execute(sql, (10, OUTSIDE), prepare=True).fetchall() for client in (clerk, cut)]
    assert is_near(found[0], found[1])


def test_who_may_see_all_sees_all(parts: Served) -> None:
    with parts.connect("parts", "eve") as eve:
        assert rows(eve, "SELECT zz_rent FROM shops WHERE shop = 1") == [(1001,)]
        assert int(str(rows(eve, "SELECT count(*) FROM visits WHERE zz_shop = 3")[0][0])) > 3000


def test_relations_of_administrators_are_denied_to_others(parts: Served, clerk: Client) -> None:
    """Also beside a private statement, of which nothing is charged then; the empty relation is what could be read."""
    rows(clerk, "SELECT sum(age) FROM people")  # which nobody else asks
    for name in ("admin_history", "admin_budget"):
        for sql in (
            "SELECT * FROM hush.{}",
            "COPY hush.{} TO STDOUT",
            "SELECT EXISTS (TABLE hush.{})",
            "TABLE hush.{}",
        ):
            assert refusal(clerk, sql.format(name)) == ("42501", "permission denied for table only_administrators")
        with pytest.raises(psycopg.Error):
            clerk.execute(f"SELECT count(*) FROM visits, hush.{name}".encode())
    with parts.connect("parts", "boss") as boss:
        asked = rows(
            boss, "SELECT role, tables FROM hush.admin_history WHERE login = 'clerk' AND query LIKE '%sum(age)%'"
        )
        assert ("clerk", "people") in asked
        ((paid, spent),) = rows(boss, "SELECT (SELECT sum(rho) FROM hush.admin_budget WHERE kind = 'dataset'),"
                                      " (SELECT rho_spent FROM hush.budget WHERE kind = 'dataset')")  # fmt: skip
        assert paid == spent


def test_made_up_rows_are_made_of_what_a_role_may_see(tmp_path: Path) -> None:
    with serving(tmp_path, "made_up") as running, running.connect("parts", "clerk") as clerk:
        for table in ("people", "visits"):
            made = clerk.execute(f"SELECT * FROM {table}".encode())
            assert secrets([c.name for c in made.description or ()]) == []
            assert made.fetchall()
            with pytest.raises(psycopg.Error, match="does not exist"):
                clerk.execute(f"SELECT {'zz_income' if table == 'people' else 'zz_shop'} FROM {table}".encode())


def test_an_open_session_reads_no_more_than_its_role_by_now(tmp_path: Path) -> None:
    """Neither by statements that it prepared before, nor from the public PostgreSQL that it is connected to."""
    paths = policies(tmp_path)
    users, logins = tmp_path / "users.yaml", {"clerk": "clerk"}
    rights = CLERK[CLERK.index("rows: ") : CLERK.index(", settings: ")]
    served.write_users(users, logins, "settings: {hush.digits: all}")
    with served.serving(tmp_path, paths[:1], places.UNCOUNTED) as running, running.connect("parts", "clerk") as client:
        client.execute(f"PREPARE outside AS SELECT count(*) FROM visits WHERE kind = '{OUTSIDE}'".encode())
        client.execute("PREPARE rent AS SELECT zz_rent FROM shops ORDER BY 1")
        assert int(str(rows(client, "EXECUTE outside")[0][0])) > 3000
        served.write_users(users, logins, f"{rights}, settings: {{hush.digits: all}}")
        _await_policy(running, 1)
        assert int(str(rows(client, "EXECUTE outside")[0][0])) < 100
        assert rows(client, "EXECUTE rent")[0] == (1000,)
        served.write_users(users, logins, CLERK)
        _await_policy(running, 2)
        with pytest.raises(psycopg.OperationalError):
            client.execute("EXECUTE rent")
        with running.connect("parts", "clerk") as anew:
            assert secrets(rows(anew, "SELECT to_json(s)::text FROM shops s")) == []


def _await_policy(running: Served, times: int) -> None:
    deadline = time.monotonic() + served.START_S
    while running.log.read_text().count(" is in force") < times:
        assert time.monotonic() < deadline, running.log.read_text()
        time.sleep(0.05)
