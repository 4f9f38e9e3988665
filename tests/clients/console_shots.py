"""Pictures of the console's pages for the guide: `python -m tests.clients.console_shots`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

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
    for path in ("tables", "budget"):
        visitor.go(f"/{path}")
        _taken(page, path)
    visitor.go("/policy")
    visitor.write(
        (ROOT / "policies" / "shop.yaml").read_text().replace("dataset: {epsilon: 20}", "dataset: {epsilon: 5}")
    )
    page.locator(".cm-content").press("Control+Home")
    page.locator("#judgement .good").first.wait_for()
    _taken(page, "policy")


def main() -> int:
    """Write them all. Needs Chromium."""
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
