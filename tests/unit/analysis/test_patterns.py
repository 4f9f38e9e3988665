"""Can conditions that are called disjoint ever hold for one row, and is the heaviest set ever underrated?"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import duckdb
import pytest

from proxy.analysis import patterns
from proxy.analysis.patterns import heaviest_together_up
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Member, Scalar
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context, plan

X = ColumnRef(0, "x", SqlType.FLOAT8)
ONE, SAME = Literal(1, SqlType.FLOAT8), Literal(1.0, SqlType.FLOAT8)


def heaviest(conditions: Sequence[Scalar], weights: Sequence[float]) -> float:
    return heaviest_together_up(conditions, weights).weight


def exclusions(*conditions: Scalar) -> tuple[tuple[int, int], ...]:
    """Of conditions that are all told apart."""
    found = heaviest_together_up(conditions, [1.0] * len(conditions))
    assert found.weight == 1.0
    return found.exclusions


def compare(operator: str, value: float) -> Scalar:
    return Call(operator, (X, Literal(value, SqlType.FLOAT8)), SqlType.BOOL)


def negated(condition: Scalar) -> Scalar:
    return Call("not", (condition,), SqlType.BOOL)


IS_NULL = Call("is null", (X,), SqlType.BOOL)


def holds(condition: Scalar, x: float | None) -> bool | None:
    match condition:
        case Call("not", (inner,)):
            found = holds(inner, x)
            return None if found is None else not found
        case Call("is null"):
            return x is None
        case Call("and", (left, right)):
            return bool(holds(left, x) and holds(right, x))
        case Member(_, items):
            return None if x is None else any(x == i.value for i in items)
        case Call(operator, (_, Literal(value))) if isinstance(value, float):
            if x is None:
                return None
            return {"=": x == value, "<>": x != value, "<": x < value, "<=": x <= value,
                    ">": x > value, ">=": x >= value}[operator]  # fmt: skip
    raise AssertionError(condition)


def random_condition(rng: random.Random) -> Scalar:
    values = (0.0, 1.0, 1.5, 2.0)
    kind = rng.randrange(6)
    if kind == 0:
        return IS_NULL
    if kind == 1:
        return negated(random_condition(rng))
    if kind == 2:
        return Member(X, tuple(Literal(v, SqlType.FLOAT8) for v in rng.sample(values, 2)))
    if kind == 3:
        return Call("and", (random_condition(rng), random_condition(rng)), SqlType.BOOL)
    return compare(rng.choice(("=", "<>", "<", "<=", ">", ">=")), rng.choice(values))


ROWS = (None, -1.0, 0.0, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0)


@pytest.mark.parametrize("count", [1, 2, 4, 7, 16, 20])
def test_the_heaviest_set_is_never_below_brute_force(count: int) -> None:
    rng = random.Random(count)
    for _ in range(60):
        conditions = [random_condition(rng) for _ in range(count)]
        weights = [rng.choice((0.5, 1.0, 2.0, 3.5)) for _ in range(count)]
        truth = max(sum(w for c, w in zip(conditions, weights, strict=True) if holds(c, x)) for x in ROWS)
        assert heaviest(conditions, weights) >= truth


@pytest.mark.parametrize("most", [0, 5, 15])
@pytest.mark.parametrize("count", [7, 20])
def test_conditions_that_are_too_many_to_be_told_apart_count_together(
    count: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = heaviest([compare("=", float(i)) for i in range(count)], [1.0] * count)
    monkeypatch.setattr(patterns, "_MOST_COMPARISONS", most)
    assert whole == 1.0
    assert 1.0 < heaviest([compare("=", float(i)) for i in range(count)], [1.0] * count) <= count
    test_the_heaviest_set_is_never_below_brute_force(count)


def test_disjoint_conditions_cost_a_row_only_once() -> None:
    cuts = [-math.inf, *range(6), math.inf]
    parts = [Call("and", (compare(">=", float(a)), compare("<", float(b))), SqlType.BOOL) for a, b in pairwise(cuts)]
    assert heaviest([*parts, IS_NULL], [1.0] * (len(parts) + 1)) == 1.0


def of_sum(operator: str, value: float, addend: Literal = ONE) -> Scalar:
    total = Call("+", (X, addend), SqlType.FLOAT8)
    return Call(operator, (total, Literal(value, SqlType.FLOAT8)), SqlType.BOOL)


def test_what_engines_could_see_otherwise_is_excluded_by_statements() -> None:
    """Not constants beside one column, nor that one computed value equals two: those nobody can misread."""
    missing = Call("has no measure", (X,), SqlType.BOOL)
    assert exclusions(compare("<", 1.0), compare(">", 2.0)) == ()
    assert exclusions(compare("=", 1.0), compare("=", 2.0)) == ()
    assert exclusions(of_sum("=", 1.0), of_sum("=", 2.0)) == ()
    assert exclusions(missing, negated(missing)) == ()
    assert exclusions(of_sum("<", 1.0), of_sum(">", 2.0)) == ((0, 1),)
    assert exclusions(of_sum("=", 1.0), of_sum("=", 2.0, SAME)) == ((0, 1),), "equal, and spelled in two ways"
    assert exclusions(IS_NULL, compare("=", 2.0)) == ((0, 1),)
    assert exclusions(of_sum("<", 1.0), negated(of_sum("<", 1.0))) == ((0, 1),)
    assert heaviest_together_up((compare("<", 1.0), of_sum(">", 2.0)), (1.0, 1.0)).exclusions == ()


def test_more_exclusions_than_a_statement_spells_tell_nothing_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (10, 30):  # with a search, and in parts
        monkeypatch.setattr(patterns, "_MOST_EXCLUSIONS", 1_000)
        buckets = [Call("and", (of_sum(">", float(i)), of_sum("<", i + 0.5)), SqlType.BOOL) for i in range(count)]
        assert len(exclusions(*buckets)) == count * (count - 1) / 2
        monkeypatch.setattr(patterns, "_MOST_EXCLUSIONS", 5)
        found = heaviest_together_up(buckets, [1.0] * count)
        assert found.weight > 1.0
        assert len(found.exclusions) == 5


def test_no_row_passes_two_conditions_that_are_called_disjoint() -> None:
    rng = random.Random(5)
    called = 0
    for _ in range(3000):
        left, right = random_condition(rng), random_condition(rng)
        if heaviest((left, right), (1.0, 1.0)) < 2:
            called += 1
            assert not any(holds(left, x) and holds(right, x) for x in ROWS)
    assert called > 300


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("amount + 0 = 0.1", "amount + 0 = 0.10000000000000000001"),
        ("amount + 0 <= 0.1", "amount + 0 >= 0.10000000000000000001"),
        ("order_id = 9007199254740993", "order_id = 9007199254740992::float8"),
        ("order_id <= 9007199254740992::float8", "order_id > 9007199254740992"),
        ("made = timestamptz '2024-10-27 02:30+02'", "made = timestamptz '2024-10-27 02:30+01'"),
        ("made <= timestamptz '2024-10-27 00:30+00'", "made >= timestamptz '2024-10-27 02:30+02'"),
    ],
)
def test_constants_that_a_row_may_both_equal_are_not_told_apart(left: str, right: str) -> None:
    of = context(time_zone="Europe/Berlin")
    one, other = (
        plan(f"select count(*) from orders where {c}", of).analysed.owned.block.where[1] for c in (left, right)
    )
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'Europe/Berlin'")
    connection.execute(
        "create table orders (user_id integer, order_id bigint, amount decimal(20, 3), made timestamptz)"
    )
    connection.execute("insert into orders values (1, 9007199254740993, 0.1, '2024-10-27 00:30+00')")
    (row,) = connection.execute(plan(f"select count(*) from orders where {left} and {right}", of).sql).fetchall()
    assert row[1], "the row passes both"
    assert heaviest((one, other), (1.0, 1.0)) == 2


def test_a_missing_measure_and_a_null_test_may_hold_together() -> None:
    """A value outside the domain is NULL to a test and clamped in a measure, so one row can count for both."""
    connection = duckdb.connect()
    connection.execute("create table users (user_id integer, age integer, weight double)")
    connection.execute("insert into users values (1, 5000, 'inf')")
    for query in (
        "select count(*) filter (where age is null), sum(age) from users",
        "select count(*) filter (where age is null), count(age) from users",
        "select count(*), count(weight), count(*) filter (where weight > 5) from users",
    ):
        for pure in (False, True):
            of = plan(query, context(pure=pure))
            (row,) = connection.execute(of.sql).fetchall()
            size = sum(abs(v) for v in row[1:]) if pure else math.hypot(*row[1:])
            assert size <= of.scale * of.allocation.unit_norm * (1 + 2**-30)


def test_one_row_passes_fifteen_of_sixteen_conditions() -> None:
    filters = ", ".join(f"count(*) filter (where amount > {i} and status = 'paid')" for i in range(14))
    of = plan(f"select {filters}, count(*) filter (where status = 'refunded'), count(*) from orders").allocation
    (weight,) = set(of.weights)
    assert len(of.weights) == 16
    assert of.row_norm == pytest.approx(weight * math.sqrt(15))


def test_many_conditions_that_are_the_same_weigh_what_all_of_them_do() -> None:
    """More than are searched one by one: a choice of two values, each asked for ten times."""
    one, other = compare("=", 1.0), compare("=", 2.0)
    assert heaviest([one, other] * 10, [1.0] * 20) == 10.0
    assert heaviest([one] * 12 + [other] * 8, [1.0] * 20) == 12.0
    assert heaviest([one] * 12 + [other] * 8, [1.0] * 12 + [2.0] * 8) == 16.0


def test_rows_of_a_condition_are_left_out_of_all_that_are_the_same_as_another() -> None:
    low, high = (Call(op, (Call("+", (X, X), SqlType.FLOAT8), ONE), SqlType.BOOL) for op in ("<", ">"))
    found = heaviest_together_up([low, high] * 9, [1.0] * 18)
    assert found.weight == 9.0
    assert found.exclusions == tuple((0, place) for place in range(1, 18, 2))


def test_many_choices_of_one_column_are_told_apart() -> None:
    text = ColumnRef(0, "c", SqlType.TEXT)
    texts = [Call("=", (text, Literal(f"v{n}", SqlType.TEXT)), SqlType.BOOL) for n in range(2_000)]
    numbers = [Call("=", (X, Literal(n, SqlType.INT4)), SqlType.BOOL) for n in range(2_000)]
    lists = [Member(X, (Literal(n, SqlType.INT4), Literal(n + 1, SqlType.INT4))) for n in range(200)]
    assert heaviest(texts, [1.0] * 2_000) == 1.0
    assert heaviest([*texts, *numbers], [1.0] * 4_000) == 2.0
    assert heaviest(lists, [1.0] * 200) == 2.0, "each shares a value with the next"
    assert heaviest([*numbers[:20], *map(negated, numbers[:20])], [1.0] * 40) == 21.0
