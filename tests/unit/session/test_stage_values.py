"""What later stages of a statement make of the values of earlier ones, and of what public tables hold."""

from __future__ import annotations

import pytest

from proxy.errors import HushError, Unsupported
from proxy.ledger.base import Outcome
from proxy.session.contract import Asking, Spliced
from tests.unit.session.staged import (
    SQL,
    TOLD,
    WHOLE,
    Told,
    World,
    answer,
    begin,
    explained,
    go_on,
)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ((("true", "date", "2020-01-01"),), "cannot combine double precision and date"),
        ((("true", "bigint[]", "{1}"),), "a value of type bigint"),
        ((("true", "interval", "1 day"),), "a value of type interval"),
        ((("true", "text", "x"),), "cannot combine double precision and text"),
    ],
)
def test_values_that_private_rows_cannot_be_compared_with(world: World, told: Told, message: str) -> None:
    session = world.session()
    with pytest.raises(Unsupported, match=message) as refused:
        go_on(session, begin(session), told)
    assert SQL[refused.value.position - 1 :].startswith(("(select avg", "score >"))


def test_too_many_values_are_refused(world: World) -> None:
    sql = "select count(*) from users where city in (select city from users group by city)"
    session = world.session()
    with pytest.raises(Unsupported, match="more than 1000 rows"):
        go_on(session, begin(session, sql), tuple(("true", "text", f"c{n}") for n in range(1001)))


def test_what_is_wrong_in_a_stage_is_said_of_its_place(world: World) -> None:
    sql = "select count(*) from users where age > (with w as (select age from users) select avg(age << 3) from w)"
    with pytest.raises(HushError) as refused:
        begin(world.session(), sql)
    assert sql[refused.value.position - 1 :].startswith("age << 3")
    assert not world.engine.asked
    late = "select count(*) from users where age > (select avg(age) from users) and age << 3 = 1"
    with pytest.raises(HushError) as refused:
        begin(world.session(), late)
    assert late[refused.value.position - 1 :].startswith("age << 3")
    assert not world.engine.asked, "what can never be answered costs nothing"
    whole_number = "select count(*) from users where left(city, (select count(*)::integer from orders)) = 'x'"
    assert isinstance(begin(world.session(), whole_number), Asking)
    mixed = ("select sum(kids - (select avg(age) from users)) from users where joined > (select max(joined) from users)"
             " and left(city, (select count(*)::integer from orders)) = 'x'")  # fmt: skip
    assert isinstance(begin(world.session(), mixed), Asking), "no one value would do for all"
    nested = ("with m as (select avg(age) as a from users where age > (select avg(kids) from users))"
              " select count(*) from users where age > (select a from m)")  # fmt: skip
    assert len(explained(world, nested)["later"]) == 2


def test_a_released_relation_is_joined(world: World) -> None:
    sql = ("with top as (select plan, avg(age) as a from users group by plan order by 2 limit 2)"
           " select u.plan, sum(u.age - a) from users u join top t using (plan) group by u.plan")  # fmt: skip
    rows: Told = (("true", "text", "free", "numeric", "41.5"), ("true", "text", "pro", "numeric", "42.5"))
    answer(world, sql, rows)
    assert len(world.engine.asked) == 2, "the relation and what is joined with it; its CTE is the first again"
    assert "41.5" in world.engine.asked[1]
    none: Told = ((None, "text", None, "numeric", None),)
    session = world.session()
    with pytest.raises(Unsupported, match="has no rows"):
        go_on(session, begin(session, sql), none)


@pytest.mark.parametrize(
    "sql",
    [
        f"{SQL} and age < (select max(age) from users) and kids < (select avg(kids) from users) and kids << 3 > 1",
        f"{SQL} and age > (select avg(kids) from users where kids << 3 > 1)",
        f"{SQL} and age > (select avg(kids) from users where kids > (select avg(age) from users) and kids << 3 > 1)",
        f"""{SQL} and age < (select avg(age) / 2 from users) and kids < 2 * (select -(count(*) + 1) from users)
        and kids << 3 < (select avg(kids) - 1 from users)""",
        "select count(*) from users where city > (select avg(age) from users) and age > (select max(age) from users)",
        """with m as (select plan, avg(age) as a from users group by plan)
        select sum(u.age << 3) from users u join m using (plan) where age > (select avg(age) - 1 from users)""",
    ],
)
def test_what_no_value_of_any_stage_would_help_is_refused_before_it_is_charged(world: World, sql: str) -> None:
    with pytest.raises(Unsupported, match=r"operator <<|cannot combine text and numeric") as refused:
        begin(world.session(), sql)
    assert sql[refused.value.position - 1 :].startswith(("kids << 3", "u.age << 3", "city >"))
    assert not world.engine.asked
    assert not world.spent()


