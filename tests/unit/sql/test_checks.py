"""Is what CHECK constraints say plainly read, and what they say otherwise left alone?"""

from __future__ import annotations

import pytest

from proxy.sql.conditions.checks import Said, said

_TEXTS = Said(values=("a", "b"))


@pytest.mark.parametrize(
    "check, expected",
    [
        ("(age BETWEEN 0 AND 110)", {"age": Said("0", "110")}),
        ("((age >= 0) AND (110 >= age))", {"age": Said("0", "110")}),
        ("((n >= (0)::numeric) AND (n < 100.5))", {"n": Said("0", "100.5", is_high_out=True)}),
        ("(-5 < x) and x <= '7'::integer", {"x": Said("-5", "7", is_low_out=True)}),
        ("(s IN ('a', 'b'))", {"s": _TEXTS}),
        ("((s)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))", {"s": _TEXTS}),
        ("'a' = s AND \"Odd Name\" = 3", {"s": Said(values=("a",)), "Odd Name": Said(values=("3",))}),
        ("(d >= CAST('2020-01-01' AS date))", {"d": Said("2020-01-01")}),
        ("((VALUE >= 0) AND (VALUE <= 1))", {"VALUE": Said("0", "1")}),
        ("a > 0 AND a > 5", {"a": Said("5", is_low_out=True)}),
        # said otherwise than plainly
        ("((a = 1) OR (b = 2))", {}),
        ("(length(a) > 3)", {}),
        ("(a IN (1, b))", {}),
        ("(a = ANY (list))", {}),
        ("(a > b)", {}),
        ("(a > -b)", {}),
        ("(lower(a) BETWEEN 'a' AND 'b')", {}),
        ("(a BETWEEN b AND 3)", {}),
        ("NOT (a > 3)", {}),
        ("not a condition ((", {}),
        ("a > " + "0" * 30_000, {}),
    ],
)  # fmt: skip
def test_what_a_constraint_says(check: str, expected: dict[str, Said]) -> None:
    assert said(check) == expected
