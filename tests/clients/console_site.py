"""A served shop with a console, and a browser that looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.served import PASSWORD, Served, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop

CHROMIUM = "/usr/bin/chromium"
#: What would show if a text were taken for markup: it sets a mark that each page is asked for.
_MARK = "document.documentElement.dataset.evil='1'"
EVIL = f'<img src=x onerror="{_MARK}"><script>{_MARK}</script>'
_LOGINS = {"ann": "analyst", "bob": "analyst", "boss": "boss", "chef": "boss"}
_BUDGETS = {"dataset": {"epsilon": 1000}, "user": {"epsilon": 500}, "session": {"epsilon": 100}}


@dataclass(frozen=True, slots=True)
class ConsoleSite:
    """base: where browsers find it. policy: its file."""

    served: Served
    policy: Path
    base: str


@contextmanager
def console_site(folder: Path) -> Iterator[ConsoleSite]:
    """A shop whose comments would run scripts if anything let them."""
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", _LOGINS)
    shop = shop_policy()
    privacy = {**shop["privacy"], "query_epsilon": 1.0}  # type: ignore[dict-item]  # a mapping by the schema
    document = shop_policy(budgets=_BUDGETS, privacy=privacy)
    tables: dict[str, dict[str, object]] = document["tables"]  # type: ignore[assignment]  # a mapping by the schema
    for table in tables.values():
        table["comment"] = f"What it is. {EVIL}"
    policy = write_yaml(folder / "shop.yaml", document)
    with serving(folder, [policy], options=("--console", "127.0.0.1:0")) as running:
        yield ConsoleSite(running, policy, f"http://127.0.0.1:{console_port(running)}")


def console_port(running: Served) -> int:
    """Where a proxy serves its console, by its log."""
    found = re.search(r"the console is at .* port (\d+)", running.log.read_text())
    assert found is not None
    return int(found[1])


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser, without a screen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Visitor:
    """One browser's window, with what it complained of."""

    page: Page
    site: ConsoleSite
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda said: self._heard(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and "status of 4" not in text:
            self.complaints.append(text)

    def log_in(self, login: str, password: str = PASSWORD, database: str = "shop") -> None:
        self.page.goto(f"{self.site.base}/login")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_label("Database").fill(database)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(re.compile("/(ask|tour)$"))

    def go(self, path: str) -> None:
        self.page.goto(self.site.base + path)

    def write(self, statement: str) -> None:
        """Put a statement into the editor in the place of what is there."""
        self.page.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")  # the browser would keep the look of what is replaced, as an inline style
        self.page.keyboard.insert_text(statement)

    def ask(self, statement: str) -> None:
        """Write it, run it, and wait for what comes."""
        self.write(statement)
        with self.page.expect_response(re.compile("/ask/run")):
            self.page.keyboard.press("Control+Enter")
        self.page.locator("#answer > *").first.wait_for()
