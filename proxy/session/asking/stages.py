"""How far is a statement whose sub-queries are released one after the other?

Each stage is a statement of its own. Its value, which the front computes from noisy numbers, is written into the
client's statement, until nothing is left to be released first.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from proxy.errors import PolicyForbids
from proxy.pipeline import stages
from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Planned, together
from proxy.pipeline.settings import Settings
from proxy.pipeline.statements import Understood
from proxy.plan.sets.sets import Plan, promised
from proxy.session.asker import Asker
from proxy.session.asking.parameters import read_parameters
from proxy.session.asking.planning import plan_asked
from proxy.session.asking.reuse import resolved
from proxy.session.contract import Parameter, Row
from proxy.session.dataset import Version
from proxy.session.pricing.payment import WHOLE, Stage, Wanting, asked_of
from proxy.sql.algebra.constants import Constants, Readings
from proxy.sql.query.stages import StageText


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A statement, and what its stages so far have left.

    version: the policy in force when it began. now: what now() is in all stages. parameters: the client's, in canonical
    form, once is_read. share: what each release may cost, 0 to be decided by their number. earlier: what was planned
    before.
    asked: the stage whose value the front is asked for. others: statements of stages that could be asked for now too.
    """

    handle: Understood
    version: Version
    now: datetime
    parameters: tuple[Parameter, ...] = ()
    is_read: bool = False
    stage: Stage = WHOLE
    share: int = 0
    earlier: tuple[Planned, ...] = ()
    asked: StageText | None = None
    others: tuple[Outline, ...] = ()

    @property
    def size(self) -> int:
        """How much there is to read of it."""
        return self.handle.size

    def constants(self, settings: Settings, readings: Readings) -> Constants:
        """What the statement may use besides its text."""
        return Constants(read_parameters(self.parameters), self.now, readings, settings.time_zone)

    def original(self, position: int) -> int:
        """Where in the client's statement a position in what is computed now is."""
        return self.handle.position(position if self.asked is None else self.asked.original(position))


def now_of(version: Version) -> datetime:
    """The time, as the clocks show it in whose zone private times are computed."""
    return datetime.now(ZoneInfo(version.policy.privacy.time_zone))


def begun(handle: Understood, asker: Asker, settings: Settings) -> Progress:
    """A statement before its first stage. Raises PolicyForbids, Unsupported."""
    return _progress(handle, asker, now_of(asker.version), stages.prices(handle, asker.terms(settings)))


def _progress(
    handle: Understood, asker: Asker, now: datetime, prices: stages.Prices, *, is_last: bool = True
) -> Progress:
    stage = Stage(unpaid=prices.most, is_last=is_last)
    return Progress(handle=handle, version=asker.version, now=now, share=prices.share, stage=stage)


async def rehearse(progress: Progress, asker: Asker, settings: Settings, readings: Readings) -> None:
    """Plan the statement with made up values of its stages. Raises HushError if none will do, Unread."""
    handle, constants = progress.handle, progress.constants(settings, readings)
    await asker.think(progress.size, stages.rehearse, handle, asker.terms(settings), constants, progress.share)


async def next_part(progress: Progress, asker: Asker) -> tuple[Progress, Outline]:
    """The stage that is to be computed now, and what it asks as a statement. Raises HushError."""
    part = await asker.think(progress.size, stages.next_part, progress.handle)
    stage = replace(progress.stage, is_last=False)
    return replace(progress, asked=part.asked, others=part.others, stage=stage), part.query


def asked_now(progress: Progress, planned: Planned, asker: Asker, text: str) -> Wanting:
    """What would be asked of the ledger for a statement, given what can be planned of it. Raises LedgerFailed."""
    plans = [p for p in promised(planned.distinct()) if p.fingerprint not in progress.stage.cells]
    return asked_of(plans, asker, text, progress.stage)


def ready(
    progress: Progress, planned: Planned, asker: Asker, settings: Settings, assumed: Sequence[Plan] = ()
) -> Planned:
    """What is planned, computed from other releases that were paid for where that will do; stages never are."""
    return planned if progress.share else resolved(planned, asker, settings, assumed)


async def foreseen(
    handle: Understood, asker: Asker, settings: Settings, readings: Readings, waiting: Executor
) -> tuple[Progress, Planned]:
    """What can be planned of a statement, and how far it is then. Raises HushError, Unread."""
    constants = Constants({}, now_of(asker.version), readings, settings.time_zone)
    begins = await asker.think(handle.size, stages.beginning, handle, asker.terms(settings), constants)
    progress = _progress(handle, asker, constants.now, begins.prices, is_last=begins.is_whole)
    share = progress.share
    return progress, together([await plan_asked(q, asker, settings, constants, share, waiting) for q in begins.queries])


async def resumed(progress: Progress, rows: Sequence[Row], current: Version, asker: Asker) -> Progress:
    """The statement with the value that the front gave for the stage it was asked for. Raises HushError."""
    assert progress.asked is not None, "the front was asked for the value of a stage"
    if not current.is_same_for(asker.login, progress.version):
        raise PolicyForbids("the policy has changed while this statement was answered", hint="Ask it again.")
    handle = await asker.think(progress.size, stages.resumed, progress.handle, progress.asked, rows)
    return replace(progress, handle=handle, asked=None, others=(), stage=replace(progress.stage, is_last=True))
