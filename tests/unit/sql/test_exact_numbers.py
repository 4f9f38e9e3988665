"""Numeric columns and constants compare as PostgreSQL compares them: exactly, however the data store them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import MappingProxyType

import duckdb
import pytest

from proxy.analysis.domains import Domains
from proxy.analysis.patterns import heaviest_together_up
from proxy.policy.model import Bounded, Column, RowUnit, Table
from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import Block, Call, Scalar
from proxy.sql.query.block import bind_block
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.renderer import Renderer
from proxy.sql.syntax.parse import split_statements
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import NOW

NUMBERS = Table(
    name="numbers",
    relation=("numbers",),
    ownership=RowUnit(),
    columns=(
        Column(name="n", type=SqlType.NUMERIC),
        Column(name="m", type=SqlType.NUMERIC),
        Column(name="b", type=SqlType.NUMERIC, domain=Bounded(0, Decimal("1000.3"))),
        Column(name="i", type=SqlType.INT8),
        Column(name="f", type=SqlType.FLOAT8),
    ),
)
CLOSE = ("0.3", "0.2999999999999999999999999999", "0.3000000000000000000000000001", "0.30000000000000004",
         "4.9999999999999999999999999999", "5", "5.0000000000000000000000000001", "-0.3", "0", "-5",
         "1000.3", "1000.2999999999999999999999999", "1000.3000000000000000000000001",
         "1234567890.1", "1234567890.1000000000000000001", "1234567890.1000000000000000000000000001",
         "9999999999.9999999999999999999999999999")  # fmt: skip
CONSTANTS = ("0.3", "0.30", "0.3000000000000000000000000001", "5", "5.0", "-0.3", "-5", "0", "1000.3", "1e3",
             "1234567890.1", "1234567890.1000000000000000000000000001", "-1234567890.1000000000000000000000000001",
             "20000000000", "1e300", "1e-300", "99999999999999999999999999999999999999")  # fmt: skip
OPERATORS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
pytestmark = pytest.mark.no_cover  # thousands of comparisons


def block_of(condition: str) -> Block:
    catalog = Catalog(MappingProxyType({"numbers": NUMBERS}))
    text = f"SELECT count(*) FROM numbers WHERE {condition}"
    (found,) = split(split_statements(text)[0], catalog, frozenset()).blocks
    return bind_block(found, catalog, Constants(MappingProxyType({}), NOW), text).block


def spelled(condition: str) -> str:
    block = block_of(condition)
    domains = Domains(block)
    return (
        " AND ".join(Renderer(domains.column, domains.operands, "UTC", DUCKDB).condition(w) for w in block.where)
        or "TRUE"
    )


def stored_as(kind: str, values: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"create table numbers (n {kind}, m {kind}, b {kind}, i bigint, f double)")
    for value in values:
        connection.execute(f"insert into numbers values ('{value}'::{kind}, '{value}'::{kind}, '{value}'::{kind},"
                           f" TRY_CAST('{value}' AS bigint), '{value}'::double)")  # fmt: skip
    connection.execute("insert into numbers values (NULL, NULL, NULL, NULL, NULL)")
    return connection


@pytest.fixture(scope="module")
def close() -> Iterator[duckdb.DuckDBPyConnection]:
    with stored_as("DECIMAL(38,28)", CLOSE) as connection:
        yield connection


def passing(connection: duckdb.DuckDBPyConnection, condition: str, column: str = "n") -> list[Decimal]:
    rows = connection.execute(f"SELECT {column} FROM numbers AS s0 WHERE {spelled(condition)}").fetchall()
    return sorted(value for (value,) in rows)


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("sign", OPERATORS)
def test_a_numeric_column_compares_exactly_with_a_constant(
    sign: str, constant: str, close: duckdb.DuckDBPyConnection
) -> None:
    holds, number = OPERATORS[sign], Decimal(constant)
    true = sorted(v for v in map(Decimal, CLOSE) if holds(v, number))
    assert passing(close, f"n {sign} {constant}") == true
    assert passing(close, f"NOT (n {sign} {constant})") == sorted(set(map(Decimal, CLOSE)) - set(true))
    assert passing(close, f"CASE WHEN n {sign} {constant} THEN TRUE END") == true
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    assert passing(close, f"{constant} {mirrored} n") == true


def test_a_numeric_column_is_exactly_in_a_list(close: duckdb.DuckDBPyConnection) -> None:
    values = set(map(Decimal, CLOSE))
    for items in (("0.3", "5"), ("0", "5", "7"), ("-5", "1000.3"), ("0.3000000000000000000000000001",), CONSTANTS[:-5]):
        inside = sorted(values & set(map(Decimal, items)))
        assert passing(close, f"n IN ({', '.join(items)})") == inside
        assert passing(close, f"NOT n IN ({', '.join(items)})") == sorted(values - set(inside))
    declared = {v for v in values if 0 <= float(v) <= 1000.3}  # a domain's ends are doubles
    assert passing(close, "b NOT IN (0, 1000.3)") == sorted(declared - {Decimal(0), Decimal("1000.3")})


def test_two_numeric_columns_compare_exactly(close: duckdb.DuckDBPyConnection) -> None:
    close.execute("update numbers set m = 0.3 where n is not null")
    assert passing(close, "n < m") == sorted(v for v in map(Decimal, CLOSE) if v < Decimal("0.3"))


def test_an_integer_column_compares_exactly_with_a_fraction() -> None:
    with stored_as("BIGINT", (str(2**53), str(2**53 + 1), str(2**53 + 2), str(2**63 - 1), "3")) as connection:
        assert passing(connection, f"i < {2**53 + 1}.5", "i") == [3, 2**53, 2**53 + 1]
        assert passing(connection, f"i = {2**53 + 1}.0", "i") == [2**53 + 1]
        assert passing(connection, f"i IN (3.0, {2**53 + 1}.0, 4.5)", "i") == [3, 2**53 + 1]
        assert passing(connection, f"i >= {2**63}", "i") == []


def test_a_double_makes_a_comparison_one_of_doubles(close: duckdb.DuckDBPyConnection) -> None:
    near = [v for v in map(Decimal, CLOSE) if float(v) == 0.3]
    assert len(near) == 3
    assert passing(close, "n = 0.3::float8") == sorted(near)
    assert passing(close, "n + 0 = 0.3") == sorted(near)


KINDS = ("DECIMAL(4,4)", "DECIMAL(18,2)", "DECIMAL(38,0)", "DECIMAL(38,1)", "DECIMAL(38,28)", "BIGINT", "UBIGINT",
         "HUGEINT", "UHUGEINT")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_type_of_stored_numbers_makes_a_comparison_raise(kind: str) -> None:
    with stored_as(kind, ("0",)) as connection:
        ends = connection.execute("select n from numbers where n = 0").fetchall()
        assert ends
        for extreme in ("max", "min"):
            connection.execute(f"insert into numbers (n, m, b) select x, x, x from ({_end(kind, extreme)}) as t(x)")
        everything = {v for (v,) in connection.execute("select n from numbers where n is not null").fetchall()}
        for constant, sign in itertools.product((*CONSTANTS, "1000000000", "7"), OPERATORS):
            holds = OPERATORS[sign]
            true = {v for v in everything if holds(Decimal(v), Decimal(constant))}
            for column in ("n", "b"):
                found = set(passing(connection, f"{column} {sign} {constant}", column))
                assert found <= true if column == "b" else found == true, (column, sign, constant)
        for items in ("0.3, 5", "0, 7, -5", ", ".join(CONSTANTS), ", ".join(f"{i}.5" for i in range(300))):
            passing(connection, f"n IN ({items}) OR NOT b IN ({items})")
        passing(connection, "n < m OR m > b")


def _end(kind: str, extreme: str) -> str:
    if kind.startswith("DECIMAL"):
        width, scale = map(int, kind[8:-1].split(","))
        digits = "9" * (width - scale) + "." + "9" * scale if scale else "9" * width
        return f"select '{'-' if extreme == 'min' else ''}{digits}'::{kind}"
    bits, signed = {"BIGINT": (63, True), "UBIGINT": (64, False), "HUGEINT": (127, True), "UHUGEINT": (128, False)}[
        kind
    ]
    return f"select '{2**bits - 1 if extreme == 'max' else -(2**bits) * signed}'::{kind}"


def conditions() -> list[str]:
    found = [
        f"{c} {o} {k}" for c in "nb" for o in OPERATORS for k in ("0.3", "5", "5::float8", "1000.3", "0.3::float8")
    ]
    found += [f"NOT ({c})" for c in found]
    return [*found, "n IN (0.3, 5)", "NOT n IN (0.3, 5)", "n IS NULL", "b IS NULL", "b IS NOT NULL", "b IN (0.3)"]


def test_no_number_passes_two_conditions_that_are_called_disjoint(close: duckdb.DuckDBPyConnection) -> None:
    found = conditions()
    bound: list[Scalar] = [block_of(c).where[0] for c in found]
    rows = [set(passing(close, c, "rowid")) for c in found]
    told = 0
    for (left, ours), (right, theirs) in itertools.combinations(zip(bound, rows, strict=True), 2):
        if heaviest_together_up((left, right), (1.0, 1.0)).weight < 2:
            told += 1
            assert not ours & theirs, (left, right)
    assert told > 100


HALVES = {
    "round(f)": (("0.5", 0.0), ("1.5", 2.0), ("2.5", 2.0), ("-0.5", 0.0), ("-2.5", -2.0), ("-3.5", -4.0)),
    "round(n)": (("0.5", 1.0), ("1.5", 2.0), ("2.5", 3.0), ("-0.5", -1.0), ("-2.5", -3.0), ("0.4999999", 0.0)),
    "round(n, 2)": (("1.005", 1.01), ("-1.005", -1.01), ("2.345", 2.35), ("2.3449999", 2.34), ("1073.125", 1073.13)),
    "round(n, 0)": (("2.5", 3.0), ("-0.5", -1.0), ("7", 7.0)),
    "round(n, 20)": (("1.005", 1.005), ("-7", -7.0)),
    "round(n, -2)": (("1250", 1300.0), ("-1250", -1300.0), ("1249.9999", 1200.0)),
    "round(i, -2)": (("1250", 1300.0), ("-1350", -1400.0), ("123456789012345678", 123456789012345700.0)),
    "round(i)": (("7", 7.0), ("-7", -7.0)),
    "n::integer": (("2.5", 3.0), ("-2.5", -3.0)),
    "f::integer": (("2.5", 2.0), ("-2.5", -2.0), ("3.5", 4.0)),
}


@pytest.mark.parametrize("expression", HALVES)
def test_halves_are_rounded_as_postgresql_rounds_the_type(expression: str) -> None:
    """round(double precision) to even, round(numeric) away from zero."""
    values, results = zip(*HALVES[expression], strict=True)
    (measured,) = block_of(f"{expression} IS NULL").where
    assert isinstance(measured, Call)
    domains = Domains(block_of("TRUE"))
    text = Renderer(domains.column, domains.operands, "UTC", DUCKDB).measure(measured.args[0])
    with stored_as("DECIMAL(28,8)", values) as connection:
        rows = connection.execute(f"SELECT {text} FROM numbers AS s0 WHERE n IS NOT NULL ORDER BY rowid").fetchall()
    assert tuple(float(value) for (value,) in rows) == results
