"""What of the running proxy may the console touch beside its listener?

Values and functions that the composition root hands over: names, files, logins, and those things that the commands of
an administrator do too. No engine and no private row can be reached from here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from proxy.admin.ledger_place import LedgerPlace
from proxy.console.wire import Address
from proxy.identity.passes import Passes
from proxy.policy.model import Policy, Users


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPolicy:
    """One dataset. path: of its policy. users_path: of its logins.

    passes: of those who are no logins of the users file. policy, users: what is in force now. take: serve what the
    file says now; why it was not taken, or "".
    """

    path: Path
    users_path: Path
    policy: Callable[[], Policy]
    users: Callable[[], Users]
    passes: Passes
    take: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The whole proxy as the console knows it. books: where charges are kept. state: the proxy's directory.

    shows_statements: whether the log holds what clients wrote; only then administrators read it here.
    random_bytes: from the one door for randomness. is_encrypted: whether browsers come by TLS. tour: the
    dataset that the tour is about, in the demo; "" elsewhere.
    """

    address: Address
    datasets: Mapping[str, ServedPolicy]
    books: LedgerPlace
    state: Path
    random_bytes: Callable[[int], bytes]
    clock: Callable[[], float]
    is_encrypted: bool
    shows_statements: bool
    tour: str = ""

    def is_admin(self, login: str, database: str) -> bool:
        """Whether a login administers a dataset now; a removed login does not."""
        if database not in self.datasets:
            return False
        users = self.datasets[database].users()
        found = users.find(login)
        return found is not None and users.roles[found.role].is_admin
