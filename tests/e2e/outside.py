"""A small served dataset under TLS whose users file says who else may log in."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from httpx2 import Client

from tests.certificates import Certificates
from tests.e2e.console import Browser
from tests.e2e.served import Client as Session
from tests.e2e.served import Served, serving, write_users

_WAIT_S = 60.0
_POLICY = """version: 1
dataset: shop
source: {engine: duckdb, files: {users: users.csv}, data_version: "1"}
privacy: {unit: customer}
budgets: {dataset: {epsilon: 100}, user: {epsilon: 10}}
tables:
  users:
    unit: user_id
    unit_unique: true
    columns: {user_id: {type: integer}, plan: {type: text, values: [free, pro]}}
"""


@dataclass(frozen=True, slots=True)
class Site:
    """served: the proxy. users: its users file, with `base` as it was written first."""

    served: Served
    users: Path
    certificates: Certificates

    def connect(self, login: str, password: str, **more: str) -> Session:
        """A session under TLS."""
        found: dict[str, Any] = {"sslmode": "verify-full", "sslrootcert": str(self.certificates.authority), **more}
        return psycopg.connect(
            host="localhost", port=self.served.port, dbname=found.pop("dbname", "shop"), user=login, password=password,
            passfile="/dev/null/none", autocommit=True, **found,
        )  # fmt: skip

    def refused(self, login: str, password: str, **more: str) -> str:
        """What a client is told that does not get in."""
        with pytest.raises(psycopg.OperationalError) as caught:
            self.connect(login, password, **more)
        return str(caught.value)

    def logged(self, event: str) -> list[Mapping[str, object]]:
        """The log's lines of one kind."""
        lines = [json.loads(line) for line in self.served.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def edit(self, before: str, after: str) -> None:
        """Change the users file, and wait until that is in force or refused."""
        text, known = self.users.read_text(), len(self.logged("reload"))
        assert before in text
        self.users.write_text(text.replace(before, after))
        wait_until(lambda: len(self.logged("reload")) > known)


def wait_until(holds: object) -> None:
    """Until it is so, or the test fails."""
    assert callable(holds)
    deadline = time.monotonic() + _WAIT_S
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def end_of(client: Session) -> str:
    """What an open session is told at its end; statements may be refused before it."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        try:
            client.execute("SELECT 1")
        except psycopg.OperationalError as error:
            if client.broken:
                return f"{error.sqlstate or ''} {error}"
        time.sleep(0.05)
    raise AssertionError("the session goes on")


@contextmanager
def site(
    folder: Path, certificates: Certificates, section: str, logins: Mapping[str, str], *more: str
) -> Iterator[Site]:
    """A proxy whose users file has these logins and, after them, this section. more: options of `serve`."""
    (folder / "shop.yaml").write_text(_POLICY)
    rows = "".join(f"{i},{'pro' if i % 3 else 'free'}\n" for i in range(300))
    (folder / "users.csv").write_text("user_id,plan\n" + rows)
    (folder / "ca.pem").write_bytes(certificates.authority.read_bytes())
    users = write_users(folder / "users.yaml", logins)
    users.write_text(users.read_text() + section)
    options = ["--tls-cert", str(certificates.cert), "--tls-key", str(certificates.key), "--log-format", "json"]
    with serving(folder, [folder / "shop.yaml"], options=[*options, *more]) as served:
        yield Site(served, users, certificates)


@contextmanager
def visitor(place: Site) -> Iterator[Browser]:
    """A browser at the console of the proxy, by https."""
    found = re.search(r"the console is at .*, port (\d+)", place.served.log.read_text())
    assert found is not None
    trusted = ssl.create_default_context(cafile=place.certificates.authority)
    with Client(base_url=f"https://localhost:{found[1]}", verify=trusted, timeout=60) as client:
        yield Browser(client)
