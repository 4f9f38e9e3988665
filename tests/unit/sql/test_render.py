"""Is what a policy names spelled so that it stays a name or a text?"""

from __future__ import annotations

from proxy.sql.dialect import quote, text_literal
from proxy.sql.render import quote_relation


def test_quotes_are_doubled() -> None:
    assert quote('a"b') == '"a""b"'
    assert quote_relation(("main", 'a"b')) == '"main"."a""b"'
    assert text_literal("a'b") == "'a''b'"
