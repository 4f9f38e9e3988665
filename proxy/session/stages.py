"""How far is a statement whose sub-queries are released one after the other?

Each stage is a statement of its own. Its value, which the front computes from noisy numbers, is written into the
client's statement, until nothing is left to be released first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.dp.accounting import knob_pico
from proxy.errors import HushError, PolicyForbids, Unsupported
from proxy.front.relations import RELATIONS
from proxy.plan.charge import Cost
from proxy.plan.sets import Plan
from proxy.session.answer import Planned, atto_for_keys, plan_statement, share_of, together
from proxy.session.asker import Asker
from proxy.session.contract import Row
from proxy.session.dataset import Version
from proxy.session.payment import WHOLE, Stage, Wanting, asked_of
from proxy.session.rehearsal import Choices, Rehearsal, different
from proxy.session.reuse import resolved
from proxy.session.settings import Settings
from proxy.session.statements import Understood
from proxy.sql.constants import Bindings
from proxy.sql.parse import Statement, limited_depth, split_statements
from proxy.sql.split import BlockText, Split, split
from proxy.sql.stage_types import STAND_INS, stand_ins
from proxy.sql.stages import StageText, Written, meaning, with_stand_ins, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A statement, and what its stages so far have left.

    now: what now() is in all of them. share: what each release may cost, 0 to be decided by their number.
    earlier: what was planned before.
    asked: the stage whose value the front is asked for. others: statements of stages that could be asked for now too.
    """

    handle: Understood
    now: datetime
    stage: Stage = WHOLE
    share: int = 0
    earlier: tuple[Planned, ...] = ()
    asked: StageText | None = None
    others: tuple[Split, ...] = ()

    @property
    def query(self) -> Split:
        assert isinstance(self.handle.query, Split), "a probe releases nothing"
        return self.handle.query

    def original(self, position: int) -> int:
        """Where in the client's statement a position in what is computed now is."""
        return self.handle.position(position if self.asked is None else self.asked.original(position))


def begun(handle: Understood, asker: Asker, settings: Settings) -> Progress:
    """A statement before its first stage. Raises PolicyForbids, Unsupported."""
    query, now = handle.query, datetime.now(ZoneInfo(asker.version.policy.privacy.time_zone))
    if not isinstance(query, Split) or query.asks_free:
        return Progress(handle=handle, now=now)
    if settings.target.amount:
        raise Unsupported("hush.target_error is not supported with sub-queries that are released first",
                          hint="RESET hush.target_error, and SET hush.epsilon.")  # fmt: skip
    blocks = blocks_of(query)
    share = share_of(knob_pico(asker.version.policy.privacy, settings.epsilon), len(blocks))
    stage = Stage(unpaid=tuple(price(b, share, asker) for b in blocks))
    return Progress(handle=handle, now=now, share=share, stage=stage)


def price(block: BlockText, share: int, asker: Asker) -> Cost:
    """The most that the release of a block can cost: its keys may turn out to be public."""
    has_keys = block.select.args.get("group") is not None or block.select.args.get("distinct") is not None
    return Cost(share, atto_for_keys(asker, share) if has_keys else 0)


def blocks_of(query: Split) -> tuple[BlockText, ...]:
    """The blocks of a statement and of all its stages, without those that mean the same."""
    found: dict[tuple[object, ...], list[BlockText]] = {}
    for block in (*query.first, *query.blocks):
        same = found.setdefault(meaning(block.tokens), [])
        if all(b.ctes != block.ctes for b in same):
            same.append(block)
    return tuple(b for same in found.values() for b in same)


def rehearse(progress: Progress, asker: Asker, settings: Settings, parameters: Bindings) -> None:
    """Plan the statement with made up values of its stages. Raises HushError if that cannot be done with any."""

    def plan(query: Split) -> Planned:
        return plan_statement(query, asker, settings, parameters, progress.now, progress.share)

    def whole(handle: Understood) -> Planned:
        return plan(replace(progress, handle=handle).query)

    def choices(handle: Understood, stage: StageText) -> Choices:
        try:
            query = _cut(split_statements(stage.text)[0], handle.version, asker.login)
            return stand_ins(query, () if query.stages else plan(query).blocks, stage.columns)
        except HushError as error:
            error.position = stage.original(error.position)
            raise

    Rehearsal(whole, choices, lambda handle, words: _written(handle, words, asker.login)).check(progress.handle)


