"""Which statements are private, what stands around their SELECT, and which go to the front untouched."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proxy.errors import HushError
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.statements import QueryString, Understood, private_words, understand
from proxy.policy.model import RawSelect
from proxy.session.contract import Piece, Refusal
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.block import bind_block
from proxy.sql.query.probe import Probe
from proxy.sql.syntax.wrappers import Wrapper
from tests.unit.session.make import version
from tests.unit.sql.corpus import Case, cases, policy

COUNT = "SELECT count(*) FROM users"


def pieces(text: str, login: str = "ann", *, has_intervals: bool = False) -> tuple[Piece, ...]:
    """As a session understands them for which the front keeps nothing."""
    return understand(
        Cuts(), QueryString(premises=version().premises(login), text=text, has_intervals=has_intervals, told=((),))
    )


def piece(text: str, *, has_intervals: bool = False) -> Piece:
    (only,) = pieces(text, has_intervals=has_intervals)
    return only


def handle(found: Piece) -> Understood:
    assert isinstance(found.handle, Understood)
    return found.handle


def refusal(found: Piece) -> HushError:
    assert isinstance(found.refusal, Refusal), found
    return found.refusal.error


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1", "SELECT * FROM stores", "SHOW hush.epsilon", "SET search_path = users", "BEGIN",
        "SELECT 'users'::text",
        "SELECT * FROM pg_class WHERE relname = 'users'", "SELECT 1 AS users", "SELECT users.x FROM stores AS users",
        "COPY users TO STDOUT", "COPY users FROM STDIN", "DELETE FROM users", "PREPARE p AS SELECT count(*) FROM users",
        "CREATE TEMP VIEW v AS SELECT count(*) FROM users", "ANALYZE users", "SELECT hush.other(1)",
        "FETCH 1 FROM users", "EXPLAIN DELETE FROM users", "SET hush.epsilon = 1", "SET LOCAL hush.fresh TO off",
        "SET hush.epsilon = DEFAULT",
        "SET x.y = 0", "SET hush.epsilon", "WITH users AS (SELECT 1) SELECT * FROM users", "COPY (SELECT 1) TO STDOUT",
        "SELECT * FROM other.users", "",
    ],
)  # fmt: skip
def test_statement_goes_to_the_front_as_it_is(text: str) -> None:
    for found in pieces(text):
        assert not found.is_private
        assert found.text == found.describe_text == text


@pytest.mark.parametrize(
    ("text", "wrapper", "before", "after"),
    [
        (COUNT, Wrapper.NONE, "", ""),
        (f"EXPLAIN {COUNT}", Wrapper.EXPLAIN_TEXT, "EXPLAIN ", ""),
        (f"EXPLAIN VERBOSE {COUNT}", Wrapper.EXPLAIN_TEXT, "EXPLAIN VERBOSE ", ""),
        (f"explain (verbose, format text) {COUNT}", Wrapper.EXPLAIN_TEXT, "explain (verbose, format text) ", ""),
        (f"EXPLAIN (FORMAT JSON) {COUNT}", Wrapper.EXPLAIN_JSON, "EXPLAIN (FORMAT JSON) ", ""),
        (f"EXPLAIN (ANALYZE false) {COUNT}", Wrapper.EXPLAIN_TEXT, "EXPLAIN (ANALYZE false) ", ""),
        (f"COPY ({COUNT}) TO STDOUT (FORMAT csv)", Wrapper.COPY, "COPY (", ") TO STDOUT (FORMAT csv)"),
        (f"DECLARE c CURSOR FOR {COUNT}", Wrapper.DECLARE, "DECLARE c CURSOR FOR ", ""),
        (f"CREATE TEMP TABLE t AS {COUNT}", Wrapper.CREATE_TABLE, "CREATE TEMP TABLE t AS ", ""),
        (f"create temporary table if not exists t as {COUNT}", Wrapper.CREATE_TABLE,
         "create temporary table if not exists t as ", ""),
        (f"create temp table t(a) on commit drop as {COUNT} with data", Wrapper.CREATE_TABLE,
         "create temp table t(a) on commit drop as ", " with data"),
        (f'CREATE TABLE pg_temp."as" AS {COUNT}', Wrapper.CREATE_TABLE, 'CREATE TABLE pg_temp."as" AS ', ""),
        (f'DECLARE "for" SCROLL CURSOR WITH HOLD FOR {COUNT}', Wrapper.DECLARE,
         'DECLARE "for" SCROLL CURSOR WITH HOLD FOR ', ""),
        (f"({COUNT})", Wrapper.NONE, "", ""),
        (f"WITH a AS (SELECT * FROM users) {COUNT}", Wrapper.NONE, "", ""),
    ],
)  # fmt: skip
def test_private_select_is_found_inside_its_wrapper(text: str, wrapper: Wrapper, before: str, after: str) -> None:
    found = piece(text)
    assert found.is_private
    inner = handle(found)
    wrapped = inner.wrapped
    assert (wrapped.wrapper, wrapped.before, wrapped.after) == (wrapper, before, after)
    assert isinstance(inner.query, Outline)
    assert wrapped.before + inner.query.text + wrapped.after == text
    assert len(inner.query.spans) == 1


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("SELECT count(*) INTO TEMP t FROM users", "SELECT * INTO TEMP TABLE t FROM ("),
        ('SELECT count(*) INTO TEMPORARY TABLE "T" FROM users', 'SELECT * INTO TEMP TABLE "T" FROM ('),
        (
            "WITH a AS (SELECT * FROM users) SELECT count(*) INTO pg_temp.t FROM a",
            "SELECT * INTO TABLE pg_temp.t FROM (",
        ),
    ],
)
def test_select_into_is_a_table_created(text: str, before: str) -> None:
    found = piece(text)
    assert found.is_part
    assert len(found.describe_text) == len(text)
    assert "INTO" not in found.describe_text
    inner = handle(found)
    assert (inner.wrapped.wrapper, inner.wrapped.before) == (Wrapper.CREATE_TABLE, before)
    assert inner.position(text.index("FROM") + 1) == text.index("FROM") + 1


@pytest.mark.parametrize("text", [
    f"EXPLAIN CREATE TEMP TABLE t AS {COUNT}", f"EXPLAIN DECLARE c CURSOR FOR {COUNT}",
    "EXPLAIN SELECT count(*) INTO TEMP t FROM users",
])  # fmt: skip
def test_explain_looks_into_the_statement(text: str) -> None:
    found = piece(text)
    assert not found.is_part
    assert found.describe_text == f"EXPLAIN {handle(found).query.text}"
    assert len(found.describe_text) <= len(text)


@pytest.mark.parametrize("text", [
    "SELECT count(*) INTO t FROM users", "CREATE TABLE t AS SELECT count(*) FROM users",
    "CREATE TEMP TABLE t AS SELECT * FROM users WITH NO DATA", f"EXPLAIN UPDATE users SET age = ({COUNT})",
    f"CREATE TEMP TABLE t (a int DEFAULT ({COUNT}))", "DECLARE c CURSOR", "CREATE TEMP TABLE t AS EXECUTE users",
])  # fmt: skip
def test_what_cannot_keep_rows_goes_to_the_front(text: str) -> None:
    assert not piece(text).is_private


def test_cursor_needs_a_transaction_unless_it_is_held() -> None:
    assert piece(f"DECLARE c CURSOR FOR {COUNT}").needs_transaction
    assert not piece(f"DECLARE c CURSOR WITH HOLD FOR {COUNT}").needs_transaction


def test_statements_of_a_string_keep_their_places() -> None:
    text = f"SELECT 1; {COUNT} ; ;SET hush.epsilon = 1;\n {COUNT} WHERE age > 3 -- end"
    found = pieces(text)
    assert [p.is_private for p in found] == [False, True, False, True]
    assert all(text[p.start :].startswith(p.text) for p in found)


@pytest.mark.parametrize(
    ("text", "sqlstate", "at"),
    [
        ("SELECT * FROM users", "DP004", "*"),
        ("COPY (SELECT age FROM users) TO STDOUT", "DP004", "age"),
        ("EXPLAIN ANALYZE SELECT count(*) FROM users", "DP006", ""),
        ("EXPLAIN (FORMAT YAML) SELECT count(*) FROM users", "DP006", ""),
        ("EXPLAIN (ANALYZE) SELECT count(*) FROM users", "DP006", ""),
        ("CREATE TEMP TABLE users AS SELECT count(*) FROM users", "DP007", "users"),
        ("CREATE TABLE users (x int)", "DP007", "users"),
        ("SET hush.epsilon = 0", "22023", ""),
        ('SET LOCAL "hush".weights TO 0', "22023", ""),
        ("SELECT hush_r.x FROM users AS hush_r", "DP006", "hush_r"),
        (
            "WITH RECURSIVE a AS (SELECT age FROM users UNION SELECT age FROM a) SELECT count(*) FROM a",
            "DP006",
            "",
        ),
        ("TABLE users", "DP004", "TABLE"),
        ("SELECT age INTO TEMP t FROM users", "DP004", "age"),
        ("SELECT count(*) INTO TEMP users FROM orders", "DP007", "users"),
        ("EXPLAIN CREATE TEMP TABLE users AS SELECT count(*) FROM users", "DP007", "users"),
        ("EXPLAIN SELECT count(*) INTO TEMP users FROM orders", "DP007", "users"),
        ("SELECT u.count FROM users u LIMIT 1", "DP006", "u.count"),
        ("COPY (SELECT count(*) FROM users TO STDOUT", "DP006", ""),
        ("EXPLAIN (users", "DP006", ""),
        ("WITH w AS (TABLE users) SELECT hush_r.x FROM w", "DP006", "hush_r"),
    ],
)
def test_refusal_is_kept_with_the_piece(text: str, sqlstate: str, at: str) -> None:
    found = piece(text)
    error = refusal(found)
    assert found.is_private
    assert found.describe_text == text, "the front's own errors come first"
    assert error.sqlstate == sqlstate
    assert text[error.position - 1 :].startswith(at) if at else True


def test_table_command_over_private_rows_is_a_select() -> None:
    text = "EXPLAIN WITH w AS (TABLE users) SELECT max(age) FROM w"
    found = piece(text)
    assert found.describe_text == text
    asked = handle(found)
    assert asked.query.text == "WITH w AS (SELECT * FROM users) SELECT max(age) FROM w"
    assert asked.position(asked.query.text.index("max") + 1) == text.index("max") + 1
    assert asked.position(0) == 0


def test_table_command_shows_relations_of_the_proxy() -> None:
    asked = handle(piece("TABLE hush.budget"))
    assert isinstance(asked.query, Outline)
    assert [s.name for s in asked.query.system] == ["budget"]
    assert isinstance(handle(piece("TABLE users LIMIT 0")).query, Probe)


def test_unreadable_string_is_refused_as_a_whole() -> None:
    with pytest.raises(HushError, match="cannot be read"):
        pieces("SELECT count(*) FROM users WHERE plan = U&'\\00' -- '")


def test_tables_of_other_roles_are_not_known() -> None:
    text = f"{COUNT}; SELECT count(*) FROM orders"
    assert [p.is_private for p in pieces(text, "clerk")] == [False, True]
    assert "users" not in private_words(version().premises("clerk"))
    assert {"orders", "hush"} <= private_words(version().premises("clerk"))


def test_words_of_a_name_with_quotes_include_its_spelling_in_sql() -> None:
    assert {'odd "table', 'odd ""table'} <= private_words(version().premises("ann"))


def test_system_relations_are_private_pieces() -> None:
    found = handle(piece("SELECT * FROM hush.budget b, hush.policy"))
    assert isinstance(found.query, Outline)
    assert [(s.name, s.needs_alias) for s in found.query.system] == [("budget", False), ("policy", True)]


def test_probe_is_recognised() -> None:
    assert isinstance(handle(piece("SELECT * FROM users LIMIT 0")).query, Probe)


@pytest.mark.parametrize("text", [
    "SELECT plan, count(*) FROM users GROUP BY plan LIMIT 0", "SELECT plan, max(age) FROM users GROUP BY plan LIMIT 0",
    "SELECT count(*) FROM users WHERE false", "SELECT max(age) FROM users WHERE 1 > 2",
    "SELECT * FROM (SELECT plan, count(*) FROM users GROUP BY plan) t WHERE 1 = 0",
    "SELECT * FROM (SELECT * FROM users LIMIT 0) t", "SELECT * FROM users WHERE age > 3 AND NOT true",
    "SELECT * FROM users UNION ALL SELECT * FROM users LIMIT 0", "SELECT DISTINCT city FROM users LIMIT 0::bigint",
    "SELECT * FROM users WHERE false UNION SELECT * FROM users WHERE NULL", "SELECT * FROM users WHERE 0 = 1 OR 2 <> 2",
    "SELECT row_number() OVER () FROM users WHERE 3 < 3", "SELECT plan FROM users WHERE false GROUP BY plan",
])  # fmt: skip
def test_what_no_row_can_change_is_a_probe(text: str) -> None:
    assert isinstance(handle(piece(text)).query, Probe)


@pytest.mark.parametrize("text", [
    "SELECT count(*) FROM users LIMIT 1", "SELECT (SELECT count(*) FROM users), count(*) FROM users WHERE false",
    "SELECT count(*) FROM users WHERE 1 < 2", "SELECT count(*) FROM users WHERE NOT (age > 3)",
    "SELECT count(*) FROM users WHERE 1 = 1.0", "SELECT count(*) FROM users WHERE 10 = 1e1 AND 1 = '1'",
    "SELECT count(*) FROM users WHERE age = age OR false", "SELECT count(*) FROM users WHERE 1 <> 2",
    "SELECT plan FROM users GROUP BY plan LIMIT 10", "SELECT n FROM (SELECT count(*) AS n FROM users WHERE false) t",
    "SELECT count(*) FROM users WHERE false UNION ALL SELECT count(*) FROM users",
])  # fmt: skip
def test_what_a_row_may_change_is_no_probe(text: str) -> None:
    found = piece(text)
    assert isinstance(found.refusal, Refusal) or isinstance(handle(found).query, Outline)


def test_intervals_widen_the_outermost_select() -> None:
    found = piece("SELECT plan, count(*) AS n, avg(age) FROM users GROUP BY plan", has_intervals=True)
    assert found.describe_text == (
        'SELECT plan, count(*) AS n, avg(age) , hush.low(count(*)) AS "n_low", hush.high(count(*)) AS "n_high",'
        ' hush.low(avg(age)) AS "avg_low", hush.high(avg(age)) AS "avg_high" FROM users GROUP BY plan'
    )
    assert found.text == "SELECT plan, count(*) AS n, avg(age) FROM users GROUP BY plan"


@pytest.mark.parametrize("text", [
    "count(*) + 1", "-sum(age) * 2.5", "avg(age) / 7", "(sum(age) - count(*)) / 3.0",
    "sum(age)::numeric / nullif(count(*), 0)",
    "count(*) FILTER (WHERE age > 3) - avg(kids)", "sum(age) / count(*)", "(sum(age) / nullif(count(*), 0))",
])  # fmt: skip
def test_intervals_widen_arithmetic(text: str) -> None:
    found = piece(f"SELECT {text} AS n FROM users", has_intervals=True)
    told = f', hush.low({text}) AS "n_low", hush.high({text}) AS "n_high"'
    assert found.describe_text == f"SELECT {text} AS n {told} FROM users"


@pytest.mark.parametrize("text", [
    "SELECT n FROM (SELECT count(*) AS n FROM users) t", "SELECT plan FROM users GROUP BY plan",
    "SELECT * FROM hush.policy",
    "SELECT 1 + sum(age) / count(*) AS n FROM users", "SELECT 1 + 2 AS n, round(count(*) / 2.0) FROM users",
    "SELECT max(age) - min(age) AS span FROM users", "SELECT avg(age)::integer + 1 AS n FROM users",
])  # fmt: skip
def test_other_statements_are_not_widened(text: str) -> None:
    assert piece(text, has_intervals=True).describe_text == text


def test_raw_select_may_be_answered_empty_by_policy() -> None:
    served = policy()
    lenient = version(replace(served, privacy=replace(served.privacy, raw_select=RawSelect.EMPTY)))
    premises = lenient.premises("ann")
    (rows,) = understand(
        Cuts(), QueryString(premises=premises, text="SELECT age, city FROM users", has_intervals=False)
    )
    assert isinstance(handle(rows).query, Probe)
    (exists,) = understand(
        Cuts(), QueryString(premises=premises, text="SELECT EXISTS (SELECT 1 FROM users)", has_intervals=False)
    )
    assert refusal(exists).sqlstate == "DP004"


WIDENED = [c for c in cases() if not c.is_refused and not c.parameters]


@pytest.mark.parametrize("case", [c for c in WIDENED if re.search("grouping *\\(|within group", c.sql, re.IGNORECASE)])
def test_intervals_leave_a_statement_what_it_is(case: Case) -> None:
    """Levels of grouping have none, and an array of percentiles has arrays of them."""
    catalog = version().premises("ann").catalog
    for found in pieces(case.sql, has_intervals=True):
        query = handle(found).query
        assert isinstance(query, Outline)
        for block in Cuts().of(version().premises("ann"), query.text).blocks:
            bind_block(block, catalog, Constants({}, datetime.now(UTC)), query.text)


@pytest.mark.parametrize(
    ("call", "low"),
    [
        (
            "percentile_disc(0.5) WITHIN GROUP (ORDER BY age)",
            "hush.low(percentile_disc(0.5) WITHIN GROUP (ORDER BY age))",
        ),
        (
            "percentile_disc(ARRAY[0.5, 0.9]::float8[]) WITHIN GROUP (ORDER BY age)",
            (
                "ARRAY[hush.low(percentile_disc(0.5) WITHIN GROUP (ORDER BY age)), "
                "hush.low(percentile_disc(0.9) WITHIN GROUP (ORDER BY age))]"
            ),
        ),
        ("percentile_disc('{0.5}'::float8[]) WITHIN GROUP (ORDER BY age)", ""),
        ("mode() WITHIN GROUP (ORDER BY age)", ""),
        ("mode() WITHIN GROUP (ORDER BY age) FILTER (WHERE age > 5)", ""),
        ("percentile_disc(ARRAY[]::float8[]) WITHIN GROUP (ORDER BY age)", ""),
    ],
)
def test_intervals_of_percentiles(call: str, low: str) -> None:
    (found,) = pieces(f"SELECT {call} AS p FROM users", has_intervals=True)
    assert (f', {low} AS "p_low"' in found.describe_text) == bool(low)
    assert ("hush.low" in found.describe_text) == bool(low)
