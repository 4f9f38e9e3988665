"""Do weights of stored values have the mean that true values would count, by every way to randomize?

Means and variances are computed exactly, over all stored values by their chances; nothing is drawn.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest

from proxy.analysis.channels import ResponseChannel, channel_of
from proxy.analysis.estimated import Cell, Weighted, key_growth, most_repeated, weighted
from proxy.analysis.evaluate import MISSING, choices
from proxy.errors import Unsupported
from proxy.plan.release_plan import plan_release
from proxy.policy.model import Column, Listed
from proxy.policy.response import KeptOrUniform
from proxy.sql.algebra.nodes import ColumnRef, conjuncts
from proxy.sql.relations.scope import Catalog
from proxy.sqltypes import SqlType as T
from tests.unit.plan.survey import PEOPLE, TABLES, coins, of_survey
from tests.unit.release.make import bound

CATALOG = Catalog(TABLES)
TEXT_COINS = Column(name="x", type=T.TEXT, nullable=False, domain=Listed(("yes", "no")), randomized=coins("0.3", "0.9"))


def chances(channel: ResponseChannel, column: Column, true: int) -> list[float]:
    """Of each stored value, by the definition of each way to randomize."""
    if isinstance(column.randomized, KeptOrUniform):
        keep, many = float(column.randomized.keep), len(channel.values)
        return [keep * (y == true) + (1 - keep) / many for y in range(many)]
    yes = channel.values.index(True if column.type is T.BOOL else channel.values[0])
    truth, says = float(column.randomized.truth), float(column.randomized.yes)  # type: ignore[union-attr]
    return [truth * (y == true) + (1 - truth) * (says if y == yes else 1 - says) for y in range(2)]


@pytest.mark.parametrize("column", [*(c for c in PEOPLE.columns if c.is_randomized and c.name != "pay"), TEXT_COINS])
def test_weights_have_the_mean_of_the_truth(column: Column) -> None:
    channel = channel_of(ColumnRef(0, column.name, column.type), column)
    assert channel is not None
    places = range(len(channel.values))
    for true in places:
        of = chances(channel, column, true)
        assert channel.chance(frozenset(places), true) == pytest.approx(1.0)
        assert [channel.chance(frozenset((y,)), true) for y in places] == pytest.approx(of)
        for wanted in (frozenset((0,)), frozenset(places[:-1]), frozenset(places)):
            mean = math.fsum(p * channel.weight(y, wanted) for y, p in zip(places, of, strict=True))
            assert mean == pytest.approx(float(true in wanted))


def test_noise_is_no_channel_and_null_is_a_value() -> None:
    pay, mood, plan = (PEOPLE.column(n) for n in ("pay", "mood", "plan"))
    assert pay is not None
    assert mood is not None
    assert plan is not None
    assert channel_of(ColumnRef(0, "pay", T.FLOAT8), pay) is None
    assert channel_of(ColumnRef(0, "plan", T.TEXT), plan) is None
    found = channel_of(ColumnRef(0, "mood", T.TEXT), mood)
    assert found is not None
    assert found.values == ("bad", "good", MISSING)


def weights(aggregate: str) -> Weighted:
    block = bound(f"select {aggregate} from people", CATALOG).block
    found = weighted(block.aggregates[0], block)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("ill", lambda ill, _s, _m: ill),
        ("not ill and smokes", lambda ill, s, _m: not ill and s),
        ("ill or smokes", lambda ill, s, _m: ill or s),
        ("ill = smokes", lambda ill, s, _m: ill == s),
        ("ill is true and mood = 'bad'", lambda ill, _s, m: ill and m == "bad"),
        ("mood is null and smokes::int = 1", lambda _i, s, m: m is None and s),
        (
            "coalesce(mood, 'bad') = 'bad' and not (ill and smokes)",
            lambda i, s, m: m in (None, "bad") and not (i and s),
        ),
        ("case when ill then mood = 'good' else smokes end", lambda i, s, m: m == "good" if i else s),
    ],
)
def test_cells_estimate_any_condition_of_several_columns(condition: str, truth: object) -> None:
    """The mean and the variance of a row's weight, for each combination of true values."""
    of = weights(f"count(*) filter (where {condition})")
    columns = {n: PEOPLE.column(n) for n in ("ill", "smokes", "mood")}
    channels = {n: channel_of(ColumnRef(0, n, c.type), c) for n, c in columns.items()}  # type: ignore[union-attr, arg-type]
    assert math.fsum(c.count for c in of.cells if c.count > 1) > 0
    spreads = []
    for true in product(*(range(len(channels[n].values)) for n in columns)):  # type: ignore[union-attr]
        mean = second = 0.0
        for stored in product(*(range(len(channels[n].values)) for n in columns)):  # type: ignore[union-attr]
            each = zip(columns, stored, true, strict=True)
            chance = math.prod(chances(channels[n], columns[n], t)[y] for n, y, t in each)  # type: ignore[arg-type, misc]
            row = {n: channels[n].values[y] for n, y in zip(columns, stored, strict=True)}  # type: ignore[union-attr]
            (cell,) = [c for c in of.cells if holds(c, row)]
            mean, second = mean + chance * cell.count, second + chance * cell.count**2
        values = [channels[n].values[t] for n, t in zip(columns, true, strict=True)]  # type: ignore[union-attr]
        wanted = bool(truth(*(None if v is MISSING else v for v in values)))  # type: ignore[operator]
        assert mean == pytest.approx(float(wanted))
        spreads.append(second - wanted)
    assert of.row_sd == pytest.approx(math.sqrt(max(spreads)))


def holds(cell: Cell, row: dict[str, object]) -> bool:
    known = {ColumnRef(0, n, PEOPLE.column(n).type): v for n, v in row.items()}  # type: ignore[union-attr]
    return all(choices(c, known) == (True,) for c in conjuncts(cell.where))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "aggregate",
    [
        "count(*) filter (where ill or age > 30)",
        "avg(case when ill then age else size end)",
        "avg(case when ill then age else 0 end)",
        "count(*) filter (where town = city and town <> 'v00')",
    ],
)
def test_what_depends_on_other_columns_at_once_is_refused(aggregate: str) -> None:
    with pytest.raises(Unsupported) as refused:
        weights(aggregate)
    assert refused.value.hint


def test_too_many_cells_are_refused() -> None:
    branches = " ".join(f"when town = 'v{i:02}' then {i}" for i in range(50))
    assert len(weights(f"sum(case {branches} end)").cells) == 50
    with pytest.raises(Unsupported, match="so many randomized values"):
        weights(f"sum(case {branches} end) filter (where ill)")


def test_a_condition_that_no_value_meets_counts_nobody() -> None:
    assert weights("count(*) filter (where vote = 'z')").cells == ()


def test_repeated_values_are_counted_by_the_rows_of_a_unit() -> None:
    query = "select count(*) from people p join visits v using (id) where {}"
    for condition, times in (("v.paid", 1), ("p.ill", 20), ("p.ill and v.paid", 20)):
        plan = plan_release(bound(query.format(condition), CATALOG).block, of_survey())
        owned = plan.analysed.owned
        assert most_repeated(owned.block.aggregates[0], owned, plan.analysed.bounds.rows) == times


def test_groups_of_true_values_have_more_noise() -> None:
    block = bound("select vote, count(*) from people group by 1", CATALOG).block
    q, p = 0.08, 0.68
    assert key_growth(block) == pytest.approx(math.sqrt((1 - q) ** 2 + 4 * q * q) / (p - q))
    assert key_growth(replace(block, keys=())) == 1.0
