"""May this process have as many files open as the sessions need that its policies allow?

A proxy that runs out of them in the middle of its work refuses connections, and cannot read a policy or spill a
statement. Many systems begin with a limit of 1,024 that any process may raise for itself.
"""

from __future__ import annotations

import contextlib
import resource

from proxy.errors import ConfigError

#: Connections that may wait for their login, unless there may be more sessions: all of these may come back at once.
MOST_STRANGERS = 100
#: Connections of browsers to the console, those that ask nothing included.
MOST_BROWSERS = 200
#: The client's connection, the one to the public PostgreSQL, and one that waits for its login.
FILES_PER_SESSION = 3
#: The first strangers, engines, ledger, noise and whatever libraries open.
SPARE_FILES = MOST_STRANGERS + 200


def make_room(sessions: int, *, has_console: bool = False) -> None:
    """Raise the limit to what so many sessions need. Raises ConfigError if the system does not let this process.

    has_console: browsers have connections too, and both ends of a session's may be in this process.
    """
    needed = FILES_PER_SESSION * sessions + SPARE_FILES + (sessions + MOST_BROWSERS if has_console else 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_enough(soft, needed):
        return
    with contextlib.suppress(ValueError, OSError):  # above the hard limit, or one of the whole system
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if not _is_enough(allowed, needed):
        raise ConfigError(
            f"{sessions} sessions need {needed} open files, and this process may have {allowed} of {hard}",
            hint="Raise the limit (ulimit -n, LimitNOFILE= of systemd, --ulimit of Docker), or lower"
            " limits.max_sessions.",
        )


def _is_enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed
