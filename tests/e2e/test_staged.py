"""Sub-queries that are released first: what their values mean, what they cost, and the ways to ask for them."""

from __future__ import annotations

import itertools

import psycopg
import pytest

from proxy.front.relations import RELATIONS
from proxy.sql.query.split import Split, split
from proxy.sql.query.stages import written
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.e2e.served import Client, Served
from tests.unit.sql.corpus import policy

LATE = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"

# --- what a value means -------------------------------------------------------------------------------------

_SINGLE = (
    "avg(age)", "max(joined)", "count(*)", "max(age) FILTER (WHERE false)", "min(plan)", "avg(score)", "max(seen)",
    "bool_or(newsletter)", "min(code)", "sum(balance)", "max(height)", "'it''s \\' || min(nick)", "-avg(kids)",
    "max('2024-02-03 04:05:06'::timestamp)",
)  # fmt: skip
_SETS = (
    "SELECT plan FROM users GROUP BY plan", "SELECT plan FROM users GROUP BY plan HAVING count(*) < 0",
    "SELECT plan FROM users GROUP BY plan HAVING plan IS NOT NULL ORDER BY count(*) DESC, plan LIMIT 2",
    "SELECT NULL::text FROM users HAVING count(*) > 0", "SELECT max(plan) FROM users UNION SELECT 'free'",
    "SELECT code::text FROM users GROUP BY code", "SELECT plan || '' FROM users GROUP BY plan",
    "SELECT CASE region WHEN 'north' THEN 'pro' END FROM stores LIMIT 3",
)  # fmt: skip
_TESTS = (
    "x.{0} IN ({1})", "x.{0} NOT IN ({1})", "NOT (x.{0} IN ( ( {1} ) ))", "x.{0} = ANY ({1})", "x.{0} <> ALL ({1})",
    "x.{0} = SOME ({1})", "x.{0} > ALL ({1})", "EXISTS ({1})", "NOT EXISTS ( ( {1}))", "({0} IN ({1})) IS NULL",
    "CASE WHEN x.newsletter THEN {0} IN ({1}) ELSE false END",
)  # fmt: skip


def _cut(sql: str) -> Split:
    return split(split_statements(sql)[0], Catalog(policy().tables), frozenset(RELATIONS))


def _with_values(sql: str, front: Client) -> str:
    """The statement with the exact values of its stages in their place, as a session writes noisy ones."""
    cut = _cut(sql)
    assert cut.stages, sql
    while cut.stages:
        stage = cut.stages[0]
        told = psycopg.RawCursor(front).execute(stage.asking(stage.text).encode()).fetchall()
        rows = [tuple(None if cell is None else str(cell) for cell in row) for row in told]
        cut = _cut(written(cut.text, cut.stages, stage, rows).statement.text)
    return cut.text


def test_constants_mean_what_their_sub_queries_mean(served: Served) -> None:
    """PostgreSQL answers both over the public twin of the data."""
    asked = [f"SELECT count(*) FROM users x WHERE {t.format('plan', s)}" for t, s in itertools.product(_TESTS, _SETS)]
    asked += [f"SELECT count(*), count((SELECT {v} FROM users)) FILTER (WHERE ((SELECT {v} FROM users) IS NULL)"
              f" IS NOT DISTINCT FROM newsletter) FROM users x" for v in _SINGLE]  # fmt: skip
    asked += [f"SELECT count(*) FROM users WHERE ({v}) IS NULL OR {v} = (SELECT {a} FROM users)" for v, a in
              (("joined", "max(joined)"), ("seen", "min(seen)"), ("code", "min(code)"), ("balance", "max(balance)"),
               ("steps", "min(steps)"), ("height", "max(height)"), ("plan", "max(plan)"))]  # fmt: skip
    with served.connect("truth") as front:
        front.execute("SET DateStyle = 'German, DMY'; SET TimeZone = 'Asia/Kolkata'")
        for sql in asked:
            constants = _with_values(sql, front)
            assert constants != sql
            assert front.execute(constants.encode()).fetchall() == front.execute(sql.encode()).fetchall(), constants


# --- what it costs ------------------------------------------------------------------------------------------


def _left(client: Client) -> dict[str, float]:
    rows = client.execute("SELECT kind, epsilon_remaining FROM hush.budget").fetchall()
    return {str(kind): float(str(left)) for kind, left in rows if left is not None}


