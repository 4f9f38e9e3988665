"""How does an administrator have a table's units sized up, and what is charged for it?

By private statements like those of clients, over the units of a table instead of its rows: planned, charged to the
dataset's account, computed and stored as any other. See docs/claims/profile.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from proxy.dp.accounting import knob_pico
from proxy.dp.mechanisms import distribution_of
from proxy.dp.samplers import Noise
from proxy.engines.base import Cancellation
from proxy.ledger.base import AccountSpent, Ledger, Question, Receipt, Wanted
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Task, plan_statement, share_of
from proxy.pipeline.premises import Premises, Terms
from proxy.pipeline.statements import Understood
from proxy.plan.charge import Request, Reserved
from proxy.plan.profile.profile import Sizes, TableProfile
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import NotGiven, Table, WrittenBound
from proxy.release.noisy import NoisyCells
from proxy.release.store import StoredRelease
from proxy.session.answering.attempt import Attempt, attempting
from proxy.session.answering.notices import budget_spent
from proxy.session.dataset import Version
from proxy.session.learning.profile_answers import ProfileAnswer, answer_of, profile_of
from proxy.session.learning.profile_questions import (
    Averaging,
    Sharing,
    Size,
    Sizing,
    UnitQuestion,
    bound_of,
    has_several_rows,
    sizings,
    text_of,
    weight_of,
)
from proxy.session.pricing.payment import Stage, note_end, noting_failure
from proxy.session.pricing.price import release_key, request_of
from proxy.sql.algebra.constants import Constants
from proxy.sql.render.dialects import dialect_of

_ASKER = "(profile)"  # stands in the ledger where a login does
_AT_ANY_PRICE = Terms(epsilon=0.0)  # what each statement costs is told
ProfilingProgress = Callable[[int, int], None]  # told how many steps are done, and of how many
_ANY_ROWS = WrittenBound(2**31)  # of a unit: what is inferred of its sums must not clip them at the policy's bounds


@dataclass(frozen=True, slots=True)
class Wish:
    """A table, and those of its columns whose sums are wanted too, whose largest values, and whose shares of values.

    groups: of whose values it is wanted how many a unit has.
    """

    table: Table
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def questions(self) -> list[UnitQuestion]:
        """What is asked to fulfil it."""
        means = (of for column in self.columns if len((of := Averaging(self.table, column)).ends) > 1)
        return [
            *sizings(self.table, self.columns, self.values), *means,
            *(Sizing(self.table, Size.GROUPS, c) for c in self.groups), *(Sharing(self.table, c) for c in self.shares)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Largest:
    """How large the largest values of units are, in multiples of `largest`, that of a value by the policy."""

    table: str
    column: str
    largest: float
    sizes: Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found. pico: what it cost together, of which `reused` was paid for before."""

    profiles: tuple[TableProfile, ...]
    values: tuple[Largest, ...]
    pico: int
    reused: int


@dataclass(frozen=True, slots=True)
class _Asked:
    question: UnitQuestion
    text: str
    plan: ReleasePlan


def untold(_done: int, _steps: int) -> None:
    """Progress that nobody wants to see."""


def profile(
    version: Version,
    ledger: Ledger,
    noise: Noise,
    wishes: Sequence[Wish],
    epsilon: float,
    progress: ProfilingProgress = untold,
) -> Findings:
    """Ask what units have, each question at its part of epsilon, charged before anything is computed.

    Raises HushError.
    """
    asked = [question for wish in wishes for question in wish.questions()]
    whole = knob_pico(version.policy.privacy, epsilon)
    surveyor = _Surveyor(version, ledger, noise, prices_of(asked, whole, version), _Steps(progress, 2 * len(asked)))
    found = list(zip(asked, surveyor.ask(asked), strict=True))
    return Findings(
        profiles=tuple(profile_of(w.table, found, version.policy, surveyor.requests) for w in wishes),
        values=tuple(
            Largest(a.table.name, a.column, a.largest, s)
            for a, s in found if isinstance(a, Sizing) and isinstance(s, Sizes) and a.of is Size.VALUE
        ),
        pico=sum(surveyor.prices.values()),
        reused=surveyor.reused,
    )  # fmt: skip


def prices_of(asked: Sequence[UnitQuestion], whole: int, version: Version) -> Mapping[UnitQuestion, int]:
    """What of a whole price each question costs. Raises PolicyForbids if that is nothing."""
    distribution = distribution_of(version.policy.privacy.accounting)
    weights = {question: weight_of(question, distribution) for question in asked}
    return {question: share_of(whole * weight, sum(weights.values())) for question, weight in weights.items()}


@dataclass(slots=True)
class _Steps:
    """Each question has two steps: it is planned, and it is computed."""

    progress: ProfilingProgress
    steps: int
    done: int = 0

    def __post_init__(self) -> None:
        self.progress(0, self.steps)

    def did_one(self) -> None:
        self.done += 1
        self.progress(self.done, self.steps)


