"""What is a client told about the charge of a statement?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from proxy.dp.accounting import epsilon_spent
from proxy.errors import BudgetSpent
from proxy.ledger.base import AccountSpent, Balance, Receipt, Shortfall
from proxy.plan.charge import AccountKind, Cost
from proxy.plan.profile.left_out import About, LeftOut, Untold, told
from proxy.plan.release_plan import Threshold
from proxy.plan.reuse.derive import Derived
from proxy.plan.sets.sets import Plan, unpromised
from proxy.plan.unpromised import local_table, protected_words
from proxy.plan.words.lost import lost_in
from proxy.plan.words.outputs import OutputNoise
from proxy.plan.words.repeats import repeated_rows
from proxy.plan.words.wide import too_wide
from proxy.policy.figures import figure
from proxy.policy.model import Privacy
from proxy.release.cut_units import CutShare, cut_share, cut_words
from proxy.release.noisy import NoisyCells
from proxy.session.contract import Notice
from proxy.session.pricing.windows import left_of
from proxy.sqltypes import SqlType
from proxy.wire.exchange import CHARGED, FREE

_WARN_AT = (0.95, 0.80)
_SMALLEST_KNOB = 0.001
_UTC = frozenset(("UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal"))
_INCLUDED = "hush.low and hush.high of counts and sums include it; averages and ratios may be off either way."
_ONCE = "The administrator can have it told for all statements: hushql profile. This is said once in a session."
_COUNTED = (
    "Counts and sums are smaller by these rows, averages and ratios may be off either way. With a profile it is told by"
    " how much, and bounds are chosen by it: the administrator runs hushql profile."
)
_HIDDEN = (
    "Another epsilon lowers it, a coarser GROUP BY makes larger groups; listed values are always shown: see EXPLAIN."
)
NO_ANSWER: Mapping[str, NoisyCells] = MappingProxyType({})
_REPEAT = "Statements that were answered before can be repeated at no charge."


def charge_notices(receipt: Receipt, privacy: Privacy, *, is_admin: bool) -> tuple[Notice, ...]:
    """One NOTICE of what was charged and what is left, and a WARNING when an account runs low.

    Only the caller's own accounts are named unless the caller is an admin.
    """
    own = [
        (balance, charged)
        for balance, charged in zip(receipt.balances, receipt.charged, strict=True)
        if is_admin or balance.account.kind.is_own
    ]
    charge = _charge({balance.account.kind: charged.pico for balance, charged in own}, privacy)
    left = ", ".join(_left(balance, receipt.balances, privacy) for balance, _ in own)
    code = CHARGED if any(charged.pico for _, charged in own) else FREE
    notice = Notice(severity="NOTICE", sqlstate=code, message=f"{charge}; left: {left}")
    return (notice, *(w for balance, charged in own for w in _warnings(balance, charged)))


def local_notices(plans: Iterable[Plan], privacy: Privacy) -> tuple[Notice, ...]:
    """A NOTICE for each local table that an answer is about: what protects its rows, for which nothing is charged."""
    found = {table.name: table for table in map(local_table, unpromised(plans))}
    return tuple(
        Notice(
            severity="NOTICE", sqlstate="00000",
            message=f"nothing is charged for {table.name}: protected when collected, {protected_words(table, privacy)}",
        )
        for table in found.values()
    )  # fmt: skip


def zone_notices(types: frozenset[SqlType], session_zone: str, privacy: Privacy) -> tuple[Notice, ...]:
    """A NOTICE when days and months of private times are not those of the session, as those of constants are."""
    zones = {"UTC" if zone in _UTC else zone for zone in (session_zone or privacy.time_zone, privacy.time_zone)}
    if SqlType.TIMESTAMPTZ not in types or len(zones) == 1:
        return ()
    text = f"private times are computed in the time zone {privacy.time_zone}, constants are read in {session_zone}"
    return (Notice(severity="NOTICE", sqlstate="00000", message=text),)


def rank_notices(outputs: tuple[OutputNoise, ...]) -> tuple[Notice, ...]:
    """A NOTICE that answers are approximate which look like somebody's own value."""
    found = []
    if errors := [o.half_width_95 for o in outputs if o.is_of_ranks]:
        rows = f"{math.ceil(max(errors)):,} rows or fewer off (95 %)"
        found.append(f"min, max and percentiles are approximate: public values, chosen by ranks that are {rows}")
    if short := [o.half_width_95 for o in outputs if o.is_of_mode]:
        rows = f"{math.ceil(max(short)):,} rows short of the most frequent"
        found.append(f"mode() is approximate: a value that is {rows} is given with a chance of at most 5 %")
    return tuple(Notice(severity="NOTICE", sqlstate="00000", message=text) for text in found)


