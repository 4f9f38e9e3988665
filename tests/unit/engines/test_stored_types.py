"""Does DuckDB compute something from few values of any type that a column may have, whose statistics it plans with?"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from random import Random

import duckdb
import pytest

from proxy.analysis.analyse import Lowered
from proxy.engines.duckdb_open import set_optimizer
from proxy.sql.render.duckdb.dialect import DUCKDB
from tests.e2e import shop_data
from tests.unit.engines.extremes import IN_DUCKDB, insertion
from tests.unit.engines.generated import generated
from tests.unit.engines.two_engines import Rows, policy, released, statements, unbounded
from tests.unit.sql.corpus import Case, cases

_NINES = "9" * 40
#: What may stand in the place of a column's type, and its extremes.
_STORED: Mapping[str, Mapping[str, str]] = {
    "integer": {"tinyint": "-128 127 0 1", "utinyint": "0 255 1", "smallint": "-32768 32767 0", "usmallint": "0 65535"},
    "smallint": {"tinyint": "-128 127 0 1", "utinyint": "0 255 1"},
    "bigint": {"integer": IN_DUCKDB["integer"], "uinteger": "0 1 4294967295", "utinyint": "0 255 1"},
    "double": {"float": IN_DUCKDB["float"]},
    "decimal(12,2)": {
        "bigint": IN_DUCKDB["bigint"], "ubigint": f"0 1 {2**64 - 1}", "hugeint": f"0 -1 {2**127 - 1} {-(2**127)}",
        "uhugeint": f"0 1 {2**128 - 1}", "decimal(4,4)": "0 0.9999 -0.9999 0.0001",
        "decimal(38,0)": f"0 {_NINES[:38]} -{_NINES[:38]}",
        "decimal(38,28)": f"0 {_NINES[:10]}.{_NINES[:28]} -{_NINES[:10]}.{_NINES[:28]} 0.{'0' * 27}1",
    },
    "timestamp": {"timestamp_s": IN_DUCKDB["timestamp"].replace("54.775806", "54"),
                  "timestamp_ms": IN_DUCKDB["timestamp"].replace("54.775806", "54.775")},
}  # fmt: skip
_TYPE = re.compile(rf"(?<= )({'|'.join(map(re.escape, _STORED))})(?=[,)])")
_KEYS = ("user_id", "order_id", '"User"')


def _script(random: Random) -> str:
    """The shop's tables, the columns but keys of some type that may stand for the policy's."""
    places = cycle(range(7))

    def stored(found: re.Match[str]) -> str:
        name = found.string[: found.start()].rpartition(",")[2].split("(")[-1].strip()
        kinds = [found[1], *_STORED[found[1]]]
        return found[1] if name in _KEYS or not next(places) else random.choice(kinds)

    return _TYPE.sub(stored, shop_data.CREATE)


@contextlib.contextmanager
def _filled(random: Random) -> Iterator[duckdb.DuckDBPyConnection]:
    """One to three values in each column, or all of its extremes."""
    texts = {**IN_DUCKDB, **{kind: values for kinds in _STORED.values() for kind, values in kinds.items()}}
    with duckdb.connect(config={"threads": 1}) as client:
        client.execute("set TimeZone = 'UTC'")
        client.execute(_script(random))
        for name, _ in shop_data.rows_of_tables():
            described = [(column, kind.lower()) for column, kind, *_ in client.execute(f"describe {name}").fetchall()]
            fewer = random.choice((1, 2, 3, 20))
            few = {k: " ".join(random.sample(v.split(), min(fewer, len(v.split())))) for k, v in texts.items()}
            client.execute(insertion(name, described, few))
        set_optimizer(client)
        yield client


def _failing(client: duckdb.DuckDBPyConnection, chosen: Iterator[Case]) -> Iterator[str]:
    bounded = policy()
    for case, served in zip(chosen, cycle((bounded, unbounded(bounded))), strict=False):
        for stages in statements(case, served, DUCKDB, Lowered()):
            vector: Rows = []
            for stage in stages:
                try:
                    found = client.execute(stage.sql, released(stage, vector)).fetchall()
                except duckdb.Error as error:
                    yield f"{case.sql}: {error}"
                    break
                vector = vector or found


@pytest.mark.parametrize(
    ("seed", "wanted"), [(1, 40), *(pytest.param(seed, 1000, marks=pytest.mark.long) for seed in range(2, 22))]
)
def test_no_stored_value_makes_duckdb_fail(seed: int, wanted: int) -> None:
    random = Random(seed)
    accepted = [case for case in cases() if not case.is_refused]
    for _ in range(max(1, wanted // 100)):
        with _filled(random) as client:
            made = islice(generated(policy(), random.randrange(10**9)), min(wanted, 100))
            assert list(_failing(client, made)) == []
            assert list(_failing(client, iter(random.sample(accepted, min(wanted, 50))))) == []
