"""A dataset whose randomized columns were surely not randomized so does not start."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from proxy.engines.duckdb import DuckDBEngine
from proxy.engines.randomized_facts import not_randomized_so
from proxy.errors import ConfigError
from proxy.policy.model import Bounded, Column, Listed, LocalTable, Table
from proxy.policy.response import GaussianNoise, KeptOrUniform, LaplaceNoise, Randomized, TwoCoins
from proxy.sqltypes import SqlType, Value
from tests.unit.engines.make import database, policy
from tests.unit.engines.private_postgres import DATABASE, data_server, open_engine, policy_of

HALF = Fraction(1, 2)
KEPT = KeptOrUniform(Fraction(3, 4), 3)
NOISED = LaplaceNoise(Fraction(2), Fraction(0), Fraction(10))


def listed(mechanism: Randomized, *values: Value, kind: SqlType = SqlType.TEXT, nullable: bool = False) -> Column:
    return Column(name="x", type=kind, domain=Listed(values), nullable=nullable, randomized=mechanism)


def answers(column: Column) -> Table:
    return Table(name="answers", relation=("answers",), ownership=LocalTable(), columns=(column,))


THREE = listed(KEPT, "a", "b", "c")
WITH_NULL = listed(KEPT, "a", "b", nullable=True)
COINS = listed(TwoCoins(HALF, HALF), False, True, kind=SqlType.BOOL)
WORDS = listed(TwoCoins(HALF, HALF), "yes", "no")
NUMBER = Column(name="x", type=SqlType.FLOAT8, domain=Bounded(-8.5, 18.5), nullable=False, randomized=NOISED)
WIDER = Column(name="x", type=SqlType.FLOAT8, domain=Bounded(-8.0, 18.0), nullable=False,
               randomized=GaussianNoise(Fraction(2), Fraction(0), Fraction(10)))  # fmt: skip
OTHERS, SHARES = "others are there", "how often"


@pytest.mark.parametrize(
    ("column", "found", "fault"),
    [
        (THREE, {}, ""),
        (THREE, {0: 8333, 1: 833, 2: 834}, ""),
        (THREE, {0: 1, 1: 0, 2: 0}, ""),
        (THREE, {0: 10_000, 1: 0, 2: 0}, SHARES),
        (THREE, {0: 8333, 1: 1600, 2: 67}, SHARES),
        (THREE, {0: 8333, 1: 833, 2: 834, -2: 1}, OTHERS),
        (THREE, {0: 8333, 1: 833, 2: 834, -1: 1}, OTHERS),
        (WITH_NULL, {0: 8333, 1: 833, -1: 834}, ""),
        (WITH_NULL, {0: 8333, 1: 1667}, SHARES),
        (COINS, {0: 5000, 1: 5000}, ""),
        (COINS, {0: 9000, 1: 1000}, SHARES),
        (WORDS, {0: 7500, 1: 2500}, ""),
        (WORDS, {0: 1000, 1: 9000}, SHARES),
        (NUMBER, {0: 100_000, 1: 12}, ""),
        (NUMBER, {0: 100_000, 1: 1000}, SHARES),
        (WIDER, {0: 100_000, 1: 1000}, SHARES),
        (WIDER, {0: 100_000, -2: 1}, OTHERS),
    ],
)
def test_a_column_is_named_only_if_it_was_surely_not_randomized_so(
    tmp_path: Path, column: Column, found: Mapping[int, int], fault: str
) -> None:
    served = policy(database(tmp_path / "shop.duckdb"), answers(column))
    told = [*not_randomized_so(served, lambda t: t.name, lambda _: found)]
    assert len(told) == (1 if fault else 0)
    assert all(one.startswith("answers.x: ") and fault in one for one in told)


_ROWS = {  # column, type, expression over i in 0..9999, whether it is accepted
    "three": (THREE, "varchar", "case when i % 6 < 5 then 'a' when i % 12 = 5 then 'b' else 'c' end", True),
    "not randomized": (THREE, "varchar", "'a'", False),
    "unlisted": (THREE, "varchar", "case when i = 7 then 'secret' when i % 6 < 5 then 'a' else 'b' end", False),
    "null": (WITH_NULL, "varchar", "case when i % 6 < 5 then 'a' when i % 12 = 5 then 'b' end", True),
    "coins": (COINS, "boolean", "i % 2 = 0", True),
    "untossed": (COINS, "boolean", "i % 20 = 0", False),
    "number": (NUMBER, "double precision", "i % 18", True),
    "nan": (NUMBER, "double precision", "case when i = 7 then cast('NaN' as double precision) else 1 end", False),
    "missing": (NUMBER, "double precision", "case when i <> 7 then 1 end", False),
}


@pytest.mark.parametrize("name", _ROWS)
def test_duckdb_counts_what_is_stored(tmp_path: Path, name: str) -> None:
    column, kind, made, is_accepted = _ROWS[name]
    table = f"create table answers as select cast({made} as {kind}) as x from range(10000) as r(i)"
    served = policy(database(tmp_path / "shop.duckdb", table), answers(column))
    with closing(DuckDBEngine(served, tmp_path / "spill")) as engine:
        if is_accepted:
            engine.check_facts(served)
            return
        with pytest.raises(ConfigError, match=r"answers.x: 'randomized' says") as refused:
            engine.check_facts(served)
    assert "secret" not in refused.value.text()


def test_postgres_counts_what_is_stored() -> None:
    server = data_server()
    for column, kind, made, is_accepted in _ROWS.values():
        with server.owner(DATABASE) as owner:
            owner.execute("drop table if exists answers")
            owner.execute(
                f"create table answers as select cast({made} as {kind}) as x from generate_series(0, 9999) as r(i);"
                "grant select on answers to reader".encode()
            )
        with closing(open_engine(server, answers(column))) as engine:
            served = policy_of(answers(column))
            if is_accepted:
                engine.check_facts(served)
                continue
            with pytest.raises(ConfigError, match=r"answers.x: 'randomized' says"):
                engine.check_facts(served)
