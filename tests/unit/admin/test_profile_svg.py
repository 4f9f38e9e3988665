"""Is a profile drawn as a picture that every reader of SVG can show, with the numbers of the terminal?"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from proxy import app
from proxy.admin.profiles.svg import drawn
from proxy.admin.profiles.words import Bar, Chart
from proxy.config import EveryFilter
from tests.unit.admin.command_line import CommandLine
from tests.unit.admin.profile_shop import config

SVG = "{http://www.w3.org/2000/svg}"


def texts(root: ET.Element, kind: str) -> list[str]:
    return [t.text or "" for t in root.iter(f"{SVG}text") if t.get("class") == kind]


def test_the_picture_has_what_the_terminal_shows(filled: Path, command: CommandLine) -> None:
    app.profile(config(filled, filters=EveryFilter()))
    shown = ("profile", str(filled / "p.yaml"), "--state", str(filled / "state"), "--show")
    assert command(*shown) == 0
    lines = command.out.splitlines()
    assert command(*shown, "--svg", str(filled / "p.svg")) == 0
    assert command.out == f"{filled}/p.svg has the pictures\n"
    root = ET.fromstring((filled / "p.svg").read_text("utf-8"))
    assert root.tag == f"{SVG}svg"
    headings, drawn_lines = texts(root, "heading")[1:], [line for line in lines if "up to" in line or "█" in line]
    assert [h.partition(": ")[2] for h in headings] == [
        s.strip() for s in lines if re.match("  (units by|share of)", s)
    ]
    for label, words, line in zip(
        (t for t in texts(root, "label") if t != "more"),
        (w for w in texts(root, "words") if not w.startswith("about")),
        (line for line in drawn_lines),
        strict=True,
    ):
        assert line.strip().startswith(label)
        assert line.endswith(f" {words}")
    widths = [float(r.get("width", "")) for r in root.iter(f"{SVG}rect") if r.get("class") == "bar"]
    assert max(widths) == 360.0
    assert len(widths) == len(texts(root, "label"))


def test_everything_is_within_the_picture_and_told_apart_in_light_and_dark() -> None:
    bars = (Bar("up to 1", 1.0, "1,000"), Bar("more", 0.0, "about 3"), Bar("up to 2", 0.0001, "1"))
    text = drawn("a & b <c> {x}", [('t"<', Chart("{0} & \x00", bars)), ("u", Chart("nothing", ()))])
    root = ET.fromstring(text)
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    assert root.get("viewBox") == f"0 0 {width:g} {height:g}"
    assert texts(root, "heading") == ["a & b <c> {x}", 't"<: {0} & ?', "u: nothing"]
    for piece in root.iter():
        match = re.fullmatch(r"translate\(0 (\d+)\)", piece.get("transform", "translate(0 0)"))
        assert match is not None
        assert float(match[1]) + float(piece.get("y", "0")) <= height
        assert float(piece.get("x", "0")) + float(piece.get("width", "0").rstrip("%")) <= width
    style = root.find(f"{SVG}style")
    assert style is not None
    light, _, dark = (style.text or "").partition("@media (prefers-color-scheme: dark)")
    for kind in ("text", ".words", ".ground", ".bar"):
        colours = [re.search(rf"{re.escape(kind)} {{[^}}]*fill: (#\w+)", part) for part in (light, dark)]
        first, second = colours
        assert first is not None
        assert second is not None
        assert first[1] != second[1]
    assert [float(r.get("width", "")) for r in root.iter(f"{SVG}rect") if r.get("class") == "bar"] == [360.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--svg", "p.svg", "--state", "none"), "has no profile"),
        (("--svg", "p.svg", "--json"), "two ways to show one thing"),
        (("--show", "--svg", "no/p.svg"), "no/p.svg cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    filled: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    app.profile(config(filled, tables=("items",)))
    monkeypatch.chdir(filled)
    assert command("profile", "p.yaml", "--state", "state", *options) == 2
    assert words in command.err
    assert not (filled / "p.svg").exists()
