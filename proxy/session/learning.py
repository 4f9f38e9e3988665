"""How does an administrator learn how much a unit usually contributes, and what is charged for it?

By private statements like those of clients, over the units of a table instead of its rows: planned, charged to the
dataset's account, computed and stored as any other. Each looks for the least of some public candidates that only a few
units are above. See docs/claims/learned-bounds.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from proxy.dp.accounting import knob_pico
from proxy.dp.quantiles import Choose
from proxy.dp.samplers import Noise
from proxy.dp.samplers import choose as drawn
from proxy.engines.base import Cancellation
from proxy.ledger.base import AccountSpent, Ledger, Question, Receipt, Wanted
from proxy.pipeline.alone import read_alone
from proxy.pipeline.plans import plan_statement, share_of
from proxy.pipeline.premises import Premises, Terms
from proxy.pipeline.statements import Understood
from proxy.plan.charge import Reserved
from proxy.plan.learned import LearnedBound, LearnedTable
from proxy.plan.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import Policy, Table
from proxy.release.finish import Release
from proxy.release.noisy import NoisyCells
from proxy.release.sets import finish_plan, publish_plan
from proxy.release.store import Stored
from proxy.session.candidates import Candidates, Size, allowed_rows, candidates, question
from proxy.session.dataset import Version
from proxy.session.notices import budget_spent
from proxy.session.payment import Stage, note_end, noting_failure
from proxy.session.price import request_of
from proxy.sql.block import BoundBlock
from proxy.sql.constants import Constants
from proxy.sql.dialects import dialect_of
from proxy.sql.split import Split

_ASKER = "(learn-bounds)"  # stands in the ledger where a login does
_AT_ANY_PRICE = Terms(epsilon=0.0)  # what each statement costs is told


@dataclass(frozen=True, slots=True)
class Wish:
    """A table, and those of its columns whose sums and values are wanted too."""

    table: Table
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Largest:
    """The size that only a few units have values above. largest: that of a value by the policy."""

    table: str
    column: str
    largest: float
    bound: LearnedBound


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What was learned. pico: what it cost together, of which `reused` was paid for before."""

    tables: tuple[LearnedTable, ...]
    values: tuple[Largest, ...]
    pico: int
    reused: int


@dataclass(frozen=True, slots=True)
class _Asked:
    text: str
    block: BoundBlock
    plan: ReleasePlan


_Found = list[tuple[Candidates, LearnedBound]]


def learn(
    version: Version, ledger: Ledger, noise: Noise, wishes: Sequence[Wish], epsilon: float, choose: Choose = drawn
) -> Lesson:
    """Ask for the sizes of units, all at an equal share of epsilon, charged before anything is computed.

    choose: how cells are drawn. Raises HushError.
    """
    asked = [of for wish in wishes for of in candidates(wish.table, wish.columns)]
    share = share_of(knob_pico(version.policy.privacy, epsilon), len(asked))
    teacher = _Teacher(version, ledger, noise, choose, share)
    bounds = teacher.ask(asked)
    found = [(of, bound) for of, bound in zip(asked, bounds, strict=True) if bound is not None]
    return Lesson(
        tables=tuple(_table(w.table, found, version.policy) for w in wishes if allowed_rows(w.table) > 1),
        values=tuple(Largest(c.table.name, c.column, c.largest, b) for c, b in found if c.of is Size.VALUE),
        pico=share * len(asked),
        reused=teacher.reused,
    )


