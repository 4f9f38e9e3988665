"""How does a client session get from the text of a statement to the text that the front runs in its place?

Statements are understood and planned in other processes, and threads wait for the engine and the ledger, so that other
sessions go on.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from proxy.engines.base import Cancellation
from proxy.errors import HushError, PolicyForbids, SessionLimit
from proxy.ledger.base import Receipt
from proxy.metrics import MeasuredStage, Metrics, ReleaseOrigin, StatementKind
from proxy.pipeline.ahead import foresee
from proxy.pipeline.front_state import Answers, Noted, Taken
from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Planned, together
from proxy.pipeline.settings import NAMES, READ_FROM_FRONT, Settings, has_intervals, has_notes, read_settings
from proxy.pipeline.statements import QueryString, Understood, private_words, understand
from proxy.pipeline.target import NO_TARGET
from proxy.plan.charge import Cost
from proxy.plan.sets.sets import promised
from proxy.policy.model import ProfileUse
from proxy.release.noisy import NoisyCells
from proxy.release.store import StoredRelease
from proxy.session.answering.answer import StageAnswer, answer_statement, is_paid
from proxy.session.answering.grid import Clock, GridRunner, GridWork, LoopClock, Threads
from proxy.session.answering.made_up import made_up_rows, said_of_made_up
from proxy.session.answering.noise_warning import Doubt, doubt_of
from proxy.session.answering.notices import (
    charge_notices,
    clamp_notices,
    doubt_notices,
    empty_notices,
    far_notices,
    left_out_notices,
    left_out_words,
    local_notices,
    rank_notices,
    repeat_notices,
    reuse_notices,
    threshold_notices,
    unsaid,
    zone_notices,
)
from proxy.session.answering.spliced import asking, block_patches, explained, probed, spliced, with_notes
from proxy.session.answering.told_events import tell_answered, tell_refused
from proxy.session.asker import Asker
from proxy.session.asking.parameters import canonical, read_parameters, unread
from proxy.session.asking.plancache import PlanCache
from proxy.session.asking.planning import plan_asked
from proxy.session.asking.reading import informed
from proxy.session.asking.stages import Progress, asked_now, begun, next_part, now_of, ready, rehearse, resumed
from proxy.session.contract import Asking, Notice, Parameter, Piece, Refusal, Spliced
from proxy.session.dataset import Dataset, Version
from proxy.session.pricing.confirm import Confirmations
from proxy.session.pricing.estimate import Forecast, estimate, foresee_all
from proxy.session.pricing.explain import explain_json, explain_text
from proxy.session.pricing.payment import Wanting, charged
from proxy.session.pricing.profile_payment import ProfilesPaid, pay_for_profiles
from proxy.session.relations import LastQuery, Viewer, system_columns
from proxy.sql.algebra.constants import Constants, Readings
from proxy.sql.query.front.splice import Patch, system_template
from proxy.sql.query.probe import Probe
from proxy.sql.query.split import SystemText
from proxy.sql.syntax.wrappers import EXPLAINS, Wrapper
from proxy.workers.thinking import Thinking

Result = TypeVar("Result")
Given = TypeVar("Given")
Calls = Mapping[SystemText, tuple[Forecast, ...]]
_MOST_NAMES = 1000
_LONG_CHARS = 20_000
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Where statements are understood, threads that wait, and the time grid's clock.

    waiting: for the ledger and the front. private, local: for the engine, where something is promised, or nothing is.
    """

    thinking: Thinking
    waiting: Executor
    private: Threads
    local: Threads
    clock: Clock = field(default_factory=LoopClock)


