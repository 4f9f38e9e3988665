"""Whose are the rows of sub-selects that are scans of their own?"""

from __future__ import annotations

import pytest

from proxy.errors import UnitNotJoined
from tests.unit.plan.shop import plan


def test_a_table_whose_rows_are_units_is_read_once_in_a_union() -> None:
    with pytest.raises(UnitNotJoined, match="stands twice"):
        plan("select count(*) from (select hours from census union all select hours + 1 from census) t")


def test_units_of_different_kinds_do_not_meet_in_a_union() -> None:
    with pytest.raises(UnitNotJoined, match="different types"):
        plan("select count(*) from (select hours from census union all select age from users) t")


def test_rows_found_along_a_path_have_the_unit_at_its_end() -> None:
    found = plan("select count(*) from (select qty from items union all select age from users) t").analysed
    assert (found.bounds.rows, found.bounds.groups) == (101, 1)
    (scan,) = found.owned.block.scans
    assert [c.name for c in scan.table.columns if c.key] == ["user_id"]
