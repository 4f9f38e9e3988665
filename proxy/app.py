"""Which concrete pieces make a running proxy, and in what order do they start and stop?

The only module that picks classes. Holds no rules: those are in the pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry

from proxy.admin.commands.profile import Profiled, wishes_of
from proxy.admin.control import Control
from proxy.admin.data_check import data_problems
from proxy.admin.files import read_policy, read_with_text
from proxy.admin.guests import Guests
from proxy.admin.hosting import Hosted, Opener, PublicSource, Reloading, keep_promise
from proxy.admin.kept_policies import keep_policy
from proxy.admin.ledger_place import InFiles, InPostgres
from proxy.admin.monitoring import figures_of
from proxy.admin.open_files import MOST_STRANGERS, make_room
from proxy.admin.profiles.file import keep_profiles, path_of, read_profiles
from proxy.admin.profiles.request import Profiling, profiled_elsewhere
from proxy.admin.refreshing import Refreshing
from proxy.admin.reload import poked_by_hangup
from proxy.admin.state import kept_secret, remove_spilled
from proxy.config import (
    BinariesIn,
    ExplainRequest,
    LedgerAt,
    LedgerInState,
    Listen,
    NoTls,
    ProfileConfig,
    ServeConfig,
    TlsFiles,
)
from proxy.dp.mechanisms import Distribution, distribution_of
from proxy.dp.samplers import NoisePool, batches_of, salt_bytes
from proxy.engines.base import Engine
from proxy.engines.duckdb import DuckDBEngine
from proxy.engines.postgres import PostgresEngine
from proxy.engines.spark import SparkEngine
from proxy.errors import ConfigError, HushError
from proxy.events import formatter_of
from proxy.front.binaries import Search
from proxy.front.front import Front, FrontOptions
from proxy.front.reader import FrontReader
from proxy.front.schema import GUARD
from proxy.front.server import FrontEvent
from proxy.identity.passes import Passes
from proxy.identity.vouchers import open_voucher
from proxy.ledger.base import Ledger
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.ledger.sqlite.directory import DirectoryInUse
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.metrics import Metrics, WaitingQueue, nothing_served
from proxy.policy.model import Guest, Policy, PostgresSource, SparkSource
from proxy.policy.outside.logins import LdapLogins, NoOutside, TokenLogins, Vouched
from proxy.server import datasets as served
from proxy.server.datasets import ServedDataset
from proxy.server.listener import Server
from proxy.server.sockets import are_local, bind, port_of
from proxy.server.tls import load_tls
from proxy.session.answering.grid import Threads
from proxy.session.asking.plancache import PlanCache
from proxy.session.contract import Session
from proxy.session.dataset import Dataset, Version
from proxy.session.learning.profiling import ProfilingProgress, untold
from proxy.session.learning.profiling import profile as profile_units
from proxy.session.pricing.dry_run import dry_run
from proxy.session.session import ClientSession, Workers
from proxy.session.uses import Uses
from proxy.wire.bearer import discovery_of
from proxy.workers.pool import Pool

_log = logging.getLogger("hushql")
_DRAIN_S = 10.0
_SWITCH_S = 0.001
_FOREIGN = "proxy.common"  # a package of the distribution proxy.py


class Proxy:
    """All datasets of one `hushql serve`, from start to stop."""

    def __init__(self, config: ServeConfig) -> None:
        self._config = config
        self._metrics = Metrics(CollectorRegistry())
        self._hosted: list[Hosted] = []
        self._undo = contextlib.AsyncExitStack()

    async def start(self) -> Server:
        """Open everything and listen. Raises HushError; what was opened is closed again."""
        try:
            return await self._start()
        except BaseException:
            with contextlib.suppress(OSError):  # there is something worse to tell
                await self._undo.aclose()
            raise

    async def stop(self) -> None:
        """Let sessions finish, then close everything in the opposite order of opening. Raises ConfigError.

        What cannot be removed holds up nothing else, and is told once.
        """
        try:
            await self._undo.aclose()
        except OSError as error:
            raise ConfigError(
                f"files in {self._config.state} could not be removed: {error.strerror}",
                detail="All sessions have ended, and every charge is kept.",
                hint="When the directory can be written to, the next start removes them.",
            ) from error

    async def _start(self) -> Server:
        read = [(path, *read_with_text(path, os.environ)) for path in self._config.policies]
        policies = [(path, policy) for path, policy, _ in read]
        _check_distinct(policies)
        sessions = sum(policy.limits.max_sessions for _, policy in policies)
        make_room(sessions, has_console=isinstance(self._config.console, Listen))
        tls, sockets = self._tls(), self._sockets()
        self._pages = self._console_sockets()
        if isinstance(self._config.metrics, Listen):
            self._undo.callback(self._metrics.serve(self._config.metrics.host, self._config.metrics.port))
        self._ledger = _open_ledger(self._config.state, self._config.ledger)
        self._undo.callback(self._ledger.close)
        remove_spilled(self._config.state)
        self._noise = {d: NoisePool(d, batches_ahead=batches_of(self._config.noise_ahead)) for d in Distribution}
        for pool in self._noise.values():
            self._undo.callback(pool.close)
        thinking = Pool()
        await thinking.start()
        self._undo.push_async_callback(thinking.stop)
        self._workers = Workers(
            thinking=thinking, waiting=ThreadPoolExecutor(16, "hushql-wait"),
            private=Threads(16, "hushql-private"), local=Threads(4, "hushql-local"),
        )  # fmt: skip
        self._undo.callback(self._workers.waiting.shutdown, cancel_futures=True)
        self._undo.callback(self._workers.private.close)
        self._undo.callback(self._workers.local.close)
        opener = Opener(
            state=self._config.state, ledger=self._ledger, users=self._config.users, open_engine=_open_engine,
            secret=self._secret,
        )  # fmt: skip
        for path, policy in policies:
            self._hosted.append(await self._host(path, policy, opener))
        for _, policy, text in read:
            keep_policy(self._config.state, policy.dataset, text, datetime.now(UTC))
        self._measure(thinking)
        mock_secret = self._secret("mock.secret")
        options = served.ServerOptions(
            sockets=sockets, tls=tls, mock_secret=mock_secret, max_greeting=max(MOST_STRANGERS, sessions)
        )
        self._server = server = Server(options, self._served(), salt_bytes)
        reloading = self._reloading(server, opener)
        self._undo.callback(reloading.close)
        await server.start()
        self._undo.push_async_callback(server.stop, _DRAIN_S)
        for _, policy in policies:  # not before: it takes a second of what the start needs
            self._noise[distribution_of(policy.privacy.accounting)].warm()
        self._watch(reloading)
        if isinstance(self._config.console, Listen):
            await self._open_console(server, reloading)
        profiling = Profiling(
            state=self._config.state, hosted=self._hosted, ledger=self._ledger, noise=self._noise, profile=profile_units
        )
        refreshing = Refreshing(self._hosted, reloading, profiling.answer)
        self._undo.callback((await Control.start(self._config.state, refreshing.answer)).close)
        return server

    def _watch(self, reloading: Reloading) -> None:
        """Look at files, and at guests of all datasets, from now on."""
        watch = reloading.watch()
        for work in (watch.run(), *(self._look_at_guests(hosted) for hosted in self._hosted)):
            running = asyncio.get_running_loop().create_task(work)
            running.add_done_callback(_watch_ended)
            self._undo.push_async_callback(_cancelled, running)
        self._undo.enter_context(poked_by_hangup(watch))

    def _measure(self, thinking: Pool) -> None:
        """Let the metrics tell of what is served, and of what waits."""
        queues: dict[WaitingQueue, Pool | Threads] = {
            WaitingQueue.PLANNING: thinking,
            WaitingQueue.PRIVATE: self._workers.private,
            WaitingQueue.LOCAL: self._workers.local,
        }
        self._metrics.watch_queues(lambda: {queue: where.waiting for queue, where in queues.items()})
        self._metrics.watch(lambda: [figures_of(hosted, self._ledger) for hosted in self._hosted])
        self._undo.callback(self._metrics.watch, nothing_served)

    def _secret(self, name: str) -> bytes:
        return _secret(self._config.state, self._ledger, name)

    def _tls(self) -> served.TlsOffered | served.TlsDeclined:
        tls = self._config.tls
        return (
            served.TlsDeclined() if isinstance(tls, NoTls) else load_tls(tls.cert, tls.key, is_required=tls.is_required)
        )

    def _sockets(self) -> tuple[socket.socket, ...]:
        listen = self._config.listen
        sockets = bind(listen.host, listen.port)
        for bound in sockets:
            self._undo.callback(bound.close)
        if isinstance(self._config.tls, NoTls) and not are_local(sockets):
            _log.warning(
                "listening on %s without TLS: passwords stay secret, but whoever is on the way can read and change"
                " questions and answers; `hushql serve` takes --tls-cert and --tls-key",
                listen,
            )
        return sockets

    def _console_sockets(self) -> tuple[socket.socket, ...]:
        where = self._config.console
        if not isinstance(where, Listen):
            return ()
        sockets = bind(where.host, where.port, option="--console")
        for bound in sockets:
            self._undo.callback(bound.close)
        if isinstance(self._config.tls, NoTls) and not are_local(sockets):
            raise ConfigError(
                f"the console at {where} would send passwords in the clear",
                hint="Give --tls-cert and --tls-key, or name an address of this machine alone, as 127.0.0.1:6480.",
            )
        return sockets

    async def _open_console(self, server: Server, reloading: Reloading) -> None:
        """Serve pages to browsers. Its modules are loaded here, and so only where it is turned on."""
        from proxy.console.running import RunningConsole  # noqa: PLC0415
        from proxy.console.served import ServedPolicy, Serving  # noqa: PLC0415
        from proxy.console.wire import address_of  # noqa: PLC0415

        tls = self._config.tls

        def policy_of(hosted: Hosted) -> ServedPolicy:
            dataset = hosted.dataset
            return ServedPolicy(
                path=hosted.path, users_path=hosted.users_path, policy=lambda: dataset.current.policy,
                users=lambda: dataset.current.users, passes=hosted.guests.passes, take=partial(reloading.take, hosted),
            )  # fmt: skip

        serving = Serving(
            address=address_of(server.listening, must_encrypt=isinstance(tls, TlsFiles)),
            datasets={h.name: policy_of(h) for h in self._hosted}, books=self._books(), state=self._config.state,
            random_bytes=salt_bytes, clock=asyncio.get_running_loop().time, is_encrypted=isinstance(tls, TlsFiles),
            tour="shop" if self._config.is_demo else "", shows_statements=self._config.log_statements,
        )  # fmt: skip
        certificate = (tls.cert, tls.key) if isinstance(tls, TlsFiles) else None
        console = RunningConsole(serving, self._pages, certificate)
        self.console_port = port_of(self._pages[0])
        console.start()
        self._undo.push_async_callback(console.stop)
        _log.info("the console is at %s, port %d", self._config.console, self.console_port)

    def _books(self) -> InFiles | InPostgres:
        kept = self._config.ledger
        return InPostgres(kept.url) if isinstance(kept, LedgerAt) else InFiles(self._config.state)

    def _served(self) -> Mapping[str, ServedDataset]:
        return {
            h.name: ServedDataset(
                users=h.dataset.current.users,
                limits=h.dataset.current.policy.limits,
                sessions=_Sessions(h, self._workers, self._metrics),
                lease=h.front.lease,
                guard=GUARD,
                outsiders=_outsiders(h.guests),
                welcome=partial(self._welcome, h),
                passes=h.guests.passes,
            )
            for h in self._hosted
        }

    async def _welcome(self, hosted: Hosted, vouched: Vouched) -> Guest:
        guest = await hosted.guests.welcome(vouched)
        self._server.serve(self._served())
        return guest

    async def _look_at_guests(self, hosted: Hosted) -> None:
        """Look again and again whether guests may stay, and end the sessions of those who may not."""
        while True:
            await hosted.guests.wait()
            gone = await hosted.guests.look(self._server.open_logins(hosted.name))
            self._server.serve(self._served())
            for login in gone:
                self._server.end_login(hosted.name, login)

    # --- one dataset --------------------------------------------------------------------------------------

    async def _host(self, path: Path, policy: Policy, opener: Opener) -> Hosted:
        """Serve a policy: its public PostgreSQL is built while its data are opened and checked. Raises HushError."""
        users, uses = await asyncio.to_thread(opener.read_users, policy), Uses()
        public = PublicSource(uses)
        self._undo.callback(public.close)
        building = asyncio.create_task(Front.start(policy, users, self._front_options(), public.rows, _tell))
        self._undo.push_async_callback(_ended, building)
        version = await opener.open(policy, users)
        dataset = Dataset(ledger=self._ledger, noise=self._noise, current=version, uses=uses)
        public.engine = version.engine
        await asyncio.to_thread(keep_promise, self._ledger, version)
        front = await building
        reader = FrontReader(front.connect_reader)
        self._undo.callback(reader.close)
        dataset.reader = reader
        clock = asyncio.get_running_loop().time
        guests = Guests(
            dataset=dataset, front=front, threads=self._threads(8, "login"), looking=self._threads(4, "look"),
            passes=Passes(salt_bytes, clock), clock=clock,
            voucher=await asyncio.to_thread(open_voucher, version.users.outside),
        )  # fmt: skip
        return Hosted(
            path=path, users_path=opener.users_path(policy), dataset=dataset, front=front, public=public,
            plans=PlanCache(), guests=guests,
        )  # fmt: skip

    def _threads(self, most: int, what: str) -> ThreadPoolExecutor:
        """Threads of one dataset that wait for others, made when they are needed."""
        threads = ThreadPoolExecutor(most, f"hushql-{what}")
        self._undo.callback(threads.shutdown, wait=False, cancel_futures=True)
        return threads

    def _front_options(self) -> FrontOptions:
        front = self._config.front
        binaries = front.directory if isinstance(front, BinariesIn) else Search()
        return FrontOptions(state_dir=self._config.state, binaries=binaries)

    def _reloading(self, server: Server, opener: Opener) -> Reloading:
        def serve_new(hosted: Hosted, old: Version) -> None:
            server.serve(self._served())
            now = hosted.dataset.current.users
            gone = (set(old.users.logins) - set(now.logins)) | (set(old.users.guests) - set(now.guests))
            for login in gone:
                server.end_login(hosted.name, login)
            hosted.guests.poke()

        return Reloading(self._hosted, opener, self._metrics, serve_new)


def _open_ledger(state: Path, kept: LedgerInState | LedgerAt) -> Ledger:
    return PostgresLedger(state, kept.url) if isinstance(kept, LedgerAt) else SqliteLedger(state)


def _open_engine(policy: Policy, spill: Path) -> Engine:
    if isinstance(policy.source, PostgresSource):
        return PostgresEngine(policy, policy.source)
    if isinstance(policy.source, SparkSource):
        return SparkEngine(policy.source)
    return DuckDBEngine(policy, spill)


def _secret(state: Path, ledger: Ledger, name: str) -> bytes:
    """Drawn once for the state directory, or for all proxies that share a ledger."""
    return ledger.shared_secret(name, kept_secret(state / name))


def _outsiders(guests: Guests) -> served.Outsiders:
    match guests.dataset.current.users.outside:
        case NoOutside():
            return served.NobodyVouches()
        case LdapLogins(clear_on_loopback=clear):
            return served.DirectoryVouches(vouch=guests.by_password, clear_on_loopback=clear)
        case TokenLogins(issuer=issuer, scope=scope):
            return served.IssuerVouches(vouch=guests.by_token, discovery=discovery_of(issuer, scope))


class _Sessions:
    """Opens sessions on one dataset. Implements `contract.Sessions`."""

    def __init__(self, hosted: Hosted, workers: Workers, metrics: Metrics) -> None:
        self._hosted = hosted
        self._workers = workers
        self._metrics = metrics

    async def open(self, login: str, database: str, session_id: str) -> Session:
        assert database == self._hosted.name, "sessions are opened by the dataset's own name"
        self._metrics.session_opened()
        return ClientSession(self._hosted.dataset, login, session_id, self._workers, self._hosted.plans, self._metrics)


def serve(config: ServeConfig, on_ready: Callable[[Server], Awaitable[None]] | None = None) -> None:
    """Run until SIGINT or SIGTERM, or until `on_ready` returns. Raises HushError when it cannot start."""
    check_own_package()
    _log_to_standard_error(config)
    _let_the_loop_run()
    with _loop() as runner:
        runner.run(_serve(config, on_ready))


def _log_to_standard_error(config: ServeConfig) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(formatter_of(config.log_format, with_statements=config.log_statements))
    logging.basicConfig(level=config.log_level.name, handlers=[handler])


def _let_the_loop_run() -> None:
    """What threads do for one session must not hold up the event loop, which all sessions wait for.

    A thread that computes hands over sooner than after Python's 5 ms, of which one message could take several; and
    plans of hundreds of thousands of values do not make Python look through all that the proxy holds.
    """
    sys.setswitchinterval(_SWITCH_S)
    gc.set_threshold(50_000, 20, 100)


async def _serve(config: ServeConfig, on_ready: Callable[[Server], Awaitable[None]] | None) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    proxy = Proxy(config)
    server = await proxy.start()
    gc.freeze()
    try:
        _log.info("serving %s on %s port %d", ", ".join(map(str, config.policies)), config.listen.host, server.port)
        if on_ready is not None:
            await _first(on_ready(server), ended.wait())
        else:
            await ended.wait()
    finally:
        _log.info("ending: idle sessions at once, busy ones within %g seconds", _DRAIN_S)
        await proxy.stop()
        gc.unfreeze()  # or what is in cycles is never let go, which a library complains of at the end
        _log.info("ended")


async def _first(*works: Awaitable[object]) -> None:
    """Wait until one of the works is done, end the others, and raise what the first raised."""
    tasks = [asyncio.ensure_future(w) for w in works]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        await _cancelled(task)
    for task in done:
        task.result()


async def _ended(building: asyncio.Task[Front]) -> None:
    """End a public PostgreSQL, also one that is being built."""
    building.cancel()
    with contextlib.suppress(asyncio.CancelledError, HushError):
        await (await building).stop()


async def _cancelled(task: asyncio.Future[object] | asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextlib.contextmanager
def _loop() -> Iterator[asyncio.Runner]:
    """A runner on uvloop where it is installed."""
    factory = None
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop  # noqa: PLC0415 - not on every platform

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner


def check_own_package() -> None:
    """Another distribution also installs a top-level `proxy`. Raises ConfigError if the two are mixed."""
    if importlib.util.find_spec(_FOREIGN) is not None:
        raise ConfigError(
            "another distribution has installed files into the package `proxy`",
            detail=f"{_FOREIGN} belongs to proxy.py; the two cannot share an environment.",
            hint="Install hushql into an environment of its own.",
        )


def _watch_ended(task: asyncio.Task[None]) -> None:
    """Without the watch a removed login or guest would stay: end the proxy rather than go on with what was."""
    if not task.cancelled() and task.exception() is not None:
        _log.critical("policy files or guests are no longer watched (%s); ending", type(task.exception()).__name__)
        signal.raise_signal(signal.SIGTERM)


def _check_distinct(policies: list[tuple[Path, Policy]]) -> None:
    seen: dict[str, Path] = {}
    for path, policy in policies:
        if policy.dataset in seen:
            raise ConfigError(f'{path} and {seen[policy.dataset]} both serve a dataset called "{policy.dataset}"')
        seen[policy.dataset] = path


def _tell(event: FrontEvent) -> None:
    _log.warning("front of %s: %s %s", event.dataset, event.kind, event.detail)


def explain(request: ExplainRequest) -> str:
    """The text of `hushql explain`. Raises HushError."""
    policy = read_policy(request.policy, os.environ)
    profiles = read_profiles(path_of(request.state, policy.dataset), policy)[0] if request.state else ()
    return dry_run(policy, request.sql, as_json=request.as_json, profiles=profiles)


def check_data(policy: Policy, users_file: Path) -> tuple[str, ...]:
    """What a start with this policy and these logins would refuse; nothing if all is right."""
    return data_problems(policy, users_file, _open_engine)


def profile(config: ProfileConfig, progress: ProfilingProgress = untold) -> Profiled:
    """Do what `hushql profile` asks and keep it, or have the proxy do so that owns the files. Raises HushError."""
    policy = read_policy(config.policy, os.environ)
    wishes = wishes_of(config, policy)
    with contextlib.ExitStack() as undo:
        try:
            ledger = _open_ledger(config.state, config.ledger)
        except DirectoryInUse:
            findings = profiled_elsewhere(config, policy)
            if findings is None:
                raise
            return Profiled(policy, findings)
        undo.callback(ledger.close)
        remove_spilled(config.state)
        opener = Opener(
            state=config.state, ledger=ledger, users=config.users, open_engine=_open_engine,
            secret=lambda name: _secret(config.state, ledger, name),
        )  # fmt: skip
        version = asyncio.run(opener.open(policy))
        undo.callback(version.engine.close)
        keep_promise(ledger, version)
        pool = NoisePool(distribution_of(policy.privacy.accounting), batches_ahead=1)
        undo.callback(pool.close)
        findings = profile_units(version, ledger, pool, wishes, config.epsilon, progress)
        keep_profiles(path_of(config.state, policy.dataset), policy, findings.profiles)
    return Profiled(policy, findings)
