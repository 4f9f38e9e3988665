"""Does a policy with other data read the same in every other character?"""

from __future__ import annotations

import pytest

from proxy.errors import ConfigError
from proxy.policy.refreshed import with_data

TEXT = """version: 1
source:             # of the load
  engine: duckdb
  path: 'old file.duckdb'   # kept for a week
  data_version: "1"  # ü
tables: {a: {data_version: 3}}
"""


def test_the_two_values_alone_are_written() -> None:
    found = with_data(TEXT, version="2026-11", path='/data/new "file".duckdb')
    assert found == TEXT.replace("'old file.duckdb'", '"/data/new \\"file\\".duckdb"').replace('"1"', '"2026-11"')


def test_a_label_alone() -> None:
    assert with_data(TEXT, version="2") == TEXT.replace('"1"', '"2"')
    assert with_data("source: {data_version: 1, files: {}}", version="2") == 'source: {data_version: "2", files: {}}'


def test_a_label_that_looks_like_something_else_stays_text() -> None:
    assert 'data_version: "2026-11-27"' in with_data(TEXT, version="2026-11-27")


@pytest.mark.parametrize(("text", "path", "words"), [
    ("source: {data_version: 1, files: {a: a.csv}}", "x", "the source of this policy has no path"),
    ("source: {engine: duckdb}", "", "source.data_version has no plain value"),
    ("source: {data_version: &v 1, path: *v}", "", "source.data_version has no plain value"),
    ("source: {data_version: [1]}", "", "source.data_version has no plain value"),
])  # fmt: skip
def test_what_has_no_place_of_its_own_is_refused(text: str, path: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_data(text, version="2", path=path)
    assert words in refused.value.message