def test_values_of_unlike_types_are_found(world: World) -> None:
    sql = ("select count(*) from users where joined > (select max(joined) from users) and left(city, (select"
           " (3 + count(*))::integer from orders)) = (select 'a' || count(*) from users)"
           " and age > (select avg(age) from users) and exists (select plan from users group by plan)")  # fmt: skip
    assert isinstance(begin(world.session(), sql), Asking)


def test_one_stage_in_two_spellings_has_one_value(world: World) -> None:
    inner = "select count(*) from users where age > (select avg(age) * random() from users)"
    answer(world, f"select ({inner}), ({inner.replace('select avg', 'select  /* 2 */ avg')})")
    assert len(world.engine.asked) == 2
    answer(world, "select (select count(*) from users where plan = 'city'), (select count(*) from users where plan ="
                  " city and age > (select avg(age) from users))")  # fmt: skip
    assert world.spent() == pytest.approx(WHOLE * 2, rel=1e-3)


# --- sub-queries over public tables ---------------------------------------------------------------------------

NUMBERS = "with m as (select avg(age) as a, count(*) as n from users)"
LAST = "select max(store_id) from stores"
FOUR: Told = (("true", "integer", "4"),)


def test_what_is_asked_of_public_tables_costs_nothing(world: World) -> None:
    session, sql = world.session(), f"select count(*) from users where age > ({LAST})"
    asking = begin(session, sql, target_error="5")
    assert isinstance(asking, Asking)
    assert LAST in asking.sql
    assert (world.engine.asked, world.ledger.all_accounts()) == ([], ())
    assert isinstance(go_on(session, asking, FOUR), Spliced)
    (asked,) = world.engine.asked
    assert "4" in asked
    assert LAST not in asked
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)
    answer(world, sql, FOUR)
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3), "a repeat is free"


@pytest.mark.parametrize(
    "sql",
    [
        f"select count(*) from users where age > (select avg(age) from users where kids < ({LAST}))",
        f"select count(*) from users where age > (select avg(age) from users) and kids < ({LAST})",
        f"{NUMBERS} select count(*), (select n from m) from users where age > (select a from m where a > ({LAST}))",
    ],
)
def test_beside_stages_they_leave_the_charge_in_one(world: World, sql: str) -> None:
    session, asking = world.session(), begin(world.session(), sql)
    while isinstance(asking, Asking):
        assert len(world.engine.asked) == 0 or world.spent() == pytest.approx(WHOLE, rel=1e-3)
        asking = go_on(session, asking, FOUR if LAST in asking.sql and "avg" not in asking.sql else TOLD)
    assert len(world.engine.asked) == 2
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)
    assert world.ledger.history("shop/ann", 10)[0].outcome is Outcome.ANSWERED


@pytest.mark.parametrize("value", [LAST, "select 'a' || max(region) from stores"])
def test_estimates_suppose_a_value_for_them(world: World, value: str) -> None:
    column = "plan" if "region" in value else "age"
    sql = f"select count(*) from users where {column} > ({value})"
    estimated = begin(world.session(), f"select * from hush.estimate($$ {sql}; select 1 from users where age $$)")
    assert isinstance(estimated, Spliced)
    assert estimated.arrays[2].text.startswith('{"0.0229')
    answer(world, sql, FOUR if column == "age" else (("true", "text", "anorth"),))
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)


def test_estimates_say_what_no_value_can_answer(world: World) -> None:
    wrong = f"select count(*) from users where nobody > ({LAST})"
    estimated = begin(world.session(), f"select * from hush.estimate($$ {wrong} $$)")
    assert isinstance(estimated, Spliced)
    assert "nobody" in estimated.arrays[-2].text


def test_explain_asks_for_them_and_plans_the_rest(world: World) -> None:
    found = explained(world, f"select count(*) from users where age > ({LAST})", FOUR)
    assert len(found["releases"]) == 1
    assert not found["later"]
    assert world.ledger.all_accounts() == ()


def test_rows_of_a_stage_that_could_meet_the_same_row_are_refused_first(world: World) -> None:
    joined = "select count(*) from users u join (select city, count(*) as n from users group by city{}) t on {}"
    for on in ("u.age > t.n", "true"):
        with pytest.raises(Unsupported, match="may meet one row of constants alone"):
            begin(world.session(), joined.replace("u join", "u left join").format("", on))
    assert not world.engine.asked, "what can never be answered costs nothing"
    for limit, on in (
        ("", "u.age > t.n"),
        ("", "true"),
        (" limit 1", "u.age > t.n"),
        ("", "u.city = t.city and u.age > t.n"),
        ("", "u.city is not distinct from t.city"),
    ):
        assert isinstance(begin(world.session(), joined.format(limit, on)), Asking)
