"""How is a profile drawn for a page, light or dark?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from proxy.admin.profiles.words import Chart

_LINE, _LEFT, _WIDTH, _WORDS, _MARGIN = 18, 200, 360, 110, 12  # pixels
_STYLE = """<style>
text { font: 12px sans-serif; fill: #1b1f24 } .heading { font-weight: bold } .words { fill: #57606a }
.ground { fill: #ffffff } .bar { fill: #2f6f9f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .words { fill: #9da7b3 } .ground { fill: #0d1117 } .bar { fill: #6cb6ff } }
</style>"""


def drawn(title: str, charts: Sequence[tuple[str, Chart]]) -> str:
    """An SVG document of charts, one below the other, each with the table that it is about."""
    lines = [line for table, chart in charts for line in _lines(table, chart)]
    width, height = _LEFT + _WIDTH + _WORDS + 2 * _MARGIN, _LINE * (len(lines) + 2) + 2 * _MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title>",
        _STYLE,
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="heading" x="{_MARGIN}" y="{_MARGIN + _LINE}">{escape(title)}</text>',
    ]
    parts += [line.format(y=_MARGIN + _LINE * (2 + number)) for number, line in enumerate(lines)]
    return "\n".join((*parts, "</svg>", ""))


def _lines(table: str, chart: Chart) -> Iterator[str]:
    """The pieces of each line of a chart, which are put in their place by {y}."""
    yield _text(f"{table}: {chart.heading}", _MARGIN, "heading")
    for bar in chart.bars:
        wide = max(1.0, _WIDTH * bar.part) if bar.part > 0 else 0.0
        yield (
            _text(bar.label, _LEFT - 8, "label", ' text-anchor="end"')
            + f'<rect class="bar" transform="translate(0 {{y}})" x="{_LEFT}" y="3" width="{wide:.1f}" height="12"/>'
            + _text(bar.words, _LEFT + round(wide) + 6, "words")
        )
    yield ""  # room below


def _text(text: str, x: float, kind: str, more: str = "") -> str:
    safe = escape("".join(c if c.isprintable() else "?" for c in text)).replace("{", "{{").replace("}", "}}")
    return f'<text class="{kind}" transform="translate(0 {{y}})" x="{x}" y="13"{more}>{safe}</text>'
