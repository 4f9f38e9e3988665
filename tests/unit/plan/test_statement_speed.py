"""Does the quick spelling of a private statement give the very integers of the plain one?"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import duckdb
import pytest

from proxy.analysis.analyse import Lowered
from proxy.engines.duckdb_facts import ACCEPTED
from proxy.engines.duckdb_open import set_optimizer
from proxy.plan.sql import statement
from proxy.plan.sql.moment_sql import MomentTerms
from proxy.plan.sql.statement import _Writer
from proxy.plan.sql.total_doubles import scaled_integer
from proxy.plan.vector.moments import HalfSum, RowSum, ScaledSum
from proxy.sql.algebra.nodes import TRUE, ColumnRef, Literal
from proxy.sql.render.dialect import double
from proxy.sql.render.duckdb.dialect import DUCKDB, DuckDB
from proxy.sql.render.renderer import Renderer
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context, plan

#: Measures that read a column more than once; the last of each reads it in a condition too.
COMPOSED = (
    "select status, sum(amount * (1000 - amount)), sum(amount * 2), avg(amount / 4) from orders group by status",
    "select plan, sum(height * height), sum(height * age), avg(height) from users group by plan",
    "select status, sum(amount * amount), sum(case when amount > 3 then amount * 2 end) from orders group by 1",
)
QUERIES = (
    "select count(*) from orders where amount >= 500",
    "select count(*) from orders where amount < 700 and amount > 3",
    "select count(distinct user_id) from orders where amount <= 999",
    "select sum(amount) from orders",
    "select status, sum(amount) from orders group by status",
    "select status, avg(amount), count(*), count(distinct user_id) from orders group by 1",
    "select status, count(distinct user_id), count(distinct user_id) filter (where amount > 3) from orders group by 1",
    "select status, sum(amount) filter (where amount > 3), count(*) filter (where store_id = 2) from orders group by 1",
    "select plan, status, count(*) from orders o join users u on o.user_id = u.user_id group by plan, status",
    "select status, sum(amount) from orders where status = 'paid' or status is null group by status",
    "select status, count(*) filter (where amount >= 100) from orders where status = 'paid' group by 1",
    "select status, sum(amount) from orders o join stores s on o.store_id = s.store_id where region = 'n' group by 1",
    "select u.plan, sum(o.amount) from orders o join users u on o.user_id = u.user_id group by 1",
    "select status, sum(amount), sum(amount * 2), count(amount) from orders group by status",
    "select plan, avg(age), sum(height) from users group by plan",
    "select status, avg(amount), count(distinct user_id) from orders where amount is not null group by 1",
    "select status, sum(amount), count(amount), stddev(amount) from orders group by 1",
    "select status, corr(amount, store_id % 5), bool_or(amount > 500) from orders group by 1",
    *COMPOSED,
)
ROW_INTEGER = MomentTerms.row_integer


def shop(seed: int) -> duckdb.DuckDBPyConnection:
    """Units with many rows, values and keys outside their domains, NULLs, infinities and NaN."""
    rng = random.Random(seed)
    connection = duckdb.connect()
    set_optimizer(connection)
    connection.execute("create table users (user_id integer, age integer, height double, plan varchar)")
    connection.execute(
        "create table orders (user_id integer, order_id bigint, store_id integer, amount decimal(18,4), status varchar)"
    )
    connection.execute(
        "create table stores as select i as store_id, if(i % 2 = 0, 'n', 's') as region from range(5) t(i)"
    )
    plans, statuses = ("free", "pro", "none", None), ("paid", "refunded", "Paid", "", None, "paid", "paid")
    heights = (170.5, math.nan, math.inf, -math.inf, None, -3.0, 900.0, 0.1)
    users = [(u, rng.choice((7, 300, -2, None)), rng.choice(heights), rng.choice(plans)) for u in range(12)]
    amounts = (0, 3, 700, 999.9999, 1000, 1000.0001, -5, 499.9999, 500, None, 99999999.5)
    orders = [
        (rng.choice((0, 0, 0, 1, 1, 2, 3, 4, None)), i, rng.choice((*range(5), None)),
         rng.choice((*amounts, rng.uniform(0, 1000), rng.uniform(0, 1000))), rng.choice(statuses))
        for i in range(200)
    ]  # fmt: skip
    connection.executemany("insert into users values (?, ?, ?, ?)", users)
    connection.executemany("insert into orders values (?, ?, ?, ?, ?)", orders)
    return connection


@pytest.fixture(scope="module")
def shops() -> Iterator[list[duckdb.DuckDBPyConnection]]:
    made = [shop(seed) for seed in range(4)]
    yield made
    for connection in made:
        connection.close()


def plain_row_integer(self: MomentTerms, moment: RowSum) -> str:
    """The definition, word by word; of squares and products it is written so anyway."""
    if not isinstance(moment, (HalfSum, ScaledSum)):
        return ROW_INTEGER(self, moment)
    scaled = moment.scaled if isinstance(moment, HalfSum) else moment
    text = self.renderer.unclamped(scaled.of) if isinstance(scaled.of, ColumnRef) else self.renderer.measure(scaled.of)
    z = f"((({text})::DOUBLE - {double(scaled.middle)}) / {double(scaled.half)})"
    z = f"greatest(least({z}, {double(scaled.most)}), {double(scaled.least)})"
    z = f"(CASE WHEN isfinite(({text})::DOUBLE) THEN {z} ELSE {double(self._missing(scaled))} END)"
    if isinstance(moment, HalfSum):
        z = f"((1e0 {'+' if moment.sign > 0 else '-'} {z}) / 2e0)"
    return f"trunc({z} * 1073741824e0)::BIGINT"


def cells_of(rows: list[tuple[object, ...]]) -> list[str]:
    """The cells, in any order; one of zeros alone is the same as none."""
    return sorted(repr(row) for row in rows if any(isinstance(v, int) and v for v in row))


def spell_plainly(patch: pytest.MonkeyPatch) -> None:
    """Undo every short cut."""

    def compared(self: Renderer, column: ColumnRef, op: str, literal: Literal) -> str:
        return f"{self._raw(column)} {op} {self._literal(literal)}"

    patch.setattr(MomentTerms, "row_integer", plain_row_integer)
    patch.setattr(MomentTerms, "row_whole", plain_row_integer)
    patch.setattr(_Writer, "_candidates", lambda *_: "")
    patch.setattr(MomentTerms, "short_key_texts", MomentTerms.key_texts)
    patch.setattr(DuckDB, "read_within", lambda _self, _text, _kind, _ends, read: read)
    patch.setattr(MomentTerms, "held", lambda _self, **_: {})
    patch.setattr(statement, "expects_few_rows", lambda *_: False)
    patch.setattr(Renderer, "_is_read_whole", lambda *_: False)
    patch.setattr(Renderer, "_compared", compared)


@pytest.mark.parametrize(("pure", "groups"), [(False, 0), (True, 0), (False, 1), (True, 2)])
@pytest.mark.parametrize("query", QUERIES)
def test_short_cuts_change_no_integer(
    query: str, pure: bool, groups: int, shops: list[duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    of = context(pure=pure, lowered=Lowered(rows_per_group=4, groups=groups))
    monkeypatch.setattr(statement, "most_rows", lambda _: 0)  # see test_row_sums.py
    quick = plan(query, of).sql
    spell_plainly(monkeypatch)
    slow = plan(query, of).sql
    assert quick != slow
    for connection in shops:
        quickly, wanted = (cells_of(connection.execute(sql).fetchall()) for sql in (quick, slow))
        assert quickly == wanted


@pytest.mark.parametrize(("query", "clamps"), [*zip(COMPOSED, (1, 2, 2), strict=True)])
def test_a_column_that_measures_share_is_clamped_once_for_each_row(query: str, clamps: int) -> None:
    """Beside what a condition reads, which stands where it is."""
    rows = plan(query, context(lowered=Lowered(rows_per_group=4, groups=2))).sql.rsplit("FROM (SELECT", 1)[1]
    assert rows.count("least(greatest(") == clamps


LIGHT = (
    "select status, sum(amount) from orders group by status",
    "select status, sum(amount), count(*), count(distinct user_id) from orders where amount is not null group by 1",
    "select plan, status, count(*) from orders o join users u on o.user_id = u.user_id group by plan, status",
)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("query", LIGHT)
def test_no_norm_is_computed_where_no_unit_can_be_above_the_bound(
    query: str, pure: bool, shops: list[duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A factor could then only be 1, but for the rounding of norms: a grid unit is 2^-40 of the noise."""
    of = context(pure=pure, lowered=Lowered(rows_per_group=4))
    light = plan(query, of).sql
    monkeypatch.setattr(_Writer, "_are_all_light", lambda _: False)
    weighed = plan(query, of).sql
    assert "heavy" not in light
    assert "heavy" in weighed
    keys = query.count("group by plan") + 1
    for connection in shops:
        found, wanted = (sorted(connection.execute(sql).fetchall(), key=repr) for sql in (light, weighed))
        assert [row[: 1 + keys] for row in found] == [row[: 1 + keys] for row in wanted]
        for ours, theirs in zip(found, wanted, strict=True):
            assert all(abs(a - b) <= 12 for a, b in zip(ours[1 + keys :], theirs[1 + keys :], strict=True))


