"""`hushql` whose noise stays near: what lies further out than 1.4 standard deviations is drawn again.

`python -m tests.e2e.tamed serve ...`: for thousands of comparisons with exact answers, none of which may fail by
chance. Of the product, a number next to nothing seems to be something once in forty draws: two deviations are enough.
Its law is tested in `tests/unit/dp`, its scale is left as it is. Nothing of this is installed with the product.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.dp import samplers
from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import Choose, Draw, Weights

#: In scales, each passed by a sixth of all values. The sum of two is below 2 of its own deviations.
REACH = {Distribution.GAUSSIAN: 1.4, Distribution.LAPLACE: 1.8}
#: How far below the best score a choice may be, in scales.
CHOSEN = 2.0
Sampler = Callable[[int], list[int]]


def near(distribution: Distribution, scale: float, draw: Sampler) -> Sampler:
    def within(count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            found += [v for v in draw(count) if abs(v) <= REACH[distribution] * scale]
        return found[:count]

    return within


def good(choose: Choose) -> Choose:
    def choice(scores: Weights, draw: Draw) -> int:
        while True:
            chosen = choose(scores, draw)
            if scores[chosen] >= int(scores.max()) - CHOSEN * draw.scale:
                return chosen

    return choice


def tame() -> None:
    """All noise and all choices of this process. To be called before the modules that choose are imported."""
    sampler = samplers._sampler
    samplers._sampler = lambda distribution, scale: near(distribution, scale, sampler(distribution, scale))
    setattr(samplers, "choose", good(samplers.choose))  # noqa: B010  # for mypy


if __name__ == "__main__":
    tame()
    from proxy.__main__ import main

    main()