class _Teacher:
    """Plans, charges and computes private statements at a price each. reused: what had been paid for before."""

    def __init__(self, version: Version, ledger: Ledger, noise: Noise, choose: Choose, pico: int) -> None:
        self._version, self._ledger, self._pico = version, ledger, pico
        self._noise, self._choose = noise, choose
        self._premises = _premises(version)
        self.reused = 0

    def ask(self, sizes: Sequence[Candidates]) -> list[LearnedBound | None]:
        """The chosen size of each; None where the noisy number of units is too small for one."""
        asked = [self._planned(question(of, self._version.policy)) for of in sizes]
        receipt = self._reserved(asked)
        stage = Stage(receipts=(receipt,))
        with noting_failure(stage, self._ledger):
            cells = [self._computed(a.plan, i) for a, i in zip(asked, receipt.items, strict=True)]
            self._ledger.settle(receipt.statement)
        note_end(stage, self._ledger)
        return [_bound(of, a.plan, self._finished(a, c)) for of, a, c in zip(sizes, asked, cells, strict=True)]

    def _planned(self, text: str) -> _Asked:
        """Planned as a client's statement is that may name units."""
        handle = read_alone(text, self._premises).handle
        assert isinstance(handle, Understood), "it reads a private table"
        assert isinstance(handle.query, Split), "it asks for an aggregate"
        constants = Constants({}, datetime.now(UTC))
        planned = plan_statement(handle.query, self._premises, _AT_ANY_PRICE, constants, self._pico)
        (block,), (plan,) = planned.blocks, planned.plans
        assert isinstance(plan, ReleasePlan), "the statement has no grouping sets"
        return _Asked(text, block, plan)

    def _reserved(self, asked: Sequence[_Asked]) -> Receipt:
        wanted = tuple(Wanted(request_of(a.plan, self._version), a.plan.stages[0], a.plan.stages[1:]) for a in asked)
        who, text = self._version.user_name(_ASKER), "; ".join(a.text for a in asked)
        account = self._version.dataset_account()
        try:
            return self._ledger.reserve((account,), wanted, Question(login=who, query=text, at=datetime.now(UTC)))
        except AccountSpent as error:
            raise budget_spent(error, self._version.policy.privacy) from None

    def _computed(self, plan: ReleasePlan, item: Reserved | Stored) -> NoisyCells:
        if isinstance(item, Stored):
            self.reused += plan.cost.pico
            return NoisyCells.of_payload(item.payload)
        limit_s = self._version.policy.limits.statement_timeout_s
        with self._version.engine.stages(item, timeout_s=limit_s, cancellation=Cancellation()) as stages:
            cells = publish_plan(plan, stages.rows, self._noise, choose=self._choose)
        self._ledger.store.put(item, cells.payload())
        return cells

    def _finished(self, asked: _Asked, cells: NoisyCells) -> Release:
        zone = self._version.policy.privacy.time_zone
        return finish_plan(
            asked.plan, cells, asked.block.columns, is_consistent=False, nonnegative=True, time_zone=zone
        )  # fmt: skip


def _premises(version: Version) -> Premises:
    """Those of an administrator, who may name units, where nothing was learned yet."""
    policy = version.policy
    tables = MappingProxyType({n: _nameable(t) for n, t in policy.tables.items()})
    return Premises(
        dataset=policy.dataset, tables=tables, named=tables, relations=frozenset(), unique=version.unique,
        privacy=policy.privacy, dialect=dialect_of(policy.source), salt=version.salt,
    )  # fmt: skip


def _nameable(table: Table) -> Table:
    """A table whose unit an administrator's statement may name, though clients may not."""
    return replace(table, columns=tuple(replace(c, hidden=False) for c in table.columns))


def _bound(of: Candidates, plan: ReleasePlan, release: Release) -> LearnedBound | None:
    number = release.columns[0].values[0]
    (part,) = plan.parts
    assert isinstance(part, QuantilePart), "the largest of numbers is looked for by ranks"
    return None if number is None else LearnedBound(float(of.sizes[int(number)]), part.ladder.offset)


def _table(table: Table, found: _Found, policy: Policy) -> LearnedTable:
    own = [(of, bound) for of, bound in found if of.table is table]
    return LearnedTable(
        table=table.name,
        allowed=allowed_rows(table),
        rows=next((bound for of, bound in own if of.of is Size.ROWS), None),
        totals=tuple((of.column, of.largest, bound) for of, bound in own if of.of is Size.SUM),
        data_version=policy.data_version,
    )
