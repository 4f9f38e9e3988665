"""What does `hushql demo` show? Made-up data, a running proxy, a short tour with a real client.

Shows the product on itself; nothing else depends on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from rich.console import Console

from proxy.admin.commands.demo_data import generate_with_progress
from proxy.admin.commands.profile import bar_of, wishes_of
from proxy.admin.demo.postgres import filled_server
from proxy.admin.demo.survey import PEOPLE, generate_survey, survey
from proxy.admin.demo.truth import CHECKS, DOMAIN, Compared, compared, truth, verdict
from proxy.admin.files import read_policy, replace_text
from proxy.admin.output import print_table
from proxy.admin.profiles.file import is_kept, path_of
from proxy.app import profile, serve
from proxy.config import (
    AdultFile,
    BinariesIn,
    DemoConfig,
    DemoEngine,
    Listen,
    NoConsole,
    ProfileConfig,
    ServeConfig,
    UsersAt,
)
from proxy.dp.accounting import epsilon_spent
from proxy.dp.samplers import salt_bytes
from proxy.errors import BudgetSpent, ConfigError
from proxy.front.binaries import Search, wheel_directory
from proxy.policy.model import Login, NoLimit
from proxy.policy.users import with_login
from proxy.server import sockets
from proxy.server.listener import Server
from proxy.sqltypes import SqlType
from proxy.wire.scram import SALT_BYTES, make_verifier

LOGIN, PASSWORD = "demo", "demo"
STEWARD = "steward"  # an administrator, with the same password
_PROFILE_EPSILON = 1.0  # as `hushql profile` takes it
_SOURCE = re.compile(r"  engine: duckdb\n  path: [^\n]*\n")
_ELSEWHERE = "  engine: postgres\n  dsn: ${SHOP_DSN}\n"
_NUMBERS = frozenset(t.oid for t in SqlType if t.is_number)


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop of the tour: what is shown, in words and as SQL."""

    title: str
    sql: str
    most_lines: int = 12


_COUNT = "SELECT count(*) FROM users WHERE age >= 40"
TOUR = (
    Stop("A count. The answer carries noise; the notice says what it cost.", _COUNT),
    Stop(
        "Sums with the 95 % interval of their noise. A profile of the table chose what of one customer counts.",
        "SELECT status, sum(amount), hush.low(sum(amount)) AS low, hush.high(sum(amount)) AS high\n"
        "FROM orders WHERE status IS NOT NULL GROUP BY status ORDER BY status",
    ),
    Stop(
        "EXPLAIN prints the privacy plan and costs nothing.",
        "EXPLAIN SELECT city, count(*) FROM users GROUP BY city",
        most_lines=13,
    ),
    Stop(
        "Cities were not listed in the policy, so rare ones stay unseen.",
        "SELECT city, count(*) FROM users GROUP BY city ORDER BY count(*) DESC LIMIT 5",
    ),
    Stop("The first question again: the same answer, and nothing is charged.", _COUNT),
    Stop("Rows of people are not shown.", "SELECT * FROM users"),
    Stop(
        "What is left. Accounts add up something like the square of epsilon, so more fits than one would think.",
        "SELECT account, kind, epsilon_limit, epsilon_remaining, queries_left FROM hush.budget",
    ),
)  # fmt: skip


_SHARE = "avg(evaded::int)"
SURVEY = Stop(
    f"Another database: {PEOPLE:,} people told, after two coins, whether they ever evaded tax. Nobody's answer gives\n"
    "   them away, and yet the share is estimated, with an interval for coins and noise.",
    f"SELECT {_SHARE} AS share, hush.low({_SHARE}) AS low, hush.high({_SHARE}) AS high FROM answers",
)