def reuse_notices(derived: Iterable[Derived]) -> tuple[Notice, ...]:
    """A NOTICE that an answer was computed from another one."""
    if not any(True for _ in derived):
        return ()
    text = "computed from another answer that your accounts paid for; SET hush.fresh = on asks anew"
    return (Notice(severity="NOTICE", sqlstate="00000", message=text),)


def repeat_notices(plans: Iterable[Plan], unit: str) -> tuple[Notice, ...]:
    """A NOTICE that a join repeats rows, of which more are left out than may be thought."""
    found = dict.fromkeys(r for p in plans if (r := repeated_rows(p, unit)) is not None)
    return tuple(
        Notice(severity="NOTICE", sqlstate="00000", message=r.what, detail=f"{r.cut} {r.instead}") for r in found
    )


def clamp_notices(plans: Iterable[Plan], unit: str) -> tuple[Notice, ...]:
    """A NOTICE for each aggregate of what units have that a clamp would make of use."""
    found = dict.fromkeys(w for p in plans for w in too_wide(p, unit))
    return tuple(Notice(severity="NOTICE", sqlstate="00000", message=w.what, detail=w.instead) for w in found)


def threshold_notices(plans: Iterable[Plan], unit: str) -> tuple[Notice, ...]:
    """A NOTICE of the size from which groups are shown whose values nobody listed.

    Claim: a function of the profiles, the price, the policy and the text.
    """
    every = [p for plan in plans for p in plan.plans]
    highest = max((p.selection.tau for p in every if isinstance(p.selection, Threshold)), default=0.0)
    if highest <= 1.0:
        return ()
    what = "groups and values" if any(p.elects for p in every) else "groups"
    text = f"{what} of fewer than about {figure(highest, 2)} {unit}s are not shown"
    return (Notice(severity="NOTICE", sqlstate="00000", message=text, detail=_HIDDEN),)


def left_out_notices(
    plans: Sequence[Plan], unit: str, cells: Mapping[str, NoisyCells] = NO_ANSWER
) -> tuple[Notice, ...]:
    """A NOTICE of what bounding leaves out, of how many units, or that nothing tells. cells: of an answer, by plan.

    Claim: a function of the profiles, the price, the policy, the text and noisy numbers of the answer.
    """
    every = (p for plan in plans for p in plan.plans)
    counted = [_cut(of, unit) for of in _cut_shares(plans, cells) if of.is_worth_saying]
    untold = (of for of in dict.fromkeys(p.left_out for p in every) if not (cells and _is_counted(of)))
    return (*dict.fromkeys(counted), *(n for of in untold for n in _left_out(of, unit)))


def left_out_words(plans: Sequence[Plan], unit: str, cells: Mapping[str, NoisyCells]) -> str:
    """The same for hush.last_query, where also little is told."""
    little = (cut_words(of, unit) for of in _cut_shares(plans, cells) if not of.is_worth_saying)
    return "; ".join((*(n.message for n in left_out_notices(plans, unit, cells)), *dict.fromkeys(little)))


def _is_counted(of: LeftOut) -> bool:
    return isinstance(of, Untold) and of.growth > 0


def _cut_shares(plans: Iterable[Plan], cells: Mapping[str, NoisyCells]) -> Iterator[CutShare]:
    for plan in {p.fingerprint: p for p in plans}.values():
        if plan.fingerprint in cells and (found := cut_share(plan, cells[plan.fingerprint])) is not None:
            yield found


def _cut(of: CutShare, unit: str) -> Notice:
    return Notice(severity="NOTICE", sqlstate="00000", message=cut_words(of, unit), detail=_COUNTED)


def forecast(plans: Sequence[Plan], privacy: Privacy) -> str:
    """What can be said of the answers before they are paid for: what is left out, not shown, or lost in its noise."""
    said = (*left_out_notices(plans, privacy.unit), *threshold_notices(plans, privacy.unit))
    return "; ".join((*(n.message for n in said), *(e.what for e in lost_in(plans, privacy))))


def _left_out(of: LeftOut, unit: str) -> Iterator[Notice]:
    is_about = isinstance(of, About) and of.is_worth_saying
    if is_about or isinstance(of, Untold):
        detail = _INCLUDED if is_about else _ONCE
        yield Notice(severity="NOTICE", sqlstate="00000", message=told(of, unit), detail=detail)


def unsaid(notices: Sequence[Notice], said: set[str]) -> tuple[Notice, ...]:
    """The notices without what is said once in a session, if it was said before. said: what was, to be added to."""
    new = tuple(n for n in notices if n.detail != _ONCE or n.message not in said)
    said.update(n.message for n in new if n.detail == _ONCE)
    return new


def doubt_notices(lost: int, count: int) -> tuple[Notice, ...]:
    """A NOTICE that some numbers are smaller than their noise."""
    if not lost:
        return ()
    which = "the number" if count == 1 else f"{lost} of {count} numbers"
    text = f"the noise is larger than {which}: see hush.low and hush.high"
    detail = "Another epsilon, or a coarser GROUP BY, makes it smaller: see EXPLAIN."
    return (Notice(severity="NOTICE", sqlstate="00000", message=text, detail=detail),)