class _Surveyor:
    """Plans, charges and computes private statements.

    prices: of each. reused: what had been paid for before. requests: what was asked of the ledger for each.
    """

    def __init__(
        self, version: Version, ledger: Ledger, noise: Noise, prices: Mapping[UnitQuestion, int], steps: _Steps
    ) -> None:
        self._version, self._ledger, self.prices, self._noise, self._steps = version, ledger, prices, noise, steps
        self._premises, self._cuts = _premises(version), Cuts()
        self.reused, self.requests = 0, dict[UnitQuestion, Request]()

    def ask(self, questions: Sequence[UnitQuestion]) -> list[ProfileAnswer]:
        """The noisy numbers that answer each question."""
        asked = [self._planned(of) for of in questions]
        self.requests = {a.question: request_of(a.plan, self._version) for a in asked}
        each_s = self._version.policy.limits.statement_timeout_s
        attempt = Attempt(
            version=self._version, ledger=self._ledger, cancellation=Cancellation(), timeout_s=len(asked) * each_s,
            is_fresh=False,
        )  # fmt: skip
        with attempting(attempt):
            attempt.look([a.plan for a in asked], lambda: self._are_shown(asked))
            receipt = self._reserved(asked)
            attempt.hold(receipt.items)
            stage = Stage(receipts=(receipt,))
            with noting_failure(stage, self._ledger):
                try:
                    with attempt.asking():
                        cells = [self._computed(attempt, a.plan, i) for a, i in zip(asked, receipt.items, strict=True)]
                finally:
                    attempt.store()
                self._ledger.settle(receipt.statement)
        note_end(stage, self._ledger)
        return [answer_of(a.question, a.plan, c) for a, c in zip(asked, cells, strict=True)]

    def _planned(self, question: UnitQuestion) -> _Asked:
        """Planned as a client's statement is that may name units, with a bound of its own where it says so."""
        text, privacy = text_of(question, self._version.policy), self._version.policy.privacy
        handle = read_alone(self._cuts, text, self._premises).handle
        assert isinstance(handle, Understood), "it reads a private table"
        assert isinstance(handle.query, Outline), "it asks for an aggregate"
        terms = replace(_AT_ANY_PRICE, bound=bound_of(question, distribution_of(privacy.accounting)))
        task = Task(query=handle.query, premises=self._premises, terms=terms, share=self.prices[question],
                    constants=Constants({}, datetime.now(UTC)))  # fmt: skip
        (found,) = plan_statement(self._cuts, task).plans
        (plan,) = found.plans
        self._steps.did_one()
        return _Asked(question, text, plan)

    def _reserved(self, asked: Sequence[_Asked]) -> Receipt:
        wanted = tuple(Wanted(self.requests[a.question], a.plan.stages[0], a.plan.stages[1:]) for a in asked)
        who, text = self._version.user_name(_ASKER), "; ".join(a.text for a in asked)
        account = self._version.dataset_account()
        try:
            return self._ledger.reserve((account,), wanted, Question(login=who, query=text, at=datetime.now(UTC)))
        except AccountSpent as error:
            raise budget_spent(error, self._version.policy.privacy) from None

    def _are_shown(self, asked: Sequence[_Asked]) -> bool:
        """Whether all of it was paid for before, and is stored."""
        keys, payer = (release_key(a.plan, self._version) for a in asked), (self._version.dataset_account(),)
        return all(isinstance(self._ledger.seen(payer, key), StoredRelease) for key in keys)

    def _computed(self, attempt: Attempt, plan: ReleasePlan, item: Reserved | StoredRelease) -> NoisyCells:
        if isinstance(item, StoredRelease):
            self.reused += plan.cost.pico
        cells = attempt.cells(plan, item, self._noise)
        self._steps.did_one()
        return cells


def _premises(version: Version) -> Premises:
    """Those of an administrator, who may name units, where nothing is known of units yet."""
    policy = version.policy
    tables = MappingProxyType({n: _nameable(t) for n, t in policy.tables.items()})
    return Premises(
        dataset=policy.dataset, tables=tables, named=tables, relations=frozenset(), unique=version.unique,
        privacy=policy.privacy, dialect=dialect_of(policy.source), salt=version.salt,
    )  # fmt: skip


def _nameable(table: Table) -> Table:
    """A table whose unit an administrator's statement may name, though clients may not, with any number of rows."""
    columns = tuple(replace(c, hidden=False) for c in table.columns)
    if not table.is_promised or not has_several_rows(table):
        return replace(table, columns=columns)
    return replace(
        table, columns=columns, rows_per_unit=_ANY_ROWS, rows_per_group=NotGiven(), groups_per_unit=NotGiven()
    )
