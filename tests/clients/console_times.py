"""How long do first visits of the console's pages take? `python -m tests.clients.console_times [VISITS]`.

Each visit is that of a browser that has kept nothing. Beside the time until the page is loaded stand the processor's
time of the server and of the browser, and how busy the machine was with everything else.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.clients.console_site import ConsoleSite, Visitor, chromium, console_site

PAGES = ("/login", "/ask", "/tables", "/budget", "/budget/charges", "/policy")
_WITH_EDITOR = frozenset({"/ask", "/policy"})
_TICKS_S = 1 / os.sysconf("SC_CLK_TCK")
_TIMES = """() => {
  const [page] = performance.getEntriesByType('navigation'), files = performance.getEntriesByType('resource');
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  return {loaded: page.loadEventEnd, answered: page.responseStart, painted: paint ? paint.startTime : -1,
    requests: 1 + files.length, bytes: [page, ...files].reduce((sum, one) => sum + one.transferSize, 0)};
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Milliseconds since the address was entered, of processors, and what went over the wire.

    edited: until the editor is there, as loaded where a page has none.
    """

    answered: float
    painted: float
    loaded: float
    edited: float
    server: float
    browser: float
    requests: float
    bytes: float


def _processor_ms(root: int) -> float:
    """What a process and all that it started have used of processors so far."""
    total, waiting = 0.0, [root]
    while waiting:
        at = waiting.pop()
        try:
            fields = Path(f"/proc/{at}/stat").read_text().rpartition(")")[2].split()
            waiting += map(int, Path(f"/proc/{at}/task/{at}/children").read_text().split())
        except OSError:  # it has ended meanwhile
            continue
        total += (int(fields[11]) + int(fields[12])) * _TICKS_S * 1000
    return total


def _visited(browser: Browser, site: ConsoleSite, path: str, first: Page) -> Visit:
    context = browser.new_context()
    context.add_cookies(first.context.cookies())  # type: ignore[arg-type]  # what one gives the other takes
    page, server, ours = context.new_page(), site.served.process.pid, os.getpid()
    before = _processor_ms(server), _processor_ms(ours)
    page.goto(site.base + path, wait_until="load")
    if path in _WITH_EDITOR:
        page.wait_for_selector(".cm-content")
    edited = page.evaluate("performance.now()")
    while not page.evaluate("performance.getEntriesByName('first-contentful-paint').length"):
        page.wait_for_timeout(5)
    spent = _processor_ms(server) - before[0]
    times, browsers = page.evaluate(_TIMES), _processor_ms(ours) - before[1] - spent  # the server is our child too
    context.close()
    return Visit(**times, edited=edited if path in _WITH_EDITOR else times["loaded"], server=spent, browser=browsers)


def main() -> int:
    """Print the median of each page's figures, with the least and the most of what the load took."""
    visits = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    columns = ("answered", "painted", "loaded", "edited", "server", "browser", "requests", "bytes")
    with tempfile.TemporaryDirectory() as made, console_site(Path(made)) as site, chromium() as browser:
        first = Visitor(browser.new_page(), site)
        first.log_in("boss")
        first.ask("SELECT status, count(*) FROM orders GROUP BY status")
        print(f"{'page':16}", *(f"{name:>9}" for name in columns), "  loaded, least and most; load of the machine")
        for path in PAGES:
            found = [_visited(browser, site, path, first.page) for _ in range(visits)]
            medians = (statistics.median(getattr(visit, name) for visit in found) for name in columns)
            loaded, load = [visit.loaded for visit in found], os.getloadavg()[0]
            print(f"{path:16}", *(f"{m:9.0f}" for m in medians), f"  {min(loaded):.0f}-{max(loaded):.0f}; {load:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
