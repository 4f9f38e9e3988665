"""Are the combinations of keys that are computed from one column complete, and as few as can be told?"""

from __future__ import annotations

from datetime import date

import pytest

from proxy.analysis.analyse import Analysed
from proxy.analysis.joint_keys import joints_of
from proxy.analysis.key_values import KeyValues
from proxy.analysis.keys import PublicKey, key_identity, public_product, public_size
from proxy.sql.algebra.nodes import columns_of
from proxy.sqltypes import Value
from tests.oracle import times
from tests.oracle.scalars import Evaluator, Reading
from tests.oracle.values import Stored
from tests.unit.analysis.samples import ROWS
from tests.unit.plan.shop import plan

TIER = "case when age < 18 then 'young' when age < 65 then 'middle' else 'old' end"
RANK = "case when age < 18 then 1 when age < 65 then 2 else 3 end"
TOGETHER = (
    (f"{TIER}, {RANK}", 3), (f"age, {TIER}", 112), ("age / 10, age / 20", 13), ("plan, upper(plan), length(plan)", 2),
    ("plan, case when plan = 'pro' then 'p' else 'other' end, age % 3", 8),
    ("date_trunc('month', joined), extract(year from joined)", 25),
    ("extract(month from joined), to_char(joined, 'Mon'), extract(quarter from joined)", 13),
    ("joined, extract(dow from joined), date_trunc('week', joined), date_trunc('year', joined)", 732),
    ("extract(month from born), case when extract(month from born) > 6 then 'late' end", None),
    ("plan, case when age > 50 then plan else 'x' end", None),  # of two columns
    ("plan, age", None), ("age, -age, city", 112), ("age < 40, case when length(plan) > 3 then 1 else 2 end", None),
)  # fmt: skip


def analysed(keys: str, where: str = "true") -> Analysed:
    return plan(f"select count(*) from users where {where} group by {keys}").analysed


@pytest.mark.parametrize(("keys", "size"), TOGETHER, ids=[keys for keys, _ in TOGETHER])
def test_every_combination_of_a_row_is_there(keys: str, size: int | None) -> None:
    found = analysed(keys)
    public = [k for k in found.keys if isinstance(k, PublicKey)]
    shown = {tuple(map(key_identity, combination)) for combination in public_product(found.keys, found.joints)}
    assert len(shown) == public_size(found.keys, found.joints)
    if size is not None:
        assert len(shown) == size
    evaluator = Evaluator(found.domains.column, "UTC")
    columns = {c for k in public for c in columns_of(k.scalar)}
    inside = [r for r in ROWS if all(evaluator.is_inside(c, evaluator.raw(c, r)) for c in columns)]
    assert inside
    for row in inside:
        values = tuple(_identity(evaluator.value(k.scalar, row, Reading.KEY)) for k in public)
        assert values in {tuple(map(_moment, one)) for one in shown}


def _identity(value: Stored) -> object:
    return key_identity(None) if value is None else key_identity(value)


def _moment(identity: object) -> object:
    return times.moment_of(identity) if isinstance(identity, date) else identity


def test_keys_of_a_column_that_is_only_said_to_be_constant_combine_freely() -> None:
    """Each of them is the least of a unit's rows, which need not be the same row."""
    found = analysed("age, -age")
    (column,) = columns_of(found.keys[0].scalar)
    listed = KeyValues(found.domains)
    assert joints_of(found.keys, found.domains, listed, frozenset())
    assert not joints_of(found.keys, found.domains, listed, frozenset((column,)))


def test_conditions_leave_fewer_combinations() -> None:
    found = analysed(f"{TIER}, {RANK}", "age between 20 and 40")
    assert public_product(found.keys, found.joints) == (("middle", 2),)
    assert found.bounds.groups == 1


def test_keys_keep_their_places() -> None:
    found = analysed("plan, age / 60, upper(plan), age / 120", "age >= 0")
    product = public_product(found.keys, found.joints)
    assert set(product) == {(p, a, p.upper(), 0) for p in ("free", "pro") for a in (0, 1)}


def test_many_keys_of_one_column_are_few_groups() -> None:
    """Freely combined they would be more than a statement may have."""
    keys: tuple[Value, ...] = ("joined", "date_trunc('week', joined)", "date_trunc('month', joined)")
    found = analysed(", ".join(map(str, keys)))
    assert public_size(found.keys) > 100_000
    assert len(public_product(found.keys, found.joints)) == 732