class ClientSession:
    """See `contract.Session`. One login's connection to one dataset."""

    setting_names: tuple[str, ...] = (*NAMES, *READ_FROM_FRONT)

    def __init__(
        self, dataset: Dataset, login: str, session_id: str, workers: Workers, plans: PlanCache, metrics: Metrics
    ) -> None:
        self._dataset = dataset
        self._login = login
        self._id = session_id
        self._workers = workers
        self._plans = plans
        self._metrics = metrics
        self._last: tuple[LastQuery, ...] = ()
        self._words_of: Version | None = None
        self._words: frozenset[str] = frozenset()
        self._ahead: tuple[tuple[Hashable, Planned], ...] = ()  # what was planned last
        self._noted: set[str] = set()  # names of views and of statements prepared in SQL that may be private
        self._asker = _kept(self._new_asker)
        self._settings = _kept(_settings)
        self._said: set[str] = set()  # what is said once in a session
        self._on_grid = GridRunner(workers.private, workers.clock, self._timed)
        self._off_grid = GridRunner(workers.local, workers.clock, self._timed)
        self._confirmations = Confirmations(workers.clock.now)
        self._paid: tuple[ProfilesPaid, ...] = ()  # for profiles, and not said yet
        self._text = ""  # of the latest statement, for the log

    def may_be_private(self, text: str) -> bool:
        """See the contract. Unicode-escaped names are left to the front's guard."""
        version = self._dataset.current
        if self._words_of is not version:
            self._words, self._words_of = private_words(version.premises(self._login)), version
        folded = text.lower()
        return any(word in folded for word in self._words) or bool(self._noted and self._noted_in(text))

    def known(self, text: str, settings: Mapping[str, str]) -> tuple[Piece, ...]:
        """See the contract. What makes a name is prepared, so that the name is noted."""
        pieces = self._plans.pieces(self._asked(text, settings, ())) or ()
        return () if any(isinstance(piece.handle, Noted) for piece in pieces) else pieces

    async def prepare(self, text: str, settings: Mapping[str, str], told: Answers = ()) -> tuple[Piece, ...]:
        """See the contract."""
        self._text = text
        asked = self._asked(text, settings, told)
        pieces = self._plans.pieces(asked)
        if pieces is None:
            pieces = await self._understood(asked, settings)
            self._plans.keep_pieces(asked, pieces)
        self._note(name for piece in pieces if isinstance(piece.handle, Noted) for name in piece.handle.names)
        return pieces

    async def _understood(self, asked: QueryString, values: Mapping[str, str]) -> tuple[Piece, ...]:
        """The pieces of a query string. If it is one statement, it is planned too, since it will probably be run."""
        version = self._dataset.current
        size = len(asked.text) + sum(len(cell or "") for rows in asked.told for row in rows for cell in row)
        try:
            settings = self._settings(version, values)
        except HushError:  # it is said when a statement is run
            return await self._asker(version, "").think(size, understand, asked)
        if version.policy.privacy.profile is ProfileUse.CHARGED:  # what is planned by a profile is paid for first
            return await self._asker(version, settings.shared_session).think(size, understand, asked)
        asker = self._asker(version, settings.shared_session)
        constants = Constants({}, now_of(version), session_zone=settings.time_zone)
        found = await asker.think(size, foresee, asked, asker.terms(settings), constants)
        for planned in found.planned:
            handle = found.pieces[0].handle
            assert isinstance(handle, Understood), "it was planned"
            self._keep(_plan_key(handle.query.text, asker, settings, (), 0), planned, handle.query.text)
        return found.pieces

    def _asked(self, text: str, settings: Mapping[str, str], told: Answers) -> QueryString:
        return QueryString(
            premises=self._dataset.current.premises(self._login), text=text, has_intervals=has_intervals(settings),
            has_notes=has_notes(settings),
            noted=self._noted_in(text) if self._noted else frozenset(), told=told,
        )  # fmt: skip

    def _note(self, names: Iterable[str]) -> None:
        """Remember names that later statements may mean something private by. Raises SessionLimit."""
        noted = self._noted.union(names)
        if len(noted) > _MOST_NAMES:
            raise SessionLimit(
                f"more than {_MOST_NAMES} names of views and prepared statements in one session",
                hint="Use the same names again, or open another session.",
            )
        self._noted = noted

    def _noted_in(self, text: str) -> frozenset[str]:
        """The noted names that the text may hold: on the event loop, so a long one may hold them all."""
        if len(text) > _LONG_CHARS:
            return frozenset(self._noted)
        words = frozenset(_WORDS.findall(text.lower()))
        return frozenset(name for name in self._noted if words.issuperset(_WORDS.findall(name)))

    async def release(
        self, piece: Piece, parameters: tuple[Parameter, ...], settings: Mapping[str, str]
    ) -> Spliced | Asking:
        """See the contract."""
        self._text = piece.text
        with self._dataset.used() as version:
            piece = await self._up_to_date(piece, version, settings)
            if isinstance(piece.refusal, Refusal):
                raise piece.refusal.error
            if isinstance(piece.handle, Taken):
                return Spliced(sql=piece.text, literal_sql=piece.text, arrays=(), notices=())
            try:
                found = await self._release(piece, version, parameters, settings)
            except HushError as error:
                self._tell_profiles_paid(error)
                raise
            return self._saying_profiles_paid(found, self._settings(version, settings))

    async def _pay_for_profiles(self, handle: Understood, asker: Asker, settings: Settings) -> None:
        """Before anything is planned that may be shown, in which a profile plays a part. Raises HushError."""
        if handle.profiled:
            self._paid += await self._wait(lambda: pay_for_profiles(handle.profiled, asker, settings))

    def _tell_profiles_paid(self, error: HushError) -> None:
        """Say in the error of a statement that profiles were charged for it."""
        paid, self._paid = self._paid, ()
        for one in paid:
            one.tell(error)

    def _saying_profiles_paid(self, found: Spliced | Asking, settings: Settings) -> Spliced | Asking:
        """What was charged for profiles is said beside what goes to the client next, unless an answer has said it."""
        if isinstance(found, Asking):
            return found
        said, self._paid = tuple(one.notice for one in self._paid), ()
        heard = tuple(notice for notice in said if notice.severity not in settings.muted)
        return replace(found, notices=(*heard, *found.notices)) if heard else found

    def refused(self, error: HushError) -> None:
        """See the contract."""
        self._metrics.refused(error)
        tell_refused(self._text, self._dataset.current, self._login, self._id, error)

    async def close(self) -> None:
        """See the contract. What was cancelled may still go on for a moment, and notes how it ends."""
        await self._on_grid.close()
        await self._off_grid.close()
        self._metrics.session_closed()

    async def _up_to_date(self, piece: Piece, version: Version, settings: Mapping[str, str]) -> Piece:
        """The piece under the policy in force: a statement prepared under an older one is understood again."""
        handle = piece.handle
        if not isinstance(handle, Understood) or handle.premises is version.premises(self._login):
            return piece
        pieces = await self.prepare(piece.text, settings, handle.told)
        if len(pieces) != 1 or not pieces[0].is_private or not version.is_same_for(self._login, self._dataset.current):
            raise PolicyForbids("the policy has changed since this statement was prepared", hint="Prepare it again.")
        return pieces[0]

    # --- one statement --------------------------------------------------------------------------------

    async def _release(
        self, piece: Piece, version: Version, parameters: tuple[Parameter, ...], values: Mapping[str, str]
    ) -> Spliced | Asking:
        progress, asker, settings = await self._progress(piece, version, values)
        handle = progress.handle
        is_explain = handle.wrapped.wrapper in EXPLAINS
        if isinstance(handle.query, Probe):
            if is_explain:
                return await self._explained(progress, (), asker, settings, len(parameters), piece.text)
            self._metrics.statement(StatementKind.PROBE)
            return await self._without_release(handle, handle.query, asker, len(parameters))
        progress, query = await self._read(progress, parameters, settings), handle.query
        await self._pay_for_profiles(handle, asker, settings)
        if query.stages:
            await self._rehearse(progress, asker, settings)
            progress, query = await next_part(progress, asker)
        try:
            planned = await self._plan(query, asker, settings, progress)
        except HushError as error:
            error.position = progress.original(error.position)
            raise
        if is_explain and not (progress.asked and await self._is_known(planned, asker, settings)):
            others = [await self._plan(q, asker, settings, progress) for q in progress.others]
            return await self._explained(progress, (planned, *others), asker, settings, len(parameters), piece.text)
        if not planned.blocks and progress.asked is None:
            self._metrics.statement(StatementKind.RELATION)
            calls = await self._calls(query, asker, settings, progress)
            patches = await self._wait(lambda: self._system(query, asker, settings, self._last, calls))
            return spliced(handle, patches, len(parameters), ())
        is_asked_twice = settings.must_confirm and settings.target == NO_TARGET and not progress.stage.tickets
        if is_asked_twice and not await self._is_known(planned, asker, settings):
            self._confirmations.check(planned, asker.version.policy.privacy, is_first=not progress.earlier)
        return await self._answered(progress, query, planned, asker, settings, piece)

    async def _is_known(self, planned: Planned, asker: Asker, settings: Settings) -> bool:
        """Whether the answer costs nothing. What is stored is read in a thread: it may be in another machine."""
        return not planned.blocks or await self._wait(lambda: is_paid(planned, asker, settings))

    async def _without_release(self, handle: Understood, query: Probe, asker: Asker, count: int) -> Spliced:
        """A statement about the shape of its answer, or about made-up rows."""
        if not query.is_made_up:
            return probed(handle, query, count)
        found = await self._wait(lambda: made_up_rows(handle, query, asker.version, self._login, count))
        self._last = (LastQuery(outputs=(), cost=Cost(0, 0), is_reused=False, notices=found.notices),)
        return found

    async def _read(self, progress: Progress, parameters: tuple[Parameter, ...], settings: Settings) -> Progress:
        """The statement with its parameters in canonical form; PostgreSQL is asked for it once. Raises HushError."""
        if progress.is_read:
            return progress
        texts = unread(parameters)
        if texts:
            found = await self._wait(lambda: self._dataset.reader.read(texts, settings.style))
            parameters = canonical(parameters, dict(zip(texts, found, strict=True)))
        return replace(progress, parameters=parameters, is_read=True)

    async def _informed(self, work: Callable[[Readings], Awaitable[Result]], settings: Settings) -> Result:
        """What a work of the mind finds once PostgreSQL has read the texts that it asks for. Raises HushError."""
        return await informed(work, self._dataset.reader, settings.style, self._workers.waiting)

    async def _rehearse(self, progress: Progress, asker: Asker, settings: Settings) -> None:
        """Before the first stage, make sure that the last can be planned. Raises HushError."""
        if progress.share and not progress.stage.cells:
            await self._informed(lambda known: rehearse(progress, asker, settings, known), settings)

    async def _progress(
        self, piece: Piece, version: Version, values: Mapping[str, str]
    ) -> tuple[Progress, Asker, Settings]:
        """How far a statement is, with who asks for it and how."""
        settings = self._settings(version, values)
        asker, found = self._asker(version, settings.shared_session), piece.handle
        if isinstance(found, Progress):
            found = await resumed(found, piece.told, version, asker)
            if found.share:
                return found, asker, settings
            first = begun(found.handle, asker, settings)
            first = replace(first, now=found.now, parameters=found.parameters, is_read=found.is_read)
            return first, asker, settings
        assert isinstance(found, Understood), "a private piece without refusal was understood"
        return begun(found, asker, settings), asker, settings

    async def _answered(
        self, progress: Progress, query: Outline, planned: Planned, asker: Asker, settings: Settings, piece: Piece
    ) -> Spliced | Asking:
        """A stage's question to the front, or the whole statement."""
        cancellation, calls = Cancellation(), await self._calls(query, asker, settings, progress)

        def work() -> GridWork[tuple[StageAnswer, LastQuery | None, Spliced | Asking]]:
            """From the charge to the text for the front."""
            now_planned = ready(progress, planned, asker, settings)
            with self._dataset.uses.of(asker.version.engine):  # also when nobody waits for it any more
                answer = yield from answer_statement(
                    query, now_planned, asker, settings, cancellation, piece.text, progress.stage
                )
            patches, count = block_patches(query, now_planned, answer), len(progress.parameters)
            if progress.asked is not None:
                now = replace(progress, stage=answer.next, earlier=(*progress.earlier, now_planned))
                return answer, None, asking(progress.asked, query, patches, count, replace(piece, handle=now, told=()))
            receipt = charged(answer.next, asker)
            whole = together((*progress.earlier, now_planned))
            cells = answer.next.cells
            notices = _notices(whole, receipt, doubt_of(now_planned, answer), asker, settings, cells)
            notices = (*(one.notice for one in self._paid), *notices)
            left_out = left_out_words(whole.plans, asker.version.policy.privacy.unit, cells)
            last = _last_query(whole, receipt, notices, left_out)
            patches = (*patches, *self._system(query, asker, settings, (last,), calls))
            heard = [n for n in notices if n.severity not in settings.muted]
            found = spliced(progress.handle, patches, count, unsaid(heard, self._said))
            return answer, last, with_notes(found, heard)

        step_s = asker.version.policy.privacy.time_grid_s
        runner = self._on_grid if promised(planned.plans) else self._off_grid
        answer, last, result = await runner.run(work(), step_s, cancellation)
        if last is not None:
            self._last, self._paid = (last,), ()
            self._metrics.statement(StatementKind.PRIVATE)
            receipt = charged(answer.next, asker)
            tell_answered(piece.text, asker, self._id, receipt, is_reused=last.is_reused)
        for item in answer.items:
            self._metrics.released(ReleaseOrigin.REUSED if isinstance(item, StoredRelease) else ReleaseOrigin.FRESH)
        return result

    def _new_asker(self, version: Version, shared_session: str) -> Asker:
        accounts = version.accounts(self._login, f"shared/{shared_session}" if shared_session else self._id)
        return Asker(
            dataset=self._dataset, version=version, login=self._login, accounts=accounts, metrics=self._metrics,
            thinking=self._workers.thinking,
        )  # fmt: skip

    async def _plan(self, query: Outline, asker: Asker, settings: Settings, progress: Progress) -> Planned:
        key = _plan_key(query.text, asker, settings, progress.parameters, progress.share)
        cached = self._plans.planned(key) or next((planned for of, planned in self._ahead if of == key), None)
        if cached is not None:
            return cached
        share, waiting = progress.share, self._workers.waiting

        async def plan(known: Readings) -> Planned:
            return await plan_asked(query, asker, settings, progress.constants(settings, known), share, waiting)

        began = time.perf_counter()
        planned = await self._informed(plan, settings)
        self._metrics.took(MeasuredStage.PLANNING, time.perf_counter() - began)
        self._keep(key, planned, query.text)
        return planned

    def _timed(self, waited_s: float, took_s: float) -> None:
        self._metrics.took(MeasuredStage.WAITING, waited_s)
        self._metrics.took(MeasuredStage.ENGINE, took_s)

    def _keep(self, key: Hashable, planned: Planned, text: str) -> None:
        """Remember a plan, unless another is made of the same statement in a moment; a large one for this session."""
        if planned.is_lasting:
            self._ahead = ((key, planned),)
            self._plans.keep_planned(key, planned, len(text))

    def _viewer(self, asker: Asker, settings: Settings, last: tuple[LastQuery, ...]) -> Viewer:
        return Viewer(
            dataset=self._dataset, version=asker.version, login=self._login, accounts=asker.accounts,
            last=last, epsilon=settings.epsilon,
        )  # fmt: skip

    async def _calls(self, query: Outline, asker: Asker, settings: Settings, progress: Progress) -> Calls:
        """What the statements are about that functions of the proxy are called with. Raises HushError."""
        called = [(r, r.argument) for r in query.system if r.argument is not None]
        values = read_parameters(progress.parameters) if called else {}

        async def pay(handle: Understood) -> None:
            await self._pay_for_profiles(handle, asker, settings)

        return {r: await foresee_all(a, values, asker, settings, self._workers.waiting, pay) for r, a in called}

    def _system(
        self, query: Outline, asker: Asker, settings: Settings, last: tuple[LastQuery, ...], calls: Calls
    ) -> tuple[Patch, ...]:
        viewer = self._viewer(asker, settings, last)
        patches = []
        for reference in query.system:
            if reference in calls:
                columns = estimate(calls[reference], viewer, asker, settings)
            else:
                columns = system_columns(reference.name, viewer)
            template, marker = system_template(reference.name, columns, needs_alias=reference.needs_alias)
            patches.append(Patch(reference.span, template, marker, columns))
        return tuple(patches)

    async def _explained(
        self, progress: Progress, planned: tuple[Planned, ...], asker: Asker, settings: Settings, count: int,
        text: str,
    ) -> Spliced:  # fmt: skip
        self._metrics.statement(StatementKind.EXPLAIN)
        viewer = self._viewer(asker, settings, self._last)
        is_json = progress.handle.wrapped.wrapper is Wrapper.EXPLAIN_JSON
        explain = _json_lines if is_json else explain_text
        asked_about = (*progress.earlier, *planned)

        def work() -> list[str]:
            found = ready(progress, together(asked_about), asker, settings)
            return explain(found, asked_now(progress, found, asker, text), asker, viewer, settings)

        lines, query = await self._wait(work), progress.handle.query
        if isinstance(query, Probe) and query.is_made_up:
            lines = said_of_made_up(lines, is_json=is_json)
        return explained(lines, "json" if is_json else "text", count)

    # --- threads ----------------------------------------------------------------------------------------

    async def _wait(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._workers.waiting, work)


