"""What browsers load is what was bundled, and all of it is the console's own."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from proxy.console.guard import policy_of
from proxy.console.scripts import Scripts

CONSOLE = Path(__file__).resolve().parents[3] / "proxy" / "console"
VENDOR = CONSOLE / "static" / "vendor"
OWN = (*(CONSOLE / "static").glob("*.*"), *(CONSOLE / "templates").glob("*.html"))


def test_bundled_scripts_are_those_that_were_built() -> None:
    sums = [line.split() for line in (VENDOR / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in sums} == {path.name for path in VENDOR.iterdir()} - {"SHA256SUMS"}
    for wanted, name in sums:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == wanted, name


def test_every_bundled_library_has_its_licence() -> None:
    text = (VENDOR / "LICENCES.txt").read_text()
    for name in ("codemirror", "@codemirror/view", "@lezer/lr", "@observablehq/plot", "d3-scale", "htmx.org"):
        assert re.search(rf"^{re.escape(name)} \d+\.\d+\.\d+ \((?:MIT|ISC|0BSD|BSD-3-Clause)\)$", text, re.MULTILINE), (
            name
        )


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_own_files_load_nothing_from_elsewhere_and_have_no_inline_script(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert "://" not in text
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son[a-z]+\s*=\s*[\"']|\sstyle=|javascript:|\|\s*safe\b", text)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(path: Path) -> None:
    text = path.read_text()
    named = re.findall(r'(?:src|href)="{{ static }}/([^"]+)"|from "\./([^"]+)"|import\(?\s*"\./([^"]+)"', text)
    for parts in named:
        assert (CONSOLE / "static" / "".join(parts)).is_file(), parts


def test_the_policy_allows_no_script_but_the_consoles_own_files() -> None:
    rules = dict(rule.split(" ", 1) for rule in policy_of("abc").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["style-src"] == "'self' 'nonce-abc'"
    assert rules["form-action"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"


@pytest.mark.parametrize(
    "accepted, encoding",
    [("gzip, deflate, br", "gzip"), ("br;q=1, GZIP;q=0.5", "gzip"), ("gzip;q=0", None), ("gzip; q=0.000", None),
     ("identity", None), ("", None)],
)  # fmt: skip
def test_files_are_compressed_for_those_who_take_it(accepted: str, encoding: str | None) -> None:
    scripts = Scripts()
    application = Starlette(routes=[Route("/static/{digest}/{name:path}", scripts.answer)])
    with TestClient(application) as client:
        found = client.get(f"{scripts.base}/vendor/htmx.js", headers={"accept-encoding": accepted})
    assert found.content == (VENDOR / "htmx.js").read_bytes()
    assert found.headers.get("content-encoding") == encoding
    assert found.headers["vary"] == "accept-encoding"
    assert (int(found.headers["content-length"]) < len(found.content) / 2) == (encoding is not None)


@pytest.mark.parametrize("name", ["login", "tables", "budget", "charges", "failed", "refused"])
def test_pages_that_exchange_no_part_load_no_script(name: str) -> None:
    text = (CONSOLE / "templates" / "base.html").read_text() + (CONSOLE / "templates" / f"{name}.html").read_text()
    assert "<script" not in text
    assert "hx-" not in text


@pytest.mark.parametrize("name", ["ask", "policy", "tour"])
def test_pages_that_exchange_parts_load_what_does_it(name: str) -> None:
    text = (CONSOLE / "templates" / f"{name}.html").read_text()
    assert "hx-" in text
    assert '{% include "parts.html" %}' in text


def test_files_are_kept_for_good_at_an_address_that_their_content_decides() -> None:
    scripts = Scripts()
    assert re.fullmatch(r"/static/[0-9a-f]{16}", scripts.base)
    assert Scripts().base == scripts.base
    application = Starlette(routes=[Route("/static/{digest}/{name:path}", scripts.answer)])
    with TestClient(application) as client:
        found = client.get(f"{scripts.base}/vendor/htmx.js")
        assert found.content == (VENDOR / "htmx.js").read_bytes()
        assert found.headers["content-type"].startswith("text/javascript")
        assert "immutable" in found.headers["cache-control"]
        for path in ("/static/0000000000000000/ask.js", f"{scripts.base}/nothing.js", f"{scripts.base}/..%2Fask.py"):
            other = client.get(path)
            assert other.status_code == 404
            assert "cache-control" not in other.headers
