"""Several grouping sets, a table united with itself, constants as keys, sums beyond 64 bits: nobody weighs more."""

from __future__ import annotations

from tests.attacks.hostile import Attacked, Client, refusal, rows, spent, value


def test_all_sets_of_a_cube_are_one_price_and_have_the_same_groups_without_a_person(attacked: Attacked) -> None:
    shown = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=100) as client:
            client.execute("SET hush.fresh = on")
            value(client, "SELECT count(*) FROM people")
            start = spent(client)
            value(client, "SELECT count(*) FROM people")
            price = spent(client) - start
            cube = rows(client, "SELECT kind, ok, count(*) FROM people GROUP BY CUBE (kind, ok) ORDER BY 1, 2")
            assert abs(spent(client) - start - 2 * price) < 1e-6 * price
            rolled = rows(client, "SELECT kind, name, count(*) FROM people GROUP BY ROLLUP (kind, name)")
            assert "alice" not in {row[1] for row in rolled}
            shown.append(([row[:2] for row in cube], [row[:2] for row in rolled]))
    assert shown[0] == shown[1]


def test_a_table_united_with_itself_adds_up_to_both_bounds(attacked: Attacked) -> None:
    """1,001 rows in either half; noise of sd 0.1 of the bound on both sides: false alarms below 1e-9."""
    twice = "SELECT count(*) FROM (SELECT pid, n FROM events UNION ALL SELECT pid, n FROM events) AS t"
    found = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=100) as client:
            found.append(value(client, twice))
    assert abs(found[0] - found[1]) < 2 * 20 * 1.9 + 1


def test_constants_are_keys_whether_or_not_a_row_meets_them(attacked: Attacked) -> None:
    joined = "people p {} JOIN (VALUES ('alice'), ('nobody')) AS v(k) ON p.name = v.k GROUP BY 1 ORDER BY 1"
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset) as client:
            found = rows(client, f"SELECT v.k, count(*) FROM {joined.format('')}")
            assert [row[0] for row in found] == ["alice", "nobody"]
            assert refusal(client, f"SELECT v.k, count(*) FROM {joined.format('RIGHT')}")[0] == "DP006"


def test_sums_beyond_64_bits_are_numbers(eve: Client) -> None:
    huge = "least(greatest(i, -9223372036854775807), 9223372036854775807)"
    for summed in (huge, "num * 99999999999999999999", "n * 1000000000000000000::bigint"):
        table = "events" if summed.startswith("n ") else "people"
        assert abs(value(eve, f"SELECT sum({summed}) FROM {table}")) > 1e19
