"""Where are profiles kept, and which of them still fit the policy?

In one file for each dataset in the state directory. A profile is kept with what it was made of: whose rows they are,
what is promised, and what the policy says of a column. Where it says something else now, that part is left out, and
that is said. Other data are no reason: an older profile is as private; EXPLAIN and notices tell which it is. A profile
is kept with the releases that it was made of too: it serves the dataset whose account has paid for them, and no other
over the same data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from proxy.admin.files import read_text, replace_text
from proxy.errors import ConfigError
from proxy.ledger.base import Ledger
from proxy.plan.charge import Account, Cost, ReleaseKey, Request
from proxy.plan.parts.cells import MOST_CELLS, cells_of
from proxy.plan.profile.profile import BUCKETS, ColumnShares, PaidPart, ProfilePart, Sizes, TableProfile, UnitMeans
from proxy.policy.model import Policy, UnitVia
from proxy.release.store import StoredRelease
from proxy.session.learning.profile_questions import allowed_rows
from proxy.session.learning.profiling import Wish

_Number = Field(ge=-1e300, le=1e300, allow_inf_nan=False)
_Positive = Field(gt=0, le=1e300, allow_inf_nan=False)
_Count = Field(ge=-1e12, le=1e12, allow_inf_nan=False)  # of units, and of their noise: forecasts multiply them
_Noise = Field(ge=1e-6, le=1e12, allow_inf_nan=False)


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Sizes(_Kept):
    least: float = _Positive
    counts: list[Annotated[float, _Count]] = Field(min_length=BUCKETS, max_length=BUCKETS)
    sd: float = _Noise


class _Sum(_Kept):
    column: str
    largest: float = _Positive
    sizes: _Sizes
    of: str


class _Groups(_Kept):
    column: str
    sizes: _Sizes
    of: str


class _Means(_Kept):
    column: str
    ends: list[Annotated[float, _Number]] = Field(min_length=2, max_length=MOST_CELLS + 1)
    counts: list[Annotated[float, _Count]] = Field(min_length=1, max_length=MOST_CELLS)
    sd: float = _Noise
    of: str

    @model_validator(mode="after")
    def _check(self) -> Self:
        UnitMeans(self.column, tuple(self.ends), tuple(self.counts), self.sd)
        return self


class _Shares(_Kept):
    column: str
    rows: list[Annotated[float, _Count]] = Field(min_length=1, max_length=MOST_CELLS + 1)
    pairs: list[Annotated[float, _Count]] = Field(min_length=1, max_length=MOST_CELLS + 1)
    sd: float = _Noise
    of: str

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.rows) != len(self.pairs):
            raise ValueError("each cell has two shares")
        return self


class _Paid(_Kept):
    part: ProfilePart
    column: str
    fingerprint: str
    policy_digest: str
    data_version: str
    pico: int = Field(gt=0)


class _Table(_Kept):
    table: str
    rows: _Sizes
    sums: list[_Sum]
    shares: list[_Shares] = Field(default_factory=list)
    means: list[_Means] = Field(default_factory=list)
    groups: list[_Groups] = Field(default_factory=list)
    paid: list[_Paid] = Field(default_factory=list)
    earlier_pico: int = Field(default=0, ge=0)
    data_version: str
    of: str


class _File(_Kept):
    dataset: str = ""
    tables: list[_Table]


def path_of(state: Path, dataset: str) -> Path:
    """The file of one dataset."""
    return state / f"{dataset}.profile.json"


def read_profiles(path: Path, policy: Policy) -> tuple[tuple[TableProfile, ...], tuple[str, ...]]:
    """What fits the policy, and what is said of the rest. Without a file, nothing. Raises ConfigError if damaged."""
    found, said, file = [], [], _read(path)
    if file.tables and file.dataset != policy.dataset:
        whose = f'of dataset "{file.dataset}"' if file.dataset else "not told whose account has paid for"
        return (), (f"the profiles in {path} are {whose} and are not used; hushql profile makes a new one",)
    for kept in file.tables:
        if kept.of != _facts(policy, kept.table):
            said.append(f'the profile of table "{kept.table}" was made under another policy and is not used')
            continue
        sums = [s for s in kept.sums if s.of == _facts(policy, kept.table, s.column)]
        said += [
            f'the sums of "{kept.table}"."{s.column}" were profiled under another policy and are not used'
            for s in kept.sums if s not in sums
        ]  # fmt: skip
        shares = [s for s in kept.shares if s.of == _facts(policy, kept.table, s.column, is_cut=True)]
        said += [
            f'the shares of "{kept.table}"."{s.column}" were profiled under another policy and are not used'
            for s in kept.shares if s not in shares
        ]  # fmt: skip
        if kept.data_version != policy.data_version:
            said.append(f'the profile of table "{kept.table}" is of data version {kept.data_version}')
        found.append(TableProfile(
            table=kept.table, allowed=allowed_rows(policy.tables[kept.table]), rows=_of(kept.rows),
            newer=policy.data_version if kept.data_version != policy.data_version else "",
            sums=tuple((s.column, s.largest, _of(s.sizes)) for s in sums), data_version=kept.data_version,
            paid=tuple(map(_paid, kept.paid)), earlier_pico=kept.earlier_pico,
            shares=tuple(
                ColumnShares(column=s.column, rows=tuple(s.rows), pairs=tuple(s.pairs), sd=s.sd) for s in shares
            ),
            groups=tuple(
                (g.column, _of(g.sizes)) for g in kept.groups if g.of == _facts(policy, kept.table, g.column)
            ),
            means=tuple(
                UnitMeans(m.column, tuple(m.ends), tuple(m.counts), m.sd)
                for m in kept.means if m.of == _facts(policy, kept.table, m.column, is_cut=True)
            ),
        ))  # fmt: skip
    return tuple(found), tuple(f"{line}; hushql profile makes a new one" for line in said)


def is_kept(path: Path, policy: Policy, wishes: Sequence[Wish]) -> bool:
    """Whether all sizes that are wished for are there, of the data that the policy names. Raises ConfigError."""
    of = {p.table: p for p in read_profiles(path, policy)[0] if p.data_version == policy.data_version}
    return all(
        w.table.name in of
        and all(of[w.table.name].sum_of(column) is not None for column in w.columns)
        and all(of[w.table.name].shares_of(column) is not None for column in w.shares)
        and all(of[w.table.name].groups_of(column) is not None for column in w.groups)
        for w in wishes
    )


def keep_profiles(path: Path, policy: Policy, profiles: Sequence[TableProfile]) -> None:
    """Put profiles into the file, in place of what it says of the same. Raises ConfigError."""
    file = _read(path)
    kept = {t.table: t for t in file.tables} if file.dataset == policy.dataset else {}
    for one in profiles:
        old, named = kept.get(one.table), {column for column, _, _ in one.sums}
        left = [s for s in old.sums if s.column not in named] if old is not None else []
        new = [
            _Sum(column=c, largest=most, sizes=_sizes(s), of=_facts(policy, one.table, c)) for c, most, s in one.sums
        ]
        grouped = {column for column, _ in one.groups}
        groups = [g for g in old.groups if g.column not in grouped] if old is not None else []
        groups += [_Groups(column=c, sizes=_sizes(s), of=_facts(policy, one.table, c)) for c, s in one.groups]
        meant = {m.column for m in one.means}
        means = [m for m in old.means if m.column not in meant] if old is not None else []
        means += [
            _Means(column=m.column, ends=list(m.ends), counts=list(m.counts), sd=m.sd,
                   of=_facts(policy, one.table, m.column, is_cut=True))
            for m in one.means
        ]  # fmt: skip
        shared = {s.column for s in one.shares}
        shares = [s for s in old.shares if s.column not in shared] if old is not None else []
        shares += [
            _Shares(column=s.column, rows=list(s.rows), pairs=list(s.pairs), sd=s.sd,
                    of=_facts(policy, one.table, s.column, is_cut=True))
            for s in one.shares
        ]  # fmt: skip
        paid, earlier = _merged(old, one)
        kept[one.table] = _Table(table=one.table, rows=_sizes(one.rows), sums=[*left, *new],
                                 shares=shares, means=means, groups=groups, paid=paid, earlier_pico=earlier,
                                 data_version=one.data_version, of=_facts(policy, one.table))  # fmt: skip
    replace_text(path, _File(dataset=policy.dataset, tables=list(kept.values())).model_dump_json() + "\n")


def _merged(old: _Table | None, new: TableProfile) -> tuple[list[_Paid], int]:
    """The releases that a table's profile is made of once a new one is in it, and what those cost that it replaces."""
    before = {(p.part, p.column): p for p in old.paid} if old is not None else {}
    now = {(p.part, p.column): _kept_paid(p) for p in new.paid}
    replaced = sum(before[part].pico for part in now if part in before and before[part] != now[part])
    return [*{**before, **now}.values()], replaced + (old.earlier_pico if old is not None else 0)


