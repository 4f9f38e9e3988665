"""What may stand beside a local table?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.analysis.local import check_local, reads_local
from proxy.analysis.owned import EveryRow
from proxy.analysis.units import own
from proxy.errors import UnitNotJoined, Unsupported
from proxy.sql.algebra.nodes import Block, Branch, Scan, UnionRows
from proxy.sql.relations.scope import Catalog
from tests.unit.plan.survey import ANSWERS, UNIQUE, WITH_LOCAL
from tests.unit.release.make import bound

TABLES = MappingProxyType({**WITH_LOCAL, "others": replace(ANSWERS, name="others")})


def block(query: str) -> Block:
    return bound(query, Catalog(TABLES)).block


@pytest.mark.parametrize("query", [
    "select count(*) from answers",
    "select count(*) from answers join cities on name = city where ill",
    "select canton, count(*) from answers left join cities on name = city group by 1",
    "select count(*) from answers where city in (select name from cities where canton = 'AG')",
    "select count(*) from (select city from answers where age > 3) a",
])  # fmt: skip
def test_rows_of_a_local_table_belong_to_nobody(query: str) -> None:
    found = own(block(query), TABLES, UNIQUE)
    assert reads_local(block(query))
    assert found.is_local
    assert found.unit == EveryRow()
    assert not any(s.table.is_promised for s in found.block.every_scan)


@pytest.mark.parametrize("query", [
    "select count(*) from answers join people using (id)",
    "select count(*) from people join answers using (id)",
    "select count(*) from people left join answers on people.id = answers.id",
    "select count(*) from answers left join people on people.id = answers.id",
    "select count(*) from answers where id in (select id from people)",
    "select count(*) from people where id in (select id from answers)",
    "select count(*) from people p where exists (select 1 from answers a where a.id = p.id)",
    "select count(*) from answers a where not exists (select 1 from people p where a.id = p.id)",
    "select count(*) from (select id from people union all select id from answers) t",
    "select count(*) from answers, lateral (select count(*) as n from people where people.id = answers.id) x",
    "select sum((select count(*) from people p where p.id = answers.id)) from answers",
    "select count(*) from answers a join answers b on a.id = b.id",
    "select count(*) from answers a join others b on a.id = b.id",
    "select count(*) from answers cross join people",
    "select count(*) from (select id from answers union all select id from others) t",
])  # fmt: skip
def test_local_rows_meet_rows_of_public_tables_alone(query: str) -> None:
    with pytest.raises(UnitNotJoined) as refused:
        own(block(query), TABLES, UNIQUE)
    assert "cannot be joined with" in refused.value.message
    assert refused.value.hint.startswith("Ask each table in a CTE of its own")


def test_rows_that_a_join_could_repeat_are_refused() -> None:
    """One stored value would stand in several rows, and intervals would be too narrow."""
    with pytest.raises(UnitNotJoined, match="could repeat rows"):
        own(
            block("select count(*) from answers join cities on name = city"),
            TABLES,
            replace(UNIQUE, columns=frozenset()),
        )


def test_a_sub_select_of_one_local_table_is_asked_about_itself() -> None:
    of = block("select count(*) from answers")
    (scan,) = of.scans
    put_together = UnionRows((), (Branch(of, (), ()),))
    made = replace(of, scans=(Scan(scan.number + 9, WITH_LOCAL["cities"], put_together),))
    with pytest.raises(Unsupported, match="cannot be put together in a sub-select") as refused:
        check_local(made)
    assert "SELECT count(*) FROM answers" in refused.value.hint
