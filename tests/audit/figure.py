"""A figure of what came back: points over budgets, and lines of what is allowed, as SVG without a library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 360, 60, 310, 30
_COLOURS = ("#06c", "#b30", "#080", "#908", "#a70", "#066")
_STYLE = "text{font:13px sans-serif;fill:#444}path{fill:none;stroke:#888}.grid{stroke:#ddd}"
Points = Sequence[tuple[float, float]]


def drawn(points: Mapping[str, Points], lines: Mapping[str, Points], *, across: str, up: str) -> str:
    """Points and lines by their names. Across: a logarithm; up: shares from 0.5 to 1."""
    xs = [x for x, _ in next(iter(lines.values()))]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"><style>{_STYLE}</style>']
    for tenth in range(4, 11):
        y = _place(xs, xs[0], tenth / 10)[1]
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - 20}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10 * tenth} %</text>')
    places = ((x, _place(xs, x, 0.5)[0]) for x in xs)
    parts += [f'<text x="{at:.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{x:g}</text>' for x, at in places]
    colours = iter(_COLOURS)
    for number, (name, line) in enumerate(lines.items()):
        colour = next(colours)
        path = " ".join(f"{'M' if n == 0 else 'L'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(_all(xs, line)))
        parts.append(f'<path d="{path}" style="stroke:{colour};stroke-width:2"/>')
        parts += _named(name, number, f'<path d="M80 {{y}}h14" style="stroke:{colour};stroke-width:2"/>')
    for number, (name, some) in enumerate(points.items(), start=len(lines)):
        colour = next(colours)
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in _all(xs, some)]
        parts += _named(name, number, f'<circle cx="87" cy="{{y}}" r="4" fill="{colour}"/>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{across}</text>')
    parts.append(f'<text x="{_LEFT - 40}" y="18">{up}</text></svg>')
    return "\n".join(parts) + "\n"


def _all(xs: Sequence[float], points: Points) -> list[tuple[float, float]]:
    return [_place(xs, x, y) for x, y in points]


def _place(xs: Sequence[float], x: float, y: float) -> tuple[float, float]:
    share = (math.log(x) - math.log(xs[0])) / (math.log(xs[-1]) - math.log(xs[0]))
    return _LEFT + 20 + share * (_WIDTH - _LEFT - 60), _BOTTOM - (y - 0.4) / 0.6 * (_BOTTOM - _TOP)


def _named(name: str, number: int, mark: str) -> tuple[str, str]:
    """An entry of the legend, at the upper left, where small budgets have no points."""
    y = _TOP + 14 + 18 * number
    return mark.format(y=y), f'<text x="102" y="{y + 4}">{name}</text>'