@pytest.mark.parametrize(
    ("query", "lowered"),
    [
        ("select status, sum(amount) from orders group by status", Lowered(groups=2)),
        ("select upper(status), sum(amount) from orders group by 1", Lowered()),
        ("select city, count(*) from orders o join users u on u.user_id = o.user_id group by city", Lowered()),
        ("select status, count(*) from orders where status in ('paid', 'refunded') group by 1", Lowered()),
    ],
)  # fmt: skip
def test_norms_are_computed_where_a_unit_may_be_above_the_bound(query: str, lowered: Lowered) -> None:
    """Fewer groups than cells; keys whose number is inferred; private keys; what no row meets together."""
    sql = plan(query, context(lowered=lowered)).sql
    assert "heavy" in sql or "min(" in sql


def test_every_unit_above_the_limit_is_a_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three equal cells that are above the limit only together, each is a candidate's."""
    monkeypatch.setattr(statement, "most_rows", lambda _: 0)
    query = plan("select status, count(*) from orders group by status", context(lowered=Lowered(groups=2))).sql
    with duckdb.connect() as connection:
        connection.execute("create table orders (user_id integer, status varchar)")
        one = "insert into orders select 1, s from unnest(['paid', 'refunded', NULL]) t(s), range(10)"
        connection.execute(one)
        cells = {key: total for _, key, total in connection.execute(query).fetchall()}
    assert len(set(cells.values())) == 1
    of = plan("select status, count(*) from orders group by status", context(lowered=Lowered(groups=2)))
    most = of.scale * of.allocation.unit_norm
    assert math.sqrt(3) * cells["paid"] == pytest.approx(most, rel=1e-9)


