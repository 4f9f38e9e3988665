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


def rows() -> tuple[Function, ...]:
    def row(
        name: str, domain: DomainRule = domains.nothing_known, *, result: SqlType = SqlType.TEXT,
        of: TypeRule | None = None, count: int = 1, image: ImageRule = images.nothing_known,
    ) -> Function:  # fmt: skip
        return Function(name=name, types=of or types.fixed(result, *(_TEXT,) * count), domain=domain,
                        image=image)  # fmt: skip

    return (
        row("like", domains.booleans, result=SqlType.BOOL, count=2, image=images.like),
        row("ilike", domains.booleans, result=SqlType.BOOL, count=2,
            image=images.like_in_any_case),
        row("lower", domains.each(letters.lower), image=images.text(letters.lower)),
        row("upper", domains.each(letters.upper), image=images.text(letters.upper)),
        row("length", domains.lengths, result=SqlType.INT4, image=images.text(len)),
        row("substring", of=types.text_and_integers(2),
            image=images.text(lambda text, first, count: text[first - 1 : first - 1 + count])),
        row("substring from", of=types.text_and_integers(1),
            image=images.text(lambda text, first: text[first - 1 :])),
        row("trim", count=2, image=images.text(str.strip)),
        row("ltrim", count=2, image=images.text(str.lstrip)),
        row("rtrim", count=2, image=images.text(str.rstrip)),
        row("right", of=types.text_and_integers(1),
            image=images.text(letters.right)),
        row("left", of=types.text_and_integers(1), image=images.text(letters.left)),
        row("initcap", domains.each(letters.initcap), image=images.text(letters.initcap)),
        row("translate", count=3, image=images.text(letters.translate)),
        row("reverse", domains.each(letters.reversed_),
            image=images.text(letters.reversed_)),
        row("ascii", domains.whole(domains.within(0, _LAST_CHARACTER)), result=SqlType.INT4,
            image=images.text(lambda text: ord(text[0]) if text else 0)),
        row("octet_length", result=SqlType.INT4, image=images.text(lambda text: len(text.encode()))),
        row("extracted", image=images.text(letters.extracted),
            of=types.fixed(SqlType.TEXT, _TEXT, _TEXT, _NUMBER)),
        row("field", of=types.fixed(SqlType.TEXT, _TEXT, _TEXT, _TEXT, _NUMBER),
            image=images.text(lambda text, pattern, _delimiter, _number: letters.extracted(text, pattern, 1))),
        *(
            row(name, count=3) for name in ("replaced match", "replaced matches")
        ),
        row("position", result=SqlType.INT4, count=2,
            image=images.text(lambda text, part: text.find(part) + 1)),
        row("starts with", domains.booleans, result=SqlType.BOOL, count=2),
        row("matches", domains.booleans, result=SqlType.BOOL, count=2),
        row("matches, any case", domains.booleans, result=SqlType.BOOL, count=2),
        row("replace", count=3,
            image=images.text(lambda text, old, new: text[:LONGEST_JOINED].replace(old, new) if old else text)),
        row("lpad", of=types.fixed(SqlType.TEXT, _TEXT, _NUMBER, _TEXT),
            image=images.text(lambda text, count, fill: (fill * count)[: max(count - len(text), 0)] + text[:count])),
        row("rpad", of=types.fixed(SqlType.TEXT, _TEXT, _NUMBER, _TEXT),
            image=images.text(lambda text, count, fill: text[:count] + (fill * count)[: max(count - len(text), 0)])),
        row("||", count=2,
            image=images.text(lambda left, right: left[:LONGEST_JOINED] + right[:LONGEST_JOINED])),
    )  # fmt: skip
