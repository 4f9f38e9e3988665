"""A figure of what came back: points over budgets, and the line of what is allowed, as SVG without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 360, 60, 310, 30
_STYLE = (
    "text{font:13px sans-serif;fill:#444}path{fill:none;stroke:#888}.line{stroke:#b30;stroke-width:2}"
    ".point{fill:#06c}.grid{stroke:#ddd}"
)
Points = Sequence[tuple[float, float]]


def drawn(points: Points, line: Points, *, across: str, up: str) -> str:
    """Points and a line. Across: a logarithm; up: shares from 0.5 to 1."""
    first, last = math.log(points[0][0]), math.log(points[-1][0])

    def place(x: float, y: float) -> tuple[float, float]:
        share = (math.log(x) - first) / (last - first)
        return _LEFT + 20 + share * (_WIDTH - _LEFT - 60), _BOTTOM - (y - 0.4) / 0.6 * (_BOTTOM - _TOP)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"><style>{_STYLE}</style>']
    for tenth in range(4, 11):
        _, y = place(points[0][0], tenth / 10)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - 20}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10 * tenth} %</text>')
    for x, _ in points:
        parts.append(f'<text x="{place(x, 0.5)[0]:.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{x:g}</text>')
    path = " ".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(place(*p) for p in line))
    parts.append(f'<path class="line" d="{path}"/>')
    parts += [f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"/>' for x, y in (place(*p) for p in points)]
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{across}</text>')
    parts.append(f'<text x="{_LEFT - 40}" y="18">{up}</text></svg>')
    return "\n".join(parts) + "\n"
