"""What would a statement cost and how noisy would it be, without data, accounts or a server?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.analysis.analyse import Lowered
from proxy.analysis.units import UniqueKeys
from proxy.dp.accounting import knob_pico, limit_pico, pool_atto
from proxy.dp.selection import delta_share
from proxy.errors import HushError, Unsupported
from proxy.front.relations import RELATIONS
from proxy.plan.explain_sets import explain_plan, plan_lines
from proxy.plan.learned import LearnedTable, usable
from proxy.plan.release_plan import PlanContext
from proxy.plan.sets import Plan, plan_block
from proxy.policy.model import EpsilonLimit, Policy
from proxy.session.answer import share_of
from proxy.sql.block import bind_block
from proxy.sql.constants import Constants
from proxy.sql.dialects import dialect_of
from proxy.sql.parse import Statement, limited_depth, split_statements
from proxy.sql.scope import Catalog
from proxy.sql.split import split
from proxy.sql.table_command import write_out
from proxy.sql.unknown_names import check_tables


def dry_run(policy: Policy, sql: str, *, as_json: bool, learned: Sequence[LearnedTable] = ()) -> str:
    """The privacy plan of one statement at the policy's default epsilon. Raises HushError.

    Keys that public tables are joined on count as unique: a served dataset checks that on its data.
    """
    statements = split_statements(sql)
    if len(statements) != 1:
        raise Unsupported("expected one statement", hint="Give one SELECT.")
    private = [t.name for t in policy.tables.values() if not t.is_public]
    written = write_out(statements[0])
    try:
        with limited_depth():
            if not {t.text.lower() for t in statements[0].tokens} & {name.lower() for name in private}:
                check_tables(written.statement, policy.tables)
                raise _no_plan(private)
            plans = _plans(policy, written.statement, learned)
    except HushError as error:
        error.position = statements[0].start + written.original(error.position) if error.position else 0
        raise
    blocks = [explain_plan(p, policy.privacy) for p in plans]
    if as_json:
        return json.dumps({"epsilon": policy.privacy.query_epsilon, "releases": blocks}, indent=2)
    lines = [f"Privacy plan: epsilon {policy.privacy.query_epsilon:g} at delta {policy.privacy.delta:g}"]
    for block in blocks:
        lines += plan_lines(block)
    return "\n".join(lines)


def _plans(policy: Policy, statement: Statement, learned: Sequence[LearnedTable]) -> list[Plan]:
    catalog = Catalog(policy.tables, policy.dataset)
    cut = split(statement, catalog, frozenset(RELATIONS))
    if not cut.blocks:
        raise _no_plan([t.name for t in policy.tables.values() if not t.is_public])
    constants = Constants({}, datetime.now(ZoneInfo(policy.privacy.time_zone)))
    bound = [bind_block(b, catalog, constants, cut.text) for b in cut.blocks]
    share = share_of(knob_pico(policy.privacy, policy.privacy.query_epsilon), len({b.block for b in bound}))
    unique = {(k.table, k.ref_column) for t in policy.tables.values() for k in t.joins}
    context = PlanContext(
        tables=policy.tables, unique=UniqueKeys(frozenset(unique)), privacy=policy.privacy,
        lowered=Lowered(learned=usable(learned, policy.privacy, share)),
        pico=share, atto_for_keys=_delta(policy, share), salt="", dialect=dialect_of(policy.source),
    )  # fmt: skip
    return [plan_block(b.block, context) for b in bound]


def _no_plan(private: list[str]) -> Unsupported:
    return Unsupported(
        "the statement reads no private table of this policy",
        detail="PostgreSQL answers it exactly and free, or refuses it; there is no privacy plan.",
        hint=f"Give a SELECT with aggregates over a private table: {', '.join(private)}.",
    )


def _delta(policy: Policy, pico: int) -> int:
    """The share of the dataset account's pool; the least any account can give when it is the largest."""
    limit = policy.budgets.dataset
    epsilon = limit.epsilon if isinstance(limit, EpsilonLimit) else policy.privacy.max_query_epsilon
    return delta_share(pool_atto(policy.privacy), pico, max(pico, limit_pico(policy.privacy, epsilon)))
