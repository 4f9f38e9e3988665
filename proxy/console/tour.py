"""What does somebody do on a first visit to the demo? Five steps, each of which asks something.

The page is there for the demo's shop alone, whose tables it names.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.responses import Response

from proxy.console.visits import Console, Visit


@dataclass(frozen=True, slots=True)
class Step:
    """What is done and what to look at, and the statement that does it."""

    title: str
    words: str
    statement: str


_COUNT = "SELECT count(*) FROM users WHERE age >= 40"
STEPS = (
    Step(
        "A count, and how far off it may be",
        "The answer carries noise. Its interval holds the true count 95 times in 100; the notice says the cost.",
        _COUNT,
    ),
    Step(
        "The same once more, for nothing",
        "A question that was paid for gets the same answer again, so asking often helps nobody to average the noise.",
        _COUNT,
    ),
    Step(
        "Sums as a chart",
        "Show the answer as bars: each whisker is the interval of the noise, whose ends stand in the table as numbers.",
        "SELECT status, count(*), sum(amount) FROM orders WHERE status IS NOT NULL GROUP BY status",
    ),
    Step(
        "Groups that nobody listed",
        "The policy does not list the cities. A city is shown if enough customers are in it: the notice says how many.",
        "SELECT city, count(*) FROM users GROUP BY city ORDER BY count(*) DESC",
    ),
    Step(
        "Rows of people are not shown",
        "A refusal says why, and what to ask instead. Nothing is charged.",
        "SELECT * FROM users",
    ),
)


@dataclass(frozen=True, slots=True)
class TourPage:
    """The page."""

    console: Console

    async def page(self, visit: Visit) -> Response:
        """The steps. Raises HTTPException 404 where they have no tables to ask about."""
        if visit.place.database != self.console.serving.tour:
            raise HTTPException(404, "there is no tour of this dataset")
        return self.console.page("tour.html", visit, steps=STEPS)
