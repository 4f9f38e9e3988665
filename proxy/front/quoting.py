"""How are names and texts of a policy written into SQL and configuration files?

Pure text. What PostgreSQL would silently change (too long a name) or cannot hold (NUL) is refused.
"""

from __future__ import annotations

from proxy.errors import PolicyError
from proxy.policy.columns import MAX_NAME_BYTES


def quote_name(name: str) -> str:
    """An SQL identifier, always in quotes. Raises PolicyError if PostgreSQL cannot hold it as it is."""
    if not name or "\0" in name:
        raise PolicyError(f"{name!r} cannot be a name in PostgreSQL")
    if len(name.encode("utf-8", errors="surrogatepass")) > MAX_NAME_BYTES:
        raise PolicyError(f'the name "{name}" is longer than {MAX_NAME_BYTES} bytes')
    return '"' + name.replace('"', '""') + '"'


def quote_names(names: tuple[str, ...]) -> str:
    return ", ".join(quote_name(n) for n in names)


def quote_text(text: str) -> str:
    """An SQL string constant; needs standard_conforming_strings, which the front sets. NULs are dropped."""
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def quote_config(value: str) -> str:
    """A value in postgresql.conf. Raises PolicyError for line ends, which the format cannot hold."""
    if any(c in value for c in "\n\r\0"):
        raise PolicyError(f"{value!r} cannot stand in a configuration file")
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def quote_ident_token(value: str) -> str:
    """A token of pg_ident.conf. A leading slash would make it a pattern, so it is refused."""
    if value.startswith("/") or any(c in value for c in "\n\r\0"):
        raise PolicyError(f"{value!r} cannot be a login: it starts with a slash or has a line end")
    return '"' + value.replace('"', '""') + '"'
