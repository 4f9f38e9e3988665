"""Is a known text changed as the engine changes it?"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from proxy.sql.conditions.patterns import of_split
from proxy.sql.functions.letters import initcap, left, like, lower, right, upper
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.functions.templates import fill
from proxy.sql.render.duckdb.functions import SPELLINGS

SURROGATES = range(0xD800, 0xE000)
pytestmark = pytest.mark.no_cover  # a million letters


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def test_every_letter_changes_as_in_the_engine(engine: duckdb.DuckDBPyConnection) -> None:
    spelled = ", ".join(fill(SPELLINGS[name].text, ("chr(i::integer)",)) for name in ("lower", "upper"))
    rows = engine.execute(
        f"select chr(i::integer), {spelled} from range(1, 1114112) t(i)"
        f" where i not between {SURROGATES.start} and {SURROGATES.stop - 1}"
    )
    wrong = [(c, lo, up) for c, lo, up in rows.fetchall() if (lower(c), upper(c)) != (lo, up)]
    assert not wrong


def test_a_letter_does_not_depend_on_its_neighbours(engine: duckdb.DuckDBPyConnection) -> None:
    text = "ΟΔΟΣ ß İ ǆ"
    assert (told(engine, "lower", text), told(engine, "upper", text)) == (lower(text), upper(text))


LIKE = (
    "",
    "%",
    "_",
    "%%",
    "a%",
    "A%",
    "%a",
    "%a%a",
    "_a%",
    "a_c",
    "%b_c",
    "%\\%",
    "\\a%",
    "%\\_x",
    "%é%",
    "a$b$",
    "%a_%",
    "___",
)


def test_no_pattern_takes_long() -> None:
    assert not like("a" * 2_000, "%a" * 1_000 + "%b")
    assert like("a" * 2_000, "%a" * 1_000)


def told(engine: duckdb.DuckDBPyConnection, name: str, *values: str | int) -> object:
    """What the engine makes of constants."""
    marks = tuple(f"(${n})" for n in range(1, len(values) + 1))
    found = engine.execute(f"select {fill(SPELLINGS[name].text, marks)}", list(values)).fetchone()
    assert found is not None
    return found[0]


@pytest.mark.parametrize("text", ["", "o'HARA 1ST éa_x", "ßa ẞb x²y", "a-b-c", "a$b$", "$", "a\nb", "aaa"])
def test_known_texts_are_those_of_the_engine(text: str, engine: duckdb.DuckDBPyConnection) -> None:
    assert told(engine, "initcap", text) == initcap(text)
    for count in (-3, -1, 0, 1, 3):
        assert told(engine, "left", text, count) == left(text, count)
        assert told(engine, "right", text, count) == right(text, count)
    calls = [("translate", (text, "ab$", "xy")), ("octet_length", (text,)), ("lpad", (text, 3, "xy")),
             ("rpad", (text, 3, "xy"))]  # fmt: skip
    calls += [(name, (text, pattern)) for name in ("like", "ilike") for pattern in LIKE]
    calls += [("extracted", (text, of_split(mark, n), 1)) for mark in ("-", "$", "aa", "\\") for n in (1, 2, 3)]
    calls += [("extracted", (text, of_split(mark, n), 1)) for mark in ("-", "$", "ab") for n in (-1, -2)]
    for name, values in calls:
        found = FUNCTIONS[name].image(values)
        if name == "ilike" and not (text.isascii() and str(values[1]).isascii()):
            assert found == ()
        else:
            assert found == (told(engine, name, *values),), (name, values)
