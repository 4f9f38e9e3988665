"""Would a policy start? Everything that a start looks at is looked at, against the data, and nothing is served.

What is found may depend on private rows (two rows of one unit, a value that is no number), so it is for administrators:
whoever may read the data anyway. Nothing is charged, and the state directory of a proxy is not touched.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from proxy.admin.files import read_users
from proxy.admin.open_files import make_room
from proxy.admin.proposing.public_values import with_found_values
from proxy.admin.role_check import check_roles
from proxy.admin.state import new_spill
from proxy.engines.base import Engine
from proxy.errors import HushError
from proxy.front.front import Front, FrontOptions
from proxy.front.server import FrontEvent
from proxy.identity.vouchers import open_voucher
from proxy.policy.model import Policy, Table, Users

OpenEngine = Callable[[Policy, Path], Engine]


def data_problems(policy: Policy, users_file: Path, open_engine: OpenEngine) -> tuple[str, ...]:
    """What a start would refuse, in its words; nothing if all is right.

    users_file: of the logins. The logins, the data and what is declared of them are each looked at, whatever is wrong
    with another; then the public PostgreSQL is made once.
    """
    with tempfile.TemporaryDirectory(prefix="hushql-check-") as folder:
        return tuple(_problems(policy, users_file, open_engine, Path(folder)))


def _problems(policy: Policy, users_file: Path, open_engine: OpenEngine, folder: Path) -> Iterator[str]:
    users: list[Users] = []
    try:
        make_room(policy.limits.max_sessions)
        logins = read_users(users_file, tuple(policy.tables))
        open_voucher(logins.outside)
        check_roles(policy, logins)
        users.append(logins)
    except HushError as error:
        yield error.text()
    try:
        engine = open_engine(policy, new_spill(folder, policy.dataset))
    except HushError as error:
        yield error.text()
        return
    try:
        engine.check_facts(policy)
        with_found_values(policy.tables, engine.public_rows)
        for known in users:
            asyncio.run(_made_once(policy, known, engine.public_rows, folder))
    except HushError as error:
        yield error.text()
    finally:
        engine.close()


async def _made_once(
    policy: Policy, users: Users, rows: Callable[[Table], Iterator[tuple[object, ...]]], folder: Path
) -> None:
    """Make the public PostgreSQL with its tables, and end it. Raises HushError."""
    front = await Front.start(policy, users, FrontOptions(state_dir=folder), rows, _untold)
    await front.stop()


def _untold(event: FrontEvent) -> None:
    """What happens to a server that ends at once is of no interest."""