def demo(config: DemoConfig) -> None:
    """Make the data if they are missing, serve them, give the tour, stay until interrupted.

    Ends after the tour when standard input is not a terminal. Raises HushError.
    """
    console = Console(highlight=False)
    for bound in sockets.bind(config.listen.host, config.listen.port):
        bound.close()  # it can be had: nobody waits for the data to learn that it cannot
    folder = config.state.resolve() / "demo"
    for made in (folder.parent, folder):  # both closed to others, or `hushql serve` would not take the first
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = _shop(folder, config.scale, console)
    os.environ["SHOP_DATA_VERSION"] = f"{config.scale:g}"
    os.environ["SURVEY_DUCKDB"] = str(_answers(folder))
    with _served_shop(config, data, folder, console) as shop:
        _serve(config, _Shop(shop, data), folder, console)


@dataclass(frozen=True, slots=True)
class _Shop:
    """data: the file that was made up, whichever engine serves it."""

    policy: Path
    data: Path


@contextlib.contextmanager
def _served_shop(config: DemoConfig, data: Path, folder: Path, console: Console) -> Iterator[Path]:
    """The shop's policy, with the data that it names."""
    shipped = _policy("shop.yaml")
    match config.engine:
        case DemoEngine.DUCKDB:
            os.environ["SHOP_DUCKDB"] = str(data)
            yield copied_unless_edited(shipped, folder)
        case DemoEngine.POSTGRES:
            console.print("Copying it into a PostgreSQL of its own ...")
            binaries = config.front.directory if isinstance(config.front, BinariesIn) else Search()
            with filled_server(data, folder / "postgres", binaries) as dsn:
                os.environ |= _placed(dsn)
                written = folder / "postgres" / shipped.name
                replace_text(written, _SOURCE.sub(_ELSEWHERE, shipped.read_text(encoding="utf-8"), count=1))
                yield written
        case _ as never:
            assert_never(never)


def copied_unless_edited(shipped: Path, folder: Path) -> Path:
    """A copy of a policy that the console may edit: an edited one stays, another is as shipped."""
    written, as_it_was = folder / shipped.name, folder / f"{shipped.name}.shipped"
    is_edited = written.exists() and as_it_was.exists() and written.read_bytes() != as_it_was.read_bytes()
    if not is_edited:
        for path in (as_it_was, written):
            replace_text(path, shipped.read_text(encoding="utf-8"))
    return written


def _placed(dsn: str) -> dict[str, str]:
    """A connection string as variables: its socket's folder is new in each run, and the policy is to stay the same.

    Else what was asked in one run would have to be paid for again in the next.
    """
    parts = conninfo_to_dict(dsn)
    kept = make_conninfo("", user=str(parts["user"]), dbname=str(parts["dbname"]))
    return {"SHOP_DSN": kept, "PGHOST": str(parts["host"]), "PGPORT": str(parts["port"])}


def _serve(config: DemoConfig, shop: _Shop, folder: Path, console: Console) -> None:
    policies = [shop.policy, _policy("survey.yaml")]
    if isinstance(config.adult, AdultFile):
        os.environ["ADULT_CSV"] = str(config.adult.path.resolve())
        policies.append(_policy("adult.yaml"))
    serving = ServeConfig(
        policies=tuple(policies), state=folder / "state", listen=config.listen, front=config.front,
        users=UsersAt(_users(folder)), console=_console(config), log_level=config.log_level, is_demo=True,
    )  # fmt: skip
    for policy in policies:
        _profile(policy, serving, console)

    async def tour(server: Server) -> None:
        gone = asyncio.Event()  # a demo ends with its terminal; a server would read its policies again
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, gone.set)
        at = replace(config.listen, port=server.port)
        with contextlib.suppress(SystemExit):  # how rich says that nobody reads any more
            await asyncio.to_thread(_tour, console, at.host, at.port, shop.data)
            _say_how(console, at.host, at.port, [p.stem for p in policies], serving.console)
        if sys.stdin.isatty():
            await gone.wait()

    serve(serving, tour)


def _console(config: DemoConfig) -> NoConsole | Listen:
    """Where browsers find the console: nowhere if the demo ends before one could look."""
    return config.console if sys.stdin.isatty() else NoConsole()


