"""What does to_char's format say, in the engine's words?

PostgreSQL's patterns become pieces: runs of strftime directives, and what has none. Only patterns that are understood
pass. A letter that is none is refused, as are suffixes: PostgreSQL would find them where nobody wanted them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

_UNITS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_OF_MONTHS = frozenset(("month", "quarter", "year"))
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class FormatPiece:
    """A part of the text. directives: strftime's, among other characters.

    unit: the finest part of a time that is read, if any.
    case: "upper" or "lower" of all of it. is_padded: blanks follow to the longest name. number: one without directive.
    """

    directives: str
    unit: str
    case: str = ""
    is_padded: bool = False
    number: str = ""

    @property
    def is_plain(self) -> bool:
        return not (self.case or self.is_padded or self.number)


_DIRECTIVES = {
    "IYYY": ("%G", "week"), "YYYY": ("%Y", "year"), "YY": ("%y", "year"), "MM": ("%m", "month"), "IW": ("%V", "week"),
    "DDD": ("%j", "day"), "DD": ("%d", "day"), "ID": ("%u", "day"), "HH24": ("%H", "hour"), "HH12": ("%I", "hour"),
    "HH": ("%I", "hour"), "MI": ("%M", "minute"), "SS": ("%S", "second"), "MS": ("%g", "milliseconds"),
    "US": ("%f", "microseconds"),
}  # fmt: skip
_WITHOUT_ZEROS = {"MM": "%-m", "DD": "%-d", "HH24": "%-H", "HH12": "%-I", "HH": "%-I", "MI": "%-M", "SS": "%-S"}
_NUMBERS = {"D": "day", "Q": "quarter", "W": "day", "WW": "day"}
_NAMES = {"Month": ("%B", "month"), "Mon": ("%b", "month"), "Day": ("%A", "day"), "Dy": ("%a", "day"),
          "Am": ("%p", "hour"), "Pm": ("%p", "hour")}  # fmt: skip
_PADDED = ("Month", "Day")
# Everything that PostgreSQL reads as a pattern, and of which it takes the longest
_ALL = (*_DIRECTIVES, *_NUMBERS, "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DY", "FF1", "FF2", "FF3",
        "FF4", "FF5", "FF6", "FX", "IDDD", "IYY", "IY", "I", "J", "MONTH", "MON", "OF", "P.M.", "PM", "RM", "SSSSS",
        "SSSS", "TZH", "TZM", "TZ", "Y,YYY", "YYY", "Y")  # fmt: skip
_SPELLED = sorted({*_ALL, *(a.lower() for a in _ALL), "Day", "Dy", "Month", "Mon"}, key=len, reverse=True)
_TOKEN = re.compile(
    rf"(?P<prefix>FM|fm|TM|tm)?(?P<name>{'|'.join(map(re.escape, _SPELLED))})(?!TH|th|SP)"
    r'|"(?P<quoted>[ !#-\[\]-~]*)"|(?P<other>[ -~](?<![A-Za-z"\\]))'
)


def pieces_of(text: str) -> tuple[FormatPiece, ...]:
    """The parts of a format, next to each other. Raises ValueError."""
    if not 0 < len(text) <= _LONGEST:
        raise ValueError(f"a format has 1 to {_LONGEST} characters")
    return tuple(_joined(_pieces(text)))


def _pieces(text: str) -> Iterator[FormatPiece]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        piece = _piece(found) if found else None
        if found is None or piece is None:
            raise ValueError(f"{text[position : position + 8]!r} is not understood")
        yield piece
        position = found.end()


def _joined(pieces: Iterator[FormatPiece]) -> Iterator[FormatPiece]:
    """Directives that stand together are one piece."""
    for is_plain, group in groupby(pieces, key=lambda p: p.is_plain):
        if is_plain:
            run = tuple(group)
            yield FormatPiece("".join(p.directives for p in run), finest([p.unit for p in run]))
        else:
            yield from group


def _piece(found: re.Match[str]) -> FormatPiece | None:
    prefix, name = (found["prefix"] or "").upper(), found["name"]
    if name is None:
        return FormatPiece((found["quoted"] or found["other"] or "").replace("%", "%%"), "")
    if name.capitalize() in _NAMES:
        return _name(name, is_bare=bool(prefix))
    name = name.upper()
    if prefix == "TM":
        return None
    if name in _NUMBERS:
        return None if prefix and name == "WW" else FormatPiece("", _NUMBERS[name], number=name)
    directive, unit = _DIRECTIVES.get(name, ("", ""))
    if prefix:
        directive = _WITHOUT_ZEROS.get(name, "")
    return FormatPiece(directive, unit) if directive else None


def _name(name: str, *, is_bare: bool) -> FormatPiece:
    """A month, a day, or the half of a day, in capitals, in small letters or with a capital first."""
    directive, unit = _NAMES[name.capitalize()]
    case = "upper" if name.isupper() and directive != "%p" else "lower" if name.islower() else ""
    return FormatPiece(directive, unit, case, is_padded=name.capitalize() in _PADDED and not is_bare)


def finest(units: Sequence[str]) -> str:
    """The unit whose start decides everything that the units do. Weeks and months do not decide each other."""
    read = [u for u in units if u]
    found = min(read, key=_UNITS.index, default="")
    return "day" if found == "week" and _OF_MONTHS & frozenset(read) else found
