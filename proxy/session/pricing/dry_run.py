"""What would a statement cost and how noisy would it be, without data, accounts or a server?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.dp.accounting import limit_pico, usual_epsilon
from proxy.errors import HushError
from proxy.front.relations import RELATIONS
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts
from proxy.pipeline.plans import Task, plan_statement, together
from proxy.pipeline.premises import Terms, as_declared
from proxy.pipeline.stages import beginning, prices, rehearse
from proxy.pipeline.statements import Understood
from proxy.plan.charge import Cost
from proxy.plan.profile.profile import TableProfile
from proxy.plan.sets.sets import Plan
from proxy.plan.words.explain import Json
from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.policy.figures import figure
from proxy.policy.model import EpsilonLimit, Policy
from proxy.session.contract import Piece
from proxy.session.pricing.explain import amounts, later_lines
from proxy.session.pricing.payment import left_after
from proxy.sql.algebra.constants import Constants, Unread, not_understood

#: How the lines of a plan begin that say how far off its numbers are, and which groups are not shown.
_TOLD = ("Output ", "Threshold", "Bound: ")


@dataclass(frozen=True, slots=True)
class _Releases:
    """What can be planned of a statement now, and the most that its later releases cost."""

    plans: tuple[Plan, ...]
    later: tuple[Cost, ...]


def dry_run(policy: Policy, sql: str, *, as_json: bool, profiles: Sequence[TableProfile] = ()) -> str:
    """The privacy plan of one statement at the policy's default epsilon. Raises HushError.

    What a served proxy answers is explained, as it would be planned there for somebody who may name every table. Keys
    that tables are joined on count as unique: a served dataset checks that on its data.
    """
    found = _planned(policy, sql, profiles)
    blocks = [explain_plan(p, policy.privacy) for p in found.plans]
    later: list[Json] = [{"charge": amounts(cost, policy.privacy)} for cost in found.later]
    if as_json:
        return json.dumps({"epsilon": usual_epsilon(policy.privacy), "releases": blocks, "later": later}, indent=2)
    lines = [f"Privacy plan: epsilon {figure(usual_epsilon(policy.privacy), 6)} at delta {policy.privacy.delta:g}"]
    for block in blocks:
        lines += plan_lines(block)
    return "\n".join([*lines, *later_lines(later), *([] if blocks or later else ["Nothing is released, it is free."])])


@dataclass(frozen=True, slots=True)
class Expected:
    """The charge of a statement's releases, and a line for each number that it would give."""

    cost: Cost
    outputs: tuple[str, ...]


def expected(policy: Policy, sql: str, profiles: Sequence[TableProfile] = ()) -> Expected:
    """What one statement would cost at the policy's default epsilon, and how far off it would be. Raises HushError."""
    found = _planned(policy, sql, profiles)
    lines = [line for plan in found.plans for line in plan_lines(explain_plan(plan, policy.privacy))]
    cost = sum((*(plan.cost for plan in found.plans), *found.later), Cost(0, 0))
    return Expected(cost, tuple(line.strip() for line in lines if line.strip().startswith(_TOLD)))


def _planned(policy: Policy, sql: str, profiles: Sequence[TableProfile]) -> _Releases:
    premises = as_declared(policy, RELATIONS, tuple(profiles))
    cuts = Cuts()
    piece = read_alone(cuts, sql, premises)
    try:
        return _releases(cuts, piece, _terms(policy))
    except Unread as unread:
        raise not_understood(unread) from None
    except HushError as error:
        error.position += piece.start if error.position else 0
        raise


def _terms(policy: Policy) -> Terms:
    """Those of somebody who pays with the dataset's account alone."""
    limit = policy.budgets.dataset
    limits = (limit_pico(policy.privacy, limit.epsilon),) if isinstance(limit, EpsilonLimit) else ()
    return Terms(epsilon=usual_epsilon(policy.privacy), limits=limits)


def _releases(cuts: Cuts, piece: Piece, terms: Terms) -> _Releases:
    """What a statement releases. Raises HushError if it cannot be answered, whatever its first stages release."""
    handle = piece.handle
    if not isinstance(handle, Understood):
        return _Releases((), ())
    constants = Constants({}, datetime.now(ZoneInfo(handle.premises.privacy.time_zone)))
    priced = prices(handle, terms)
    if priced.share:
        rehearse(cuts, handle, terms, constants, priced.share)
    try:
        begins = beginning(cuts, handle, terms, constants)
        tasks = [Task(query=q, premises=handle.premises, terms=terms, constants=constants, share=begins.prices.share)
                 for q in begins.queries]  # fmt: skip
        planned = together([plan_statement(cuts, task) for task in tasks])
    except HushError as error:
        error.position = handle.position(error.position)
        raise
    plans = planned.distinct()
    return _Releases(plans, () if begins.is_whole else left_after(begins.prices.most, plans))
