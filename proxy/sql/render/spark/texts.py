"""How does Spark spell functions of texts so that they give what the other engines give?

Its patterns are Java's, which look back: a text could hold a statement up for as long as it likes. So the accepted ones
have at most one place where it is open how far a repetition goes, and are looked for in the first characters alone.
"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.conditions.patterns import atoms, check_extent
from proxy.sql.functions import letters
from proxy.sql.functions.texts import LONGEST_JOINED
from proxy.sql.render.spark.spelling import SparkArguments, SparkSpelling, text_literal, text_of

LONGEST_SEARCHED = 1_000  # characters of a text in which a pattern is looked for
_SPECIAL = frozenset(".^$*+?()[]{}|\\")


# --- patterns ----------------------------------------------------------------------------------------------------


def _likeness(pattern: str) -> str:
    """LIKE's pattern with a backslash only before what it takes the meaning of: others are an error here."""
    found, rest = "", iter(pattern)
    for character in rest:
        meant = next(rest) if character == "\\" else ""
        found += (character if meant in ("", "%", "_", "\\") else "") + meant
    return found


def _as_like(args: SparkArguments) -> SparkArguments:
    return args[0], text_literal(_likeness(text_of(args[1])))


def _as_like_in_lower_case(args: SparkArguments) -> SparkArguments:
    return args[0], text_literal(_likeness(letters.lower(text_of(args[1]))))


def _java(pattern: str) -> str:
    """Of the shared core, in the words that Java and Rust read alike. Raises ValueError where it could take long."""
    written = "".join(map(_in_java, atoms(pattern)))
    check_extent(pattern)
    return f"(?s){written}"


def _in_java(atom: str) -> str:
    """`$` is the end of the text, not of its last line; a digit is an ASCII one; only what is special is escaped."""
    if atom in ("$", "\\d"):
        return {"$": "\\z", "\\d": "[0-9]"}[atom]
    if atom.startswith("\\"):
        return atom if atom[1] in _SPECIAL else atom[1]
    if atom.startswith("[") and any(sign * 2 in atom for sign in "&-~"):
        raise ValueError("a pattern with a doubled sign in brackets")
    return atom


def _as_pattern(args: SparkArguments) -> SparkArguments:
    return args[0], text_literal(_java(text_of(args[1]))), *args[2:]


def _as_plain_replacement(args: SparkArguments) -> SparkArguments:
    if set(text_of(args[2])) & {"\\", "$"}:
        raise ValueError("a replacement with parts of what is replaced")
    return _as_pattern(args)


# --- the case of letters -----------------------------------------------------------------------------------------


def lower(text: str) -> str:
    """Letter by letter: what would change by the letters around it, or into two letters, is replaced before."""
    return f"lower(replace(replace({text}, {text_literal('Σ')}, {text_literal('σ')}), {text_literal('İ')}, 'i'))"


_LOWER = lower("{0}")


# --- places ------------------------------------------------------------------------------------------------------

_COUNT = "try_cast({1} AS INT)"
_LENGTH = "char_length({0})"
_END = f"CASE WHEN {{1}} >= 0 THEN {_COUNT} ELSE greatest({_LENGTH} + {_COUNT}, 0) END"
_START = (
    f"CASE WHEN {{1}} >= 0 THEN greatest({_LENGTH} - {_COUNT}, 0) + 1 "
    f"WHEN {{1}} >= -{_LENGTH} THEN 1 - {_COUNT} ELSE {_LENGTH} + 1 END"
)
_TO_THE_END = 2**31 - 1


def _part(first: str, count: str | int, known: str = "{1} IS NOT NULL") -> SparkSpelling:
    """Servers differ in what a part is whose place or length is NULL."""
    return SparkSpelling(f"CASE WHEN {known} THEN substring({{0}}, {first}, {count}) END")


_JOINED = f"substring({{%d}}, 1, {LONGEST_JOINED})"


SPELLINGS = MappingProxyType({
    "like": SparkSpelling("{0} LIKE {1}", prepared=_as_like),
    "ilike": SparkSpelling(f"{_LOWER} LIKE {{1}}", prepared=_as_like_in_lower_case),
    "lower": SparkSpelling(_LOWER),
    "length": SparkSpelling("CAST(char_length({0}) AS BIGINT)"),
    "octet_length": SparkSpelling("CAST(octet_length({0}) AS BIGINT)"),
    "ascii": SparkSpelling("CAST(ascii({0}) AS BIGINT)"),
    "reverse": SparkSpelling("reverse({0})"),
    "substring": _part(_COUNT, "greatest(try_cast({2} AS INT), 0)", "{1} IS NOT NULL AND {2} IS NOT NULL"),
    "substring from": _part(_COUNT, _TO_THE_END),
    "left": _part("1", _END),
    "right": _part(_START, _TO_THE_END),
    "trim": SparkSpelling("trim(BOTH {1} FROM {0})"),
    "ltrim": SparkSpelling("trim(LEADING {1} FROM {0})"),
    "rtrim": SparkSpelling("trim(TRAILING {1} FROM {0})"),
    "position": SparkSpelling("CAST(instr({0}, {1}) AS BIGINT)"),
    "starts with": SparkSpelling("startswith({0}, {1})"),
    "replace": SparkSpelling(f"replace({_JOINED % 0}, {{1}}, {{2}})"),
    "lpad": SparkSpelling("lpad({0}, CAST({1} AS INT), {2})"),
    "rpad": SparkSpelling("rpad({0}, CAST({1} AS INT), {2})"),
    "||": SparkSpelling(f"{_JOINED % 0} || {_JOINED % 1}"),
    "matches": SparkSpelling(f"substring({{0}}, 1, {LONGEST_SEARCHED}) RLIKE {{1}}", prepared=_as_pattern),
    "extracted": SparkSpelling(f"regexp_extract(substring({{0}}, 1, {LONGEST_SEARCHED}), {{1}}, CAST({{2}} AS INT))",
                          prepared=_as_pattern),
    "replaced matches": SparkSpelling(f"regexp_replace(substring({{0}}, 1, {LONGEST_SEARCHED}), {{1}}, {{2}})",
                                 prepared=_as_plain_replacement),
    "field": SparkSpelling("split_part({0}, {2}, CAST({3} AS INT))"),
})  # fmt: skip