@pytest.mark.parametrize("middle", [0.0, 12.5, -3e7])
@pytest.mark.parametrize("half", [1000.0, 0.1, 1e-300, 5e-324, 1e300])
@pytest.mark.parametrize("truncated", [DUCKDB.whole, DUCKDB.truncated])
def test_a_row_is_clamped_and_truncated_as_defined(truncated: Callable[[str], str], middle: float, half: float) -> None:
    reference = ColumnRef(0, "x", SqlType.FLOAT8)
    text = scaled_integer("x", ScaledSum(TRUE, reference, middle, half), 77, DUCKDB, truncated)
    values = [0.0, -0.0, 1.0, -1.0, 999.9999999999999, 1000.0, 1000.0000000000001, 1e308, -1e308, 5e-324, math.inf,
              -math.inf, math.nan, None, *(middle + half * i / 7 for i in range(-9, 10))]  # fmt: skip
    with duckdb.connect() as connection:
        for value in values:
            (found,) = connection.execute(f"select {text} from (select ?::double as x)", [value]).fetchone() or ()
            if value is None or not math.isfinite(value):
                assert found == 77
            else:
                shifted = (value - middle) / half if half >= 1e-300 else _quotient(value - middle, half)
                assert found == math.trunc(max(-1.0, min(1.0, shifted)) * 2**30)


