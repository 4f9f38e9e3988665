"""How does DuckDB spell functions of texts?"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.functions import letters
from proxy.sql.functions.texts import LONGEST_JOINED
from proxy.sql.render.duckdb.spelling import Spelling

# The engine has a capital for this letter, PostgreSQL has not.
_SHARP = "ß"
_UPPER = (
    f"CASE WHEN contains({{0}}, '{_SHARP}') THEN array_to_string(list_transform(regexp_extract_all({{0}}, "
    f"'{_SHARP}|[^{_SHARP}]+'), lambda part: CASE WHEN part = '{_SHARP}' THEN part ELSE upper(part) END), '') "
    "ELSE upper({0}) END"
)
# What stands between words is a part like them; its letters have no case.
_CAPITALS = (
    f"array_to_string(list_transform(regexp_extract_all({{0}}, '[{letters.WORD}]+|[^{letters.WORD}]+'), lambda part: "
    f"CASE WHEN left(part, 1) = '{_SHARP}' THEN '{_SHARP}' ELSE upper(left(part, 1)) END "
    "|| lower(substring(part, 2))), '')"
)

SPELLINGS = MappingProxyType({
    "like": Spelling("{0} LIKE {1} ESCAPE '\\'"),
    "ilike": Spelling("{0} ILIKE {1} ESCAPE '\\'"),
    "lower": Spelling("lower({0})"),
    "upper": Spelling(_UPPER),
    "initcap": Spelling(_CAPITALS),
    "length": Spelling("length({0})"),
    "octet_length": Spelling("strlen({0})"),
    "ascii": Spelling("ascii({0})::BIGINT"),
    "reverse": Spelling("array_to_string(list_reverse(string_split({0}, '')), '')"),
    "substring": Spelling("substring({0}, {1}, {2})"),
    "substring from": Spelling("substring({0}, {1})"),
    **{name: Spelling(f"{name}({{0}}, {{1}})") for name in ("trim", "ltrim", "rtrim", "left", "right")},
    "translate": Spelling("translate({0}, {1}, {2})"),
    "extracted": Spelling("regexp_extract({0}, {1}, {2}::INTEGER, 's')"),
    "field": Spelling("regexp_extract({0}, {1}, 1, 's')"),
    **{name: Spelling(f"regexp_replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}}, '{options}')")
       for name, options in (("replaced match", "s"), ("replaced matches", "gs"))},
    "position": Spelling("strpos({0}, {1})"),
    "starts with": Spelling("starts_with({0}, {1})"),
    "matches": Spelling("regexp_matches({0}, {1}, 's')"),
    "matches, any case": Spelling("regexp_matches({0}, {1}, 'si')"),
    "replace": Spelling(f"replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}})"),
    **{name: Spelling(f"{name}({{0}}, {{1}}::INTEGER, {{2}})") for name in ("lpad", "rpad")},
    "||": Spelling(f"left({{0}}, {LONGEST_JOINED}) || left({{1}}, {LONGEST_JOINED})"),
})  # fmt: skip
