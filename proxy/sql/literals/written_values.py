"""Which texts does a cast read as a number or as a time?

Fewer than either engine would: what PostgreSQL reads as the same value wherever it runs. All else is NULL. The patterns
mean the same to both engines.
"""

from __future__ import annotations

BLANK = r"[\t\n\f\r ]*"
DIGITS = f"^{BLANK}[+-]?[0-9]+{BLANK}$"
_INFINITE = "[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
NUMERAL = f"(?:[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?|[nN][aA][nN]|{_INFINITE})"

_DIGIT = "[0-9]"  # once for each digit, as {3} is a place in a template
_YEAR = f"(?:[1-9]{_DIGIT}{_DIGIT}{_DIGIT}|0[1-9]{_DIGIT}{_DIGIT}|00[1-9]{_DIGIT}|000[1-9])"
_MONTH, _DAY = "(?:0?[1-9]|1[0-2])", "(?:0?[1-9]|[12][0-9]|3[01])"
_HOUR, _SIXTIETH, _FRACTION = "(?:[01]?[0-9]|2[0-3])", "[0-5][0-9]", "[0-9]{1,6}"
_ZONE = "(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?"  # of no effect on a timestamp without one


def moment(separator: str = "([-/])", again: str = "[-/]") -> str:
    """A date, and perhaps a time of day: year, separator, month, day, hour, minute, second and its fraction."""
    clock = f"[ T]({_HOUR}):({_SIXTIETH})(?::({_SIXTIETH})(?:[.]({_FRACTION}))?)?{_ZONE}"
    return f"^{BLANK}({_YEAR}){separator}({_MONTH}){again}({_DAY})(?:{clock})?{BLANK}$"
