"""Does a plan say what it will do, from public facts alone?"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.plan.words.explain import explain_block
from proxy.plan.words.explain_lines import explain_lines
from proxy.plan.words.outputs import output_noise
from proxy.policy.model import Bounded, Neighbors
from tests.unit.plan.shop import context, context_with_sums, plan
from tests.unit.release.answered import answers


def told(query: str, *, pure: bool = False, neighbors: Neighbors = Neighbors.ADD_REMOVE, group_size: int = 1) -> str:
    of = context(pure=pure, neighbors=neighbors, group_size=group_size)
    block = explain_block(plan(query, of), of.privacy)
    assert json.loads(json.dumps(block)) == block
    return "\n".join(explain_lines(block))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "select count(*) from users",
            ["number of rows", "noise sd", "rho 0.01", "1 row per unit, 1 per group, 1 group ("],
        ),
        ("select status, count(*) from orders group by 1", ["public: every value is shown (3 values)"]),
        ("select city, count(*) from users group by 1", ["private: shown above the threshold", "Threshold: ", "delta"]),
        ("select city, plan, sum(age) from users group by 1, 2", ["number of units per private key"]),
        (
            "select avg(age) from users",
            ["divided by the number of rows", "clamped to [0, 110]", "sum of (age - 55)/55"],
        ),
        ("select sum(amount) from orders", ["largest weight 1000; never negative"]),
        ("select sum(-amount) from orders", ["never positive"]),
        ("select count(age), count(*) from users", ["missing", "present"]),
        ("select count(*) filter (where age > 5) from users", [" where "]),
        ("select count(distinct user_id) from orders", ["number of units", "1 per unit"]),
        ("select sum(0 * age) from users", ["noise sd 0"]),
        (
            "select variance(age) from users",
            [
                "sum of 2 z^2 - 1, z = (age - 55)/55",
                "values spread evenly",
                "clamped to [0, 110]",
                "divided by the number",
            ],
        ),
        ("select stddev(3) from users", ["noise sd 0 divided"]),
        ("select regr_sxx(height, age) from users", ["noise to first order", "number of rows with age present"]),
        (
            "select corr(age, height) from users",
            ["sum of (age - 55)/55 times (height - 125)/125", "[0, 110] and [0, 250]", "with age present"],
        ),
        ("select corr(age, age / kids) from (select age, age % 7 as kids from users) t", ["present"]),
        ("select count(*), corr(qty, price) from items", ["rows with price or qty missing"]),
        ("select regr_sxy(age, height) from users", ["noise sd", "first order"]),
        ("select regr_r2(age, 5), regr_slope(age, 5) from users", ["noise sd 0 divided"]),
        ("select bool_or(age > 90) from users", ["decided by the noisy number of rows where it holds"]),
        ("select every(age > 90) from users", ["decided by the noisy number of rows where it fails"]),
        (
            "select status, count(distinct order_id) filter (where amount > 5), count(*) from orders group by 1",
            [
                "Part number of different values of order_id where (amount > 5): 0.005 of the charge;",
                "10 values per unit in a group, 3 groups, 60 in all; sensitivity 17.3205 (l2), noise sd 173.2",
                "Output count(DISTINCT order_id) FILTER (WHERE (amount > 5)): noise sd 173.2, 95 % within",
                "Moment: number of rows",
            ],
        ),
    ],
)
def test_a_plan_is_told_in_words(query: str, words: list[str]) -> None:
    text = " ".join(told(query).split())  # lines are broken
    for word in words:
        assert word in text


def test_pure_accounting_is_told_as_such() -> None:
    text = told("select status, avg(amount) from orders group by 1", pure=True)
    assert "epsilon 0.1" in text
    assert "l1" in text
    assert "half of count plus" in text
    assert "half of count minus" in text


def test_without_a_vector_none_is_told() -> None:
    text = told("select count(distinct age) from users", pure=True)
    assert "0.1 of the charge; 1 value per unit in a group, 1 group, 1 in all; sensitivity 1 (l1)" in " ".join(
        text.split()
    )
    assert text.count("Sensitivity:") == text.count("Moment:") == 0
    assert text.count("Private SQL:") == 1


def test_the_parts_of_a_square_are_told() -> None:
    text = told("select variance(amount) from orders", pure=True)
    for part in ("(1 + z)^2/4", "(1 - z)^2/4", "(1 - z^2)/2"):
        assert f"sum of {part}, z = (amount - 500)/500" in text


def test_the_derivation_names_what_multiplies_the_bound() -> None:
    text = " ".join(told("select count(*) from orders", neighbors=Neighbors.REPLACE_ONE, group_size=3).split())
    assert "times 3 for the group size" in text
    assert "times 2 because one unit is replaced" in text


def test_long_lines_are_broken_at_blanks_outside_of_quotes() -> None:
    of = context()
    block = explain_block(
        plan("select status, sum(amount) from orders where status <> 'a  b' group by 1", of), of.privacy
    )
    lines = explain_lines(block)
    assert max(map(len, lines)) <= 130  # one word of the private SQL may be longer than a line
    assert "'a  b'" in "\n".join(lines)
    told_sql = lines[lines.index("  Private SQL:") + 1 :]
    assert "".join("".join(told_sql).split()) == "".join(str(block["private_sql"]).split())
    assert all(line.startswith("    ") for line in told_sql)


def test_the_salt_is_not_told() -> None:
    of = plan("select store_id, count(*) from orders group by 1")
    assert "5a17" in of.sql
    assert "5a17" not in told("select store_id, count(*) from orders group by 1")
    assert "5a17" in "".join(plan("select count(distinct order_id) from orders").stages)
    assert "5a17" not in told("select count(distinct order_id) from orders")


def test_one_row_of_noise_for_each_aggregate() -> None:
    noise = output_noise(plan("select count(*), sum(height), avg(height) from users"))
    assert [n.aggregate.split("(")[0] for n in noise] == ["count", "sum", "avg"]
    assert all(n.sd > 0 and n.half_width_95 > n.sd for n in noise)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "aggregate",
    ["var_pop(height)", "stddev(height)", "regr_syy(height, age)", "covar_samp(height, age)", "corr(height, age)",
     "regr_slope(height, age)", "regr_intercept(height, age)", "regr_sxy(height, age)"],
)  # fmt: skip
def test_the_stated_noise_is_that_of_values_spread_evenly(aggregate: str, pure: bool) -> None:
    """10,000 rows, height and age evenly spread and independent: the finished noise is what EXPLAIN says."""
    of = replace(context(pure=pure), pico=10**13)
    (stated,) = output_noise(plan(f"select {aggregate} from users", of))
    rows = [{"height": 1.25 + 2.5 * (i % 100), "age": 0.55 + 1.1 * (i // 100)} for i in range(10_000)]
    (sd,) = answers((f"hush.sd({aggregate})",), rows, of)
    per_row = len(rows) if stated.is_per_row else 1
    assert float(sd or "nan") * per_row == pytest.approx(stated.sd, rel=0.02)


def test_the_guide_names_every_line_and_every_key() -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs" / "guide" / "client.md").read_text(encoding="utf-8")
    explained = guide[guide.index("## EXPLAIN") : guide.index("## Notices")]
    found = set()
    for query in (
        "select city, count(distinct age), max(age), avg(age) from users group by city",
        "select sum(amount) from orders",
    ):
        block = explain_block(plan(query, context_with_sums(Bounded(0, 1500))), context().privacy)
        assert all(f"`{key}`" in explained for key in block)
        found |= {match[1] for line in explain_lines(block) if (match := re.match(r" {0,2}([A-Z][a-z]+)", line))}
    assert len(found) == 12
    assert all(f"| `{label}" in explained for label in found), found
