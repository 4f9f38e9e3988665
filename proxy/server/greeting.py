"""What does a new connection want, before it is encrypted or not?

Reads the first packets from the bare socket, byte by byte as far as they go and no further: whatever a client sends
before the handshake of TLS is never taken for something that came through it.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

from proxy.errors import HushError, NotEncrypted, ProtocolViolation
from proxy.server.datasets import TlsDeclined, TlsOffered
from proxy.server.link import SocketLink
from proxy.wire.responses import error_response
from proxy.wire.startup import (
    ALPN,
    TLS_HANDSHAKE,
    CancelRequest,
    EncryptionRequest,
    Startup,
    packet_bytes,
    parse_packet,
)

_ACCEPT, _DECLINE = b"S", b"N"
_LENGTH_BYTES = 4
_MAX_REQUESTS = 3


@dataclass(frozen=True, slots=True)
class Greeted:
    """A connection that wants a session. binding: channel binding data, may be empty with TLS and is without."""

    link: SocketLink
    startup: Startup
    binding: bytes
    is_encrypted: bool


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The client goes on with a TLS handshake. is_direct: it has begun with it, without asking."""

    tls: TlsOffered
    is_direct: bool


async def greet(connection: socket.socket, tls: TlsOffered | TlsDeclined) -> Greeted | CancelRequest:
    """Read what a client wants and upgrade the connection as it asks.

    Takes over the socket. Raises ProtocolViolation and NotEncrypted (the client was told) and OSError (it hung up); the
    socket is closed then, as it is after a `CancelRequest`. That may come in the clear even where TLS is demanded, as
    libpq's PQcancel sends it: its key does no more than to cancel.
    """
    try:
        found = await _first_packets(connection, tls)
    except BaseException:
        connection.close()
        raise
    match found:
        case Startup():
            _, link = await asyncio.get_running_loop().connect_accepted_socket(SocketLink, connection)
            return Greeted(link, found, binding=b"", is_encrypted=False)
        case CancelRequest():
            connection.close()
            return found
        case Upgrade():
            return await _encrypted(connection, found)


async def _first_packets(connection: socket.socket, tls: TlsOffered | TlsDeclined) -> Startup | CancelRequest | Upgrade:
    loop = asyncio.get_running_loop()
    if await _peek(loop, connection) == TLS_HANDSHAKE:
        if isinstance(tls, TlsDeclined):
            raise ProtocolViolation("encryption is not available")
        return Upgrade(tls, is_direct=True)
    for _ in range(_MAX_REQUESTS):
        packet = await _read_packet(loop, connection)
        if isinstance(packet, Startup) and isinstance(tls, TlsOffered) and tls.is_required:
            error = NotEncrypted("this server demands TLS", hint="Connect with sslmode=verify-full, or require.")
            await loop.sock_sendall(connection, error_response(error, severity="FATAL"))
            raise error
        if not isinstance(packet, EncryptionRequest):
            return packet
        if packet.is_tls and isinstance(tls, TlsOffered):
            _check_silence(connection)
            await loop.sock_sendall(connection, _ACCEPT)
            return Upgrade(tls, is_direct=False)
        await loop.sock_sendall(connection, _DECLINE)
    raise ProtocolViolation("too many requests for encryption")


async def _encrypted(connection: socket.socket, upgrade: Upgrade) -> Greeted | CancelRequest:
    loop = asyncio.get_running_loop()
    link = SocketLink()  # uvloop gives back its own protocol in the place of ours
    transport, _ = await loop.connect_accepted_socket(lambda: link, connection, ssl=upgrade.tls.context)
    try:
        chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        if upgrade.is_direct and chosen != ALPN:
            raise ProtocolViolation("direct TLS connections must agree on the protocol by ALPN")
        header = await link.read(_LENGTH_BYTES)
        packet = parse_packet(header + await link.read(packet_bytes(header) - _LENGTH_BYTES))
        match packet:
            case EncryptionRequest():
                raise ProtocolViolation("the connection is encrypted already")
            case CancelRequest():
                transport.close()
                return packet
            case Startup():
                return Greeted(link, packet, binding=upgrade.tls.binding, is_encrypted=True)
    except HushError as error:
        link.write(error_response(error, severity="FATAL"))
        transport.close()
        raise
    except BaseException:
        transport.abort()
        raise


async def _read_packet(
    loop: asyncio.AbstractEventLoop, connection: socket.socket
) -> EncryptionRequest | CancelRequest | Startup:
    try:
        header = await _read(loop, connection, _LENGTH_BYTES)
        return parse_packet(header + await _read(loop, connection, packet_bytes(header) - _LENGTH_BYTES))
    except ProtocolViolation as error:
        await loop.sock_sendall(connection, error_response(error, severity="FATAL"))
        raise


async def _read(loop: asyncio.AbstractEventLoop, connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = await loop.sock_recv(connection, count - len(found))
        if not part:
            raise ConnectionResetError
        found += part
    return found


async def _peek(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> int:
    """The first byte, which stays in the socket. Raises ConnectionResetError when there is none."""
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    first = connection.recv(1, socket.MSG_PEEK)
    if not first:
        raise ConnectionResetError
    return first[0]


def _check_silence(connection: socket.socket) -> None:
    """Raises ProtocolViolation when bytes came along with an SSLRequest: they would have come unencrypted."""
    try:
        waiting = connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return
    if not waiting:
        raise ConnectionResetError
    raise ProtocolViolation("received unencrypted data after SSL request")
