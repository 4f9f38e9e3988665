"""What does a plan rest on besides the statement, and on which terms is it made?

The policy, facts about the data that are public, and what an asker wants and may spend. No rows, no engine, no ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from proxy.analysis.analyse import Lowered
from proxy.analysis.units import UniqueKeys
from proxy.dp.accounting import knob_pico, pool_atto
from proxy.dp.selection import delta_share
from proxy.pipeline.target import NO_TARGET, Target
from proxy.plan.profile.learned import with_limits
from proxy.plan.profile.profile import TableProfile
from proxy.plan.vector.weighting import Shares
from proxy.policy.model import Policy, Privacy, Table, UnitVia
from proxy.sql.relations.scope import Catalog
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.dialects import dialect_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Premises:
    """What all statements of a role are planned from, under one version of a policy; equal only to itself.

    tables: all of the policy, since what a role may not name may own what it may. named: those that it may name, as
    well as they are known. relations: of the schema `hush`. salt: see `Version`. profiles: what is known of units.
    has_looked: whether the values of public tables were looked for in the data.
    """

    dataset: str
    tables: Mapping[str, Table]
    named: Mapping[str, Table]
    relations: frozenset[str]
    unique: UniqueKeys
    privacy: Privacy
    dialect: Dialect
    salt: str
    profiles: tuple[TableProfile, ...] = ()
    has_looked: bool = True

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.named, self.dataset, self.tables)

    @property
    def private_names(self) -> frozenset[str]:
        """Of the tables that a statement may name, in lower case."""
        return frozenset(t.name.lower() for t in self.named.values() if not t.is_public)


def as_declared(
    policy: Policy, relations: Collection[str], profiles: tuple[TableProfile, ...] = (), salt: str = ""
) -> Premises:
    """Premises of who may name every table, without data: all holds that the policy says of them."""
    tables = with_limits(policy.tables, profiles)
    joined = {(j.table, j.ref_column) for t in policy.tables.values() for j in t.joins}
    via = [t.ownership for t in policy.tables.values() if isinstance(t.ownership, UnitVia)]
    return Premises(
        dataset=policy.dataset, tables=tables, named=tables, relations=frozenset(relations),
        unique=UniqueKeys(frozenset(joined | {(v.parent, v.parent_key) for v in via})), privacy=policy.privacy,
        dialect=dialect_of(policy.source), salt=salt, profiles=profiles, has_looked=False,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How one statement is to be planned, whatever it says.

    epsilon: of the whole statement. limits: rho of each account that pays and has a limit. max_charge: 0 is no cap.
    shares: how much each aggregate matters, () for alike. target: the accuracy that is wanted instead of an epsilon.
    bound: of a unit's vector, with weights of 1; 0 where it follows from the policy or a profile.
    """

    epsilon: float
    limits: tuple[int, ...] = ()
    max_charge: float = 0.0
    lowered: Lowered = field(default_factory=Lowered)
    shares: Shares = ()
    target: Target = NO_TARGET
    bound: float = 0.0


def atto_for_keys(limits: Collection[int], privacy: Privacy, pico: int) -> int:
    """The least share over the accounts, so that no account's pool runs out before its rho."""
    pool, limited = pool_atto(privacy), [limit for limit in limits if limit > 0]
    if not limited:
        return delta_share(pool, pico, max(pico, knob_pico(privacy, privacy.max_query_epsilon)))
    return min(delta_share(pool, min(pico, limit), limit) for limit in limited)
