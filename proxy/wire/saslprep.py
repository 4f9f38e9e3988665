"""How is a password prepared before it is hashed?

The SASLprep profile (RFC 4013) of stringprep (RFC 3454), as PostgreSQL applies it: a password that the profile
prohibits is used as it is.
"""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Callable

_PROHIBITED: tuple[Callable[[str], bool], ...] = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def prepare_password(password: str) -> bytes:
    """The bytes that both ends hash. Raises nothing."""
    mapped = "".join(_mapped(c) for c in password)
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    is_usable = bool(normal) and not any(test(c) for c in normal for test in _PROHIBITED) and _is_one_way(normal)
    return (normal if is_usable else password).encode("utf-8", "surrogatepass")


def _mapped(character: str) -> str:
    """RFC 4013, section 2.1: other spaces become a space, some characters vanish."""
    if stringprep.in_table_c12(character):
        return " "
    return "" if stringprep.in_table_b1(character) else character


def _is_one_way(text: str) -> bool:
    """RFC 3454, section 6: text with right-to-left characters has no others and begins and ends with one."""
    if not any(stringprep.in_table_d1(c) for c in text):
        return True
    has_left_to_right = any(stringprep.in_table_d2(c) for c in text)
    return not has_left_to_right and stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
