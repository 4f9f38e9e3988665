"""Which fingerprint do two policies share exactly if their answers mean the same?

It covers what answers depend on: dataset, place of the data, promise, tables. Left out are comments and
spelling of the file, secrets, the data version (a reuse key names it beside the digest), and what only
says who may ask how much, or what stands for rows that are not shown: budgets, limits, logins, the usual price
of a query, which is in a release's own name.
So raising a budget keeps stored answers usable.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from proxy.policy.document import SourceDocument
from proxy.policy.model import Privacy, Table
from proxy.policy.response import NotRandomized

# everything up to the last @ may hold a password
_DSN_URL = re.compile(r"[A-Za-z]+://(?:.*@)?(?P<server>[^@/?#]*)(?P<path>/[^@?#]*)?", re.DOTALL)
_DSN_PART = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S*)")
# said to readers; by the data; by the price, or the SQL, in the name of a release; of what is no answer
_NOT_MEANT = frozenset(
    {"comment", "confirm", "limited_digits", "profile", "query_epsilon", "questions", "raw_select", "tell_cut"}
)
_DSN_PLACE = frozenset({"host", "hostaddr", "port", "dbname", "service"})


def policy_digest(dataset: str, source: SourceDocument, privacy: Privacy, tables: Iterable[Table]) -> str:
    """SHA-256, in hex, over canonical JSON. Paths count as written, wherever the policy file lies."""
    meaning = {
        "dataset": dataset,
        "source": _place(source),
        "privacy": _plain(privacy),
        "tables": sorted((_plain(t) for t in tables), key=lambda t: json.dumps(t, sort_keys=True)),
    }
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _place(source: SourceDocument) -> object:
    if source.url is not None:
        return {"spark": source.url.removeprefix("sc://").partition("/")[0], "files": source.files or {}}
    if source.dsn is not None:
        return {"postgres": _server(source.dsn)}
    return {"path": source.path or "", "files": source.files or {}}


def _server(dsn: str) -> object:
    """Host, port and database of a connection string, and nothing that could be a secret."""
    found = _DSN_URL.match(dsn)
    if found is not None:
        return [found["server"], found["path"] or ""]
    return {name: value.strip("'") for name, value in _DSN_PART.findall(dsn) if name in _DSN_PLACE}


def _plain(value: object) -> object:
    """Frozen values as JSON; every type keeps its name so that 1, 1.0 and '1' differ."""
    match value:
        case bool() | str():
            return value
        case int():
            return {"int": str(value)}
        case float():
            return {"float": value.hex()}
        case Decimal():
            return {"numeric": str(value)}
        case Fraction():
            return {"fraction": str(value)}
        case date():
            return {type(value).__name__: value.isoformat()}
        case Enum():
            return {type(value).__name__: value.name}
        case tuple():
            return [_plain(v) for v in value]
        case _:
            return _plain_fields(value)


def _plain_fields(value: object) -> object:
    if is_dataclass(value):
        named = ((f.name, getattr(value, f.name)) for f in fields(value) if f.name not in _NOT_MEANT)
        # a column that is not randomized is what it was before there were others
        parts = {name: _plain(part) for name, part in named if not isinstance(part, NotRandomized)}
        return {type(value).__name__: parts}
    raise AssertionError(f"no canonical form of {type(value).__name__}")
