"""What is to be released first of a statement, what does all of it cost, and what does it say once that is known?

Each stage is a statement of its own. Its value, which the front computes from noisy numbers, is written into the
client's statement, until nothing is left to be released first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from proxy.dp.accounting import knob_pico
from proxy.errors import HushError, Unsupported
from proxy.pipeline.plans import Planned, plan_statement, share_of
from proxy.pipeline.premises import Premises, Terms, atto_for_keys
from proxy.pipeline.rehearsal import Choices, Rehearsal, different
from proxy.pipeline.statements import Understood
from proxy.plan.charge import Cost
from proxy.sql.constants import Constants
from proxy.sql.parse import Statement, limited_depth, split_statements
from proxy.sql.split import BlockText, Split, split
from proxy.sql.stage_types import STAND_INS, likely, stand_ins
from proxy.sql.stages import Row, StageText, Written, meaning, with_stand_ins, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a statement with stages costs. share: what each release may. most: of each release, in order."""

    share: int = 0
    most: tuple[Cost, ...] = ()


NOT_STAGED = Prices()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a statement costs, and what can be planned of it before anything is released. is_whole: that is all."""

    prices: Prices
    queries: tuple[Split, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The stage that is to be computed now, what it asks as a statement, and what other stages ask that could be."""

    asked: StageText
    query: Split
    others: tuple[Split, ...]


def prices(handle: Understood, terms: Terms) -> Prices:
    """What the releases of a statement cost if one of them comes first. Raises PolicyForbids, Unsupported."""
    query, privacy = handle.query, handle.premises.privacy
    if not isinstance(query, Split) or query.asks_free:
        return NOT_STAGED
    if terms.target.amount:
        raise Unsupported("hush.target_error is not supported with sub-queries that are released first",
                          hint="RESET hush.target_error, and SET hush.epsilon.")  # fmt: skip
    blocks = blocks_of(query)
    share = share_of(knob_pico(privacy, terms.epsilon), len(blocks))
    return Prices(share=share, most=tuple(_price(b, share, handle.premises, terms) for b in blocks))


def _price(block: BlockText, share: int, premises: Premises, terms: Terms) -> Cost:
    """The most that the release of a block can cost: its keys may turn out to be public."""
    has_keys = block.select.args.get("group") is not None or block.select.args.get("distinct") is not None
    return Cost(share, atto_for_keys(terms.limits, premises.privacy, share) if has_keys else 0)


def blocks_of(query: Split) -> tuple[BlockText, ...]:
    """The blocks of a statement and of all its stages, without those that mean the same."""
    found: dict[tuple[object, ...], list[BlockText]] = {}
    for block in (*query.first, *query.blocks):
        same = found.setdefault(meaning(block.tokens), [])
        if all(b.ctes != block.ctes for b in same):
            same.append(block)
    return tuple(b for same in found.values() for b in same)


def rehearse(handle: Understood, terms: Terms, constants: Constants, share: int) -> None:
    """Plan the statement with made up values of its stages. Raises HushError if that cannot be done with any."""
    premises = handle.premises

    def plan(query: Split) -> Planned:
        return plan_statement(query, premises, terms, constants, share)

    def whole(handle: Understood) -> Planned:
        assert isinstance(handle.query, Split), "a probe releases nothing"
        return plan(handle.query)

    def choices(_: Understood, stage: StageText) -> Choices:
        try:
            query = _cut(split_statements(stage.text)[0], premises)
            return stand_ins(query, () if query.stages else plan(query).blocks, stage.columns)
        except HushError as error:
            error.position = stage.original(error.position)
            raise

    Rehearsal(whole, choices, with_words).check(handle)


def with_words(handle: Understood, words: Written) -> Understood:
    """The statement in which constants have taken the place of sub-queries. Raises HushError."""
    handle = replace(handle, written=(*handle.written, words))
    return replace(handle, query=_cut(words.statement, handle.premises))


def next_part(handle: Understood) -> Part:
    """What is to be computed first of a statement with stages. Raises HushError."""
    assert isinstance(handle.query, Split), "a probe has no stages"
    cuts = {s: _cut(split_statements(s.text)[0], handle.premises) for s in different(handle.query.stages)}
    (asked, query), *others = ((s, cut) for s, cut in cuts.items() if not cut.stages)
    return Part(asked=asked, query=query, others=tuple(cut for _, cut in others))


def resumed(handle: Understood, asked: StageText, rows: Sequence[Row]) -> Understood:
    """The statement with the value that the front gave for the stage it was asked for. Raises HushError."""
    assert isinstance(handle.query, Split), "a probe has no stages"
    try:
        return with_words(handle, written(handle.query.text, handle.query.stages, asked, rows))
    except HushError as error:
        error.position = handle.position(error.position)
        raise


def beginning(handle: Understood, terms: Terms, now: datetime) -> Beginning:
    """What can be known of a statement before anything is released. Raises HushError."""
    handle = _supposed(handle, terms, now)
    priced, query = prices(handle, terms), handle.query
    if not isinstance(query, Split) or not query.stages:
        return Beginning(prices=priced, queries=(query,) if isinstance(query, Split) else (), is_whole=True)
    part = next_part(handle)
    return Beginning(prices=priced, queries=(part.query, *part.others), is_whole=False)


def _supposed(handle: Understood, terms: Terms, now: datetime) -> Understood:
    """The statement with made up values for what is asked of public tables alone: its price is the same with others.

    Raises HushError if it cannot be planned with any of them.
    """
    query, errors = handle.query, list[HushError]()
    if not isinstance(query, Split) or not query.stages or not query.asks_free:
        return handle
    guesses = [{s: likely(s, handle.premises.catalog) for s in query.stages}]
    guesses += [{s: (value,) * s.columns for s in query.stages} for value in STAND_INS]
    for guess in guesses:
        try:
            found = with_words(handle, with_stand_ins(query.text, guess))
            prices(found, terms)
            if isinstance(found.query, Split) and not found.query.stages:
                plan_statement(found.query, handle.premises, terms, Constants({}, now))
        except HushError as error:
            errors.append(error)
        else:
            return _supposed(found, terms, now)
    raise errors[0]


def _cut(statement: Statement, premises: Premises) -> Split:
    with limited_depth():
        return split(statement, premises.catalog, premises.relations)
