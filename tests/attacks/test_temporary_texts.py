"""What a login was answered and writes into temporary objects is read by no other login."""

from __future__ import annotations

import pytest

from tests.attacks.hostile import Attacked, refusal, rows

TEXTS = (
    "CREATE TEMP TABLE d (a text DEFAULT 'a secret name')",
    "CREATE TEMP TABLE d (a text CHECK (a <> 'a secret name'))",
    "COMMENT ON TABLE kept IS 'a secret name'",
    "CREATE INDEX ON kept ((a || 'a secret name'))",
    "CREATE TYPE pg_temp.e AS ENUM ('a secret name')",
    "CREATE POLICY p ON kept USING (a = 'a secret name')",
    "CREATE TEMP TABLE d (a text) PARTITION BY LIST (a)",
    "CREATE STATISTICS pg_temp.s ON (a || 'a secret name'), (length(a)) FROM kept",
    "ANALYZE kept",
    "VACUUM (ANALYZE) kept",
    "ANALYZE",
    "CLUSTER kept",
    "REINDEX TABLE kept",
    "SELECT 1; analyze kept",
)
READERS = (
    "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef",
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT pg_get_indexdef(indexrelid) FROM pg_index",
    "SELECT description FROM pg_description",
    "SELECT enumlabel FROM pg_enum",
    "SELECT polqual FROM pg_policy",
    "SELECT stxexprs FROM pg_statistic_ext",
    "SELECT pg_get_expr(relpartbound, oid) FROM pg_class",
    "SELECT attmissingval FROM pg_attribute",
    "SELECT * FROM information_schema.columns",
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_temporary_objects_are_read_by_nobody(text: str, attacked: Attacked) -> None:
    with attacked.connect(login="bob") as bob, attacked.connect(login="eve") as client:
        bob.execute("CREATE TEMP TABLE kept (a text)")
        assert refusal(bob, text)[0] == "DP007"
        for sql in READERS:
            assert "a secret name" not in str(rows(client, sql)), sql


def test_how_many_groups_another_login_was_shown_is_not_in_the_statistics(attacked: Attacked) -> None:
    with attacked.connect(login="bob") as bob, attacked.connect(login="eve") as client:
        bob.execute("CREATE TEMP TABLE shown_to_bob AS SELECT name, count(*) FROM people GROUP BY name")
        bob.execute("CREATE INDEX ON shown_to_bob (name)")
        counted = rows(client, "SELECT max(reltuples) FROM pg_class WHERE relname LIKE 'shown_to_bob%'")
        assert counted == [(-1.0,)]
