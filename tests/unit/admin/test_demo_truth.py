"""What the demo says of its own answers."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from proxy import demo
from proxy.admin.demo.data import generate
from proxy.admin.demo.truth import CHECKS, Compared, compared, truth, verdict


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    generate(path, 0.001, lambda *_: None, replace=False)
    return path


def test_the_truth_is_counted_over_the_rows_that_were_made(shop: Path) -> None:
    count, sums, cities = (truth(shop, check) for check in CHECKS)
    with duckdb.connect(str(shop), read_only=True) as database:
        (ages,) = database.execute("select age from users where age >= 40").fetchnumpy().values()
        paid = database.execute("select amount from orders where status = 'paid'").fetchall()
        zurich = database.execute("select user_id from users where city = 'Zurich'").fetchall()
    assert count == {"customers of 40 or more": sum(1 for age in ages if age != 999)}
    assert set(sums) == {"paid", "refunded"}
    assert sums["paid"] == float(sum(amount for (amount,) in paid))
    assert cities["Zurich"] == len(zurich)


def test_each_answer_of_the_tour_is_looked_at_again() -> None:
    """With the very words of the tour, so that nothing is charged for it."""
    shown = [stop.sql.split("FROM ")[1].split("\n")[0] for stop in (demo.TOUR[0], demo.TOUR[1], demo.TOUR[3])]
    assert [check.asked.split("FROM ")[1] for check in CHECKS] == shown


def test_an_answer_is_held_against_the_truth() -> None:
    near, far, none = compared(
        [("a", "102", 98, 106), ("b", 50.0, 45.0, 55.0), (None, 3, 0, 6)], {"a": 100.0, "b": 40.0}
    )
    assert (near.off, near.holds) == ("2.00 %", True)
    assert (far.off, far.holds) == ("25.00 %", False)
    assert none == Compared(name="None", answer=3.0, low=0.0, high=6.0, truth=0.0)
    assert none.off == ""
    assert verdict([near, far, none]).startswith("2 of 3 intervals hold the truth")
