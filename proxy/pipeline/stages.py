"""What is to be released first of a statement, what does all of it cost, and what does it say once that is known?

Each stage is a statement of its own. Its value, which the front computes from noisy numbers, is written into the
client's statement, until nothing is left to be released first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from proxy.dp.accounting import knob_pico
from proxy.errors import HushError, Unsupported
from proxy.pipeline.outline import Cuts, Outline, outline_of
from proxy.pipeline.plans import Planned, Task, plan_statement, share_of
from proxy.pipeline.premises import Terms, atto_for_keys
from proxy.pipeline.statements import Understood
from proxy.pipeline.trial_plan import Rehearsal, TrialValues, different
from proxy.plan.charge import Cost
from proxy.sql.algebra.constants import Constants
from proxy.sql.query.stage_types import STAND_INS, likely, stand_ins
from proxy.sql.query.stages import StageRow, StageText, WrittenStatement, with_stand_ins, written
from proxy.sql.syntax.parse import NO_STATEMENT


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
    queries: tuple[Outline, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePart:
    """The stage that is to be computed now, what it asks as a statement, and what other stages ask that could be."""

    asked: StageText
    query: Outline
    others: tuple[Outline, ...]


def prices(handle: Understood, terms: Terms) -> Prices:
    """What the releases of a statement cost if one of them comes first. Raises PolicyForbids, Unsupported."""
    query, privacy = handle.query, handle.premises.privacy
    if not isinstance(query, Outline) or query.asks_free:
        return NOT_STAGED
    if terms.target.amount:
        raise Unsupported("hush.target_error is not supported with sub-queries that are released first",
                          hint="RESET hush.target_error, and SET hush.epsilon.")  # fmt: skip
    share = share_of(knob_pico(privacy, terms.epsilon), len(query.keyed))
    atto = atto_for_keys(terms.limits, privacy, share)
    return Prices(share=share, most=tuple(Cost(share, atto if is_keyed else 0) for is_keyed in query.keyed))


def rehearse(cuts: Cuts, handle: Understood, terms: Terms, constants: Constants, share: int) -> None:
    """Plan the statement with made up values of its stages. Raises HushError if that cannot be done with any."""
    premises = handle.premises

    def plan(query: Outline) -> Planned:
        return plan_statement(cuts, Task(query=query, premises=premises, terms=terms, constants=constants, share=share))

    def whole(handle: Understood) -> Planned:
        return plan(_outline(handle))

    def choices(_: Understood, stage: StageText) -> TrialValues:
        try:
            cut = cuts.of(premises, stage.text)
            return stand_ins(cut, () if cut.stages else plan(outline_of(cut)).blocks, stage.columns)
        except HushError as error:
            error.position = stage.original(error.position)
            raise

    Rehearsal(whole, choices, lambda handle, words: with_words(cuts, handle, words)).check(handle)


def with_words(cuts: Cuts, handle: Understood, words: WrittenStatement) -> Understood:
    """The statement in which constants have taken the place of sub-queries. Raises HushError."""
    query = outline_of(cuts.of(handle.premises, words.statement.text))
    return replace(handle, query=query, written=(*handle.written, replace(words, statement=NO_STATEMENT)))


def next_part(cuts: Cuts, handle: Understood) -> StagePart:
    """What is to be computed first of a statement with stages. Raises HushError."""
    cut = {s: outline_of(cuts.of(handle.premises, s.text)) for s in different(_outline(handle).stages)}
    (asked, query), *others = ((s, found) for s, found in cut.items() if not found.stages)
    return StagePart(asked=asked, query=query, others=tuple(found for _, found in others))


def resumed(cuts: Cuts, handle: Understood, asked: StageText, rows: Sequence[StageRow]) -> Understood:
    """The statement with the value that the front gave for the stage it was asked for. Raises HushError."""
    query = _outline(handle)
    try:
        return with_words(cuts, handle, written(query.text, query.stages, asked, rows))
    except HushError as error:
        error.position = handle.position(error.position)
        raise


def beginning(cuts: Cuts, handle: Understood, terms: Terms, constants: Constants) -> Beginning:
    """What can be known of a statement before anything is released. Raises HushError, Unread."""
    handle = _supposed(cuts, handle, terms, constants)
    priced, query = prices(handle, terms), handle.query
    if not isinstance(query, Outline) or not query.stages:
        return Beginning(prices=priced, queries=(query,) if isinstance(query, Outline) else (), is_whole=True)
    part = next_part(cuts, handle)
    return Beginning(prices=priced, queries=(part.query, *part.others), is_whole=False)


def _supposed(cuts: Cuts, handle: Understood, terms: Terms, constants: Constants) -> Understood:
    """The statement with made up values for what is asked of public tables alone: its price is the same with others.

    Raises HushError if it cannot be planned with any of them.
    """
    query, premises, errors = handle.query, handle.premises, list[HushError]()
    if not isinstance(query, Outline) or not query.stages or not query.asks_free:
        return handle
    guesses = [{s: likely(s, premises.catalog) for s in query.stages}]
    guesses += [{s: (value,) * s.columns for s in query.stages} for value in STAND_INS]
    for guess in guesses:
        try:
            found = with_words(cuts, handle, with_stand_ins(query.text, guess))
            prices(found, terms)
            whole = _outline(found)
            if not whole.stages:
                plan_statement(cuts, Task(query=whole, premises=premises, terms=terms, constants=constants))
        except HushError as error:
            errors.append(error)
        else:
            return _supposed(cuts, found, terms, constants)
    raise errors[0]


def _outline(handle: Understood) -> Outline:
    assert isinstance(handle.query, Outline), "a probe releases nothing, and has no stages"
    return handle.query
