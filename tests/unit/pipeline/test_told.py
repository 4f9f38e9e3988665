"""Names that statements make, and what the front tells of them."""

from __future__ import annotations

import pytest

from proxy.pipeline.front_state import KEPT_SQL, Answers, Noted, Prepared, Taken, names_made, read_kept
from proxy.pipeline.outline import Cuts
from proxy.pipeline.statements import QueryString, Understood, understand
from proxy.session.contract import Piece, Refusal
from proxy.sql.query.probe import Probe
from proxy.sql.syntax.parse import split_statements
from tests.unit.session.make import version

NAMES = frozenset({"v", "w", "p", "pub", "q", "my view"})
KEPT: Answers = ((
    ("view", "v", " SELECT age, plan\n FROM users;", ""), ("view", "w", " SELECT count(*) AS n\n FROM v;", ""),
    ("view", "pub", " SELECT 1 AS one;", ""), ("view", "My View", "SELECT age FROM users", ""),
    ("prepared", "p", "PREPARE p (int, text) AS SELECT count(*) FROM v WHERE age > $1 AND plan = $2", "integer\ntext"),
    ("prepared", "q", "PREPARE q AS TABLE w", ""), ("prepared", "pub", "PREPARE pub AS SELECT 1", ""),
    ("prepared", "w", "PREPARE w AS UPDATE users SET age = 1", None),
    ("relation", "v", "", ""), ("relation", "Kept", "", ""), ("cursor", "c", "", ""), ("cursor", "", "", ""),
),)  # fmt: skip


def piece(text: str, told: Answers = KEPT) -> Piece:
    asked = QueryString(premises=version().premises("ann"), text=text, has_intervals=False, noted=NAMES, told=told)
    (only,) = understand(Cuts(), asked)
    return only


def meaning(found: Piece) -> str:
    assert isinstance(found.handle, Understood), found
    return " ".join(found.handle.query.text.split())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("CREATE TEMP VIEW V AS SELECT 1", ("v",)),
        ('CREATE OR REPLACE TEMPORARY RECURSIVE VIEW pg_temp."My V" (a) AS SELECT 1', ("my v",)),
        ("PREPARE p (int) AS SELECT 1", ("p",)),
        ("ALTER VIEW IF EXISTS v RENAME TO w", ("w",)),
        ("ALTER VIEW v RENAME COLUMN a TO b", ()),
        ("CREATE TEMP TABLE view AS SELECT 1", ()),
        ("SELECT 1", ()),
    ],
)
def test_names_made(text: str, names: tuple[str, ...]) -> None:
    (statement,) = split_statements(text)
    assert names_made(statement) == names


def test_statement_that_makes_a_name_is_noted_if_it_may_be_private() -> None:
    for text in ("PREPARE p AS SELECT count(*) FROM users", "CREATE TEMP VIEW x AS SELECT * FROM hush.budget",
                 "CREATE TEMP VIEW x AS SELECT * FROM v"):  # fmt: skip
        assert isinstance(piece(text, ()).handle, Noted)
        assert not piece(text, ()).is_private
    assert piece("PREPARE x AS SELECT count(*) FROM stores", ()).handle is None


def test_later_statements_of_a_string_may_mean_what_earlier_ones_make() -> None:
    text = "CREATE TEMP VIEW a AS SELECT * FROM users; CREATE TEMP VIEW b AS TABLE a; SELECT count(*) FROM b; SELECT 1"
    found = understand(Cuts(), QueryString(premises=version().premises("ann"), text=text, has_intervals=False))
    assert [p.asks for p in found] == ["", "", KEPT_SQL, ""]


@pytest.mark.parametrize("text", [
    "SELECT count(*) FROM v", "EXPLAIN SELECT count(*) FROM v", "EXECUTE p(1, 'x')", "EXPLAIN EXECUTE q",
    "CREATE TEMP TABLE t AS EXECUTE q", "COPY (SELECT n FROM w) TO STDOUT", "SELECT count(*) FROM users, v",
])  # fmt: skip
def test_noted_name_is_asked_for(text: str) -> None:
    found = piece(text, ())
    assert (found.asks, found.is_private, found.is_fleeting) == (KEPT_SQL, True, True)


def test_cursor_over_a_noted_name_needs_a_transaction() -> None:
    assert piece("DECLARE c CURSOR FOR SELECT n FROM w", ()).needs_transaction


COUNT = "SELECT count(*) FROM users"


