"""Which functions of texts may appear over private rows? Rows of `functions`."""

from __future__ import annotations

from proxy.sql.functions import constant_evaluation as images
from proxy.sql.functions import letters
from proxy.sql.functions import signatures as types
from proxy.sql.functions.constant_evaluation import ImageRule
from proxy.sql.functions.domains import rules as domains
from proxy.sql.functions.domains.rules import DomainRule
from proxy.sql.functions.function import Function
from proxy.sql.functions.signatures import TypeRule
from proxy.sqltypes import Family, SqlType

_NUMBER, _TEXT = Family.NUMBER, Family.TEXT

# Characters of a text that || reads: texts that double with every || would take the memory of the whole process,
# which no limit of the engine prevents, and whether they do would depend on one person's text.
LONGEST_JOINED = 10_000
_LAST_CHARACTER = 0x10FFFF

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


def rows() -> tuple[Function, ...]:
    def row(
        name: str, duckdb: str, domain: DomainRule = domains.nothing_known, *, result: SqlType = SqlType.TEXT,
        of: TypeRule | None = None, count: int = 1, image: ImageRule = images.nothing_known,
    ) -> Function:  # fmt: skip
        return Function(name=name, types=of or types.fixed(result, *(_TEXT,) * count), duckdb=duckdb, domain=domain,
                        image=image)  # fmt: skip

    return (
        row("like", "{0} LIKE {1} ESCAPE '\\'", domains.booleans, result=SqlType.BOOL, count=2, image=images.like),
        row("ilike", "{0} ILIKE {1} ESCAPE '\\'", domains.booleans, result=SqlType.BOOL, count=2,
            image=images.like_in_any_case),
        row("lower", "lower({0})", domains.each(letters.lower), image=images.text(letters.lower)),
        row("upper", _UPPER, domains.each(letters.upper), image=images.text(letters.upper)),
        row("length", "length({0})", domains.lengths, result=SqlType.INT4, image=images.text(len)),
        row("substring", "substring({0}, {1}, {2})", of=types.text_and_integers(2),
            image=images.text(lambda text, first, count: text[first - 1 : first - 1 + count])),
        row("substring from", "substring({0}, {1})", of=types.text_and_integers(1),
            image=images.text(lambda text, first: text[first - 1 :])),
        row("trim", "trim({0}, {1})", count=2, image=images.text(str.strip)),
        row("ltrim", "ltrim({0}, {1})", count=2, image=images.text(str.lstrip)),
        row("rtrim", "rtrim({0}, {1})", count=2, image=images.text(str.rstrip)),
        row("right", "right({0}, {1})", of=types.text_and_integers(1),
            image=images.text(letters.right)),
        row("left", "left({0}, {1})", of=types.text_and_integers(1), image=images.text(letters.left)),
        row("initcap", _CAPITALS, domains.each(letters.initcap), image=images.text(letters.initcap)),
        row("translate", "translate({0}, {1}, {2})", count=3, image=images.text(letters.translate)),
        row("reverse", "array_to_string(list_reverse(string_split({0}, '')), '')", domains.each(letters.reversed_),
            image=images.text(letters.reversed_)),
        row("ascii", "ascii({0})::BIGINT", domains.whole(domains.within(0, _LAST_CHARACTER)), result=SqlType.INT4,
            image=images.text(lambda text: ord(text[0]) if text else 0)),
        row("octet_length", "strlen({0})", result=SqlType.INT4, image=images.text(lambda text: len(text.encode()))),
        row("extracted", "regexp_extract({0}, {1}, {2}::INTEGER, 's')", image=images.text(letters.extracted),
            of=types.fixed(SqlType.TEXT, _TEXT, _TEXT, _NUMBER)),
        row("field", "regexp_extract({0}, {1}, 1, 's')", of=types.fixed(SqlType.TEXT, _TEXT, _TEXT, _TEXT, _NUMBER),
            image=images.text(lambda text, pattern, _delimiter, _number: letters.extracted(text, pattern, 1))),
        *(
            row(name, f"regexp_replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}}, '{options}')", count=3)
            for name, options in (("replaced match", "s"), ("replaced matches", "gs"))
        ),
        row("position", "strpos({0}, {1})", result=SqlType.INT4, count=2,
            image=images.text(lambda text, part: text.find(part) + 1)),
        row("starts with", "starts_with({0}, {1})", domains.booleans, result=SqlType.BOOL, count=2),
        row("matches", "regexp_matches({0}, {1}, 's')", domains.booleans, result=SqlType.BOOL, count=2),
        row("matches, any case", "regexp_matches({0}, {1}, 'si')", domains.booleans, result=SqlType.BOOL, count=2),
        row("replace", f"replace(left({{0}}, {LONGEST_JOINED}), {{1}}, {{2}})", count=3,
            image=images.text(lambda text, old, new: text[:LONGEST_JOINED].replace(old, new) if old else text)),
        row("lpad", "lpad({0}, {1}::INTEGER, {2})", of=types.fixed(SqlType.TEXT, _TEXT, _NUMBER, _TEXT),
            image=images.text(lambda text, count, fill: (fill * count)[: max(count - len(text), 0)] + text[:count])),
        row("rpad", "rpad({0}, {1}::INTEGER, {2})", of=types.fixed(SqlType.TEXT, _TEXT, _NUMBER, _TEXT),
            image=images.text(lambda text, count, fill: text[:count] + (fill * count)[: max(count - len(text), 0)])),
        row("||", f"left({{0}}, {LONGEST_JOINED}) || left({{1}}, {LONGEST_JOINED})", count=2,
            image=images.text(lambda left, right: left[:LONGEST_JOINED] + right[:LONGEST_JOINED])),
    )  # fmt: skip
