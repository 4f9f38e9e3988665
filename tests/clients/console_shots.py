"""Pictures of the console's pages for the guide: `python -m tests.clients.console_shots`.

That of the tour needs a demo that stays up, and the address of its console as the one argument.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.clients.console_site import ConsoleSite, Visitor, chromium, console_port
from tests.e2e.served import ROOT, hushql, serving, write_users

FOLDER = ROOT / "docs" / "guide" / "console"
_SIZE = {"width": 1280, "height": 800}
_GROUPED = "SELECT status, count(*), sum(amount)\nFROM orders\nWHERE status IS NOT NULL\nGROUP BY status"


def _taken(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"{name}.png")


def _pictures(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/login")
    _taken(page, "login")
    visitor.log_in("boss")
    visitor.ask(_GROUPED)
    page.get_by_label("Show as").select_option("bars")
    page.locator("#forecast .cost").wait_for()
    page.set_viewport_size({"width": 1280, "height": 1150})
    _taken(page, "ask")
    page.set_viewport_size({"width": 1280, "height": 800})
    for path, name in (("tables", "tables"), ("budget", "budget"), ("budget/charges", "charges")):
        visitor.go(f"/{path}")
        if name == "budget":
            _top_up(page)
        _taken(page, name)
    visitor.go("/policy")
    visitor.write(
        (ROOT / "policies" / "shop.yaml").read_text().replace("dataset: {epsilon: 20}", "dataset: {epsilon: 5}")
    )
    page.locator(".cm-content").press("Control+Home")
    page.locator("#judgement .good").first.wait_for()
    _taken(page, "policy")


def _top_up(page: Page) -> None:
    form = page.locator("form[action='/budget/top-up']")
    form.get_by_label("Kind").select_option("user")
    for label, text in (("Account", "shop/ann"), ("Epsilon", "1"), ("Reason", "figures for the yearly report")):
        form.get_by_label(label).fill(text)
    form.get_by_role("button").click()
    page.get_by_text("granted so far").wait_for()
    page.evaluate("scrollTo(0, 0)")


def _tour(browser: Browser, base: str) -> None:
    """The demo's first page, of a demo that runs: `hushql demo` alone has it."""
    page = browser.new_page(viewport={"width": _SIZE["width"], "height": _SIZE["height"]})
    page.goto(f"{base}/login")
    for label, text in (("Login", "demo"), ("Password", "demo"), ("Database", "shop")):
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Do it").first.click()
    page.locator("#step1 table").wait_for()
    page.evaluate("scrollTo(0, 0)")
    _taken(page, "tour")


def main() -> int:
    """Write them all, or, with the address of a running demo's console, that of its tour alone. Needs Chromium."""
    if len(sys.argv) > 1:
        with chromium() as browser:
            _tour(browser, sys.argv[1])
        return 0
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        hushql("demo-data", str(folder / "shop.duckdb"), "--scale", "0.2")
        users = write_users(folder / "users.yaml", {"ann": "analyst", "boss": "boss"})
        policy = folder / "shop.yaml"
        policy.write_bytes((ROOT / "policies" / "shop.yaml").read_bytes())
        environment = {**os.environ, "SHOP_DUCKDB": str(folder / "shop.duckdb")}
        options = ("--console", "127.0.0.1:0", "--users", str(users))
        with serving(folder, [policy], environment, options=options) as running, chromium() as browser:
            base = f"http://127.0.0.1:{console_port(running)}"
            page = browser.new_page(viewport={"width": _SIZE["width"], "height": _SIZE["height"]})
            _pictures(Visitor(page, ConsoleSite(running, policy, base)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