def _quotient(above: float, below: float) -> float:
    """Division as the engine does it, infinity included."""
    with duckdb.connect() as connection:
        row = connection.execute("select ?::double / ?::double", [above, below]).fetchone()
    assert row is not None
    return float(row[0])


EXTREMES = {
    "TINYINT": (-128, 127), "UTINYINT": (0, 255), "SMALLINT": (-(2**15), 2**15 - 1), "USMALLINT": (0, 2**16 - 1),
    "INTEGER": (-(2**31), 2**31 - 1), "UINTEGER": (0, 2**32 - 1), "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1), "HUGEINT": (-(2**127), 2**127 - 1), "UHUGEINT": (0, 2**128 - 1),
    "DECIMAL(4,4)": ("-0.9999", "0.9999"), "DECIMAL(18,2)": ("-9999999999999999.99", "9999999999999999.99"),
    "DECIMAL(38,0)": ("-" + "9" * 38, "9" * 38), "DECIMAL(38,28)": ("-" + "9" * 10 + ".5", "9" * 10 + ".5"),
}  # fmt: skip


@pytest.mark.parametrize("kind", EXTREMES)
def test_a_numeric_column_of_any_type_compares_without_raising(kind: str) -> None:
    assert kind.partition("(")[0] in ACCEPTED[SqlType.NUMERIC]
    with duckdb.connect() as connection:
        connection.execute(f"create table orders (user_id integer, amount {kind})")
        for number, value in enumerate(EXTREMES[kind]):
            connection.execute(f"insert into orders values ({number}, '{value}'::{kind}), (7, NULL)")
        for bound in ("0", "500", "1000", "-5", "1000000000", "999.5", "70000"):
            for op in ("<", "<=", ">", ">="):
                connection.execute(plan(f"select count(*) from orders where amount {op} {bound}").sql).fetchall()


def test_a_narrow_filter_hashes_only_the_units_it_finds() -> None:
    sparse, gathered = "| 0)", "unnest(list("
    assert gathered in plan("select count(*) from orders where amount >= 500").sql
    assert gathered in plan("select count(distinct user_id) from orders where amount >= 500").sql
    assert sparse in plan("select count(*) filter (where amount > 700) from orders where store_id = 3").sql
    assert sparse in plan("select sum(amount) from orders where amount >= 500").sql
    assert gathered in plan("select count(*) from orders where store_id = 3").sql
    assert gathered in plan("select count(*) from orders where made >= '2024-11-01'").sql
    for wide in ("where amount >= 100", "where status = 'paid'", ""):
        sql = plan(f"select count(*) from orders {wide}").sql
        assert sparse not in sql
        assert gathered not in sql


def test_inferred_values_do_not_limit_the_groups_of_a_unit() -> None:
    few = "WHERE q >"
    assert "heavy" not in plan("select status, count(*) from orders group by 1").sql
    two = context(lowered=Lowered(groups=2))
    assert few in plan("select status, count(distinct user_id) from orders group by 1", two).sql
    for keys in ("date_trunc('month', made)", "upper(status)"):
        query = plan(f"select {keys}, count(*) from orders group by 1").sql
        assert few not in query
        assert "heavy" in query
    joined = "from orders o join users u on o.user_id = u.user_id"
    assert few in plan(f"select plan, status, count(distinct o.user_id), avg(amount) {joined} group by 1, 2", two).sql


def test_a_condition_that_no_listed_value_meets_is_no_error(shops: list[duckdb.DuckDBPyConnection]) -> None:
    of = plan("select status, count(*), sum(amount) from orders where status = 'lost' group by status")
    assert of.public_keys == ()
    assert cells_of(shops[0].execute(of.sql).fetchall()) == []
