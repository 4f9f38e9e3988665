"""What does the page say about the queries that were asked?"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import assert_never

from benchmarks.tpch.compare import ANSWERS, Nearness
from benchmarks.tpch.questions import Question


@dataclass(frozen=True, slots=True)
class Exact:
    """Public tables only: the rows that DuckDB gives, or others."""

    is_equal: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """What the client is told."""

    sqlstate: str
    message: str


@dataclass(frozen=True, slots=True)
class Noisy:
    """What the answers are like, and how long one takes."""

    near: Nearness
    seconds: float


Outcome = Exact | Refused | Noisy

_TEXT = """\
# The queries of TPC-H

Written by `make tpch`, which makes the data with `tpchgen-cli`, serves them with [its
policy](../../benchmarks/tpch/policy.yaml), asks [the 22 queries](../../benchmarks/tpch/queries.sql) and
compares the answers with those of a plain DuckDB.

The unit is the customer: `customer`, `orders` and `lineitem` are private, the lines of an order found through
it; parts, suppliers, nations and regions are public. Each query was asked {answers} times at scale {scale:g}
and epsilon {epsilon:g}.

*Error* is how far one answer is from the truth, on average over its rows and as a part of the mean, for the
worst column. All of it is noise: the means of the {answers} answers do not differ from the truth by more than
their spread explains, so nothing is clipped. Noise does not shrink with the rows that WHERE leaves. So queries
of few rows want limits, which an analyst sets with `hush.max_rows_per_group` and `hush.max_groups`, and a
larger scale has less error. *Other* groups are those without rows, which are shown because all values of the
keys are public; *lost* are those below the threshold. In 22 customers are compared with an average
that is released first, and noisy too.
"""


def page(found: list[tuple[Question, Outcome]], scale: float, epsilon: float) -> str:
    """The whole text."""
    told = _TEXT.format(answers=ANSWERS, scale=scale, epsilon=epsilon)
    rows = "\n".join(_row(question, outcome) for question, outcome in found)
    table = f"| query | | limits | error | groups |\n| --- | --- | --- | --- | --- |\n{rows}"
    refused = "\n".join(_reason(question) for question, outcome in found if isinstance(outcome, Refused))
    return "\n".join([told, f"{table}\n\nWhy queries are refused:\n", refused, ""])


def _reason(question: Question) -> str:
    text = f"- **{question.number}** {question.name}: {_REASONS[question.number]}"
    return fill(text, 120, subsequent_indent="  ")


def _row(question: Question, outcome: Outcome) -> str:
    match outcome:
        case Exact():
            cells = ("public tables only: exact and free", "", "none", "")
        case Refused(sqlstate, message):
            cells = (f"refused, {sqlstate}: {message}", "", "", "")
        case Noisy(near):
            cells = ("answered", question.limits, f"{100 * near.error:.2g} %", _groups(near))
        case _ as never:
            assert_never(never)
    return f"| {question.number} {question.name} | {' | '.join(cells)} |"


def _groups(near: Nearness) -> str:
    named = ((near.others, "other"), (near.missing, "lost"))
    return ", ".join(f"{count} {word}" for count, word in named if count)


_REASONS = {
    3: "it lists single orders. An order belongs to one customer, so each row of the answer would be about one person."
       " Ask for revenue by date, or by market segment.",
    10: "it lists single customers with names and addresses.",
    17: "it compares each line with the average over the lines of all customers for the same part. Whether a line is"
        " counted would depend on other customers, of whom there are some thirty for a part; one customer more could"
        " change which lines of all the others count.",
    18: "it lists single orders of single customers, and picks them by the quantity of one order.",
    20: "it asks for each of 760 pairs of part and supplier whether half of what was ordered is less than the stock:"
        " one noisy sum for each pair, most of them of one or two orders. Ask for the sums by supplier, and join them.",
}  # fmt: skip
