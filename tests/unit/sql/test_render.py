"""Is what a policy names spelled so that it stays a name or a text?"""

from __future__ import annotations

from proxy.sql.render import quote, quote_relation, text_literal


def test_quotes_are_doubled() -> None:
    assert quote('a"b') == '"a""b"'
    assert quote_relation(("main", 'a"b')) == '"main"."a""b"'
    assert text_literal("a'b") == "'a''b'"
