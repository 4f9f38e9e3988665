"""How do policy and users files get from disk into values, and users files safely back?

The only place where `admin` touches these files; what they mean is `policy`'s business.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from proxy.config import check_private
from proxy.errors import ConfigError
from proxy.ledger.sqlite.directory import sync_directory
from proxy.policy.load import load_policy
from proxy.policy.model import Policy, Users
from proxy.policy.users import load_users

_LARGEST_BYTES = 20_000_000
_MODE = 0o600


def read_text(path: Path, what: str) -> str:
    """The text of a UTF-8 file. Raises ConfigError; `what` names the file's part, as `policy`."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from error
    if len(content) > _LARGEST_BYTES:
        raise ConfigError(f"{what} {path} is larger than {_LARGEST_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {path} is not UTF-8 text, at byte {error.start}") from error


def read_policy(path: Path, environment: Mapping[str, str]) -> Policy:
    """The policy of a file. Raises ConfigError or PolicyError."""
    return read_with_text(path, environment)[0]


def read_with_text(path: Path, environment: Mapping[str, str]) -> tuple[Policy, str]:
    """The policy of a file, and the text that it was read from. Raises ConfigError or PolicyError."""
    text = read_text(path, "policy")
    return load_policy(text, filename=str(path), environment=environment), text


def read_users(path: Path, tables: Collection[str]) -> Users:
    """The logins of a file that its owner alone may read. Raises ConfigError or PolicyError.

    tables: every table that a role may list, or UNCHECKED.
    """
    if not path.exists():
        raise ConfigError(
            f"users file {path} does not exist", hint=f"Make it: hushql user add NAME --role analyst --users {path}"
        )
    text = read_text(path, "users file")
    check_private(path, "users file")
    return load_users(text, filename=str(path), tables=tables)


@contextlib.contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Hold the lock of the file's folder, so that two edits of one file follow each other."""
    folder = path.resolve().parent
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"folder {folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_over(path: Path, text: str) -> None:
    """`replace_text` for a file that is there, which keeps its mode."""
    replace_text(path, text, mode=stat.S_IMODE(path.stat().st_mode))


def replace_text(path: Path, text: str, mode: int = _MODE) -> None:
    """Replace a file by new text, at once and durably: readers see the old or the new, never a part.

    mode: of the new file; 0600 if left out. A link is followed; an existing file keeps its owner. Raises ConfigError,
    the old file is then as it was.
    """
    target = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _copy_owner(target, file.fileno())
            os.fchmod(file.fileno(), mode)
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _copy_owner(target: Path, handle: int) -> None:
    if target.exists():
        owner = target.stat()
        if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(handle, owner.st_uid, owner.st_gid)