@pytest.mark.parametrize("text", [
    f"CREATE TEMP TABLE v AS {COUNT}", f'CREATE TEMP TABLE IF NOT EXISTS pg_temp."Kept" AS {COUNT}',
    "SELECT count(*) INTO TEMP V FROM users", f"DECLARE C CURSOR WITH HOLD FOR {COUNT}",
])  # fmt: skip
def test_name_that_is_taken_is_noticed_before_a_release(text: str) -> None:
    assert piece(text, ()).asks == KEPT_SQL
    assert piece(text).is_private
    assert piece(text).handle == Taken()


@pytest.mark.parametrize("text", [
    f"CREATE TEMP TABLE kept AS {COUNT}", f"CREATE TEMP TABLE c AS {COUNT}", f"DECLARE v CURSOR FOR {COUNT}",
    f"EXPLAIN CREATE TEMP TABLE v AS {COUNT}", COUNT,
])  # fmt: skip
def test_name_that_is_free_is_used(text: str) -> None:
    assert isinstance(piece(text).handle, Understood)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("SELECT count(*) FROM v", 'SELECT count(*) FROM (SELECT age, plan FROM users) AS "v"'),
        ("TABLE w", 'SELECT * FROM (SELECT count(*) AS n FROM (SELECT age, plan FROM users) AS "v") AS "w"'),
        ('SELECT count(*) FROM "My View"', 'SELECT count(*) FROM (SELECT age FROM users) AS "My View"'),
        ("EXPLAIN EXECUTE q", 'SELECT * FROM (SELECT count(*) AS n FROM (SELECT age, plan FROM users) AS "v") AS "w"'),
    ],
)
def test_view_is_written_out(text: str, means: str) -> None:
    found = piece(text)
    assert meaning(found) == means
    assert found.describe_text == text
    assert found.is_fleeting


def test_positions_point_into_the_clients_text() -> None:
    text = "EXPLAIN SELECT sum(age) FROM v WHERE age > 3"
    handle = piece(text).handle
    assert isinstance(handle, Understood)
    assert handle.position(handle.query.text.rindex("age > 3") + 1) == text.index("age > 3") + 1
    refusal = piece("SELECT age FROM v").refusal
    assert isinstance(refusal, Refusal)
    assert refusal.error.position == len("SELECT ") + 1


def test_arguments_are_asked_for_and_put_in_their_places() -> None:
    text = "CREATE TEMP TABLE t AS EXECUTE p(1 + 2, NULL)"
    found = piece(text)
    assert found.asks == "SELECT ((1 + 2)::integer)::pg_catalog.text, ((NULL)::text)::pg_catalog.text"
    told = piece(text, (*KEPT, (("3", None),)))
    assert meaning(told).endswith("WHERE age > 3::integer AND plan = NULL::text")
    assert told.is_part
    assert told.describe_text == "EXECUTE p(1 + 2, NULL)"
    handle = told.handle
    assert isinstance(handle, Understood)
    assert handle.position(5) == 0


def test_argument_of_several_values_is_refused() -> None:
    found = piece("EXECUTE p(1, 'x')", (*KEPT, (("1", "x"), ("2", "x"))))
    assert isinstance(found.refusal, Refusal)


@pytest.mark.parametrize("text", [
    "SELECT * FROM pub", "EXECUTE pub", "EXECUTE other", "EXECUTE p(1)", "EXECUTE p((SELECT 1), 'x')", "EXECUTE w",
    "EXECUTE p($1, 'x')", "SELECT v.x FROM stores AS v", "WITH v AS (SELECT 1) SELECT * FROM v",
])  # fmt: skip
def test_what_is_not_private_goes_to_the_front(text: str) -> None:
    found = piece(text)
    assert not found.is_private
    assert not found.asks


def test_call_without_a_noted_name_goes_to_the_front() -> None:
    assert not piece("EXECUTE unknown('users')", ()).is_private
    assert not piece("EXECUTE unknown(users)", ()).is_private


def test_probe_over_a_view() -> None:
    handle = piece("SELECT * FROM v LIMIT 0").handle
    assert isinstance(handle, Understood)
    assert isinstance(handle.query, Probe)


def test_name_of_a_private_table_is_not_given_away() -> None:
    for text in ("ALTER VIEW v RENAME TO users", "CREATE TEMP VIEW users AS SELECT 1 FROM orders"):
        refusal = piece(text).refusal
        assert isinstance(refusal, Refusal)
        assert refusal.error.sqlstate == "DP007"


def test_only_views_that_lead_to_these_names_are_kept() -> None:
    kept = read_kept(KEPT[0])
    assert set(kept.only_of(frozenset({"users"})).views) == {"v", "w", "My View"}
    assert set(kept.only_of(frozenset({"orders"})).views) == set()
    assert kept.prepared["p"].types == ("integer", "text")
    assert kept.prepared["q"] == Prepared("PREPARE q AS TABLE w", ())
