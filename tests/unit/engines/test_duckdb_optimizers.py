"""Does each rule of the optimizer that is switched off do harm with this DuckDB, and none without it?"""

from __future__ import annotations

import re
from collections.abc import Callable

import duckdb
import pytest

from proxy.engines.duckdb_open import SWITCHED_OFF, set_optimizer

_LARGE = 10**18


def _raises(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a row raises in arithmetic that stands in TRY."""
    try:
        connection.execute("SELECT TRY(n * n + 1), TRY(n * n + 2) FROM rows").fetchall()
    except duckdb.OutOfRangeException:
        return True
    return False


def _repeats(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a sub-select's column is computed where it is used, as often as it is named."""
    used = "CASE WHEN v BETWEEN 1 AND 5 THEN trunc(v / 3) WHEN isfinite(v) THEN least(v, 5e0) ELSE 0 END"
    rows = "SELECT r.n % 7 AS u, sqrt(r.n + o.k) AS v FROM rows AS r, others AS o WHERE r.id = o.id"
    found = connection.execute(
        f"EXPLAIN (FORMAT json) SELECT u, sum({used}) FROM (SELECT u, v FROM ({rows})) GROUP BY u"
    ).fetchall()
    return len(re.findall(r"sqrt\(", found[0][1])) > 1


HARM: dict[str, Callable[[duckdb.DuckDBPyConnection], bool]] = {
    "common_subexpressions": _raises,
    "partial_aggregate_pushdown": _repeats,
}


@pytest.mark.parametrize("rule", SWITCHED_OFF)
def test_a_rule_that_is_switched_off_does_harm(rule: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT i AS id, {_LARGE} * i AS n FROM range(10000) t(i) WHERE i < 9")
        connection.execute("CREATE TABLE others AS SELECT i AS id, i AS k FROM range(10000) t(i)")
        set_optimizer(connection)
        assert not HARM[rule](connection)
        others = ",".join(r for r in SWITCHED_OFF if r != rule)
        connection.execute(f"SET disabled_optimizers = '{others}'")
        assert HARM[rule](connection)
