"""Questions that work are made from bounds and values; days are added up as accounts do."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from proxy.console.budget import PastQuestion, SpentPart, by_day, by_table
from proxy.console.tables import ColumnFacts, TableFacts, examples
from proxy.console.visits import written


def column(name: str, kind: str, *, bounds: str = "", values: str = "", is_key: bool = False) -> ColumnFacts:
    return ColumnFacts(
        name=name, quoted=name, type=kind, bounds=bounds, values=values, profile="", comment="", is_key=is_key
    )


def table(*columns: ColumnFacts) -> TableFacts:
    return TableFacts(name="Odd", quoted='"Odd"', comment="", unit="id", is_public=False, columns=columns, joins=())


def test_of_a_public_table_rows_are_shown() -> None:
    (only,) = examples(replace(table(), is_public=True))
    assert only.statement == 'SELECT * FROM "Odd" LIMIT 10'


def test_questions_use_listed_keys_bounded_measures_and_times_and_nothing_else() -> None:
    found = [
        e.statement
        for e in examples(
            table(
                column("id", "text", is_key=True),
                column("plan", "text", values="free, pro"), column("age", "integer", bounds="[0, 110]"),
                column("free", "integer"), column("at", "date", bounds="[2024-01-01, 2025-12-31]"),
            )
        )
    ]  # fmt: skip
    assert found == [
        'SELECT count(*) FROM "Odd"',
        'SELECT plan, count(*) FROM "Odd" GROUP BY plan',
        'SELECT plan, avg(age) FROM "Odd" GROUP BY plan',
        'SELECT sum(age), avg(age) FROM "Odd"',
        "SELECT date_trunc('month', at) AS month, count(*) FROM \"Odd\" GROUP BY 1",
    ]


def test_a_number_with_listed_values_is_not_averaged_by_itself() -> None:
    found = [e.statement for e in examples(table(column("stars", "integer", bounds="[1, 2]", values="1, 2")))]
    assert 'SELECT stars, count(*) FROM "Odd" GROUP BY stars' in found
    assert not any("avg(stars) FROM" in s and "GROUP BY stars" in s for s in found)


def asked(day: str, cost: str, *, is_free: bool = False, statement: str = "") -> PastQuestion:
    return PastQuestion(
        at=day, day=day, statement=statement, epsilon=1.0, cost=Decimal(cost), is_free=is_free, outcome=""
    )


def test_tables_that_were_asked_about_together_are_added_up_the_costliest_first() -> None:
    def of(statement: str, cost: str, *, is_free: bool = False) -> PastQuestion:
        return asked("2026-01-02", cost, is_free=is_free, statement=statement)

    both, one = "SELECT count(*) FROM b JOIN A USING (id)", "SELECT count(*) FROM a"
    found = by_table(
        [of(one, "0.1"), of(both, "0.25"), of(one, "0", is_free=True), of("SELECT z FROM aa", "0")], ["a", "b"]
    )
    assert found == (
        SpentPart("a + b", 1, 0, "0.250000"),
        SpentPart("a", 2, 1, "0.100000"),
        SpentPart("", 1, 0, "0.000000"),
    )


def test_days_are_added_up_the_latest_first() -> None:
    found = by_day([asked("2026-01-02", "0.1"), asked("2026-01-01", "0.25"), asked("2026-01-02", "0", is_free=True)])
    assert found == (SpentPart("2026-01-02", 2, 1, "0.100000"), SpentPart("2026-01-01", 1, 0, "0.250000"))


@pytest.mark.parametrize(
    "value, words", [(0.79, "0.79"), (1234.5, "1,234"), (216148.3, "216,148"), (None, ""), ("x", "x"), (True, "True")]
)
def test_figures_have_the_digits_that_one_can_use(value: object, words: str) -> None:
    assert written(value) == words
