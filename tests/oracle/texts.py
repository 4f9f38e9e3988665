"""What is the value of a function of texts?"""

from __future__ import annotations

import re

from tests.oracle.values import Value


def text_function(name: str, values: list[Value]) -> Value:
    text = str(values[0])
    match name:
        case "lower" | "upper":
            return "".join(_one_letter(c, name) for c in text)
        case "initcap":
            return _capitals(text)
        case "reverse":
            return "".join(reversed(text))
        case "ascii":
            return ord(text[0]) if text else 0
        case "length" | "octet_length":
            return len(text if name == "length" else text.encode())
        case "||":
            return text + str(values[1])
        case "trim" | "ltrim" | "rtrim":
            return {"trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[name](text, str(values[1]))
        case "substring" | "substring from":
            first = int(values[1] or 0) - 1
            return text[first : first + int(values[2] or 0)] if len(values) > 2 else text[first:]
        case "matches" | "matches, any case":
            flags = re.DOTALL | (re.IGNORECASE if name != "matches" else 0)
            return re.search(str(values[1]).replace("$", r"\Z"), text, flags) is not None
        case "like" | "ilike":
            flags = re.DOTALL | (re.IGNORECASE if name == "ilike" else 0)
            return re.fullmatch(_pattern(str(values[1])), text, flags) is not None
        case _:
            return _searched(name, text, values)


def _searched(name: str, text: str, values: list[Value]) -> Value:
    match name:
        case "left" | "right":
            return _end(name, text, int(values[1] or 0))
        case "translate":
            places = {letter: number for number, letter in reversed(list(enumerate(str(values[1]))))}
            return "".join(str(values[2])[places[c] : places[c] + 1] if c in places else c for c in text)
        case "extracted" | "replaced match" | "replaced matches":
            return _taken(name, text, values)
        case "field":
            return _taken("extracted", text, [*values[:2], 1])
        case "position":
            return text.find(str(values[1])) + 1
        case "starts with":
            return text.startswith(str(values[1]))
        case "replace":
            return text.replace(str(values[1]), str(values[2])) if values[1] else text
        case "lpad" | "rpad":
            return _padded(name, text, int(values[1] or 0), str(values[2]))
        case _:
            raise AssertionError(name)


def _end(name: str, text: str, count: int) -> str:
    """So many letters, or all but so many, at one end."""
    size = count if count >= 0 else max(len(text) + count, 0)
    return text[:size] if name == "left" else text[len(text) - min(size, len(text)) :]


def _taken(name: str, text: str, values: list[Value]) -> Value:
    pattern = re.compile(re.sub(r"(?<![\\])\$(?=\)?$)", r"\\Z", str(values[1])), re.DOTALL | re.ASCII)
    found = pattern.search(text)
    if name == "extracted":
        return (found[int(values[2] or 0)] or "") if found else ""
    new = str(values[2]).replace("\\0", r"\g<0>")
    return pattern.sub(new, text, count=1 if name == "replaced match" else 0)


def _capitals(text: str) -> str:
    """Words of letters and digits begin with a capital."""
    words = re.split(r"((?:[^\W_])+)", text)
    return "".join(
        _one_letter(w[0], "upper") + "".join(_one_letter(c, "lower") for c in w[1:]) if w else "" for w in words
    )


def _padded(name: str, text: str, count: int, fill: str) -> str:
    if len(text) >= count:
        return text[:count]
    missing = (fill * count)[: count - len(text)]
    return missing + text if name == "lpad" else text + missing


def _one_letter(letter: str, case: str) -> str:
    changed, otherwise = (letter.lower(), {"İ": "i"}) if case == "lower" else (letter.upper(), {"ᾳ": "ᾼ"})
    return changed if len(changed) == 1 else otherwise.get(letter, letter)


def _pattern(like: str) -> str:
    found, letters = "", iter(like)
    for letter in letters:
        found += {"%": ".*", "_": "."}.get(letter) or re.escape(next(letters) if letter == "\\" else letter)
    return found
