"""Which process does which work, and what if it does not come to an end?

Every work begins where short ones are done. One that turns out to be longer than its share is begun again where there
is more time and less priority, and in the end it is refused. So short works wait for short ones only, and each login
has its turn. What is decided rests on sizes and on the processor's time of the work itself.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.errors import HushError, ShuttingDown, ThinkerLost, Unsupported
from proxy.pipeline.premises import Premises
from proxy.workers.crew import Gone, Nursery, Thinker
from proxy.workers.frames import FrameKind, WorkFrame
from proxy.workers.parcel import Packer, SharedPremises
from proxy.workers.thinking import Given, Result, Turn, Work
from proxy.workers.turns import Turns

_log = logging.getLogger("hushql")


@dataclass(frozen=True, slots=True)
class Level:
    """What a work may take. size: of what begins here, in characters. seconds: of the processor."""

    size: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Post:
    """What one process does: works of these levels, those of the first before others.

    most_bytes: of addresses; Python and its libraries have some hundred megabytes of their own.
    """

    levels: tuple[int, ...]
    niceness: int = 0
    most_bytes: int = 3 * 2**30


LIMIT_S = 10.0
LEVELS = (Level(4_000, 0.03), Level(40_000, 0.3), Level(float("inf"), LIMIT_S))
POSTS = (Post((0,)), Post((0, 1)), Post((2,), niceness=10))
_ASK_FOR_LESS = "Ask for less in one statement: fewer columns, conditions or branches, or several statements."
_DROP_WITHIN_S = 2.0
_MOST_PREMISES = 64  # of all datasets, roles and versions of policies that are asked about
_LARGE_BYTES = 100_000  # an answer of so many is unpacked in a thread


@dataclass(slots=True, eq=False)
class _Job:
    turn: Turn
    content: tuple[object, ...]
    done: asyncio.Future[Any]
    level: int


@dataclass(slots=True, eq=False)
class _Member:
    """Who does the works of a post: a process that is started when there is something to do, and again if it ends."""

    post: Post
    thinkers: list[Thinker] = field(default_factory=list)  # at most one
    knows: set[int] = field(default_factory=set)
    jobs: list[_Job] = field(default_factory=list)  # at most one
    task: asyncio.Task[None] | None = None  # None: never had one


def too_slow(seconds: float) -> Unsupported:
    """The refusal of a statement that took all the time there is."""
    return Unsupported(
        f"planning this statement takes more than {seconds:g} seconds of the processor's time", hint=_ASK_FOR_LESS
    )


def _fail(job: _Job, error: Exception) -> None:
    if not job.done.done():
        job.done.set_exception(error)


def _spelled(how: int) -> str:
    try:
        return f"by {signal.Signals(-how).name}" if how < 0 else f"with code {how}"
    except ValueError:
        return f"by signal {-how}"


class Pool:
    """Works are done in processes, one for each post. Implements `thinking.Thinking`; belongs to one event loop."""

    def __init__(self, levels: Sequence[Level] = LEVELS, posts: Sequence[Post] = POSTS) -> None:
        self._levels = tuple(levels)
        self._turns: Turns[_Job] = Turns(len(levels))
        self._members = [_Member(post) for post in posts]
        self._nursery = Nursery()
        self._packer = Packer(SharedPremises())
        self._numbers: OrderedDict[Premises, int] = OrderedDict()
        self._last_number = 0
        self._jobs = set[_Job]()  # all that somebody waits for
        self._is_closed = False

    async def start(self) -> None:
        """Begin to get ready; nothing waits for it."""
        await self._nursery.start()

    @property
    def waiting(self) -> int:
        """How many works no process has begun."""
        return len(self._turns)

    async def run(self, turn: Turn, work: Work[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """See `Thinking.run`."""
        if self._is_closed:
            raise ShuttingDown("the server is shutting down")
        level = next(n for n, level in enumerate(self._levels) if turn.size <= level.size)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        job = _Job(turn, (work, args, kwargs), future, level)
        self._jobs.add(job)
        self._turns.add(level, turn.login, job)
        self._deal()
        try:
            return await future
        finally:
            self._jobs.discard(job)
            if future.cancelled():
                self._give_up(job)

    async def stop(self) -> None:
        """Give up what is not done, and end all processes."""
        self._is_closed = True
        for job in tuple(self._jobs):
            _fail(job, ShuttingDown("the server is shutting down"))
            self._give_up(job)
        for member in self._members:
            for thinker in member.thinkers:
                thinker.close()
        await self._nursery.stop()
        await asyncio.gather(*(m.task for m in self._members if m.task is not None), return_exceptions=True)

    # --- who does what ---------------------------------------------------------------------------------

    def _deal(self) -> None:
        """Give each idle member a work; those who have a process already come first."""
        for member in () if self._is_closed else sorted(self._members, key=lambda m: not m.thinkers):
            for job in () if member.jobs else self._turns.take(member.post.levels):
                member.jobs.append(job)
                member.task = asyncio.get_running_loop().create_task(self._do(member, job))

    async def _do(self, member: _Member, job: _Job) -> None:
        """Have a work done, and look for the next."""
        try:
            await self._done_by(member, job)
        except HushError as error:
            _fail(job, error)
        except Exception as error:  # noqa: BLE001 - it is the client's answer, and must come
            _fail(job, error)
        finally:
            member.jobs.clear()
            self._deal()

    async def _done_by(self, member: _Member, job: _Job) -> None:
        level = self._levels[job.level]
        try:
            thinker = await self._thinker_of(member)
            await self._teach(member, thinker, job.turn.premises)
            if job.done.done():
                return
            answer = await thinker.ask(WorkFrame(FrameKind.WORK, level.seconds, self._packer.pack(job.content)))
        except Gone as gone:
            member.thinkers.clear()
            if gone.how != -signal.SIGXCPU:
                raise self._ended(gone, job) from None
            answer = WorkFrame(FrameKind.SLOW)  # and it has not noticed
        match answer.kind:
            case FrameKind.SLOW if job.level + 1 < len(self._levels):
                job.level += 1
                self._turns.add(job.level, job.turn.login, job)
            case FrameKind.SLOW:
                raise too_slow(level.seconds)
            case FrameKind.DROPPED if not job.done.done():  # meant for the work before it
                self._turns.add(job.level, job.turn.login, job)
            case FrameKind.LARGE:
                member.thinkers.clear()
                raise Unsupported("planning this statement takes too much memory", hint=_ASK_FOR_LESS)
            case FrameKind.FAILED:
                _log.error("planning failed with %s", answer.content.decode())  # what and where, but no message
                raise RuntimeError("planning failed")
            case _:
                await self._tell(job, answer)

    async def _tell(self, job: _Job, answer: WorkFrame) -> None:
        """Give the answer to whoever waits for it."""
        if job.done.done():
            return
        if len(answer.content) > _LARGE_BYTES:
            found = await asyncio.to_thread(self._packer.unpack, answer.content)
        else:
            found = self._packer.unpack(answer.content)
        if answer.kind is FrameKind.RAISED:
            raise found
        if not job.done.done():
            job.done.set_result(found)

    def _give_up(self, job: _Job) -> None:
        """Nobody waits for a work any more."""
        if self._turns.remove(job.level, job.turn.login, job):
            return
        for member in self._members:
            if job in member.jobs:
                for thinker in member.thinkers:
                    thinker.send_signal(signal.SIGUSR1)
                    loop = asyncio.get_running_loop()
                    loop.call_later(_DROP_WITHIN_S, self._make_end, member, job, thinker)

    def _make_end(self, member: _Member, job: _Job, thinker: Thinker) -> None:
        """It has not noticed that it was dropped."""
        if job in member.jobs:
            thinker.send_signal(signal.SIGKILL)

    def _ended(self, gone: Gone, job: _Job) -> HushError:
        """What a client is told of a process that ended instead of answering."""
        if job.done.done():
            return ShuttingDown("nobody waits for this")
        _log.error("a process that plans has ended: %s", _spelled(gone.how))
        return ThinkerLost(
            "the process that planned this statement has ended",
            detail="It was ended from outside, or had too little memory. The statement was not planned.",
            hint="Ask it again, or for less at once; the server's log says how the process ended.",
        )

    # --- processes and what they know --------------------------------------------------------------------

    async def _thinker_of(self, member: _Member) -> Thinker:
        """A living process for a member. Raises Gone."""
        if not (member.thinkers and member.thinkers[0].is_alive):
            post = member.post
            member.thinkers, member.knows = [await self._nursery.thinker(post.niceness, post.most_bytes)], set()
        return member.thinkers[0]

    async def _teach(self, member: _Member, thinker: Thinker, premises: Premises) -> None:
        """Tell a process the premises of a work, unless it knows them."""
        number = self._number(premises)
        if number not in member.knows:
            raw = await asyncio.to_thread(Packer(SharedPremises()).pack, premises)
            thinker.tell(WorkFrame(FrameKind.KNOW, number, raw))
            member.knows.add(number)

    def _number(self, premises: Premises) -> int:
        """The number by which all know these; those that were not asked about for long are forgotten."""
        if premises not in self._numbers:
            self._last_number += 1
            self._numbers[premises] = self._last_number
            self._packer.shared.add(self._last_number, premises)
            self._forget_oldest()
        self._numbers.move_to_end(premises)
        return self._numbers[premises]

    def _forget_oldest(self) -> None:
        asked = {job.turn.premises for member in self._members for job in member.jobs}
        for old in [p for p in list(self._numbers)[:-_MOST_PREMISES] if p not in asked]:
            number = self._numbers.pop(old)
            self._packer.shared.forget(number)
            for member in self._members:
                if number in member.knows:
                    member.knows.discard(number)
                    for thinker in member.thinkers:
                        thinker.tell(WorkFrame(FrameKind.FORGET, number))
