"""Is a text one SELECT, as can be seen without the engine's parser?

DuckDB's parser lets no other thread of Python run while it reads: a second for a text of a megabyte, in which no
session is heard. What executes a text reads it too, and lets them. So a long text is looked at here first.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r"""'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+\"""")
#: What quotes, ends or comments in other ways, or may do something besides a SELECT behind WITH.
_ELSE = re.compile(
    r"""[;'"]|--|/\*|\$[^0-9]|\$[0-9]*\$|\b(?:insert|update|delete|merge|copy|create|into|pivot|unpivot)\b""",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)


def is_one_select(sql: str) -> bool:
    """Whether a text is one SELECT beyond doubt; of a text that may be none, or is elaborate, it is not said."""
    if "\\" in sql or not _BEGINS.match(sql):
        return False
    return not _ELSE.search(_QUOTED.sub(" ", sql))
