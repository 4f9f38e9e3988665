"""Where are learned bounds kept, and which of them still fit the policy?

In one file for each dataset in the state directory. A bound is kept with what it was learned of: whose rows they are,
how many the policy allows a unit, what it says of a column. Where the policy says something else now, the bound is left
out, and that is said. Other data are no reason: an older bound is as private, and nearly as good; EXPLAIN tells which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.admin.files import read_text, replace_text
from proxy.errors import ConfigError
from proxy.plan.learned import LearnedBound, LearnedTable
from proxy.policy.model import Policy, UnitVia


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Bound(_Kept):
    value: float = Field(gt=0, le=1e300, allow_inf_nan=False)
    above: int = Field(ge=0, le=2**62)


class _Sum(_Kept):
    column: str
    largest: float = Field(gt=0, le=1e300, allow_inf_nan=False)
    bound: _Bound
    of: str


class _Table(_Kept):
    table: str
    allowed: int = Field(ge=1)
    rows: _Bound | None
    sums: list[_Sum]
    data_version: str
    of: str


class _File(_Kept):
    tables: list[_Table]


def path_of(state: Path, dataset: str) -> Path:
    """The file of one dataset."""
    return state / f"{dataset}.bounds.json"


def read_learned(path: Path, policy: Policy) -> tuple[tuple[LearnedTable, ...], tuple[str, ...]]:
    """What fits the policy, and what is said of the rest. Without a file, nothing. Raises ConfigError if damaged."""
    found, said = [], []
    for kept in _read(path).tables:
        if kept.of != _facts(policy, kept.table):
            said.append(f'bounds of table "{kept.table}" were learned under another policy and are not used')
            continue
        sums = [s for s in kept.sums if s.of == _facts(policy, kept.table, s.column)]
        said += [
            f'the bound of sums of "{kept.table}"."{s.column}" was learned under another policy and is not used'
            for s in kept.sums if s not in sums
        ]  # fmt: skip
        if kept.data_version != policy.data_version:
            said.append(f'bounds of table "{kept.table}" were learned from data version {kept.data_version}')
        totals = tuple((s.column, s.largest, _of(s.bound)) for s in sums)
        rows = None if kept.rows is None else _of(kept.rows)
        found.append(LearnedTable(table=kept.table, allowed=kept.allowed, rows=rows, totals=totals,
                                  data_version=kept.data_version))  # fmt: skip
    return tuple(found), tuple(f"{line}; hushql learn-bounds learns anew" for line in said)


def keep_learned(path: Path, policy: Policy, learned: Sequence[LearnedTable]) -> None:
    """Add what was learned to the file, in place of what it says of the same. Raises ConfigError."""
    before = {t.table: t for t in _read(path).tables}
    for one in learned:
        old = before.get(one.table)
        named = {column for column, _, _ in one.totals}
        left = [s for s in old.sums if s.column not in named] if old is not None else []
        new = [_Sum(column=c, largest=most, bound=_bound(b), of=_facts(policy, one.table, c))
               for c, most, b in one.totals]  # fmt: skip
        before[one.table] = _Table(
            table=one.table, allowed=one.allowed, rows=None if one.rows is None else _bound(one.rows),
            sums=[*left, *new], data_version=one.data_version, of=_facts(policy, one.table),
        )  # fmt: skip
    replace_text(path, _File(tables=list(before.values())).model_dump_json(indent=2) + "\n")


def _read(path: Path) -> _File:
    if not path.exists():
        return _File(tables=[])
    try:
        return _File.model_validate_json(read_text(path, "learned bounds"))
    except ValidationError:
        raise ConfigError(f"{path} is damaged", hint="Remove it, and run hushql learn-bounds again.") from None


def _of(bound: _Bound) -> LearnedBound:
    return LearnedBound(bound.value, bound.above)


def _bound(bound: LearnedBound) -> _Bound:
    return _Bound(value=bound.value, above=bound.above)


def _facts(policy: Policy, name: str, column: str = "") -> str:
    """What the policy says of a table's rows and units, or of one of its columns too."""
    table = policy.tables.get(name)
    if table is None:
        return ""
    said: list[object] = [table.relation, table.rows_per_unit, table.unit_unique]
    of = table
    while isinstance(path := of.ownership, UnitVia):
        said.append(path)
        of = policy.tables[path.parent]
    said.append(of.ownership)
    if column:
        said.append(table.column(column))
    return hashlib.sha256(repr(said).encode()).hexdigest()
