"""What browsers load is what was bundled, and all of it is the console's own."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from proxy.console.guard import policy_of

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
    named = re.findall(r'(?:src|href)="/static/([^"]+)"|from "\./([^"]+)"|import "\./([^"]+)"', text)
    for parts in named:
        assert (CONSOLE / "static" / "".join(parts)).is_file(), parts


def test_the_policy_allows_no_script_but_the_consoles_own_files() -> None:
    rules = dict(rule.split(" ", 1) for rule in policy_of("abc").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["style-src"] == "'self' 'nonce-abc'"
    assert rules["form-action"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
