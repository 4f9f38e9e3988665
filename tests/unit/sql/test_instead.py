"""Is the statement that a hint writes out answered?"""

from __future__ import annotations

import re

import pytest

from proxy.errors import HushError
from tests.unit.plan.shop import plans

_STATEMENT = re.compile(r"\b((?:SELECT) .*?)(?:\. |\.$|, or |, and count)")


def hint(sql: str) -> str:
    with pytest.raises(HushError) as refused:
        plans(sql)
    return refused.value.hint


REFUSED = (
    ("select distinct on (city) city, age from users order by city, age desc",
     "SELECT city, MAX(age) FROM users GROUP BY city"),
    ("select distinct on (plan) plan, city, joined from users u where age > 5 order by plan",
     "SELECT plan, COUNT(DISTINCT city), MAX(joined) FROM users AS u WHERE age > 5 GROUP BY plan"),
    ("select distinct on (city) city from users", "SELECT city, COUNT(*) FROM users GROUP BY city"),
    ("select distinct on (user_id) user_id, amount from orders order by user_id, made desc",
     ("SELECT avg(v.amount) FROM (SELECT DISTINCT ON (user_id) user_id, amount FROM orders"
      " ORDER BY user_id, made DESC) AS v")),
    ("select distinct on (user_id) user_id, status from orders order by user_id, made desc",
     ("SELECT count(DISTINCT v.status) FROM (SELECT DISTINCT ON (user_id) user_id, status FROM orders"
      " ORDER BY user_id, made DESC) AS v")),
    ("select distinct on (user_id) user_id from orders",
     "SELECT count(*) FROM (SELECT DISTINCT ON (user_id) user_id FROM orders) AS v"),
    ("select q, count(*) from (select ntile(4) over (order by age) as q from users where age > 3) t group by q",
     "SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY age) FROM users WHERE age > 3"),
    (("select q, avg(s) from (select user_id, sum(amount) as s, ntile(2) over (order by sum(amount)) as q from orders"
     " group by user_id) t group by q"),
     ("SELECT percentile_cont(ARRAY[0.5]) WITHIN GROUP (ORDER BY v.x) FROM (SELECT user_id, SUM(amount) AS x"
      " FROM orders GROUP BY user_id) AS v")),
    ("select first_value(amount) over (partition by user_id order by made) from orders",
     ("SELECT v.x, count(*) FROM (SELECT FIRST_VALUE(amount) OVER (PARTITION BY user_id ORDER BY made) AS x"
      " FROM orders) AS v GROUP BY v.x")),
    ("select percent_rank() over (order by age) from users",
     "SELECT age, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY age) FROM users GROUP BY age"),
    ("select city from users union select status from orders",
     "SELECT v.x, count(*) FROM (SELECT city AS x FROM users UNION ALL SELECT status FROM orders) AS v GROUP BY v.x"),
    ("select user_id, count(*) from orders group by user_id order by 2 desc limit 10",
     "SELECT v.n, count(*) FROM (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) AS v GROUP BY v.n"),
    ("select count(*) from users u join stores s on u.age = s.store_id",
     "SELECT * FROM (SELECT age, count(*) AS n FROM users GROUP BY age) AS g JOIN stores ON g.age = stores.store_id"),
    ("select array_agg(city order by city desc) from users",
     "SELECT array_agg(v.x) FROM (SELECT city AS x FROM users GROUP BY 1) AS v"),
    ("select array_agg(distinct city) from users",
     "SELECT array_agg(v.x) FROM (SELECT city AS x FROM users GROUP BY 1) AS v"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "instead"), REFUSED)
def test_a_hint_is_a_statement_that_is_answered(sql: str, instead: str) -> None:
    found = _STATEMENT.search(hint(sql))
    assert found is not None, hint(sql)
    assert found[1] == instead
    assert plans(instead)


LONG = ", ".join(f"age + {n}" for n in range(200))


@pytest.mark.parametrize(
    "sql",
    [f"select distinct on ({LONG}) age from users", f"select row_number() over (order by {LONG}) from users",
     f"select {LONG} from users union select {LONG} from users", "select row_number() over () from users",
     "select q from (select user_id, ntile(2) over () as q from orders group by user_id) t group by q",
     f"select city || '{'x' * 400}' from users union select city from users",
     f"select q from (select ntile(4) over (order by {LONG.replace(', ', ' + ')}) as q from users) t group by q"],
)  # fmt: skip
def test_no_hint_is_longer_than_people_read(sql: str) -> None:
    said = hint(sql)
    assert "SELECT v" not in said
    assert " FROM users" not in said


def test_hints_name_what_the_statement_has() -> None:
    inner = "select count(*) from (select city from users except select status from orders) t"
    assert hint(inner) == "Group by all columns of the unit (user_id), and by other keys beside them."
    way = "Join them with a common key of the unit."  # that of the parent may be hidden
    assert hint("select count(*) from items i join users u on i.qty = u.age") == way
