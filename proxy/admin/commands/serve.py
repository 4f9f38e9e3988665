"""With which options do `hushql serve`, `demo` and `explain` run? They become typed values for whoever runs them.

What runs is composed above this package and arrives as functions, so nothing here imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proxy.config import (
    NOISE_AHEAD,
    AdultFile,
    BinariesIn,
    DemoConfig,
    DemoEngine,
    ExplainRequest,
    FindBinaries,
    FrontBinaries,
    LedgerAt,
    LedgerInState,
    LogLevel,
    NoAdult,
    NoConsole,
    NoMetrics,
    NoTls,
    ServeConfig,
    Tls,
    TlsFiles,
    UsersAt,
    UsersOfPolicy,
    check_files,
    parse_listen,
)
from proxy.errors import ConfigError
from proxy.events import LogFormat
from proxy.ledger.postgres.link import check_address
from proxy.policy.model import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Runners:
    """What the commands do once their options are understood.

    serve and demo return when the server has ended; explain returns the text to print; check_data what is wrong with
    the data of a policy, given its users file. Errors are HushErrors.
    """

    serve: Callable[[ServeConfig], None]
    demo: Callable[[DemoConfig], None]
    explain: Callable[[ExplainRequest], str]
    check_data: Callable[[Policy, Path], tuple[str, ...]]


_LISTEN = "127.0.0.1:6432"
_CONSOLE = "127.0.0.1:6480"
_STATE = Path(".state")

Policies = Annotated[list[Path], typer.Argument(metavar="POLICY", help="Policy files, each one database.")]
ListenAt = Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Where clients connect.")]
StateFolderOption = Annotated[
    Path, typer.Option("--state", metavar="DIR", help="Ledger, releases and salt.", envvar="HUSHQL_STATE")
]
Cert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate chain, PEM.", show_default=False)
]
TlsKeyOption = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, PEM, mode 0600.", show_default=False)
]
RequireTls = Annotated[bool, typer.Option("--require-tls", help="Refuse clients that do not encrypt.")]
FrontBin = Annotated[
    Path | None,
    typer.Option(
        "--front-bin", metavar="DIR", help="Where initdb and postgres are.", show_default="PATH, else the wheel"
    ),
]
UsersOption = Annotated[
    Path | None,
    typer.Option("--users", metavar="FILE", help="Logins of all datasets.", show_default="each policy's users_file"),
]
MetricsAt = Annotated[
    str,
    typer.Option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics there.", show_default=False),
]
ConsoleAt = Annotated[
    str,
    typer.Option("--console", metavar="HOST:PORT", help="Serve the console to browsers there.", show_default=False),
]
LedgerUrl = Annotated[
    str,
    typer.Option(
        "--ledger", metavar="URL", help="Keep the ledger in PostgreSQL, shared by several proxies; no password here.",
        envvar="HUSHQL_LEDGER", show_default="in --state",
    ),
]  # fmt: skip
NoiseAhead = Annotated[
    int,
    typer.Option(
        "--noise-ahead", metavar="N", help="Values of noise drawn ahead of need.", envvar="HUSHQL_NOISE_AHEAD"
    ),
]
LogLevelOption = Annotated[LogLevel, typer.Option("--log-level", help="How much is logged on standard error.")]
Format = Annotated[LogFormat, typer.Option("--log-format", help="Lines for people, or one JSON object each.")]
LogStatements = Annotated[bool, typer.Option("--log-statements", help="Log what clients write, too.")]


def register(app: typer.Typer, runners: Runners) -> None:
    """Add serve, demo and explain to the command."""
    _register_serve(app, runners)
    _register_demo(app, runners)
    _register_explain(app, runners)


def _register_serve(app: typer.Typer, runners: Runners) -> None:
    @app.command("serve")
    def serve(
        policies: Policies,
        listen: ListenAt = _LISTEN,
        state: StateFolderOption = _STATE,
        tls_cert: Cert = None,
        tls_key: TlsKeyOption = None,
        require_tls: RequireTls = False,
        front_bin: FrontBin = None,
        users: UsersOption = None,
        metrics: MetricsAt = "",
        console: ConsoleAt = "",
        ledger: LedgerUrl = "",
        noise_ahead: NoiseAhead = NOISE_AHEAD,
        log_level: LogLevelOption = LogLevel.INFO,
        log_format: Format = LogFormat.TEXT,
        log_statements: LogStatements = False,
    ) -> None:
        """Serve policies to PostgreSQL clients until told to end (SIGINT, SIGTERM); SIGHUP reloads policies."""
        config = ServeConfig(
            policies=tuple(policies),
            state=state,
            listen=parse_listen(listen),
            tls=_tls(tls_cert, tls_key, is_required=require_tls),
            front=_front(front_bin),
            users=UsersOfPolicy() if users is None else UsersAt(users),
            metrics=parse_listen(metrics) if metrics else NoMetrics(),
            console=parse_listen(console) if console else NoConsole(),
            ledger=ledger_of(ledger),
            noise_ahead=noise_ahead,
            log_level=log_level,
            log_format=log_format,
            log_statements=log_statements,
        )
        check_files(config)
        runners.serve(config)


def _register_demo(app: typer.Typer, runners: Runners) -> None:
    @app.command("demo")
    def demo(
        engine: Annotated[
            DemoEngine, typer.Option("--engine", help="What keeps the private rows.")
        ] = DemoEngine.DUCKDB,
        scale: Annotated[float, typer.Option("--scale", help="1: 50,000 customers, half a million orders.")] = 1.0,
        adult: Annotated[
            Path | None, typer.Option("--adult", metavar="CSV", help="Serve the Adult census too.", show_default=False)
        ] = None,
        listen: ListenAt = _LISTEN,
        state: StateFolderOption = _STATE,
        front_bin: FrontBin = None,
        console: Annotated[
            str, typer.Option("--console", metavar="HOST:PORT", help="Where browsers find the console; '' for nowhere.")
        ] = _CONSOLE,
        log_level: LogLevelOption = LogLevel.WARNING,
    ) -> None:
        """Make up a shop's data and serve them."""
        if adult is not None and not adult.is_file():
            raise ConfigError(f"Adult data {adult} do not exist")
        if adult is not None and not adult.name.endswith((".csv", ".csv.gz", ".parquet")):
            raise ConfigError(
                f"Adult data {adult} are no table", hint="Name a file that ends in .csv, .csv.gz or .parquet."
            )
        runners.demo(
            DemoConfig(
                state=state,
                listen=parse_listen(listen),
                engine=engine,
                scale=scale,
                adult=NoAdult() if adult is None else AdultFile(adult),
                front=_front(front_bin),
                console=parse_listen(console) if console else NoConsole(),
                log_level=log_level,
            )
        )


