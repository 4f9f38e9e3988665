"""What lies in the state directory beside the ledger?

Secrets that are drawn once, and what engines could not keep in memory. The ledger has locked the directory by then.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from proxy.config import check_private
from proxy.dp.samplers import salt_bytes
from proxy.errors import ConfigError

_SECRET_BYTES = 32
_SPILL = "spill-"


def kept_secret(path: Path) -> bytes:
    """A secret that is drawn once and kept with mode 0600. Raises ConfigError, also when others have a right to it."""
    try:
        with contextlib.suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(salt_bytes(_SECRET_BYTES))
                file.flush()
                os.fsync(file.fileno())
        check_private(path, "secret")
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be used: {error.strerror}") from error
    if len(secret) != _SECRET_BYTES:
        raise ConfigError(f"{path} is damaged", hint="Remove it; a new one is drawn at the next start.")
    return secret


def new_spill(state: Path, dataset: str) -> Path:
    """Where one engine of a dataset may put what does not fit into memory."""
    return state / f"{_SPILL}{dataset}-{salt_bytes(16).hex()[:8]}"


def remove_spilled(state: Path) -> None:
    """Remove the rows that the engines of a killed proxy have left on disk."""
    for left in state.glob(f"{_SPILL}*"):
        shutil.rmtree(left, ignore_errors=True)
