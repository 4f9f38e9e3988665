"""On which sockets does the server listen?

They are bound before anything is started, so that an address in use is noticed at once, and take connections only when
there is somebody to answer.
"""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address

from proxy.errors import ConfigError

_BACKLOG = 256


def bind(host: str, port: int, *, option: str = "--listen") -> tuple[socket.socket, ...]:
    """A bound socket for each address of the host, all on one port; port 0 takes a free one. Raises ConfigError.

    option: of the command line, that names another address.
    """
    found: list[socket.socket] = []
    try:
        for family, kind, _, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            bound = socket.socket(family, kind)
            found.append(bound)
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind((address[0], port_of(found[0]) or port, *address[2:]))
    except OSError as error:
        for bound in found:
            bound.close()
        raise _cannot_listen(host, port, error, option) from error
    return tuple(found)


def listen(bound: socket.socket) -> None:
    """Let clients connect. Raises ConfigError."""
    try:
        bound.listen(_BACKLOG)
    except OSError as error:
        raise _cannot_listen(bound.getsockname()[0], port_of(bound), error) from error


def port_of(bound: socket.socket) -> int:
    """0 before it is bound."""
    return int(bound.getsockname()[1])


def are_local(sockets: tuple[socket.socket, ...]) -> bool:
    """Whether programs of this machine alone can connect."""
    return all(ip_address(bound.getsockname()[0]).is_loopback for bound in sockets)


def _cannot_listen(host: str, port: int, error: OSError, option: str = "--listen") -> ConfigError:
    variable = "LISTEN" if option == "--listen" else "CONSOLE"
    hint = f"Name another address with {option} (make demo {variable}=host:port)"
    if error.errno == errno.EADDRINUSE:
        hint += ", or end what listens there"
    return ConfigError(f"cannot listen on {host} port {port}: {error.strerror}", hint=f"{hint}.")
