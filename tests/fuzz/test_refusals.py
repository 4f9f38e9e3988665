"""What is not understood is refused with an error of ours; nothing else ever leaves the planner."""

from __future__ import annotations

import random
from types import MappingProxyType

import pytest

from proxy.errors import HushError
from proxy.plan.release_plan import PlanContext, ReleasePlan, plan_release
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.fuzz.duck import Databases
from tests.fuzz.parts import stages
from tests.fuzz.planning import bound, make_context
from tests.fuzz.soup import make_soup
from tests.fuzz.worlds import NOW, World, make_world

SOUPS = 100


def plans_of(world: World, text: str, context: PlanContext) -> list[ReleasePlan]:
    """Every release plan of every statement of a text. Raises HushError."""
    catalog = Catalog(world.tables)
    found = []
    for statement in split_statements(text):
        for block in split(statement, catalog, frozenset(("budget",))).blocks:
            constants = Constants(MappingProxyType({}), NOW)
            found.append(plan_release(bound(block, world, constants, statement.text).block, context))
    return found


@pytest.mark.parametrize("first", range(20_000, 20_016, 4))
def test_damaged_queries_are_planned_or_refused(first: int) -> None:
    refused = planned = 0
    for seed in range(first, first + 4):
        world = make_world(seed)
        databases = Databases(world)
        for number in range(SOUPS):
            rng = random.Random(f"soup {seed} {number}")
            text = make_soup(world, rng)
            try:
                found = plans_of(world, text, make_context(world, rng))
            except HushError:
                refused += 1
                continue
            except Exception as error:
                raise AssertionError(f"{type(error).__name__}: {error}\n{text!r}") from error
            for plan in found:
                planned += 1
                for sql, kept in stages(plan):
                    databases.run(sql, databases.everybody(), kept)
        databases.close()
    assert refused > SOUPS
    assert planned


DEEP = 5000


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from e where " + "(" * DEEP + "true" + ")" * DEEP,
        "select count(*) from e where " + "not " * DEEP + "true",
        "select count(*) from e where " + " or ".join(["code = 1"] * DEEP),
        "select count(*) from e where code in (" + ", ".join(map(str, range(DEEP))) + ")",
        "select count(*) from e where code = " + " + ".join(["1"] * DEEP),
        "select " + ", ".join(["count(*)"] * DEEP) + " from e",
        "select " + ", ".join(f"count(*) filter (where code = {i})" for i in range(200)) + " from e",
        "select count(*) from " + "(select * from " * 300 + "e" + ") q" * 300,
        "select " + "case when code = 1 then " * 300 + "1" + " end" * 300 + " as k, count(*) from e group by 1",
        "select count(*) from e where code = '" + "1" * 100_000 + "'",
        "\x00", "", ";;;", "select", "'", "select count(*) from e where '\x00' = 'a'",
    ],
)  # fmt: skip
def test_large_and_odd_texts_are_planned_or_refused(text: str) -> None:
    world = make_world(20_000)
    databases = Databases(world)
    try:
        for plan in plans_of(world, text, make_context(world, random.Random(0))):
            for sql, kept in stages(plan):
                databases.run(sql, databases.everybody(), kept)
    except HushError:
        pass  # an odd text may well be refused
    finally:
        databases.close()
