"""Each login has its turn at each level."""

from __future__ import annotations

from proxy.workers.turns import Turns


def filled(*works: tuple[int, str, str]) -> Turns[str]:
    turns = Turns[str](3)
    for level, login, work in works:
        turns.add(level, login, work)
    return turns


def in_order(turns: Turns[str], *levels: int) -> list[str]:
    found = []
    while taken := list(turns.take(levels)):
        found += taken
    return found


def test_logins_take_turns_and_the_oldest_work_of_each_goes_first() -> None:
    turns = filled((0, "ann", "a1"), (0, "ann", "a2"), (0, "ann", "a3"), (0, "bob", "b1"), (0, "bob", "b2"))
    assert in_order(turns, 0) == ["a1", "b1", "a2", "b2", "a3"]


def test_a_login_that_comes_late_waits_for_one_work_of_each_other() -> None:
    turns = filled(*((2, "ann", f"a{n}") for n in range(8)))
    assert list(turns.take((2,))) == ["a0"]
    turns.add(2, "bob", "b")
    assert in_order(turns, 2)[:2] == ["a1", "b"]


def test_levels_are_taken_in_the_order_that_is_asked_for() -> None:
    assert in_order(filled((1, "ann", "long"), (0, "bob", "short")), 0, 1) == ["short", "long"]
    assert in_order(filled((1, "ann", "long"), (0, "bob", "short")), 2) == []


def test_what_is_removed_is_never_taken() -> None:
    turns = filled((0, "ann", "a1"), (0, "ann", "a2"), (0, "bob", "b1"))
    assert turns.remove(0, "ann", "a1")
    assert turns.remove(0, "bob", "b1")
    assert not turns.remove(0, "bob", "b1")
    assert not turns.remove(1, "ann", "a2")
    assert len(turns) == 1
    assert in_order(turns, 0) == ["a2"]
