"""NATURAL joins, rows of constants, arrays, spines, SELECT DISTINCT: as an SQL engine has them; mistakes are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlglot import exp

from proxy.sql.algebra.nodes import Scalar
from proxy.sql.algebra.rows import Joined, Named
from proxy.sql.binding import conditions as bind_conditions
from proxy.sql.binding import quantified as bind_quantified
from proxy.sql.binding.binder import Binder
from proxy.sql.relations import constant_rows, joins, scope
from tests.fuzz.constant_queries import Tables, make_constant_query
from tests.fuzz.examine import report, run_worlds
from tests.fuzz.kept_queries import Answer
from tests.fuzz.promises import Plant, compare_answers

FIRST, WORLDS, QUERIES = 95_000, 3, 40
MOST_WORLDS = 8


def wrong(seeds: range) -> tuple[list[str], int]:
    return compare_answers("constants", seeds, Tables.of, make_constant_query, QUERIES, _is_same)


def _is_same(query: str, given: Answer, expected: Answer) -> bool:
    """The group of a constant is shown empty, too."""
    return given == expected or (not expected and " group by " in query and len(given) == 1)


def test_constants_mean_what_an_sql_engine_takes_them_for() -> None:
    found, answered = wrong(range(FIRST, FIRST + WORLDS))
    assert not found, "\n".join(found)
    assert answered > WORLDS * QUERIES / 2, "too few statements are answered"


def test_they_keep_all_promises() -> None:
    tally = run_worlds(range(FIRST, FIRST + 2), "both", 20, make=make_constant_query)
    assert not tally.failures, report(tally)
    assert tally.planned > 12, "too few statements can be planned"


@pytest.mark.long
def test_more_constants() -> None:
    found, _ = wrong(range(FIRST + 100, FIRST + 200))
    assert not found, "\n".join(found)
    tally = run_worlds(range(FIRST + 100, FIRST + 160), "both", 20, make=make_constant_query)
    assert not tally.failures, report(tally)


def rows_of_one_unit_agree_in_all_names(patch: pytest.MonkeyPatch) -> None:
    original = joins._equal

    def equal(left: Joined, right: Named, name: str, *rest: Any) -> Scalar:
        return original(left, right, "u0" if name == "code" else name, *rest)

    patch.setattr(joins, "_equal", equal)


def rows_may_meet_several_constants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(constant_rows, "_are_apart", lambda _: True)


def ranges_may_share_their_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(constant_rows._Range, "ends_before", lambda self, other: self.high <= other.low)


def rows_without_a_constant_have_the_last_one(patch: pytest.MonkeyPatch) -> None:
    original = constant_rows._chosen

    def chosen(
        node: exp.Join, conditions: Sequence[Scalar], values: Sequence[Scalar], *, is_kept: bool
    ) -> Scalar:  # fmt: skip
        return original(node, conditions, values, is_kept=False)

    patch.setattr(constant_rows, "_chosen", chosen)


def different_rows_are_all_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scope, "distinct", lambda rows, *_: rows)


def series_end_too_early(patch: pytest.MonkeyPatch) -> None:
    original = bind_quantified._series
    patch.setattr(bind_quantified, "_series", lambda *of: original(*of)[:-1])


def all_is_any(patch: pytest.MonkeyPatch) -> None:
    original = bind_quantified.combined

    def combined(binder: Binder, node: exp.Expression, tests: Sequence[Scalar], found: object) -> Scalar:
        return original(binder, node, tests, bind_quantified.Quantified(node, every=False))

    patch.setattr(bind_conditions, "combined", combined)


def the_first_element_is_all(patch: pytest.MonkeyPatch) -> None:
    original = bind_conditions._member

    def member(binder: Binder, node: exp.Expression, argument: object, items: Sequence[object]) -> Scalar:
        return original(binder, node, argument, items[:1])  # type: ignore[arg-type]  # as they came

    patch.setattr(bind_conditions, "_member", member)


@pytest.mark.parametrize(
    "plant",
    [
        rows_of_one_unit_agree_in_all_names, rows_may_meet_several_constants, ranges_may_share_their_ends,
        rows_without_a_constant_have_the_last_one, different_rows_are_all_rows,
        series_end_too_early, all_is_any, the_first_element_is_all,
    ],
)  # fmt: skip
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(wrong(range(seed, seed + 1))[0] for seed in range(FIRST, FIRST + MOST_WORLDS))