def _kept_paid(of: PaidPart) -> _Paid:
    key, pico = of.request.key, of.request.cost.pico
    return _Paid(part=of.part, column=of.column, fingerprint=key.fingerprint, policy_digest=key.policy_digest,
                 data_version=key.data_version, pico=pico)  # fmt: skip


def _paid(of: _Paid) -> PaidPart:
    key = ReleaseKey(fingerprint=of.fingerprint, policy_digest=of.policy_digest, data_version=of.data_version)
    return PaidPart(of.part, of.column, Request(key=key, cost=Cost(of.pico, 0)))


def with_paid(
    profiles: Sequence[TableProfile], ledger: Ledger, payer: Account
) -> tuple[tuple[TableProfile, ...], tuple[str, ...]]:
    """Those whose releases a dataset's account has paid for, and what is said of the others. Raises LedgerFailed.

    Claim (docs/claims/profile.md): of two datasets over one source each is served by what its own account paid for.
    """
    served = tuple(p for p in profiles if p.paid and all(_is_stored(one, ledger, payer) for one in p.paid))
    said = (
        f'the profile of table "{p.table}" was not paid for by the account of {payer.name} and is not used;'
        " hushql profile makes a new one"
        for p in profiles if p not in served
    )  # fmt: skip
    return served, tuple(said)


