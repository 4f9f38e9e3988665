"""Parentheses around joins that mean nothing."""

from __future__ import annotations

import pytest

from proxy.sql.syntax.parentheses import without_parentheses
from proxy.sql.syntax.parse import split_statements


@pytest.mark.parametrize(("text", "plain"), [
    ("select 1 from (a join b on a.x=(b.x)) join c on 1=1", "select 1 from  a join b on a.x=(b.x)  join c on 1=1"),
    ("select 1 from ((a join b using (x)) left join c using (x)) where x",
     "select 1 from   a join b using (x)  left join c using (x)  where x"),
    ("select 1 from (select 2 from (a cross join b)) t", "select 1 from (select 2 from  a cross join b ) t"),
    ("select 1 from (a join b on true)", "select 1 from  a join b on true"),
])  # fmt: skip
def test_joins_stand_without_them(text: str, plain: str) -> None:
    assert without_parentheses(split_statements(text)[0]).text == plain


@pytest.mark.parametrize("text", [
    "select 1 from (a join b on true) as j", "select 1 from (a join b on true) j",
    'select 1 from (a join b on true) "left"', "select 1 from (a)", "select 1 from c, (a join b on true)",
    "select 1 from c join (a join b on true) on true", "select x is distinct from (a) from t",
    "select extract(day from (a)) from t", "select 1 from (select 1 from a join b on true) t",
    "select 1 from (with a as (select 1) select 1 from a join b on true) t",
])  # fmt: skip
def test_others_stay(text: str) -> None:
    statement = split_statements(text)[0]
    assert without_parentheses(statement) is statement
