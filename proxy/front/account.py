"""As whom does the public PostgreSQL run?

Picks an operating-system account and answers what it can reach; starts nothing.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proxy.errors import FrontFailed

# Tried in this order when the proxy is root and nothing is configured. `postgres` comes last: where it
# exists it may own real databases, which a compromised front must not be able to read.
CANDIDATES = ("hushql", "nobody", "postgres")


@dataclass(frozen=True, slots=True)
class SystemUser:
    """An account with an entry in the user database, which PostgreSQL insists on."""

    name: str
    uid: int
    gid: int

    @property
    def is_own(self) -> bool:
        """Whether the proxy itself runs as this account, so that nothing needs to be dropped."""
        return self.uid == os.geteuid()


def own_account() -> SystemUser:
    """The account the proxy runs as. Raises FrontFailed when the user database does not know it."""
    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise FrontFailed(
            f"user id {uid} has no entry in the user database",
            hint="PostgreSQL needs one: add it to /etc/passwd, or run as an existing account.",
        ) from None
    return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def choose_account(configured: str, *, lookup: Callable[[str], pwd.struct_passwd] = pwd.getpwnam) -> SystemUser:
    """The account for the front: `configured` if given, the proxy's own, or, for root, a harmless one."""
    own = own_account()
    if own.uid != 0:
        if configured and configured != own.name:
            raise FrontFailed(f'only root can start the public PostgreSQL as "{configured}"')
        return own
    for name in (configured,) if configured else CANDIDATES:
        try:
            entry = lookup(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            raise FrontFailed(f'the account "{name}" is root; PostgreSQL refuses to run as root')
        return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise FrontFailed(
        f'no account "{configured}"' if configured else "no unprivileged account to run the public PostgreSQL as",
        hint="Create one: useradd --system --no-create-home hushql",
    )


def can_traverse(directory: Path, account: SystemUser) -> bool:
    """Whether `account` may pass through `directory` and all above it, by owner, group and mode."""
    resolved = directory.resolve()
    return all(_may_search(step, account) for step in (resolved, *resolved.parents))


def _may_search(directory: Path, account: SystemUser) -> bool:
    found = directory.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)
