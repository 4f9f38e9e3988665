"""How does DuckDB spell functions of texts?"""

from __future__ import annotations

from types import MappingProxyType

from proxy.sql.functions import letters
from proxy.sql.functions.texts import LONGEST_JOINED
from proxy.sql.render.duckdb.spelling import Written

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
    "like": Written("{0} LIKE {1} ESCAPE '\\'"),
    "ilike": Written("{0} ILIKE {1} ESCAPE '\\'"),
    "lower": Written("lower({0})"),
    "upper": Written(_UPPER),
    "initcap": Written(_CAPITALS),
    "length": Written("length({0})"),
    "octet_length": Written("strlen({0})"),
    "ascii": Written("ascii({0})::BIGINT"),
    "reverse": Written("array_to_string(list_reverse(string_split({0}, '')), '')"),
    "substring": Written("substring({0}, {1}, {2})"),
    "substring from": Written("substring({0}, {1})"),
    **{name: Written(f"{name}({{0}}, {{1}})") for name in ("trim", "ltrim", "rtrim", "left", "right")},
    "translate": Written("translate({0}, {1}, {2})"),
    "extracted": Written("regexp_extract({0}, {1}, {2}::INTEGER, 's')"),
    "field": Written("regexp_extract({0}, {1}, 1, 's')"),
    **{name: Written(f"regexp_replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}}, '{options}')")
       for name, options in (("replaced match", "s"), ("replaced matches", "gs"))},
    "position": Written("strpos({0}, {1})"),
    "starts with": Written("starts_with({0}, {1})"),
    "matches": Written("regexp_matches({0}, {1}, 's')"),
    "matches, any case": Written("regexp_matches({0}, {1}, 'si')"),
    "replace": Written(f"replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}})"),
    **{name: Written(f"{name}({{0}}, {{1}}::INTEGER, {{2}})") for name in ("lpad", "rpad")},
    "||": Written(f"left({{0}}, {LONGEST_JOINED}) || left({{1}}, {LONGEST_JOINED})"),
})  # fmt: skip