def _register_explain(app: typer.Typer, runners: Runners) -> None:
    @app.command("explain")
    def explain(
        sql: Annotated[str, typer.Argument(metavar="SQL", help="The statement, or - for standard input.")],
        policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy.", show_default=False)],
        as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
        state: Annotated[
            Path | None,
            typer.Option("--state", metavar="DIR", help="Use the profiles that are kept there.", envvar="HUSHQL_STATE"),
        ] = None,
    ) -> None:
        """Show the privacy plan of a statement: noise, bounds, charge. Touches no data and costs nothing."""
        text = sys.stdin.read() if sql == "-" else sql
        typer.echo(runners.explain(ExplainRequest(policy=policy, sql=text, as_json=as_json, state=state)))


def _tls(cert: Path | None, key: Path | None, *, is_required: bool) -> Tls:
    if cert is None and key is None:
        if is_required:
            raise ConfigError("--require-tls needs a certificate", hint="Give --tls-cert and --tls-key.")
        return NoTls()
    if cert is None or key is None:
        raise ConfigError("--tls-cert and --tls-key belong together", hint="Give both or neither.")
    return TlsFiles(cert, key, is_required)


def ledger_of(url: str) -> LedgerInState | LedgerAt:
    """Where charges are kept. Raises ConfigError for an address that is none."""
    if not url:
        return LedgerInState()
    check_address(url)
    return LedgerAt(url)


def _front(directory: Path | None) -> FrontBinaries:
    return FindBinaries() if directory is None else BinariesIn(directory)
