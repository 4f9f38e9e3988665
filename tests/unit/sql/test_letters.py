"""Is the case of every letter changed as the engine changes it?"""

from __future__ import annotations

import duckdb

from proxy.sql.letters import lower, upper

SURROGATES = range(0xD800, 0xE000)


def test_every_letter_changes_as_in_the_engine() -> None:
    rows = duckdb.connect().execute(
        "select chr(i::integer), lower(chr(i::integer)), upper(chr(i::integer)) from range(1, 1114112) t(i)"
        f" where i not between {SURROGATES.start} and {SURROGATES.stop - 1}"
    )
    wrong = [(c, lo, up) for c, lo, up in rows.fetchall() if (lower(c), upper(c)) != (lo, up)]
    assert not wrong


def test_a_letter_does_not_depend_on_its_neighbours() -> None:
    text = "ΟΔΟΣ ß İ ǆ"
    engine = duckdb.connect().execute("select lower($1), upper($1)", [text]).fetchone()
    assert engine == (lower(text), upper(text))
