"""Every case through the wire: names and types as PostgreSQL gives them, numbers near the exact ones."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from psycopg.types.numeric import Int2, Int8

from tests.e2e.served import Client, Served
from tests.unit.sql.corpus import Case, cases

CASES = cases()
Row = tuple[object, ...]
# At epsilon 100 the noise of these tables has a standard deviation below 0.4 for counts; sums have 2 % of slack.
COUNT_SLACK, SHARE_SLACK = 3.0, 0.02


@pytest.fixture(scope="module")
def private(served: Served) -> Iterator[Client]:
    with served.connect("shop") as connection:
        yield connection


@pytest.fixture(scope="module")
def exact(served: Served) -> Iterator[Client]:
    with served.connect("truth") as connection:
        yield connection


def ask(client: Client, case: Case) -> tuple[list[str], list[Row]]:
    """Columns as "name type", and rows."""
    cursor = psycopg.RawCursor(client)
    cursor.execute(case.sql, [_typed(kind, value) for kind, value in case.parameters])
    columns = [f"{c.name} {type_name(c.type_code)}" for c in cursor.description or ()]
    return columns, cursor.fetchall()


def _typed(kind: str, value: object) -> object:
    """A value that psycopg sends with the wanted type; a text for the rest, whose type PostgreSQL infers."""
    if isinstance(value, int) and kind in ("smallint", "bigint"):
        return Int2(value) if kind == "smallint" else Int8(value)
    return value


def type_name(oid: int) -> str:
    """PostgreSQL's own name for the type."""
    found = psycopg.adapters.types.get(oid)
    assert found is not None, oid
    return found.regtype + ("[]" if oid == found.array_oid else "")


@pytest.mark.parametrize("case", [c for c in CASES if not c.is_refused], ids=lambda c: c.place)
def test_answer_is_as_postgresql_would_give_it(case: Case, private: Client, exact: Client) -> None:
    columns, rows = ask(private, case)
    assert columns == case.facts["columns"], case.sql
    if case.facts.get("rows") == "total":
        with pytest.raises(psycopg.Error):
            exact.execute(case.sql.encode())
        return
    true_columns, true_rows = ask(exact, case)
    assert columns == true_columns
    assert compares(str(case.facts.get("rows", "same")), rows, true_rows, float(str(case.facts.get("within", 0)))), (
        f"{case.sql}\n{rows[:5]}\n{true_rows[:5]}"
    )


@pytest.mark.parametrize("case", [c for c in CASES if c.is_refused], ids=lambda c: c.place)
def test_refusal_reaches_the_client(case: Case, private: Client) -> None:
    with pytest.raises(psycopg.Error) as refused:
        ask(private, case)
    assert refused.value.sqlstate == case.facts.get("postgres", case.facts["refused"]), case.sql
    if "postgres" not in case.facts:
        assert str(case.facts["says"]) in str(refused.value.diag.message_primary)
        assert refused.value.diag.message_hint
        position = int(refused.value.diag.statement_position or 0)
        assert case.sql[position - 1 :].startswith(str(case.facts.get("at", ""))), position


def compares(how: str, rows: list[Row], true_rows: list[Row], within: float) -> bool:
    """Whether an answer stands to the truth as the case says."""

    def near(row: Row, true_row: Row) -> bool:
        return all(_near(x, y, within) for x, y in zip(row, true_row, strict=True))

    def found(row: Row, among: list[Row]) -> bool:
        return any(near(other, row) for other in among)

    match how:
        case "same":
            return len(rows) == len(true_rows) and all(map(near, rows, true_rows))
        case "unordered":
            return len(rows) == len(true_rows) and all(found(r, rows) for r in true_rows)
        case "padded":
            return len(rows) > len(true_rows) and all(found(r, rows) for r in true_rows)
        case "fewer":
            return len(rows) < len(true_rows) and all(any(near(r, t) for t in true_rows) for r in rows)
        case "clipped":
            (((count,),), ((true_count,),)) = (rows, true_rows)
            assert isinstance(count, int)
            assert isinstance(true_count, int)
            return 0 < count < true_count
        case _:
            assert how == "inexact"
            return not all(map(near, rows, true_rows))


def _near(value: object, true: object, within: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value == true
    if not isinstance(true, (int, float, Decimal)):
        return False
    slack = COUNT_SLACK if isinstance(true, int) else 0.5
    return abs(float(value) - float(true)) <= max(slack, within, SHARE_SLACK * abs(float(true)))
