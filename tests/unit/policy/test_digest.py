"""Have two policies the same digest where they mean the same, and only there?"""

from __future__ import annotations

from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.policy.digest import policy_digest
from proxy.policy.document import SourceDocument
from proxy.policy.load import load_policy
from proxy.policy.model import Column, Policy, Privacy, Table, UnitColumns
from proxy.sqltypes import SqlType, Value
from tests.unit.policy.case_files import BASE


def load(text: str, **environment: str) -> Policy:
    return load_policy(text, filename="etc/p.yaml", environment=environment)


def edited(old: str, new: str) -> Policy:
    assert old in BASE
    return load(BASE.replace(old, new, 1))


BASE_DIGEST = load(BASE).digest


@pytest.mark.parametrize(
    "old, new",
    [
        ("version: 1", "# a comment\nversion:   1"),
        ("bounds: [0, 110]", "bounds: [0x0, 110]"),
        ("epsilon: 20", "epsilon: 25"),
        ("data_version: v1", "data_version: v2"),
        ("public: true", "public: true\n    comment: words"),
        ("budgets:", "limits: {max_sessions: 5}\nbudgets:"),
        ("delta: 1e-6", "delta: 0.000001\n  delta_pool: 5e-7"),
        ("delta: 1e-6", "delta: 1e-6\n  query_epsilon: 0.25"),
        ("user: {epsilon: 10}", "user: {epsilon: 10, questions: 100}"),
    ],
)
def test_digest_is_the_same_when_the_meaning_is(old: str, new: str) -> None:
    assert edited(old, new).digest == BASE_DIGEST


def test_digest_does_not_depend_on_order_of_tables_or_place_of_the_file() -> None:
    stores = BASE[BASE.index("  stores:") :]
    assert load(BASE.replace(stores, "").replace("tables:\n", "tables:\n" + stores)).digest == BASE_DIGEST
    assert load_policy(BASE, filename="/elsewhere/q.yaml", environment={}).digest == BASE_DIGEST


@pytest.mark.parametrize(
    "old, new",
    [
        ("dataset: shop", "dataset: shop2"),
        ("data/shop.duckdb", "data/shop2.duckdb"),
        ("delta: 1e-6", "delta: 2e-6"),
        ("bounds: [0, 110]", "bounds: [0, 111]"),
        ("{type: integer, bounds: [0, 110]}", "{type: bigint, bounds: [0, 110]}"),
        ("max_rows_per_unit: 60", "max_rows_per_unit: 59"),
        ("[free, pro, team]", "[pro, free, team]"),
        ("{type: text}", "{type: text, hidden: true}"),
        ("unit_unique: true", "unit_unique: true\n    unit_filter: allow"),
        ("bounds: [0, 1000]", "bounds: [0, 1000.5]"),
    ],
)
def test_digest_changes_with_the_meaning(old: str, new: str) -> None:
    assert edited(old, new).digest != BASE_DIGEST


UNMEANT = {
    Privacy: {"confirm", "profile", "query_epsilon", "questions", "raw_select", "tell_cut"},
    Table: {"comment"},
    Column: {"comment", "limited_digits"},
}
SOURCE = SourceDocument.model_validate({"engine": "duckdb", "path": "shop.duckdb", "data_version": "1"})


@pytest.mark.parametrize(
    ("of", "name"),
    [(of, field.name) for of in (Privacy, Table, Column) for field in fields(of)],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_every_fact_changes_the_digest(of: type, name: str) -> None:
    """Each field of what a policy says of its promise, tables and columns, but those named above."""
    column = Column(name="city", type=SqlType.TEXT)
    table = Table(name="users", relation=("users",), ownership=UnitColumns(("id",)), columns=(column,))
    facts: dict[type, object] = {Privacy: Privacy(unit="customer"), Table: table, Column: column}

    def digest() -> str:
        privacy, of_table = facts[Privacy], facts[Table]
        assert isinstance(privacy, Privacy)
        assert isinstance(of_table, Table)
        return policy_digest("shop", SOURCE, privacy, (of_table,))

    before = digest()
    object.__setattr__(facts[of], name, "changed")
    assert (digest() == before) is (name in UNMEANT[of])


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("postgresql://a:secret@h/db", "postgresql://b:word@h/db", True),
        ("postgresql://a:se/cr@et@h/db", "postgresql://h/db", True),
        ("postgresql://h/db", "postgresql://h2/db", False),
        ("postgresql://h/db", "postgresql://h/db2", False),
        ("host=h dbname=db password=secret", "dbname=db user=x host=h password='w o'", True),
        ("host=h dbname=db", "host=h dbname=db2", False),
    ],
)
def test_digest_has_the_server_and_no_secret(one: str, other: str, same: bool) -> None:
    text = BASE.replace("duckdb\n  path: data/shop.duckdb", "postgres\n  dsn: ${DSN}")
    assert (load(text, DSN=one).digest == load(text, DSN=other).digest) is same


def test_value_types_are_all_canonical() -> None:
    values: tuple[Value, ...] = (True, 1, 1.0, Decimal("1.5"), "1", date(2024, 1, 1), datetime(2024, 1, 1))
    assert len({repr(v) for v in values}) == len(values)


def test_a_cluster_counts_by_its_server_and_not_by_its_token() -> None:
    def digest(url: str, token: str) -> str:
        source = f"spark\n  url: {url}\n  token: ${{TOKEN}}\n  immutable: true"
        return load(BASE.replace("duckdb\n  path: data/shop.duckdb", source), TOKEN=token).digest

    one = digest("sc://lake:443/;use_ssl=true", "a")
    assert digest("sc://lake:443/;use_ssl=true;user_id=x", "b") == one
    assert digest("sc://other:443", "a") != one