def _written(handle: Understood, words: Written, login: str) -> Understood:
    handle = replace(handle, written=(*handle.written, words))
    return replace(handle, query=_cut(words.statement, handle.version, login))


def next_part(progress: Progress, login: str) -> tuple[Progress, Split]:
    """The stage that is to be computed now, and what it asks as a statement. Raises HushError."""
    stages, version = progress.query.stages, progress.handle.version
    cuts = {s: _cut(split_statements(s.text)[0], version, login) for s in different(stages)}
    (asked, query), *others = ((s, cut) for s, cut in cuts.items() if not cut.stages)
    stage = replace(progress.stage, is_last=False)
    return replace(progress, asked=asked, others=tuple(cut for _, cut in others), stage=stage), query


def asked_now(progress: Progress, planned: Planned, asker: Asker, text: str) -> Wanting:
    """What would be asked of the ledger for a statement, given what can be planned of it. Raises LedgerFailed."""
    plans = [p for p in planned.distinct() if p.fingerprint not in progress.stage.cells]
    return asked_of(plans, asker, text, progress.stage)


def ready(
    progress: Progress, planned: Planned, asker: Asker, settings: Settings, assumed: Sequence[Plan] = ()
) -> Planned:
    """What is planned, computed from other releases that were paid for where that will do; stages never are."""
    return planned if progress.share else resolved(planned, asker, settings, assumed)


def estimated(
    handle: Understood, asker: Asker, settings: Settings, text: str, assumed: Sequence[Plan]
) -> tuple[Planned, Wanting]:
    """What can be planned of a statement, and what would be asked of the ledger for all of it. Raises HushError.

    assumed: releases that count as paid and known already.
    """
    progress = begun(_supposed(handle, asker, settings), asker, settings)
    queries: tuple[Split, ...] = (progress.query,)
    if progress.query.stages:
        progress, first = next_part(progress, asker.login)
        queries = (first, *progress.others)
    planned = together([plan_statement(q, asker, settings, {}, progress.now, progress.share) for q in queries])
    planned = ready(progress, planned, asker, settings, assumed)
    return planned, asked_now(progress, planned, asker, text)


def _supposed(handle: Understood, asker: Asker, settings: Settings) -> Understood:
    """The statement with made up values for what is asked of public tables alone: its price is the same with others.

    Raises HushError if it cannot be planned with any of them.
    """
    query, errors = handle.query, list[HushError]()
    if not isinstance(query, Split) or not query.stages or not query.asks_free:
        return handle
    for value in STAND_INS:
        try:
            made_up = {stage: (value,) * stage.columns for stage in query.stages}
            found = _written(handle, with_stand_ins(query.text, made_up), asker.login)
            progress = begun(found, asker, settings)
            if not progress.query.stages:
                plan_statement(progress.query, asker, settings, {}, progress.now)
        except HushError as error:
            errors.append(error)
        else:
            return _supposed(found, asker, settings)
    raise errors[0]


def resumed(progress: Progress, rows: Sequence[Row], current: Version, login: str) -> Progress:
    """The statement with the value that the front gave for the stage it was asked for. Raises HushError."""
    handle, asked = progress.handle, progress.asked
    assert asked is not None, "the front was asked for the value of a stage"
    if handle.version is not current:
        raise PolicyForbids("the policy has changed while this statement was answered", hint="Ask it again.")
    try:
        handle = _written(handle, written(progress.query.text, progress.query.stages, asked, rows), login)
    except HushError as error:
        error.position = handle.position(error.position)
        raise
    return replace(progress, handle=handle, asked=None, others=(), stage=replace(progress.stage, is_last=True))


def _cut(statement: Statement, version: Version, login: str) -> Split:
    with limited_depth():
        return split(statement, version.catalog(login), frozenset(RELATIONS))
