"""What did `python -m benchmarks.accuracy` find, and does docs/accuracy.md with its picture say so?

Writes the table between two markers of the page, and the picture beside it, from the figures that were kept.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence

from benchmarks.accuracy.real import Line, kept, summary
from benchmarks.accuracy.row import Row
from tools.sources import ROOT

RESULT = ROOT / "benchmarks" / "results" / "accuracy.json"
PAGE = ROOT / "docs" / "accuracy.md"
PICTURE = ROOT / "docs" / "accuracy.svg"
BEGIN = "<!-- accuracy: begin; written by `python -m tools.accuracy_page` -->"
END = "<!-- accuracy: end -->"
REAL = ("<!-- tables: begin; written by `python -m tools.accuracy_page` -->", "<!-- tables: end -->")

_LEAST = 0.001  # where the picture's axis begins
_LEFT, _WIDTH, _LINE = 330, 420, 16


def lines() -> list[Row]:
    """The figures that were kept."""
    return [Row(**row) for row in json.loads(RESULT.read_text(encoding="utf-8"))]


def table(found: Iterable[Row]) -> str:
    """The text that belongs between the markers."""
    rows = [
        "| question | data | bounds | epsilon | error | best other way | its error | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows += [
        f"| {o.question} | {o.data} | {o.bounds} | {o.epsilon:g} | {o.ours:.4g} | {o.best} | {o.others[o.best]:.4g}"
        f" | {o.ratio:.3f} |"
        for o in found
    ]
    return "\n".join(rows)


def picture(found: Sequence[Row]) -> str:
    """A bar for each line, as long as its ratio on a logarithmic axis; the line at 1 is the best other way."""
    height = _LINE * (len(found) + 3)
    size = f'width="{_LEFT + _WIDTH + 90}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">',
        "<title>Errors of answers beside the best other way</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="12">error of hushql over that of the best other way, at equal epsilon and delta</text>',
    ]
    for at in (0.001, 0.01, 0.1, 1.0):
        x = _LEFT + _length(at)
        colour = "#b00" if at == 1.0 else "#ccc"
        parts.append(f'<line x1="{x:.1f}" y1="32" x2="{x:.1f}" y2="{height - 8}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="28" text-anchor="middle">{at:g}</text>')
    for number, one in enumerate(found):
        y = _LINE * (number + 2) + 4
        name = f"{one.question}, {one.data}, {one.bounds}, epsilon {one.epsilon:g}"
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 11}" text-anchor="end">{name}</text>')
        wide = max(1.0, _length(one.ratio))
        parts.append(f'<rect x="{_LEFT}" y="{y + 2}" width="{wide:.1f}" height="{_LINE - 5}" fill="#47a"/>')
        parts.append(f'<text x="{_LEFT + _length(one.ratio) + 4:.1f}" y="{y + 11}">{one.ratio:.3f}</text>')
    return "\n".join((*parts, "</svg>", ""))


def _length(ratio: float) -> float:
    decades = math.log10(max(ratio, _LEAST) / _LEAST)
    return _WIDTH * decades / 3.2


def page(text: str, found: Sequence[Row]) -> str:
    """The page with the table of these figures. ValueError if it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError("the page has no place for the table")
    return f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{after}"


def real_table(found: Sequence[Line]) -> str:
    """Of whole tables: how many times the error of the best bound the errors of all ways are."""
    head = (
        "table",
        "questions",
        "asked",
        "hushql",
        "learned bounds",
        "policy's bounds",
        "rows kept",
        "groups kept",
        "within 10 %, ours / the oracle's",
        "intervals that hold",
    )
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *summary(found)))


def with_real(text: str, found: Sequence[Line]) -> str:
    """The page with the table of whole tables. ValueError without a place for it."""
    before, begin, rest = text.partition(REAL[0])
    _, end, after = rest.partition(REAL[1])
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for whole tables")
    return f"{before}{begin}\n\n{real_table(found)}\n\n{end}{after}"


def main() -> int:
    found = lines()
    PAGE.write_text(with_real(page(PAGE.read_text(encoding="utf-8"), found), kept()), encoding="utf-8")
    PICTURE.write_text(picture(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
