"""Outer joins that keep rows of a public table: as an SQL engine has them, within their bounds; mistakes are found."""

from __future__ import annotations

from collections import Counter

import pytest

from proxy.sql.algebra.nodes import Call, Literal, Null, Scalar
from proxy.sql.algebra.rows import KeptRows, Rows
from proxy.sql.conditions import on_null_row as missing
from proxy.sql.conditions.factored import alternatives
from proxy.sql.query import block, kept_groups
from proxy.sql.relations import kept
from proxy.sqltypes import SqlType
from tests.fuzz.examine import report, run_worlds
from tests.fuzz.kept_queries import Answer, Shop, make_kept_query
from tests.fuzz.promises import Plant, compare_answers

FIRST, WORLDS, QUERIES = 90_000, 3, 45


def wrong(seeds: range) -> tuple[list[str], int]:
    return compare_answers("kept", seeds, Shop.of, make_kept_query, QUERIES, _is_same)


def _is_same(query: str, given: Answer, expected: Answer) -> bool:
    return not (given - expected - padding(query) or expected - given)


def padding(query: str) -> Answer:
    """The group of rows without a public one, which is shown whether or not there are any."""
    keys = query.partition(" from ")[0].count(" as g")
    return Counter([((None,) * keys + (0,))] if "full join" in query else ())


def test_kept_rows_are_what_an_sql_engine_keeps() -> None:
    found, answered = wrong(range(FIRST, FIRST + WORLDS))
    assert not found, "\n".join(found)
    assert answered > WORLDS * QUERIES / 4, "too few statements are answered"


def test_they_keep_all_promises() -> None:
    tally = run_worlds(range(FIRST, FIRST + 2), "both", 24, make=make_kept_query)
    assert not tally.failures, report(tally)
    assert tally.planned > 9, "too few statements can be planned"


@pytest.mark.long
def test_more_kept_rows() -> None:
    found, _ = wrong(range(FIRST + 100, FIRST + 160))
    assert not found, "\n".join(found)


def kept_rows_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(block, "check_aggregate", lambda *_: None)


def one_alternative_fails_and_so_do_all(patch: pytest.MonkeyPatch) -> None:
    original = missing.is_never_true

    def is_never_true(condition: Scalar, is_missing: missing.IsMissing) -> bool:
        return any(original(part, is_missing) for part in alternatives(condition))

    patch.setattr(kept, "is_never_true", is_never_true)


def what_may_fail_has_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(kept, "_those", lambda kept, _, __: kept)


def all_that_is_asked_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = kept_groups.groups_of

    def groups_of(of: KeptRows, *rest: object) -> str:
        rows = Rows(scans=of.rows.scans, columns=())
        return original(KeptRows(rows, of.is_full), *rest)  # type: ignore[arg-type]  # as they came

    patch.setattr(block, "groups_of", groups_of)


def groups_of_rows_that_met_none_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(block, "groups_of", lambda _, relation, *__: relation)


def a_choice_with_null_is_null(patch: pytest.MonkeyPatch) -> None:
    original = missing._call

    def call(of: Call, args: tuple[missing.NullRowValue, ...]) -> missing.NullRowValue:
        is_choice = of.function in ("coalesce", "nullif") and any(isinstance(a, Null) for a in args)
        return Null(of.type) if is_choice else original(of, args)

    patch.setattr(missing, "_call", call)


def any_constant_adds_nothing(patch: pytest.MonkeyPatch) -> None:
    original = missing.without

    def without(scalar: Scalar, is_missing: missing.IsMissing) -> missing.NullRowValue:
        found = original(scalar, is_missing)
        return Literal(0, SqlType.INT4) if isinstance(found, Literal) else found

    patch.setattr(kept_groups, "without", without)


@pytest.mark.parametrize(
    "plant",
    [
        kept_rows_are_not_counted, one_alternative_fails_and_so_do_all, what_may_fail_has_failed,
        all_that_is_asked_is_forgotten, groups_of_rows_that_met_none_are_lost, a_choice_with_null_is_null,
        any_constant_adds_nothing,
    ],
)  # fmt: skip
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(wrong(range(seed, seed + 1))[0] for seed in range(FIRST, FIRST + 10))
