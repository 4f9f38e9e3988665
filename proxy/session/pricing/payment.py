"""When and how are the releases of a statement reserved, if they come in stages?

Before anything is computed for a statement, or shown that others have asked, all that it will cost is reserved: what
later stages ask is not known yet, so their charges are reserved as tickets. Only stages that the asker has seen
before are paid for one by one, where a session still has to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from proxy.engines.base import EngineStopped
from proxy.errors import Failure, HushError, LedgerFailed, QueryCanceled
from proxy.ledger.base import AccountSpent, Ledger, Outcome, Question, Receipt, Shortfall, Wanted
from proxy.pipeline.settings import Settings
from proxy.plan.charge import Cost, Request, Reserved
from proxy.plan.sets.sets import Plan
from proxy.release.noisy import NoisyCells
from proxy.release.store import StoredRelease
from proxy.session.answering.notices import budget_spent
from proxy.session.asker import Asker
from proxy.session.pricing.price import check_cap, dues, key_of, own_cost, request_of

_NOTHING = Cost(0, 0)
Plans = Sequence[Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a statement, with what earlier ones have left.

    cells: what they released, by fingerprint; shown: the numbers of these releases. tickets: charges that were reserved
    for this stage and later ones. unpaid: the most that the releases of these cost while there are no tickets.
    """

    cells: Mapping[str, NoisyCells] = field(default_factory=dict)
    shown: tuple[int, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    tickets: tuple[Reserved, ...] = ()
    unpaid: tuple[Cost, ...] = ()
    is_last: bool = True

    @property
    def statement(self) -> int:
        """Its number in the ledger; 0 as long as nothing was reserved."""
        return self.receipts[-1].statement if self.receipts else 0


WHOLE = Stage()


@dataclass(frozen=True, slots=True)
class Paid:
    """One item for each plan, and the stage with what was reserved for it."""

    items: tuple[Reserved | StoredRelease, ...]
    stage: Stage


@dataclass(frozen=True, slots=True)
class Wanting:
    """What is asked of the ledger for the releases of a stage, and for those of later ones."""

    wanted: tuple[Wanted, ...]
    tickets: tuple[Wanted, ...] = ()

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(w.request for w in (*self.wanted, *self.tickets))


def pay(plans: Plans, asker: Asker, settings: Settings, question: Question, stage: Stage) -> Paid:
    """Reserve what a stage needs, and what later ones may need. Raises BudgetSpent, PolicyForbids, LedgerFailed."""
    if stage.tickets or not plans:
        return _with_tickets(plans, asker, question, stage)
    asked = asked_of(plans, asker, question.query, stage)
    is_known = not (stage.is_last or settings.is_fresh) and _is_known(asked.wanted, asker)
    if is_known:
        seen = tuple(asker.dataset.ledger.seen(asker.accounts, w.request.key) for w in asked.wanted)
        found = tuple(s for s in seen if isinstance(s, StoredRelease))
        if len(found) == len(seen):
            return Paid(found, replace(stage, unpaid=_costs(asked.tickets)))
    if settings.max_charge:
        charge = own_cost(dues(asked.requests, asker, fresh=settings.is_fresh))
        check_cap(charge, settings, asker.version.policy.privacy)
    if is_known:
        return _from_store(asked, asker, settings, question, stage)
    # where a session was new to the first stage it was charged alone
    receipt = _reserve(asker, (*asked.wanted, *asked.tickets), question, settings, is_begun=bool(stage.receipts))
    items, held = receipt.items[: len(plans)], receipt.items[len(plans) :]
    tickets = tuple(t for t in held if isinstance(t, Reserved))
    return Paid(items, replace(stage, receipts=(*stage.receipts, receipt), tickets=tickets, unpaid=()))


def charged(stage: Stage, asker: Asker) -> Receipt:
    """What all stages of a statement were charged together, and what is left now."""
    ledger = asker.dataset.ledger
    each = zip(*(r.charged for r in stage.receipts), strict=True)
    total = tuple(sum(costs, start=_NOTHING) for costs in each) or (_NOTHING,) * len(asker.accounts)
    balances = stage.receipts[-1].balances if stage.receipts else ledger.balances(asker.accounts)
    items = tuple(i for r in stage.receipts for i in r.items)
    return Receipt(statement=stage.statement, items=items, charged=total, balances=balances)


@contextlib.contextmanager
def noting_failure(stage: Stage, ledger: Ledger) -> Iterator[None]:
    """Note how a statement ends that fails; it stays charged."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(HushError):
            # of limits there is one word, whichever it was
            is_over = isinstance(error, EngineStopped) and error.failure is Failure.LIMITS
            cancelled = is_over or isinstance(error, QueryCanceled)
            _note(ledger, stage.statement, Outcome.CANCELLED if cancelled else Outcome.FAILED)
        raise


def note_end(stage: Stage, ledger: Ledger) -> None:
    """Note how a stage has ended: a statement without its last stage has failed."""
    _note(ledger, stage.statement, Outcome.ANSWERED if stage.is_last else Outcome.FAILED)


def _note(ledger: Ledger, statement: int, outcome: Outcome) -> None:
    if statement:
        ledger.note_outcome(statement, outcome)


# --- what is reserved -----------------------------------------------------------------------------------------


def asked_of(plans: Plans, asker: Asker, text: str, stage: Stage) -> Wanting:
    """What to ask of the ledger for the plans, and for later stages. text: of the statement. Raises LedgerFailed.

    The prices of stages are those of their tickets, whether or not there are any: what a statement costs an account
    must not tell it what others have asked. So the last stage also pays for what the statement turned out not to need.
    """
    if not stage.unpaid or not plans:
        return Wanting(tuple(_wanted(p, p.cost, asker) for p in plans))
    prices, left = _prices(stage.unpaid, plans)
    if stage.is_last:
        prices, left = (*prices[:-1], sum(left, start=prices[-1])), ()
    wanted = tuple(_wanted(p, price, asker) for p, price in zip(plans, prices, strict=True))
    # counted from the end, so that a ticket keeps its key when the stages before it are known
    numbered = zip(range(len(left), 0, -1), left, strict=True)
    return Wanting(wanted, tuple(_ticket(cost, number, text, asker) for number, cost in numbered))


def _prices(unpaid: Sequence[Cost], plans: Plans) -> tuple[tuple[Cost, ...], tuple[Cost, ...]]:
    """Which charge pays for each plan, the least that does; and the others. Raises LedgerFailed."""
    left = list(unpaid)
    prices = tuple(left.pop(_fitting(left, plan)) for plan in plans)
    return prices, tuple(left)


def left_after(unpaid: Sequence[Cost], plans: Plans) -> tuple[Cost, ...]:
    """The charges that are left for later stages. Raises LedgerFailed."""
    return _prices(unpaid, plans)[1]


def _wanted(plan: Plan, price: Cost, asker: Asker) -> Wanted:
    first, *further = plan.stages
    request = replace(request_of(plan, asker.version), cost=price)
    return Wanted(request, first, tuple(further))


def _ticket(cost: Cost, number: int, text: str, asker: Asker) -> Wanted:
    """A charge for a release that is not known yet; its key is of no release."""
    content = json.dumps(["later", number, text, cost.pico, cost.atto])
    key = key_of(hashlib.sha256(content.encode()).hexdigest(), asker.version)
    return Wanted(Request(key=key, cost=cost), "")


def _with_tickets(plans: Plans, asker: Asker, question: Question, stage: Stage) -> Paid:
    """What the plans cost was reserved before the first stage."""
    tickets, items = list(stage.tickets), []
    for plan in plans:
        ticket = tickets.pop(_fitting([t.cost for t in tickets], plan))
        items.append(asker.dataset.ledger.bind(ticket, _wanted(plan, ticket.cost, asker), question.at))
    return Paid(tuple(items), replace(stage, tickets=tuple(tickets)))


def _fitting(costs: Sequence[Cost], plan: Plan) -> int:
    """Which charge pays for a plan: the least that does. Raises LedgerFailed if none does."""
    fits = [i for i, c in enumerate(costs) if plan.cost.fits(c)]
    if not fits:
        raise LedgerFailed("a stage of a statement costs more than was reserved for it")
    return min(fits, key=lambda i: (costs[i].atto, costs[i].pico))


def _is_known(wanted: tuple[Wanted, ...], asker: Asker) -> bool:
    """Whether one of the asker's own accounts has paid for each of these and can see it: then that tells no news."""
    own = tuple(a for a in asker.accounts if a.kind.is_own)
    ledger = asker.dataset.ledger
    return all(any(isinstance(ledger.seen((a,), w.request.key), StoredRelease) for a in own) for w in wanted)


def _costs(wanted: tuple[Wanted, ...]) -> tuple[Cost, ...]:
    return tuple(w.request.cost for w in wanted)


def _from_store(asked: Wanting, asker: Asker, settings: Settings, question: Question, stage: Stage) -> Paid:
    """The asker has seen this stage in another session, so nothing is computed for it, and later ones may be known."""
    _check_whole(asked, asker, question)
    receipt = _reserve(asker, asked.wanted, question, settings)
    now = replace(stage, receipts=(*stage.receipts, receipt), unpaid=_costs(asked.tickets))
    return Paid(receipt.items, now)


def _check_whole(asked: Wanting, asker: Asker, question: Question) -> None:
    """Nothing is charged for the first stages of what cannot be paid for as a whole. Raises BudgetSpent."""
    balances = asker.dataset.ledger.balances(asker.accounts, question.at)
    due = dues(asked.requests, asker, fresh=False)
    short = tuple(
        Shortfall(balance=b, needed=d.cost)
        for d, b in zip(due, balances, strict=True)
        if d.account.kind.is_own and d.account.limited and not d.cost.fits(b.remaining)
    )
    if short:
        raise budget_spent(AccountSpent(short), asker.version.policy.privacy)


def _reserve(
    asker: Asker, wanted: tuple[Wanted, ...], question: Question, settings: Settings, *, is_begun: bool = False
) -> Receipt:
    """Charge the statement, and count how long a charge took. is_begun: an earlier stage was charged."""
    started = time.perf_counter()
    try:
        receipt = asker.dataset.ledger.reserve(asker.accounts, wanted, question, fresh=settings.is_fresh)
    except AccountSpent as error:
        raise budget_spent(error, asker.version.policy.privacy, is_begun=is_begun) from None
    if any(cost != _NOTHING for cost in receipt.charged):
        asker.metrics.reserved(time.perf_counter() - started)
    return receipt