def _profile(path: Path, serving: ServeConfig, console: Console) -> None:
    """Have each private table profiled once, as `hushql profile` does and at its price."""
    config = ProfileConfig(policy=path, state=serving.state, epsilon=_PROFILE_EPSILON, users=serving.users)
    policy = read_policy(path, os.environ)
    if is_kept(path_of(config.state, policy.dataset), policy, wishes_of(config, policy)):
        return
    console.print(f"Counting how much people have in {policy.dataset}, for a profile of each table ...")
    try:
        with bar_of("profile") as progress:
            found = profile(config, progress)
    except BudgetSpent as error:
        console.print(f"It goes on without: {error.message}")
        return
    paid = epsilon_spent(policy.privacy, found.findings.pico - found.findings.reused)
    console.print(f"charged to the dataset, once: epsilon {paid:.4g}" if paid else "paid for by an earlier run")


def _shop(folder: Path, scale: float, console: Console) -> Path:
    path = folder / f"shop-{scale:g}.duckdb"
    if not path.exists():
        console.print(f"Making up a shop at scale {scale:g} ...")
        summary = generate_with_progress(path, scale, replace=False)
        console.print(f"{summary.users:,} customers, {summary.orders:,} orders, {summary.items:,} items")
    else:
        console.print("The shop of an earlier run, with what is left of its budget.")
    return path


def _answers(folder: Path) -> Path:
    path = folder / "survey.duckdb"
    if not path.exists():
        generate_survey(path)
    return path


