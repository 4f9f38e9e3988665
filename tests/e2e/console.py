"""A browser without a screen: the console's pages of a running proxy, through Starlette's test client."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from httpx2 import Client, Response
from starlette.testclient import TestClient

from proxy.admin.files import read_policy, read_users
from proxy.admin.ledger_place import InFiles
from proxy.console.application import build
from proxy.console.served import ServedPolicy, Serving
from proxy.console.wire import Address
from proxy.identity.passes import Passes
from proxy.policy.users import UNCHECKED
from tests.e2e.served import PASSWORD, Served

#: Runs for minutes on any machine, in little memory.
ENDLESS = "SELECT count(*) FROM generate_series(1, 300000) a, generate_series(1, 300000) b"


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def taken() -> str:
    return ""


def served_policy(path: Path, users: Path) -> ServedPolicy:
    policy = read_policy(path, {**os.environ, "ADULT_CSV": "none", "ELSEWHERE_DSN": "none"})
    return ServedPolicy(
        path=path,
        users_path=users,
        policy=lambda: policy,
        users=lambda: read_users(users, UNCHECKED),
        passes=Passes(os.urandom, float),
        take=taken,
    )


def serving_of(served: Served, datasets: dict[str, ServedPolicy], **changes: Any) -> Serving:
    fixed: dict[str, Any] = {
        "address": Address("127.0.0.1", served.port), "datasets": datasets, "books": InFiles(served.folder / "state"),
        "state": served.folder / "state", "random_bytes": os.urandom, "clock": Clock(), "is_encrypted": False,
        "shows_statements": False,
    }  # fmt: skip
    return Serving(**{**fixed, **changes})


class Browser:
    """Remembers cookies and the token of the last page, as a browser does."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.csrf = ""

    def get(self, path: str) -> Response:
        page = self.client.get(path)
        found = re.search(r'name="csrf" content="([0-9a-f]+)"', page.text)
        self.csrf = found[1] if found else self.csrf
        return page

    def post(self, path: str, **fields: str) -> Response:
        return self.client.post(path, data=fields, headers={"x-csrf-token": self.csrf})

    def log_in(self, login: str, database: str, password: str = PASSWORD) -> Response:
        token = re.search(r'name="token" value="(\w+)"', self.client.get("/login").text)
        assert token is not None
        fields = {"login": login, "password": password, "database": database, "token": token[1]}
        answer = self.client.post("/login", data=fields)
        if answer.status_code == 303:
            self.get("/ask")
        return answer


@contextmanager
def browsing(serving: Serving) -> Iterator[Browser]:
    """A browser that is not logged in."""
    application = build(serving)
    scheme = "https" if serving.is_encrypted else "http"
    with TestClient(application, base_url=f"{scheme}://console.test", follow_redirects=False) as client:
        try:
            yield Browser(client)
        finally:
            assert client.portal is not None
            client.portal.call(_end, application)


async def _end(application: Any) -> None:
    application.state.console.browsers.end_all()


def data_of(answer: Response) -> dict[str, Any]:
    """The answer that a chart and a download are made of."""
    found = re.search(r'data-answer="([^"]*)"', answer.text)
    assert found is not None, answer.text
    loaded: dict[str, Any] = json.loads(html.unescape(found[1]))
    return loaded
