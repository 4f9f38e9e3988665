"""How does a login of the users file become a role of the front?

Pure text. A role can log in and read; it is a member of nothing and owns nothing but temporary objects.
Passwords do not exist here: the proxy authenticates, and the socket admits the proxy's account alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from proxy.errors import PolicyError
from proxy.front.quoting import quote_ident_token, quote_name, quote_text
from proxy.front.schema import OWNER, READER, SUPERUSER

IDENT_MAP = "hushql"
# The proxy limits sessions per login itself; a backend that is still closing must not get in its way.
CONNECTION_SLACK = 10
READERS = 4  # connections of the role that reads texts of clients
_ATTRIBUTES = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"


def check_login(name: str) -> None:
    """Raises PolicyError for a name that cannot be a role of its own in PostgreSQL."""
    quote_name(name)
    quote_ident_token(name)
    if name in (OWNER, READER, SUPERUSER, "public", "none") or name.startswith("pg_"):
        raise PolicyError(f'"{name}" cannot be a login: PostgreSQL or the proxy reserves the name')


def owner_sql() -> str:
    return f"CREATE ROLE {OWNER} NOLOGIN {_ATTRIBUTES}"


def reader_sql() -> str:
    """The statement that makes the role that reads what clients wrote: it may do less than any login."""
    return f"CREATE ROLE {READER} LOGIN {_ATTRIBUTES} CONNECTION LIMIT {READERS + CONNECTION_SLACK}"


def create_login_sql(name: str, max_sessions: int) -> str:
    """The statement that makes a new role. Raises PolicyError for a name that cannot be one."""
    check_login(name)
    return f"CREATE ROLE {quote_name(name)} {_attributes(max_sessions)}"


def restore_login_sql(name: str, max_sessions: int) -> str:
    """The statement that gives a role that exists the attributes it should have."""
    return f"ALTER ROLE {quote_name(name)} WITH {_attributes(max_sessions)}"


def remove_login_sql(name: str) -> tuple[str, ...]:
    """Statements that shut a login out and end its sessions. The role may remain, unable to log in,
    because its closing sessions can still own temporary objects."""
    role, text = quote_name(name), quote_text(name)
    return (
        f"ALTER ROLE {role} NOLOGIN",
        f"SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usename = {text}",
    )


def ident_text(proxy_account: str, logins: Iterable[str]) -> str:
    """pg_ident.conf: the proxy's account, as the kernel reports it, may be any login, the reader and the superuser."""
    names = (SUPERUSER, READER, *logins)
    return "".join(f"{IDENT_MAP} {quote_ident_token(proxy_account)} {quote_ident_token(name)}\n" for name in names)


def hba_text() -> str:
    """pg_hba.conf: the local socket, and only whom the kernel says is the proxy."""
    return f"local all all peer map={IDENT_MAP}\n"


def _attributes(max_sessions: int) -> str:
    return f"LOGIN {_ATTRIBUTES} CONNECTION LIMIT {max_sessions + CONNECTION_SLACK}"
