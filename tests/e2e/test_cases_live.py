"""Every case through the wire: names and types as PostgreSQL gives them, numbers near the exact ones.

How near follows from the noise that EXPLAIN states for the same statement, as it is drawn: moved for the sake of
signs, a number next to empty groups would have their noise, too. No noise of this proxy lies further out than 1.4
deviations (`tamed`), so that no count is off by half a row or taken for nothing, which decides about the order of rows,
about texts and about NULLs. What is computed from several numbers may be off by more, and never by six of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.types.numeric import Int2, Int8

from proxy.dp.accounting import PICO
from tests.e2e.served import Client, Served
from tests.unit.sql.corpus import Case, cases

CASES = cases()
Row = tuple[object, ...]
_OF_ROWS = {"rank_error_95", "rows_short_5"}
Explained = dict[str, Any]  # JSON
DEVIATIONS = 6.0
#: Every average is over more rows than this, where the case does not say its own "rows_of_average".
ROWS_OF_AN_AVERAGE = 200
#: What rounding and the printed digits add, by the type of the column; other numbers are keys and are exact.
ROUNDED = {"bigint": 0.5, "numeric": 0.1, "double precision": 0.1, "real": 0.1, "interval": 0.1}


@pytest.fixture(scope="module")
def private(served: Served) -> Iterator[Client]:
    with served.connect("shop", options="-c hush.nonnegative=off") as connection:
        yield connection


@pytest.fixture(scope="module")
def exact(served: Served) -> Iterator[Client]:
    with served.connect("truth") as connection:
        yield connection


@pytest.fixture(scope="module")
def paid(private: Client) -> dict[str, int]:
    """What its accounts have paid until the case that is next."""
    return spent(private)


def ask(client: Client, case: Case) -> tuple[list[str], list[Row]]:
    """Columns as "name type", and rows."""
    cursor = psycopg.RawCursor(client)
    cursor.execute(case.sql, _parameters(case))
    columns = [f"{c.name} {type_name(c.type_code)}" for c in cursor.description or ()]
    return columns, cursor.fetchall()


def _parameters(case: Case) -> list[object]:
    return [_typed(kind, value) for kind, value in case.parameters]


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
def test_answer_is_as_postgresql_would_give_it(
    case: Case, private: Client, exact: Client, paid: dict[str, int]
) -> None:
    explained, before = explain(private, case), dict(paid)
    columns, rows = ask(private, case)
    paid.update(spent(private))
    assert columns == case.facts["columns"], case.sql
    made = {kind: pico - before[kind] for kind, pico in paid.items()}
    assert made == {a["account"]: round(a["charge"]["rho"] * PICO) for a in explained["accounts"]}, case.sql
    if case.facts.get("rows") == "total":
        with pytest.raises(psycopg.Error):
            exact.execute(case.sql.encode())
        return
    true_columns, true_rows = ask(exact, case)
    assert columns == true_columns
    noise, computed = stated_noise(explained, case), float(str(case.facts.get("within", 0)))
    within = [max(reach(column, noise), computed) for column in columns]
    if "near" in case.facts:
        within = [float(str(case.facts["near"]))] * len(columns)
    assert compares(str(case.facts.get("rows", "same")), rows, true_rows, within), (
        f"{case.sql}\n{rows[:5]}\n{true_rows[:5]}\nwithin {within}"
    )


def explain(client: Client, case: Case) -> Explained:
    """What EXPLAIN says before the statement is run."""
    cursor = psycopg.RawCursor(client)
    cursor.execute(f"EXPLAIN (FORMAT JSON) {case.sql}", _parameters(case))
    ((((explained,),),),) = (cursor.fetchall(),)
    found: Explained = explained
    return found


def spent(client: Client) -> dict[str, int]:
    """By kind of account, what it has spent, in 1e-12 of rho."""
    return {kind: int(rho * PICO) for kind, rho in client.execute("SELECT kind, rho_spent FROM hush.budget")}


def stated_noise(explained: Explained, case: Case) -> Mapping[str, float]:
    """By function, the largest standard deviation that EXPLAIN states for its aggregates."""
    rows = float(str(case.facts.get("rows_of_average", ROWS_OF_AN_AVERAGE)))
    found: dict[str, float] = {}
    outputs = [o for release in explained["releases"] for o in release["outputs"]]
    for output in (o for o in outputs if not _OF_ROWS & {*o}):  # how far values are apart is not stated
        function = output["aggregate"].partition("(")[0]
        # an average is a noisy sum over a noisy count, whose noise is at most that of the sum
        sd = output["sd"] if "sd" in output else 2 * output["sd_times_rows"] / rows
        found[function] = max(found.get(function, 0.0), sd)
    return found


def reach(column: str, noise: Mapping[str, float]) -> float:
    """How far numbers of a column ("name type") may be off. It is called after its function, or by an alias."""
    kind = next((kind for kind in ROUNDED if column.endswith(f" {kind}")), None)
    if kind is None:
        return 0.0
    name = column.removesuffix(f" {kind}")
    return ROUNDED[kind] + DEVIATIONS * noise.get(name, max(noise.values(), default=0.0))


@pytest.mark.parametrize("case", [c for c in CASES if c.is_refused], ids=lambda c: c.place)
def test_refusal_reaches_the_client(case: Case, private: Client) -> None:
    with pytest.raises(psycopg.Error) as refused:
        ask(private, case)
    assert refused.value.sqlstate == case.facts.get("postgres", case.facts["refused"]), case.sql
    if "hint" in case.facts and refused.value.sqlstate not in (
        "42501",
        "42809",
        "42P01",
    ):  # what PostgreSQL itself refuses
        assert str(case.facts["hint"]) in str(refused.value.diag.message_hint), case.sql
    if "postgres" not in case.facts:
        assert str(case.facts["says"]) in str(refused.value.diag.message_primary)
        assert refused.value.diag.message_hint
        position = int(refused.value.diag.statement_position or 0)
        assert case.sql[position - 1 :].startswith(str(case.facts.get("at", ""))), position


def compares(how: str, rows: list[Row], true_rows: list[Row], within: list[float]) -> bool:
    """Whether an answer stands to the truth as the case says. within: how far each column may be off."""

    def near(row: Row, true_row: Row) -> bool:
        return all(map(_near, row, true_row, within))

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
    if isinstance(value, timedelta) and isinstance(true, timedelta):
        return abs((value - true).total_seconds()) <= within
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value == true
    return isinstance(true, (int, float, Decimal)) and abs(float(value) - float(true)) <= within