def _is_stored(one: PaidPart, ledger: Ledger, payer: Account) -> bool:
    return isinstance(ledger.seen((payer,), one.request.key), StoredRelease)


def _read(path: Path) -> _File:
    if not path.exists():
        return _File(tables=[])
    try:
        return _File.model_validate_json(read_text(path, "profiles"))
    except ValidationError:
        raise ConfigError(f"{path} is damaged", hint="Remove it, and run hushql profile again.") from None


def _of(sizes: _Sizes) -> Sizes:
    return Sizes(sizes.least, tuple(sizes.counts), sizes.sd)


def _sizes(sizes: Sizes) -> _Sizes:
    return _Sizes(least=sizes.least, counts=list(sizes.counts), sd=sizes.sd)


def _facts(policy: Policy, name: str, column: str = "", *, is_cut: bool = False) -> str:
    """What the policy says of a table's rows and units, or of one of its columns too. is_cut: and its cells."""
    table = policy.tables.get(name)
    if table is None:
        return ""
    privacy = policy.privacy
    said: list[object] = [table.relation, table.unit_unique, privacy.unit, privacy.accounting, privacy.promise]
    of = table
    while isinstance(path := of.ownership, UnitVia):
        said.append(path)
        of = policy.tables[path.parent]
    said.append(of.ownership)
    if column:
        found = table.column(column)
        said += [found, *((cells_of(found),) if is_cut and found is not None else ())]
    return hashlib.sha256(repr(said).encode()).hexdigest()