def _policy(name: str) -> Path:
    """A shipped policy: beside the package in an installation, beside its folder in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "policies", package.parent / "policies"):
        if (folder / name).is_file():
            return folder / name
    raise ConfigError(f"the demo's policy {name} is missing from this installation")


def _users(folder: Path) -> Path:
    path = folder / "users.yaml"
    if not path.exists():
        text = "roles: {analyst: {}, steward: {admin: true}}\nusers: {}\n"
        for name, role in ((LOGIN, "analyst"), (STEWARD, "steward")):
            verifier = make_verifier(PASSWORD, salt=salt_bytes(SALT_BYTES)).text()
            login = Login(name=name, scram=verifier, role=role, budget=NoLimit())
            text = with_login(text, login, filename=str(path))
        replace_text(path, text)
    return path


def _tour(console: Console, host: str, port: int, data: Path) -> None:
    with _connected(host, port, "shop") as connection:
        with _telling(console, connection):
            for number, stop in enumerate(TOUR, start=1):
                _announce(console, number, stop, "shop")
                _show(console, connection, stop)
        _say_how_far_off(console, connection, data)
    _announce(console, len(TOUR) + 2, SURVEY, "survey")
    with _connected(host, port, "survey") as connection, _telling(console, connection):
        _show_survey(console, connection)


def _connected(host: str, port: int, database: str) -> psycopg.Connection[TupleRow]:
    return psycopg.connect(
        host=host, port=port, user=LOGIN, password=PASSWORD, dbname=database, autocommit=True, application_name="tour"
    )


@contextlib.contextmanager
def _telling(console: Console, connection: psycopg.Connection[TupleRow]) -> Iterator[None]:
    """Notices are shown within; what is asked once more outside of it was told of."""

    def tell(notice: psycopg.errors.Diagnostic) -> None:
        console.print(f"  {notice.severity}: {notice.message_primary}", style="yellow", soft_wrap=True)

    connection.add_notice_handler(tell)
    yield
    connection.remove_notice_handler(tell)


def _announce(console: Console, number: int, stop: Stop, database: str) -> None:
    console.print(f"\n{number}. {stop.title}", style="bold", soft_wrap=True)
    prompt = f"{database}=> "
    lines = stop.sql.replace("\n", "\n" + " " * len(prompt))
    console.print(f"{prompt}{lines};", style="cyan", markup=False, soft_wrap=True)


def _show_survey(console: Console, connection: psycopg.Connection[TupleRow]) -> None:
    """The estimate, beside the share of yes that is stored and the one that only the generator knows."""
    found = _asked(console, connection, SURVEY)
    if found is None:
        return
    share, low, high = (f"{float(str(number)):.1%}" for number in found.fetchall()[0])
    made = survey()
    rows = [
        ["yes in the stored rows, after coins", f"{made.answered.mean():.1%}", "", ""],
        ["estimated", share, low, high],
        ["true, which only the generator knows", f"{made.true.mean():.1%}", "", ""],
    ]
    print_table(["share who evaded tax", "share", "low", "high"], rows, right=frozenset({1, 2, 3}))


def _say_how_far_off(console: Console, connection: psycopg.Connection[TupleRow], data: Path) -> None:
    console.print(
        f"\n{len(TOUR) + 1}. How far off were we? The demo made the rows up, so it may look; clients cannot.",
        style="bold", soft_wrap=True,
    )  # fmt: skip
    found: list[Compared] = []
    for check in CHECKS:
        try:
            rows = connection.execute(check.asked.encode()).fetchall()
        except psycopg.Error as error:
            console.print(f"  ERROR {error.sqlstate}: {error.diag.message_primary}", style="red", markup=False)
            continue
        found += compared(rows, truth(data, check))
    shown = [
        [c.name, *(f"{n:,.0f}" for n in (c.answer, c.low, c.high, c.truth)), c.off, "yes" if c.holds else "no"]
        for c in found
    ]
    print_table(["what", "answer", "low", "high", "truth", "off by", "held"], shown, right=frozenset(range(1, 6)))
    console.print(f"{verdict(found)} {DOMAIN}", soft_wrap=True)


def _show(console: Console, connection: psycopg.Connection[TupleRow], stop: Stop) -> None:
    cursor = _asked(console, connection, stop)
    if cursor is None:
        return
    rows = cursor.fetchall()
    columns = cursor.description or ()
    numbers = frozenset(i for i, column in enumerate(columns) if column.type_code in _NUMBERS)
    print_table([c.name for c in columns], [[*map(_cell, row)] for row in rows[: stop.most_lines]], right=numbers)
    if len(rows) > stop.most_lines:
        console.print(f"  ... {len(rows) - stop.most_lines} more lines")


def _asked(console: Console, connection: psycopg.Connection[TupleRow], stop: Stop) -> psycopg.Cursor[TupleRow] | None:
    """The answer, or None where an error is shown instead."""
    try:
        return connection.execute(stop.sql.encode())
    except psycopg.Error as error:
        lines = [f"ERROR {error.sqlstate}: {error.diag.message_primary}", f"HINT: {error.diag.message_hint}"]
        console.print("\n".join(f"  {line}" for line in lines), style="red", markup=False, soft_wrap=True)
        return None


def _cell(value: object) -> str:
    """A value for people: no more digits than one can use."""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return "NULL" if value is None else str(value)


def _say_how(console: Console, host: str, port: int, databases: list[str], pages: NoConsole | Listen) -> None:
    is_watched = sys.stdin.isatty()
    if not is_watched:
        console.print("\nNobody is at a terminal, so the demo ends here; started at one, it stays up.")
    console.print("\nConnect with any PostgreSQL client:" if is_watched else "Then connect with any PostgreSQL client:")
    for database in databases:
        console.print(
            f'  {_psql()} "host={host} port={port} user={LOGIN} password={PASSWORD} dbname={database}"',
            soft_wrap=True,
            markup=False,
        )
    if isinstance(pages, Listen):
        console.print(
            f"Or open http://{pages} in a browser: user and password {LOGIN}, database shop;"
            f" the user {STEWARD} administers it, with the same password.",
            soft_wrap=True, markup=False,
        )  # fmt: skip
    if is_watched:
        console.print("\nServing until Ctrl-C.")


def _psql() -> str:
    """A psql that is there: on PATH, else the installed wheel's."""
    beside = [directory / "psql" for directory in wheel_directory()]
    if shutil.which("psql") is None and beside and beside[0].is_file():
        return shlex.quote(os.path.relpath(beside[0]))
    return "psql"
