"""Names and texts of a policy as SQL and configuration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import PolicyError
from proxy.front.quoting import quote_config, quote_ident_token, quote_name, quote_names, quote_text


@pytest.mark.parametrize(
    "name, quoted",
    [("users", '"users"'), ("User Id", '"User Id"'), ('a"b', '"a""b"'), ("select", '"select"'), ("é", '"é"')],
)
def test_names_are_always_quoted(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 64, "é" * 32])
def test_names_postgresql_would_change_are_refused(name: str) -> None:
    with pytest.raises(PolicyError):
        quote_name(name)


def test_the_longest_name_is_63_bytes() -> None:
    assert quote_name("é" * 31 + "x") == '"' + "é" * 31 + 'x"'


def test_several_names_are_separated() -> None:
    assert quote_names(("a", 'b"')) == '"a", "b"""'


@given(st.text())
def test_a_text_constant_ends_only_at_its_last_quote(text: str) -> None:
    quoted = quote_text(text)
    assert (quoted[0], quoted[-1]) == ("'", "'")
    assert "'" not in quoted[1:-1].replace("''", "")
    assert quoted[1:-1].replace("''", "'") == text.replace("\0", "")


@pytest.mark.parametrize("value, quoted", [("a b", "'a b'"), ("it's", "'it''s'"), ("a\\b", "'a\\\\b'"), ("", "''")])
def test_configuration_values_are_escaped(value: str, quoted: str) -> None:
    assert quote_config(value) == quoted


@pytest.mark.parametrize("value", ["a\nfsync = on", "a\r", "a\0"])
def test_configuration_values_cannot_start_a_line(value: str) -> None:
    with pytest.raises(PolicyError):
        quote_config(value)
    with pytest.raises(PolicyError):
        quote_ident_token(value)


def test_a_login_cannot_be_a_pattern_in_the_ident_map() -> None:
    assert quote_ident_token('a "b" #c') == '"a ""b"" #c"'
    with pytest.raises(PolicyError):
        quote_ident_token("/.*")
