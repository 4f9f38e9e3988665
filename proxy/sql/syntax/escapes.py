"""Which value does a constant stand for that is more than characters between quotes, or decimal digits?

E'...', U&'...' with UESCAPE, dollar quotes, and constants that go on in the next line, as PostgreSQL's scanner reads
them; and 0x28, 0o50, 0b101 and 1_000, which it reads since version 16: an older front refuses the statement in its own
words. Source: PostgreSQL documentation, "String Constants", "Numeric Constants"; scan.l and parser.c of its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from proxy.sql.syntax.long_lists import LongList, long_lists
from proxy.wire import lexer
from proxy.wire.lexer import Sort


@dataclass(frozen=True, slots=True)
class PlacedConstant:
    """A constant that stands at [start, end) of a text, and its value: of a number, decimal digits."""

    start: int
    end: int
    value: str
    is_number: bool = False


_MAY_ESCAPE = re.compile(r"""[^0-9A-Fa-f+'"\s]""")
_SHORTEST = len("E''")
#: Only a text with one of these holds such a constant.
_SUSPECT = re.compile(r"[eE]'|[uU]&'|\$|'\s*(?:--|[\n\r])|[0-9]_[0-9]|0[xXoObB]")
_WHOLE = re.compile(r"0(?:[xX](?:_?[0-9A-Fa-f])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)", re.ASCII)
_DECIMAL = re.compile(r"N(?:\.N?)?(?:[eE]N)?".replace("N", "[0-9](?:_?[0-9])*"), re.ASCII)


def constants(text: str) -> Iterator[PlacedConstant]:
    """Those that are not simply quoted, in order. Raises ValueError for one that PostgreSQL does not accept."""
    found = list(lexer.tokens(text)) if _SUSPECT.search(text) else []
    for position, token in enumerate(found):
        if token.sort is Sort.NUMBER:
            yield from _number(token)
        if token.sort is not Sort.STRING:
            continue
        if not _is_finished(text, token):
            raise ValueError(text)
        match text[token.start]:
            case "e" | "E":
                yield PlacedConstant(token.start, token.end, _unescaped(token.bodies))
            case "u" | "U":
                end, escape = _uescape(text, found[position + 1 : position + 3], token.end)
                yield PlacedConstant(token.start, end, _unicode("".join(token.bodies).replace("''", "'"), escape))
            case "$":
                yield PlacedConstant(token.start, token.end, token.text)
            case "'" if len(token.bodies) > 1:
                yield PlacedConstant(token.start, token.end, token.text)
            case _:
                pass


def _number(token: lexer.Token) -> Iterator[PlacedConstant]:
    """A number that is not written with decimal digits alone."""
    if _WHOLE.fullmatch(token.text):
        yield PlacedConstant(token.start, token.end, str(int(token.text, 0)), is_number=True)
    elif "_" in token.text and _DECIMAL.fullmatch(token.text):
        yield PlacedConstant(token.start, token.end, token.text.replace("_", ""), is_number=True)


def _is_finished(text: str, token: lexer.Token) -> bool:
    """Whether a constant ends before the text does."""
    if text[token.start] != "$":
        return token.end - token.start >= len("''") and text[token.end - 1] == "'"
    mark = text[token.start : text.index("$", token.start + 1) + 1]
    return token.end - token.start == 2 * len(mark) + len(token.text)


def masked(text: str) -> tuple[str, dict[int, PlacedConstant]]:
    """The text with simple constants of the same length in their places, and those that they stand for by place.

    A long list is one constant. Raises ValueError for a text that PostgreSQL does not accept.
    """
    lists = tuple(long_lists(text))
    text = _with_masks(text, lists)
    found = tuple(constants(text))
    if any(c.end - c.start < _SHORTEST for c in found):
        raise ValueError(text)
    text = _with_masks(text, found)
    at = {c.start + (not c.is_number): c for c in found}
    return text, {**at, **{c.start + 1: PlacedConstant(c.start, c.end, c.value) for c in lists}}


def _with_masks(text: str, found: Sequence[PlacedConstant | LongList]) -> str:
    """Blanks keep the constants that are put in apart from quotes beside them."""
    parts, at = [], 0
    for constant in found:
        length = constant.end - constant.start
        is_number = isinstance(constant, PlacedConstant) and constant.is_number
        parts += [text[at : constant.start], "1" * length if is_number else f" '{'_' * (length - 4)}'".ljust(length)]
        at = constant.end
    return "".join((*parts, text[at:]))


def _uescape(text: str, after: list[lexer.Token], end: int) -> tuple[int, str]:
    """Where a constant ends that UESCAPE may follow, and its escape character."""
    if len(after) < 2 or after[0].text != "uescape" or after[0].sort is not Sort.WORD:
        return end, "\\"
    if after[1].sort is not Sort.STRING or not _MAY_ESCAPE.fullmatch(after[1].text):
        raise ValueError(text)
    return after[1].end, after[1].text


_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|''|([^\\']+)", re.DOTALL
)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _unescaped(bodies: Iterable[str]) -> str:
    """Bodies with backslashes. Bytes are those of the front's encoding, UTF-8."""
    return _checked(b"".join(map(_bytes, bodies)).decode("utf-8"))


def _bytes(body: str) -> bytes:
    found = bytearray()
    units = ""
    for match in _ESCAPE.finditer(body):
        octal, hexadecimal, short, long, letter, plain = match.groups()
        if short or long:
            units += chr(int(short or long, 16))
            continue
        found += _encoded(units)
        units = ""
        if octal or hexadecimal:
            found.append(int(octal, 8) & 0xFF if octal else int(hexadecimal, 16))
        elif letter in ("u", "U"):
            raise ValueError(body)
        elif letter:
            found += _encoded(_LETTERS.get(letter, letter))
        else:
            found += _encoded(plain or "'")
    return bytes(found + _encoded(units))


def _encoded(units: str) -> bytes:
    """Code points, of which two may be halves of one, in UTF-8."""
    return units.encode("utf-16", "surrogatepass").decode("utf-16").encode("utf-8")


def _unicode(body: str, escape: str) -> str:
    """A body with code points in hexadecimal digits."""
    mark = re.escape(escape)
    pattern = re.compile(f"{mark}(?:({mark})|([0-9A-Fa-f]{{4}})|\\+([0-9A-Fa-f]{{6}})|(.|$))", re.DOTALL)

    def code_point(match: re.Match[str]) -> str:
        if match[4] is not None:
            raise ValueError(body)
        return match[1] or chr(int(match[2] or match[3], 16))

    return _checked(_encoded(pattern.sub(code_point, body)).decode("utf-8"))


def _checked(value: str) -> str:
    """PostgreSQL has no zero character."""
    if "\0" in value:
        raise ValueError(value)
    return value