def _plan_key(text: str, asker: Asker, settings: Settings, parameters: tuple[Parameter, ...], share: int) -> Hashable:
    """All that a plan depends on."""
    limits = tuple((a.limited, a.limit) for a in asker.accounts)
    return asker.version, asker.login, limits, text, parameters, settings, share


def _settings(version: Version, values: Mapping[str, str]) -> Settings:
    return read_settings(values, version.policy.privacy)


def _kept(make: Callable[[Version, Given], Result]) -> Callable[[Version, Given], Result]:
    """`make`, which is asked again only when its version or its other argument is not that of the call before."""
    last: list[tuple[Version, Given, Result]] = []

    def kept(version: Version, given: Given) -> Result:
        for made_of, with_given, made in last:
            if made_of is version and with_given == given:
                return made
        made = make(version, given)
        last[:] = [(version, given, made)]
        return made

    return kept


# --- what a statement leaves behind -----------------------------------------------------------------------


def _last_query(planned: Planned, receipt: Receipt, notices: tuple[Notice, ...], left_out: str) -> LastQuery:
    own = [c for b, c in zip(receipt.balances, receipt.charged, strict=True) if b.account.kind.is_own]
    cost = max(own, key=lambda c: c.pico)
    is_reused = cost.pico == 0 and bool(promised(planned.plans))
    return LastQuery(outputs=planned.outputs, cost=cost, is_reused=is_reused, notices=notices, left_out=left_out)


def _notices(
    planned: Planned, receipt: Receipt, doubt: Doubt, asker: Asker, settings: Settings, cells: Mapping[str, NoisyCells]
) -> tuple[Notice, ...]:
    privacy = asker.version.policy.privacy
    is_admin = asker.version.role_of(asker.login).is_admin
    is_charged = bool(promised(planned.plans))  # what others pay for included
    return (*(charge_notices(receipt, privacy, is_admin=is_admin) if is_charged else ()),
            *local_notices(planned.plans, privacy),
            *zone_notices(planned.types, settings.time_zone, privacy),
            *rank_notices(planned.outputs), *reuse_notices(planned.derived.values()),
            *repeat_notices(planned.plans, privacy.unit), *left_out_notices(planned.plans, privacy.unit, cells),
            *threshold_notices(planned.plans, privacy.unit), *clamp_notices(planned.plans, privacy.unit),
            *doubt_notices(doubt.lost, doubt.all), *empty_notices(doubt.empty, doubt.averages),
            *far_notices(doubt.far, doubt.quantiles))  # fmt: skip


def _json_lines(planned: Planned, asked: Wanting, asker: Asker, viewer: Viewer, settings: Settings) -> list[str]:
    return [explain_json(planned, asked, asker, viewer, settings)]
