"""Does `hushql policy try` say what would become of a log of queries?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxy.admin.commands.try_queries import asked_in
from tests.unit.admin.command_line import CommandLine

SHOP = Path(__file__).parents[3] / "policies" / "shop.yaml"
_LOG = """\
-- a day
SELECT plan, count(*) FROM users GROUP BY plan;
SELECT plan,  count(*)
FROM users GROUP BY plan; SELECT * FROM users;
SELECT city, count(*) FROM users GROUP BY city;
SELECT sum(user_id) FROM users; SELECT region FROM stores; BEGIN;
"""
_SERVERS = """\
2026-11-27 10:00:00 UTC [1] LOG:  statement: SELECT count(*)
\tFROM users;
2026-11-27 10:00:01 UTC [1] LOG:  execute s1: SELECT count(*) FROM users WHERE age > $1 AND plan = $2
2026-11-27 10:00:01 UTC [1] DETAIL:  Parameters: $1 = '30', $2 = 'it''s'
\tnot of a statement
2026-11-27 10:00:02 UTC [1] LOG:  duration: 3.1 ms
2026-11-27 10:00:02 UTC [1] LOG:  duration: 3.1 ms  statement: ;
2026-11-27 10:00:02 UTC [1] ERROR:  no statement
"""


def test_each_query_is_said_to_be_answered_refused_or_free(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(_LOG)
    assert command("policy", "try", str(SHOP), "--queries", str(tmp_path / "q.sql")) == 1
    assert "line 2, 2 times: SELECT plan, count(*) FROM users GROUP BY plan\n  answered, epsilon 0.79\n" in command.out
    assert "    Output count(*): noise sd " in command.out
    assert "    Threshold: " in command.out
    assert "line 4: SELECT * FROM users\n  refused, DP004: rows of a private table cannot be shown. Ask" in command.out
    assert "line 6: BEGIN\n  free: " in command.out
    assert "7 queries, 6 different: 3 answered, 2 refused, 2 free" in command.out
    assert "  refused in 1: DP004 rows of a private table cannot be shown" in command.out
    assert " of the user account, which holds that " in command.out


def test_the_price_of_all_queries_is_that_of_the_different_ones(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("SELECT count(*) FROM users")
    (tmp_path / "two.sql").write_text(
        "SELECT count(*) FROM users; SELECT count(*) FROM users; SELECT avg(age) FROM users"
    )
    assert command("policy", "try", str(SHOP), "--json", "--queries", str(tmp_path / "one.sql")) == 0
    one = json.loads(command.out)
    assert command("policy", "try", str(SHOP), "--json", "--queries", str(tmp_path / "two.sql")) == 0
    two = json.loads(command.out)
    assert [q["asked"]["times"] for q in two["queries"]] == [2, 1]
    assert one["accounts"]["user"] == 100, "the policy's hundred questions"
    assert two["accounts"]["user"] == 50


def test_the_log_of_a_server_is_read_with_continued_lines_and_parameters() -> None:
    assert [(a.line, a.sql) for a in asked_in(_SERVERS)] == [
        (1, "SELECT count(*)\nFROM users;"),
        (3, "SELECT count(*) FROM users WHERE age > '30' AND plan = 'it''s'"),
    ]


def test_profiles_that_are_kept_are_used(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert command("policy", "try", str(SHOP), "--state", str(tmp_path), "--queries", str(tmp_path / "q.sql")) == 0
    assert "1 queries, 1 different: 0 answered, 0 refused, 1 free" in command.out


@pytest.mark.parametrize("text, words", [("  ; -- nothing", "holds no statement"), ("SELECT 'open", "hushql: ")])
def test_a_log_that_says_nothing_is_an_error(command: CommandLine, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "q.sql").write_text(text)
    assert command("policy", "try", str(SHOP), "--queries", str(tmp_path / "q.sql")) in (1, 2)
    assert words in command.err
    assert not command.out
    assert command("policy", "try", str(SHOP), "--queries", str(tmp_path / "gone.sql")) == 2
    assert "cannot be read" in command.err