def far_notices(far: int, quantiles: int) -> tuple[Notice, ...]:
    """A NOTICE that some quantiles may be others than were asked for."""
    if not far:
        return ()
    which = "the quantile" if quantiles == 1 else f"{far} of {quantiles} quantiles"
    text = f"the rank of {which} may be off by more than a tenth of the rows: a maximum need not be near the largest"
    detail = "Another epsilon, fewer rows of one person or a coarser GROUP BY makes it smaller: see EXPLAIN."
    return (Notice(severity="NOTICE", sqlstate="00000", message=text, detail=detail),)


def empty_notices(empty: int, averages: int) -> tuple[Notice, ...]:
    """A NOTICE that averages of several groups are NULL, which PostgreSQL puts before the largest of them."""
    if not empty:
        return ()
    text = f"{empty} of {averages} averages are NULL: too few rows to be told from the noise"
    detail = "ORDER BY ... DESC begins with them: DESC NULLS LAST puts them last."
    return (Notice(severity="NOTICE", sqlstate="00000", message=text, detail=detail),)


def _charge(paid: Mapping[AccountKind, int], privacy: Privacy) -> str:
    """What was charged to each kind of account, which is named where they differ. paid: pico."""
    amounts = {kind: figure(epsilon_spent(privacy, pico)) for kind, pico in paid.items() if pico}
    if not amounts:
        return "charged nothing: your accounts paid for this release already"
    if len(set(paid.values())) == 1:
        return f"charged epsilon {next(iter(amounts.values()))}"
    before = " and ".join(kind for kind in paid if kind not in amounts)
    to = ", ".join(f"{amount} to the {kind}" for kind, amount in amounts.items())
    return f"charged epsilon {to}" + (f" (paid before: {before})" if before else "")


def _left(balance: Balance, balances: Sequence[Balance], privacy: Privacy) -> str:
    if not balance.account.limited:
        return f"{balance.account.kind} unlimited"
    return f"{balance.account.kind} {left_of(balance, balances, privacy)}"


def _warnings(balance: Balance, charged: Cost) -> tuple[Notice, ...]:
    limit = balance.limit.pico
    if not balance.account.limited or not charged.pico or not limit:
        return ()
    after, before = balance.spent.pico / limit, (balance.spent.pico - charged.pico) / limit
    for mark in _WARN_AT:
        if before < mark <= after:
            text = f"{mark:.0%} of the {balance.account.kind} account's budget is spent"
            return (Notice(severity="WARNING", sqlstate="01000", message=text),)
    return ()


def budget_spent(error: AccountSpent, privacy: Privacy, *, is_begun: bool = False) -> BudgetSpent:
    """The refusal of a charge, with the caller's own figures in epsilon. is_begun: the statement has cost something.

    The dataset's account or the role's is named only when none of the caller's own is short, and without figures.
    """
    cost = "What was released before stays charged." if is_begun else "Nothing was charged."
    if not error.shortfalls and error.shared is AccountKind.ROLE:
        return BudgetSpent(
            "the privacy budget of your role is spent",
            detail=f"All logins of the role together have used up what the dataset's owner allows. {cost}",
            hint=f"{_REPEAT} Ask the administrator about the rest.",
        )
    if not error.shortfalls:
        return BudgetSpent(
            "the privacy budget of this dataset is spent",
            detail=f"All users together have used up what the dataset's owner allows. {cost}",
            hint=f"{_REPEAT} Ask the administrator about the rest.",
        )
    kinds = " and ".join(dict.fromkeys(s.balance.account.kind for s in error.shortfalls))
    return BudgetSpent(
        f"too little is left of your {kinds} budget",
        detail=" ".join(_shortfall(s, privacy) for s in error.shortfalls) + f" {cost}",
        hint=_lower_knob(error.shortfalls, privacy),
    )


def _shortfall(shortfall: Shortfall, privacy: Privacy) -> str:
    balance = shortfall.balance
    needed = epsilon_spent(privacy, shortfall.needed.pico)
    left = epsilon_spent(privacy, balance.remaining.pico)
    text = f"The statement costs epsilon {figure(needed)}; the {balance.account.kind} account has {figure(left)} left"
    if shortfall.needed.atto > balance.remaining.atto:
        text += ", and too little of the delta that groups with unlisted keys need"
    return text + "."


def _lower_knob(shortfalls: tuple[Shortfall, ...], privacy: Privacy) -> str:
    left = min(epsilon_spent(privacy, s.balance.affordable) for s in shortfalls)
    if left < _SMALLEST_KNOB:
        return _REPEAT
    return f"SET hush.epsilon = {math.floor(left * 1000) / 1000:g} would fit. {_REPEAT}"
