"""Are keys told apart as SQL tells them apart, and are public domains complete?"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.analysis.domains import Domains
from proxy.analysis.keys import NULL_KEY, Key, PrivateKey, PublicKey, few_enough, key_identity
from proxy.errors import BadGroups, Unsupported
from proxy.policy.model import Column, Listed, PublicTable, Table
from proxy.sql.algebra.constants import Unread
from proxy.sql.algebra.nodes import Block, ColumnRef, Scalar, Scan
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import context, plan, plans


def keys(query: str) -> list[object]:
    return [list(k.values) if isinstance(k, PublicKey) else "private" for k in plan(query).analysed.keys]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("plan", ["free", "pro"]),
        ("city", "private"),
        ("age > 18", [False, True, NULL_KEY]),
        ("case when age > 18 then 'adult' else 'child' end", ["adult", "child"]),
        ("case when age > 18 then 'adult' end", ["adult", NULL_KEY]),
        ("extract(quarter from joined)", [1, 2, 3, 4, NULL_KEY]),
        ("date_trunc('year', joined)", [datetime(2019, 1, 1), datetime(2020, 1, 1), NULL_KEY]),
        ("date_trunc('year', born)", "private"),
        ("height", "private"),
    ],
)
def test_a_key_is_public_iff_its_values_are_known(key: str, expected: object) -> None:
    assert keys(f"select {key}, count(*) from users group by 1") == [expected]


def test_more_numbers_than_a_list_can_have_are_no_public_keys() -> None:
    between = "between -9000000000000000000 and 9000000000000000000"
    assert keys(f"select count(*) from orders where order_id {between} group by order_id") == ["private"]


def test_what_may_be_no_number_is_no_public_key() -> None:
    assert keys("select floor(weight % 3), count(*) from users group by 1") == ["private"]
    assert keys("select floor(height % 3), count(*) from users group by 1") != ["private"]
    assert keys("select order_id % 3, count(*) from orders group by 1") != ["private"]
    assert keys("select sign(weight), count(*) from users group by 1") != ["private"]


def test_conditions_make_keys_public() -> None:
    assert keys("select city, count(*) from users where city in ('b', 'a') group by 1") == [["a", "b"]]
    assert keys("select age, count(*) from users where age between 3 and 5 group by 1") == [[3, 4, 5]]
    assert keys("select joined, count(*) from users where joined < '2019-01-03' group by 1") == [
        [date(2019, 1, 1), date(2019, 1, 2)]
    ]


@pytest.mark.parametrize(
    ("condition", "left"),
    [("plan < 'pro'", ["free"]), ("plan <= 'pro'", ["free", "pro"]), ("'free' < plan", ["pro"]), ("plan > 'pro'", [])],
)
def test_listed_keys_are_those_on_the_side_of_a_comparison(condition: str, left: list[str]) -> None:
    assert keys(f"select plan, count(*) from users where {condition} group by plan") == [left]


@pytest.mark.parametrize(
    "condition",
    [
        "made in ('2024-02-01 00:00+02', '2024-02-03 00:00+00')",
        "made in (timestamptz '2024-02-01 00:00+02', timestamptz '2024-02-03 00:00+00')",
        "made = any(array['2024-02-01 00:00+02', '2024-02-03 00:00+00']::timestamptz[])",
        "made = any(array[timestamptz '2024-02-01 00:00+02', '2024-02-03 00:00+00'])",
    ],
)
def test_instants_are_keys_in_the_policys_zone(condition: str) -> None:
    of = plan(f"select made, count(*) from orders where {condition} group by 1", context(time_zone="America/New_York"))
    assert of.public_keys == ((datetime(2024, 1, 31, 17),), (datetime(2024, 2, 2, 19),))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("order_id in (2, 2.5, 3.0)", [2, 3]),
        ("order_id = 2.5", []),
        ("order_id in (9007199254740993.0, 9007199254740992.0)", [2**53, 2**53 + 1]),
        ("order_id between 9007199254740992.5 and 9007199254740994.0", [2**53 + 1, 2**53 + 2]),
        ("order_id = 9007199254740992.0::float8", "private"),
        ("order_id between 0 and 2 and order_id < 9007199254740992::float8", [0, 1, 2]),
    ],
)
def test_whole_keys_are_the_whole_numbers_that_constants_equal(condition: str, expected: object) -> None:
    assert keys(f"select order_id, count(*) from orders where {condition} group by 1") == [expected]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (5, 5.0, True),
        (5, Decimal("5.00"), True),
        (0.1, Decimal("0.1"), True),
        (2**53, 2**53 + 1, False),
        (float("nan"), float("nan"), True),
        (float("nan"), Decimal("NaN"), True),
        (datetime(2024, 1, 1), datetime(2024, 1, 1), True),
        ("a", "a ", False),
        (None, NULL_KEY, True),
    ],
)
def test_identity_of_keys(left: object, right: object, same: bool) -> None:
    ours, theirs = key_identity(left), key_identity(right)  # type: ignore[arg-type]  # a table of many types
    assert (ours == theirs) is same
    assert not same or hash(ours) == hash(theirs)


def test_an_interval_is_no_key() -> None:
    with pytest.raises(BadGroups, match="interval"):
        plans(
            "select case when age > 3 then interval '1 day' else interval '2 days' end, count(*) from users group by 1"
        )


def test_keys_nobody_listed_are_refused_in_pure_accounting() -> None:
    with pytest.raises(BadGroups):
        plans("select city, count(*) from users group by 1", context(pure=True))


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from users where age < 1e999",
        f"select count(*) from users where age = {'9' * 5000}",
        "select count(*) from orders where made > timestamptz '0001-01-01 00:00:00+14'",
    ],
)
def test_constants_beyond_the_engine_are_refused(query: str) -> None:
    with pytest.raises(Unsupported):
        plans(query)


def test_a_text_that_is_no_number_of_ours_is_for_postgresql_to_refuse() -> None:
    with pytest.raises(Unread) as unread:
        plans(f"select count(*) from users where age < '{'9' * 400}'")
    (text,) = unread.value.texts
    assert text.text == "9" * 400


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("9007199254740993 - (age = 2)::int", "private"),
        ("9007199254740993 - (age = 2)::int - 9007199254740990", "private"),
        ("case when age > 1 then 9007199254740993 else 0.5 end", [9007199254740992, Decimal("0.5")]),
        ("900719925474 - (age = 2)::int", [900719925473, 900719925474, NULL_KEY]),
    ],
)
def test_integers_that_doubles_merge_are_not_listed(key: str, expected: object) -> None:
    assert keys(f"select {key}, count(*) from users group by 1") == [expected]


@pytest.mark.parametrize(("count", "is_public"), [(316, True), (317, False)])
def test_too_many_combinations_leave_found_values_private(count: int, is_public: bool) -> None:
    values = tuple(range(count))
    columns = tuple(Column(name=n, type=SqlType.INT4, domain=Listed(values), found=n != "c") for n in "abc")
    scan = Scan(0, Table(name="s", relation=("s",), ownership=PublicTable(), columns=columns))
    block = Block(scans=(scan,), where=(), keys=(), aggregates=())
    declared = ColumnRef(0, "c", SqlType.INT4)
    given: dict[Scalar, Key] = {k: PublicKey(k, values) for k in (ColumnRef(0, "a", SqlType.INT4), declared)}
    found = few_enough(given, Domains(block))
    assert [isinstance(k, PrivateKey) for k in found.values()] == [not is_public, False]