def test_explain_tells_what_is_charged_and_a_repeat_is_free(served: Served) -> None:
    with served.connect("spend", "u21") as client, served.connect("spend", "boss") as boss:
        client.execute("SET hush.epsilon = 0.3")
        ((((plan,),),),) = (client.execute(f"EXPLAIN (FORMAT JSON) {LATE}".encode()).fetchall(),)
        assert plan["charge_epsilon"] == pytest.approx(0.3, rel=1e-3)
        assert (len(plan["releases"]), len(plan["later"])) == (1, 1)
        seen: list[str] = []
        client.add_notice_handler(lambda d: seen.append(str(d.message_primary)))
        first = client.execute(LATE).fetchall()
        assert client.execute(LATE).fetchall() == first
        charged = [s.partition(";")[0] for s in seen if s.startswith("charged")]
        assert charged == [
            "charged epsilon 0.3", "charged nothing: your accounts paid for this release already"
        ]  # fmt: skip
        before = _left(boss)["dataset"]
        with served.connect("spend", "u22") as other:
            other.execute("SET hush.epsilon = 0.3")
            assert other.execute(LATE).fetchall() == first
            assert _left(other)["user"] == _left(client)["user"]
        again = _left(boss)["dataset"]
        assert again < before, "the ticket of the last stage, which is reserved before it is known"
        with served.connect("spend", "u22") as later:
            later.execute("SET hush.epsilon = 0.3")
            assert later.execute(LATE).fetchall() == first
        assert _left(boss)["dataset"] == again
        history = client.execute("SELECT query, epsilon, outcome FROM hush.history").fetchall()
        assert [(q, o) for q, _, o in history] == [(LATE, "answered")] * 2
        outputs = client.execute("SELECT count(*) FROM hush.last_query").fetchall()
        assert outputs == [(2,)], "those of both stages"


def test_a_stage_that_the_front_cannot_compute_stays_charged(served: Served) -> None:
    with served.connect("spend", "u23") as client:
        client.execute("SET hush.epsilon = 0.3")
        before = _left(client)["user"]
        wrong = "SELECT count(*) FROM users WHERE age > (SELECT avg(age) FROM users GROUP BY plan)"
        with pytest.raises(psycopg.errors.CardinalityViolation):
            client.execute(wrong)
        assert _left(client)["user"] < before
        ((outcome,),) = client.execute("SELECT outcome FROM hush.history").fetchall()
        assert outcome == "failed"


# --- how it is asked for ------------------------------------------------------------------------------------


def test_stages_in_every_way_to_ask(served: Served) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        ((true,),) = exact.execute(LATE).fetchall()
        assert isinstance(true, int)

        def near(value: object) -> bool:
            assert isinstance(value, int)
            return abs(value - true) < 9  # 20 standard deviations, and rows beside the noisy average

        with client.transaction():
            client.execute(f"DECLARE c CURSOR FOR {LATE}")
            ((value,),) = client.execute("FETCH ALL FROM c").fetchall()
            assert near(value)
            client.execute(f"CREATE TEMP TABLE kept AS {LATE}")
            client.execute(f"CREATE TEMP VIEW late AS {LATE}")
        assert near(client.execute("SELECT count FROM kept").fetchall()[0][0])
        assert near(client.execute("SELECT count FROM late").fetchall()[0][0])
        client.execute("CREATE TEMP VIEW few AS SELECT avg(amount) AS a FROM orders")
        assert near(client.execute("SELECT count(*) FROM orders WHERE amount > (SELECT a FROM few)").fetchall()[0][0])
        with client.cursor().copy(f"COPY ({LATE}) TO STDOUT".encode()) as copied:
            assert near(int(b"".join(bytes(part) for part in copied)))
        client.execute("PREPARE p(text) AS SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders"
                       " WHERE status = $1 OR true)")  # fmt: skip
        assert near(client.execute("EXECUTE p('paid')").fetchall()[0][0])
        client.execute("SET client_encoding = 'LATIN1'")
        for binary in (False, True):
            raw = psycopg.RawCursor(client)
            sql = ("SELECT count(*) FROM orders WHERE $1 = 'é' AND amount > (SELECT avg(amount) + length($1) - 1"
                   " FROM orders WHERE $1 = 'é' AND amount >= $2 HAVING $2 < 1)")  # fmt: skip
            raw.execute(sql, ["é", 0], binary=binary)
            ((value,),) = raw.fetchall()
            assert near(value)
        client.execute("SET hush.intervals = on")
        cursor = client.execute(LATE)
        assert [c.name for c in cursor.description or ()] == ["count", "count_low", "count_high"]
        several = client.execute(f"SELECT 1; {LATE}; SELECT 2")
        found = [several.fetchall()]
        while several.nextset():
            found.append(several.fetchall())
        assert found[0] == [(1,)]
        assert near(found[1][0][0])
        assert found[2] == [(2,)]


def test_the_values_of_the_front_stay_inside_the_transaction(served: Served) -> None:
    """A stage reads what the statements before it have made."""
    with served.connect("shop") as client, client.transaction(force_rollback=True):
        client.execute("CREATE TEMP TABLE factor AS SELECT 1000 AS f")
        sql = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) * (SELECT f FROM factor) FROM orders)"
        assert abs(int(str(client.execute(sql).fetchall()[0][0]))) < 9
        client.execute("UPDATE factor SET f = -1")
        assert int(str(client.execute(sql).fetchall()[0][0])) > 1700
