"""One form for all spellings of a condition, and never one form for two meanings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal

import pytest

from proxy.policy.model import Column
from proxy.sql.algebra.canonical import canonical, canonical_scalar
from proxy.sql.algebra.comparisons import HOLDS, with_constant
from proxy.sql.algebra.nodes import Block, Call, Case, ColumnRef, Literal, Member, Null, Scalar, conjuncts
from proxy.sqltypes import SqlType
from tests.oracle.scalars import Evaluator, Reading
from tests.oracle.values import Stored
from tests.unit.sql.corpus import bind, policy

SAME = [
    ("age > 30 AND plan = 'free'", "plan='free' and age>30"), ("age = 30", "30 = age"), ("age > 30", "30 < age"),
    ("age > 30", "age > 30 AND 1=1 AND true"), ("age > 30", "age > 30 AND (age > 30)"), ("age > 30", "age > 30.00"),
    ("age > 30", "age >= 31"), ("age > 30", "NOT age <= 30"), ("age > 30.5", "age >= 31"), ("age < 30.5", "age <= 30"),
    ("age > 30 OR plan = 'pro'", "plan = 'pro' OR age >= 31 OR 30 < age"), ("age <> 3", "3 != age"),
    ("plan IN ('pro','free')", "plan IN ('free','pro','pro')"), ("plan IN ('free')", "plan = 'free'"),
    ("age BETWEEN 20 AND 30", "age <= 30 AND age > 19"),
    ("age = kids", "kids = age"), ("age > kids", "kids < age"), ("age * kids > 3", "kids * age >= 4"),
    ("NOT plan <> 'pro'", "plan = 'pro'"), ("NOT joined < '2024-01-01'", "joined >= date '2024-01-01'"),
    ("joined < timestamp '2024-05-01'", "joined < date '2024-05-01'"),
    ("joined <= date '2024-05-01' + interval '1 month'", "date '2024-06-01' >= joined"),
    ("joined < timestamp '2024-05-01 12:00'", "joined <= date '2024-05-01'"),
    ("NOT joined < timestamp '2024-05-01 12:00'", "joined > date '2024-05-01'"),
]  # fmt: skip
DIFFERENT = [
    ("age > 30", "age >= 30"), ("age > 30.5", "age > 31"), ("age = 30", "age = 30.5"), ("age > 30", "age < 30"),
    ("plan = 'free' AND age > 30", "plan = 'free' OR age > 30"), ("score > 30", "score >= 31"),
    ("balance > 30", "balance >= 31"), ("age > kids", "age < kids"),
    ("NOT score > 30", "score <= 30"), ("plan IN ('a', 'b')", "plan IN ('a')"), ("age - kids > 3", "kids - age > 3"),
    ("NOT (age > 30 AND kids > 3)", "NOT age > 30 AND NOT kids > 3"), ("city = 'A'", "city = 'a'"),
    ("joined < timestamp '2024-05-01 12:00'", "joined < date '2024-05-01'"),
    ("joined = timestamp '2024-05-01 12:00'", "joined = date '2024-05-01'"),
    ("joined < timestamptz '2024-05-01'", "joined < date '2024-05-01'"),
]  # fmt: skip


def form(condition: str) -> object:
    served = policy()
    (found,) = bind(f"SELECT count(*) FROM users WHERE {condition}", served)
    return found.block


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_have_one_form(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_meanings_have_forms_of_their_own(one: str, other: str) -> None:
    assert form(one) != form(other)


@pytest.mark.parametrize("op", HOLDS)
@pytest.mark.parametrize("at", [time(), time(microsecond=1), time(12), time(23, 59, 59, 999_999)])
def test_a_day_is_compared_as_its_start(op: str, at: time) -> None:
    """Days around the time's own, each with what PostgreSQL's comparison of its start says."""
    moment = datetime.combine(date(2024, 5, 1), at)
    start = Call("cast time to timestamp", (ColumnRef(0, "d", SqlType.DATE),), SqlType.TIMESTAMP)
    block = Block(
        scans=(), where=(Call(op, (start, Literal(moment, SqlType.TIMESTAMP)), SqlType.BOOL),), keys=(), aggregates=()
    )
    (found,) = canonical(block).where
    compared = with_constant(found)
    assert compared is not None
    assert (compared.part == start) == (op in ("=", "<>") and at != time())
    for day in (date(2024, 4, 30), date(2024, 5, 1), date(2024, 5, 2)):
        side = day if isinstance(compared.part, ColumnRef) else datetime.combine(day, time())
        told = HOLDS[compared.operator](side, compared.value)
        assert told is HOLDS[op](datetime.combine(day, time()), moment)


# --- random conditions --------------------------------------------------------------------------------

_COLUMNS = {
    SqlType.INT4: ("i", "j"), SqlType.FLOAT8: ("x", "y"), SqlType.NUMERIC: ("n",), SqlType.TEXT: ("t", "u"),
    SqlType.BOOL: ("b",),
}  # fmt: skip
_VALUES: dict[SqlType, tuple[Stored, ...]] = {
    SqlType.INT4: (None, -1, 0, 1, 2, 3), SqlType.FLOAT8: (None, float("nan"), -0.5, 0.0, 1.0, 1.5, float("inf")),
    SqlType.NUMERIC: (None, Decimal(0), Decimal("0.5"), Decimal(1), Decimal("1.5")),
    SqlType.TEXT: (None, "a", "b"), SqlType.BOOL: (None, False, True),
}  # fmt: skip
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


class _Random:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def row(self) -> dict[tuple[int, str], Stored]:
        return {(0, n): self._rng.choice(_VALUES[kind]) for kind, names in _COLUMNS.items() for n in names}

    def condition(self, depth: int = 3) -> Scalar:
        if depth == 0:
            return self._comparison()
        match self._rng.randrange(6):
            case 0 | 1:
                kind = self._rng.choice(("and", "or"))
                return Call(kind, (self.condition(depth - 1), self.condition(depth - 1)), SqlType.BOOL)
            case 2:
                return Call("not", (self.condition(depth - 1),), SqlType.BOOL)
            case 3:
                return Case(((self.condition(depth - 1), self.condition(0)),), self.condition(0), SqlType.BOOL)
            case 4:
                of = self._rng.choice((SqlType.INT4, SqlType.TEXT))
                return Member(self._value(of), tuple(self._literal(of) for _ in range(self._rng.randint(1, 3))))
            case _:
                return self._comparison()

    def _comparison(self) -> Scalar:
        kind = self._rng.choice((SqlType.INT4, SqlType.INT4, SqlType.FLOAT8, SqlType.NUMERIC, SqlType.TEXT))
        other = self._rng.choice((kind, SqlType.NUMERIC)) if kind is SqlType.INT4 else kind
        sides = [self._value(kind), self._value(other)]
        self._rng.shuffle(sides)
        return Call(self._rng.choice(_OPERATORS), tuple(sides), SqlType.BOOL)

    def _value(self, kind: SqlType) -> Scalar:
        match self._rng.randrange(5):
            case 0 | 1:
                return self._literal(kind)
            case 2 if kind is SqlType.INT4:
                return Call(self._rng.choice("+*"), (self._value(kind), self._value(kind)), kind)
            case 3:
                return Null(kind) if self._rng.random() < 0.1 else ColumnRef(0, self._rng.choice(_COLUMNS[kind]), kind)
            case _:
                return ColumnRef(0, self._rng.choice(_COLUMNS[kind]), kind)

    def _literal(self, kind: SqlType) -> Literal:
        value = self._rng.choice([v for v in _VALUES[kind] if v is not None and v == v and v != float("inf")])
        return Literal(value, kind)


def _told(seed: int) -> Iterator[tuple[Scalar, Scalar, list[object], list[object]]]:
    rng = _Random(seed)
    evaluator = Evaluator(lambda c: Column(name=c.name, type=c.type), "UTC")
    for _ in range(60):
        before = rng.condition()
        after = canonical_scalar(before)
        rows = [rng.row() for _ in range(25)]
        yield (
            before, after, [evaluator.value(before, r, Reading.TEST) for r in rows],
            [evaluator.value(after, r, Reading.TEST) for r in rows],
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_the_form_of_a_condition_says_the_same_of_every_row(seed: int) -> None:
    for before, after, said, says in _told(seed):
        assert says == said, f"{before}\n{after}"
        assert canonical_scalar(after) == after


@pytest.mark.parametrize("seed", range(10, 20))
def test_the_form_of_a_filter_passes_the_same_rows(seed: int) -> None:
    served = policy()
    (bound,) = bind("SELECT count(*) FROM users", served)
    rng = _Random(seed)
    evaluator = Evaluator(lambda c: Column(name=c.name, type=c.type), "UTC")
    for _ in range(60):
        where = tuple(rng.condition(2) for _ in range(2))
        found = canonical(type(bound.block)(scans=(), where=where, keys=(), aggregates=())).where
        assert found == canonical(type(bound.block)(scans=(), where=where[::-1], keys=(), aggregates=())).where
        for row in (rng.row() for _ in range(25)):
            passed = all(evaluator.passes(c, row) for c in where)
            assert all(evaluator.passes(c, row) for c in found) is passed, f"{where}\n{found}"
        assert all(len(conjuncts(c)) == 1 for c in found)
