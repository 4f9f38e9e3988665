"""How does PostgreSQL spell functions of texts so that they give what the other engine gives?

Its own letters depend on the server's collations, so everything runs under the collation "C", where the case of ASCII
alone changes; the other letters that have two cases are listed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from types import MappingProxyType

from proxy.sql.conditions.patterns import atoms
from proxy.sql.functions import letters
from proxy.sql.functions.texts import LONGEST_JOINED
from proxy.sql.render.dialect import text_literal
from proxy.sql.render.postgres.spelling import SpelledArguments, Spelling, number_of, text_of

_LONGEST_SEARCHED = 10_000_000  # characters of a text in which a pattern is looked for: more could take all memory
_LONGEST_CHANGED = 1_000  # of a text whose letters beyond ASCII change case: each is looked up in a long list
_ASCII_END, _CASES_END, _WORDS_END = 0x80, 0x1F000, 0x32400  # no letter beyond has two cases, none is in a word
_ALIKE = MappingProxyType({"k": "\u212a", "s": "\u017f"})  # letters beyond ASCII that are an ASCII letter in capitals


# --- the case of letters -----------------------------------------------------------------------------------------


@cache
def _pairs(name: str) -> tuple[str, str]:
    """Letters beyond ASCII whose case a function changes, and what they become."""
    change = {"lower": letters.lower, "upper": letters.upper}[name]
    changed = [(c, change(c)) for c in map(chr, range(_ASCII_END, _CASES_END)) if not 0xD800 <= ord(c) < 0xE000]
    old, new = zip(*(pair for pair in changed if pair[0] != pair[1]), strict=True)
    return "".join(old), "".join(new)


def in_case(name: str, text: str) -> str:
    """A text in lower or upper case; `text` is written more than once."""
    old, new = map(text_literal, _pairs(name))
    plain = f'{name}({text} COLLATE "C")'
    is_plain = f"octet_length({text}) = length({text}) OR length({text}) > {_LONGEST_CHANGED}"
    return f"CASE WHEN {is_plain} THEN {plain} ELSE translate({plain}, {old}, {new}) END"


@cache
def capitals(text: str) -> str:
    """Every word with a capital first. What stands between words is a part like them."""
    runs, last = list[list[int]](), -2
    for code in range(_ASCII_END, _WORDS_END):
        if unicodedata.category(chr(code)) in letters.IN_WORDS:
            if code != last + 1:
                runs.append([code, code])
            runs[-1][1] = last = code
    word = "A-Za-z0-9" + "".join(f"{chr(a)}-{chr(b)}" if a < b else chr(a) for a, b in runs)
    pattern = text_literal(f"[{word}]+|[^{word}]+")
    words = f"regexp_matches({text} COLLATE \"C\", {pattern}, 'g') WITH ORDINALITY AS words(part, place)"
    capital, rest = in_case("upper", "left(part[1], 1)"), in_case("lower", "substr(part[1], 2)")
    all_words = f"(SELECT string_agg(({capital}) || ({rest}), '' ORDER BY place) FROM {words})"
    is_plain = f"octet_length({text}) = length({text}) OR length({text}) > {_LONGEST_CHANGED}"
    return f'CASE WHEN {is_plain} THEN initcap({text} COLLATE "C") ELSE {all_words} END'


def _pattern_in_lower_case(args: SpelledArguments) -> SpelledArguments:
    return args[0], text_literal(letters.lower(text_of(args[1])))


# --- patterns ----------------------------------------------------------------------------------------------------


def _in_any_case(args: SpelledArguments) -> SpelledArguments:
    """A pattern to be matched in any case, with the letters beyond ASCII that are a case of an ASCII letter."""
    return args[0], text_literal("".join(map(_with_others, atoms(text_of(args[1])))))


def _with_others(atom: str) -> str:
    if not atom.isascii():
        raise ValueError("a pattern in any case with letters beyond ASCII")
    is_class = atom.startswith("[")
    if not is_class and not atom.isalpha():
        return atom
    start = "[^" if atom.startswith("[^") else "["
    others = "".join(
        other for letter, other in _ALIKE.items()
        if bool(re.fullmatch(atom, letter, re.IGNORECASE)) is (start == "[")
    )  # fmt: skip
    return start + others + atom.removeprefix(start) if is_class else f"[{atom}{others}]"


def _whole_as_group(args: SpelledArguments) -> SpelledArguments:
    """Group 0 is the whole match."""
    text, pattern, group = args
    return text, text_literal(f"({text_of(pattern)})") if number_of(group) == "0" else pattern, group


def _with_ampersands(args: SpelledArguments) -> SpelledArguments:
    """The whole match in a replacement."""
    return *args[:2], args[2].replace("\\0", "\\&")


_SEARCHED = f'left({{0}}, {_LONGEST_SEARCHED}) COLLATE "C"'
_REPLACED = f'regexp_replace(left({{0}}, {LONGEST_JOINED}) COLLATE "C", {{1}}, {{2}}'

SPELLINGS = MappingProxyType({
    "like": Spelling("{0} LIKE {1} ESCAPE '\\'"),
    "ilike": Spelling("{lower} LIKE {1} ESCAPE '\\'", prepared=_pattern_in_lower_case),
    "lower": Spelling("{lower}"),
    "upper": Spelling("{upper}"),
    "initcap": Spelling("{initcap}"),
    "||": Spelling(f"left({{0}}, {LONGEST_JOINED}) || left({{1}}, {LONGEST_JOINED})"),
    "replace": Spelling(f"replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}})"),
    "length": Spelling("length({0})::BIGINT"),
    "octet_length": Spelling("octet_length({0})::BIGINT"),
    "reverse": Spelling("reverse({0})"),
    "ascii": Spelling("ascii({0})::BIGINT"),
    "trim": Spelling("btrim({0}, {1})"),
    "ltrim": Spelling("ltrim({0}, {1})"),
    "rtrim": Spelling("rtrim({0}, {1})"),
    "position": Spelling("strpos({0}, {1})::BIGINT"),
    "starts with": Spelling("starts_with({0}, {1})"),
    "substring": Spelling("substring({0}, ({1})::INTEGER, ({2})::INTEGER)"),
    "substring from": Spelling("substring({0}, ({1})::INTEGER)"),
    "left": Spelling("left({0}, ({1})::INTEGER)"),
    "right": Spelling("right({0}, ({1})::INTEGER)"),
    "lpad": Spelling("lpad({0}, ({1})::INTEGER, {2})"),
    "rpad": Spelling("rpad({0}, ({1})::INTEGER, {2})"),
    "translate": Spelling("translate({0}, {1}, {2})"),
    "matches": Spelling(f"{_SEARCHED} ~ {{1}}"),
    "matches, any case": Spelling(f"{_SEARCHED} ~* {{1}}", prepared=_in_any_case),
    "extracted": Spelling(f"CASE WHEN {{0}} IS NOT NULL THEN coalesce((regexp_match({_SEARCHED}, {{1}}))[1], '') END",
                          prepared=_whole_as_group),
    "field": Spelling("split_part({0}, {2}, ({3})::INTEGER)"),
    "replaced match": Spelling(f"{_REPLACED})", prepared=_with_ampersands),
    "replaced matches": Spelling(f"{_REPLACED}, 'g')", prepared=_with_ampersands),
})  # fmt: skip


def with_letters(template: str) -> str:
    """A template with the lists of letters, which are made when they are asked for."""
    for mark in ("lower", "upper"):
        if f"{{{mark}}}" in template:
            template = template.replace(f"{{{mark}}}", f"({in_case(mark, '{0}')})")
    return template.replace("{initcap}", capitals("{0}")) if "{initcap}" in template else template
