"""Which statements does the relay refuse before the front sees them?

Those that PostgreSQL permits every role although they outlive or reach beyond the session: changing one's own role,
NOTIFY and LISTEN, rules, dropping one's own grants, and settings that are not on the list of `proxy.wire.settings`.
Privacy does not rest on this: the front holds nothing private. Statements are read as tokens, not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.errors import HushError, PolicyForbids
from proxy.wire.exchange import NoRefusal, Refusal
from proxy.wire.lexer import Sort, StatementSpan, Token
from proxy.wire.settings import may_set, may_set_to
from proxy.wire.skim import skimmed

#: Strings without any of these need no closer look. Escaped names are among them: they can spell the functions.
_SUSPICIOUS = (
    "alter", "notify", "listen", "set", "rule", "owned", "analyse", "analyze", "vacuum", "cluster", "reindex",
)  # fmt: skip
_SUSPECT = re.compile(rf'\b(?:{"|".join(_SUSPICIOUS)}|set_config|pg_notify)\b|u&"', re.IGNORECASE)

#: SET without a setting's name: transaction modes and what PostgreSQL denies in its own words.
_SET_FORMS = frozenset({"authorization", "catalog", "characteristics", "constraints", "role", "schema", "time"})
_SET_FORMS_UNLESS_ASSIGNED = frozenset({"transaction", "xml"})


#: What pg_dump begins with, from version 17 on. The value is fixed, and no setting that matters takes it.
_OF_PG_DUMP = (
    "SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings"
    " WHERE name = 'restrict_nonsystem_relation_kind'"
)


@dataclass(frozen=True, slots=True)
class Screened:
    """A query string fit to be sent. refusal: what the marker in its text stands for, `start` characters into it."""

    text: str
    refusal: Refusal | NoRefusal
    start: int = 0


def screen(text: str, raising_sql: str) -> Screened:
    """Put `raising_sql` in the place of the first refused statement.

    Earlier statements of the string still run, later ones never do, as PostgreSQL does with an error.
    """
    if not _is_suspect(text):
        return Screened(text, NoRefusal())
    for span in skimmed(text):
        if text[span.start : span.end].strip() == _OF_PG_DUMP:
            continue
        error = _objection(span)
        if isinstance(error, Refusal):
            return Screened(text[: span.start] + raising_sql + text[span.end :], error, span.start)
    return Screened(text, NoRefusal())


def _is_suspect(text: str) -> bool:
    folded = text.lower()  # a plain search is many times quicker than the pattern, which almost no text needs
    return any(word in folded for word in (*_SUSPICIOUS, 'u&"')) and bool(_SUSPECT.search(text))


def _objection(span: StatementSpan) -> Refusal | NoRefusal:
    words = [t.text if t.sort is Sort.WORD else "" for t in span.tokens[:6]]
    try:
        _check_statement(words)
        _check_settings_view(span.tokens)
        _check_calls(span.tokens)
        if words[0] == "set":
            _check_set(span.tokens[1:])
    except HushError as error:
        return Refusal(error)
    return NoRefusal()


def _check_statement(words: Sequence[str]) -> None:
    start = tuple(words[:2])
    if start in (("alter", "role"), ("alter", "user"), ("alter", "group")):
        raise _forbidden("logins cannot be changed through SQL", hint="Ask the operator to run `hushql user`.")
    if words[0] in ("notify", "listen"):
        raise _forbidden(f"{words[0].upper()} is not available")
    if words[0] in ("analyze", "analyse", "vacuum", "cluster", "reindex"):
        raise _forbidden(
            f"{words[0].upper()} is not available", hint="Other logins could read how many rows your tables have."
        )
    if start in (("drop", "owned"), ("reassign", "owned")):
        raise _forbidden(f"{words[0].upper()} OWNED is not available")
    if start == ("create", "rule") or words[:4] == ["create", "or", "replace", "rule"]:
        raise _forbidden("rules cannot be created")


def _check_settings_view(tokens: Sequence[Token]) -> None:
    """An UPDATE of pg_settings is a SET in disguise."""
    texts = {token.text for token in tokens if token.sort in (Sort.WORD, Sort.NAME)}
    if {"update", "pg_settings"} <= texts:
        raise PolicyForbids("pg_settings cannot be updated", hint="Use SET.")


def _check_calls(tokens: Sequence[Token]) -> None:
    """Functions that do what a refused statement does."""
    for position, token in enumerate(tokens):
        if token.sort is Sort.ESCAPED_NAME and _may_be_call(tokens, position):
            raise PolicyForbids(
                "functions cannot be called by names with Unicode escapes",
                hint="Write the name's characters as they are.",
                position=token.start - tokens[0].start + 1,
            )
        if token.sort not in (Sort.WORD, Sort.NAME) or not _is_symbol(tokens, position + 1, "("):
            continue
        if token.text == "pg_notify":
            raise PolicyForbids("NOTIFY is not available", position=token.start - tokens[0].start + 1)
        if token.text == "set_config":
            _check_set_config(tokens[position + 2 : position + 6])


def _may_be_call(tokens: Sequence[Token], position: int) -> bool:
    """An escaped name before `(`, or before UESCAPE, which may stand between the two."""
    following = tokens[position + 1].text if len(tokens) > position + 1 else ""
    return following in ("(", "uescape")


def _check_set_config(arguments: Sequence[Token]) -> None:
    """set_config('name', value, is_local): the name must be readable, and the value where it matters."""
    named = arguments[0] if arguments else Token(Sort.SYMBOL, "", 0, 0)
    if named.sort is not Sort.STRING or not named.is_plain or not _is_symbol(arguments, 1, ","):
        raise PolicyForbids("the first argument of set_config must be a plain string literal")
    value = arguments[2] if len(arguments) > 2 else Token(Sort.SYMBOL, "", 0, 0)
    is_literal = value.sort is Sort.STRING and value.is_plain and _is_symbol(arguments, 3, ",")
    _check_setting(named.text, value.text if is_literal else "")


def _check_set(tokens: Sequence[Token]) -> None:
    """What follows SET."""
    if tokens[:1] and tokens[0].text in ("session", "local") and not _is_symbol(tokens, 1, "."):
        tokens = tokens[1:]
    if not tokens:
        return
    first = tokens[0]
    is_word = first.sort is Sort.WORD
    is_assigned = _is_symbol(tokens, 1, "=") or (len(tokens) > 1 and tokens[1].text == "to")
    if is_word and (first.text in _SET_FORMS and not is_assigned):
        return
    if is_word and first.text in _SET_FORMS_UNLESS_ASSIGNED and not is_assigned:
        return
    if is_word and first.text == "names":
        _check_setting("client_encoding", tokens[1].text if len(tokens) > 1 else "default")
        return
    name, rest = first.text, tokens[1:]
    if _is_symbol(rest, 0, ".") and len(rest) > 1:
        return
    _check_setting(name, _value(rest[1:]))


def _value(tokens: Sequence[Token]) -> str:
    """The value of an assignment, as far as it is one plain token."""
    return tokens[0].text if len(tokens) == 1 and tokens[0].is_plain else ""


def _check_setting(name: str, value: str) -> None:
    if not may_set(name):
        raise PolicyForbids(
            f'the setting "{name}" cannot be changed here', hint="It would take more than one session's share."
        )
    if not may_set_to(name, value):
        raise PolicyForbids(f'the setting "{name}" cannot be given this value')


def _is_symbol(tokens: Sequence[Token], position: int, text: str) -> bool:
    return len(tokens) > position and tokens[position].sort is Sort.SYMBOL and tokens[position].text == text


def _forbidden(message: str, hint: str = "") -> PolicyForbids:
    return PolicyForbids(message, hint=hint, position=1)
