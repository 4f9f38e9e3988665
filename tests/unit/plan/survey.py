"""Tables with columns that were randomized before they were stored, for tests of estimates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from proxy.analysis.units import UniqueKeys
from proxy.plan.release_plan import PlanContext
from proxy.policy.model import (
    Bounded,
    Column,
    JoinKey,
    Listed,
    LocalTable,
    PublicTable,
    Table,
    UnitColumns,
    WrittenBound,
)
from proxy.policy.response import KeptOrUniform, LaplaceNoise, TwoCoins
from proxy.sqltypes import SqlType as T
from tests.unit.plan.shop import context

SMALL = tuple("abcde")
LARGE = tuple(f"v{i:02}" for i in range(50))
YES_NO = Listed((False, True))


def coins(truth: str, yes: str) -> TwoCoins:
    return TwoCoins(Fraction(truth), Fraction(yes))


def kept(keep: str, choices: int) -> KeptOrUniform:
    return KeptOrUniform(Fraction(keep), choices)


PEOPLE = Table(
    name="people",
    relation=("people",),
    ownership=UnitColumns(("id",)),
    unit_unique=True,
    columns=(
        Column(name="id", type=T.INT4, key=True),
        Column(name="ill", type=T.BOOL, nullable=False, domain=YES_NO, randomized=coins("0.5", "0.4")),
        Column(name="smokes", type=T.BOOL, nullable=False, domain=YES_NO, randomized=kept("0.75", 2)),
        Column(name="vote", type=T.TEXT, nullable=False, domain=Listed(SMALL), randomized=kept("0.6", 5)),
        Column(name="town", type=T.TEXT, nullable=False, domain=Listed(LARGE), randomized=kept("0.7", 50)),
        Column(name="mood", type=T.TEXT, domain=Listed(("bad", "good")), randomized=kept("0.5", 3)),
        Column(name="pay", type=T.FLOAT8, nullable=False, domain=Bounded(-85, 185),
               randomized=LaplaceNoise(Fraction(10), Fraction(0), Fraction(100))),
        Column(name="size", type=T.FLOAT8, nullable=False, domain=Bounded(-10, 30)),
        Column(name="age", type=T.INT4, domain=Bounded(0, 110)),
        Column(name="city", type=T.TEXT),
        Column(name="plan", type=T.TEXT, nullable=False, domain=Listed(("free", "pro"))),
    ),
)  # fmt: skip
VISITS = Table(
    name="visits",
    relation=("visits",),
    ownership=UnitColumns(("id",)),
    rows_per_unit=WrittenBound(20),
    rows_per_group=WrittenBound(4),
    groups_per_unit=WrittenBound(9),
    columns=(
        Column(name="id", type=T.INT4, key=True),
        Column(name="paid", type=T.BOOL, nullable=False, domain=YES_NO, randomized=kept("0.75", 2)),
        Column(name="cost", type=T.FLOAT8, nullable=False, domain=Bounded(0, 50)),
        Column(name="kind", type=T.TEXT, domain=Listed(("in", "out"))),
    ),
)
TABLES = MappingProxyType({t.name: t for t in (PEOPLE, VISITS)})


def of_survey(*, pure: bool = False) -> PlanContext:
    return replace(context(pure=pure), tables=TABLES)


ANSWERS = replace(PEOPLE, name="answers", relation=("answers",), ownership=LocalTable(("id",)), unit_unique=False,
                  joins=(JoinKey("city", "cities", "name"),),
                  columns=(Column(name="id", type=T.INT4), *PEOPLE.columns[1:]))  # fmt: skip
CITIES = Table(
    name="cities", relation=("cities",), ownership=PublicTable(),
    columns=(Column(name="name", type=T.TEXT), Column(name="canton", type=T.TEXT, domain=Listed(("AG", "BE")))),
)  # fmt: skip
WITH_LOCAL = MappingProxyType({**TABLES, "answers": ANSWERS, "cities": CITIES})
UNIQUE = UniqueKeys(frozenset({("cities", "name")}))


def of_local(*, pure: bool = False) -> PlanContext:
    """Beside the survey, the same people in a local table, who live in cities that anybody may know."""
    return replace(context(pure=pure), tables=WITH_LOCAL, unique=UNIQUE)
