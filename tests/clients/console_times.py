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


def _visited(browser: Browser, site: ConsoleSite, path: str, cookies: Page) -> Visit:
    context = browser.new_context()
    context.add_cookies(cookies.context.cookies())  # type: ignore[arg-type]  # what one gives the other takes
    page = context.new_page()
    server, ours = site.served.process.pid, os.getpid()
    before = _processor_ms(server), _processor_ms(ours)
    page.goto(site.base + path, wait_until="load")
    edited = 0.0
    if path in {"/ask", "/policy"}:
        edited = page.wait_for_selector(".cm-content") and page.evaluate("performance.now()")
    page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
    after, times = (_processor_ms(server), _processor_ms(ours)), page.evaluate(_TIMES)
    context.close()
    return Visit(
        **times,
        edited=edited or times["loaded"],
        server=after[0] - before[0],
        browser=after[1] - before[1] - server_part(before, after),
    )


def server_part(before: tuple[float, float], after: tuple[float, float]) -> float:
    """The server is a child of this process too."""
    return after[0] - before[0]


def main() -> int:
    """Print a line for each page: the median, and the least and the most of what took longest."""
    visits = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as made, console_site(Path(made)) as site, chromium() as browser:
        first = Visitor(browser.new_page(), site)
        first.log_in("boss")
        first.ask("SELECT status, count(*) FROM orders GROUP BY status")
        print(
            "ms                 answered painted loaded (least-most)  editor | processor: server browser | requests KiB | load"
        )
        for path in PAGES:
            found = [_visited(browser, site, path, first.page) for _ in range(visits)]
            m = {n: statistics.median(getattr(v, n) for v in found) for n in Visit.__slots__}
            loaded = [v.loaded for v in found]
            print(
                f"{path:18} {m['answered']:8.0f} {m['painted']:7.0f} {m['loaded']:6.0f} ({min(loaded):4.0f}-{max(loaded):4.0f})"
                f"  {m['edited']:6.0f} | {m['server']:17.0f} {m['browser']:7.0f} | {m['requests']:8.0f} {m['bytes'] / 1024:4.0f}"
                f" | {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
