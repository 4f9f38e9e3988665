"""A directory of a test's own: as much of LDAP (RFC 4511) as a login needs, and lies where a test wants them."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.certificates import Certificates

_BIND, _UNBIND, _SEARCH, _EXTENDED = 0x60, 0x42, 0x63, 0x77
_SUBTREE = 2


def tlv(tag: int, *content: bytes) -> bytes:
    whole = b"".join(content)
    size = len(whole)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + whole


def parts(data: bytes) -> list[tuple[int, bytes]]:
    """Tags and contents that follow each other."""
    found, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(data[at : at + count], "big"), at + count
        found.append((tag, data[at : at + size]))
        at += size
    return found


@dataclass(slots=True)
class FakeDirectory:
    """entries: attributes by distinguished name. passwords: by it, too. members: of groups.

    bind_code: in place of the right answer, where it is one. search_code: of every search. is_mute: nothing is
    answered. trickles: instead of an answer there is a byte now and then, see `trickle`. was_left: by who read that.
    filters: those of searches, as they came. names: as whom was bound.
    """

    port: int
    entries: dict[str, Mapping[str, Sequence[bytes]]] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bind_code: int = 0
    search_code: int = 0
    offers_tls: bool = True
    is_mute: bool = False
    trickles: bool = False
    was_left: bool = False
    filters: list[bytes] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def bound(self, name: str, password: str) -> int:
        self.names.append(name)
        if name and self.bind_code:
            return self.bind_code
        return 0 if not name or self.passwords.get(name) == password else 49

    def found(self, base: str, scope: int, filter_: bytes) -> list[str]:
        self.filters.append(filter_)
        if scope == _SUBTREE:
            return [dn for dn, held in self.entries.items() if any(v.lower() in filter_ for v in held.get("uid", ()))]
        if base in self.members:
            return [base] if any(m.encode() in filter_ for m in self.members[base]) else []
        return [base] if base in self.entries else []


def trickle(connection: socket.socket, first: bytes) -> bool:
    """Send something whose end does not come, byte by byte for half a minute; whether it was hung up meanwhile."""
    try:
        connection.sendall(first)
        for _ in range(600):
            time.sleep(0.05)
            connection.sendall(b"x")
    except OSError:
        return True
    return False


def _message(number: bytes, tag: int, *content: bytes) -> bytes:
    return tlv(0x30, tlv(2, number), tlv(tag, *content))


def _result(code: int) -> tuple[bytes, ...]:
    return tlv(0x0A, bytes([code])), tlv(4, b""), tlv(4, b"")


def _entry(directory: FakeDirectory, dn: str) -> tuple[bytes, ...]:
    held = directory.entries.get(dn, {})
    attributes = [tlv(0x30, tlv(4, n.encode()), tlv(0x31, *(tlv(4, v) for v in values))) for n, values in held.items()]
    return tlv(4, dn.encode()), tlv(0x30, *attributes)


def _converse(connection: socket.socket, directory: FakeDirectory, context: ssl.SSLContext) -> None:
    while request := connection.recv(65536):
        if directory.is_mute:
            continue
        if directory.trickles:
            directory.was_left = trickle(connection, b"\x30\x84\x7f\xff\xff\xff")
            return
        (_, whole), *_ = parts(request)
        (_, number), (tag, content), *_ = parts(whole)
        if tag == _UNBIND:
            return
        if tag == _EXTENDED:
            connection.sendall(_message(number, 0x78, *_result(0 if directory.offers_tls else 2)))
            if directory.offers_tls:
                with context.wrap_socket(connection, server_side=True) as wrapped:
                    _converse(wrapped, directory, context)
                return
        elif tag == _BIND:
            _, (_, name), (_, password) = parts(content)
            connection.sendall(_message(number, 0x61, *_result(directory.bound(name.decode(), password.decode()))))
        elif tag == _SEARCH:
            (_, base), (_, scope), *rest = parts(content)
            names = directory.found(base.decode(), scope[0], rest[4][1])
            known = base.decode() in directory.members or base.decode() in directory.entries or scope[0] == _SUBTREE
            code = directory.search_code or (0 if known else 32)
            answers = [_message(number, 0x64, *_entry(directory, dn)) for dn in names if not directory.search_code]
            connection.sendall(b"".join(answers) + _message(number, 0x65, *_result(code)))


@contextmanager
def directory_of(certificates: Certificates, *, is_encrypted: bool = True) -> Iterator[FakeDirectory]:
    """A directory that answers one connection after the other. is_encrypted: as ldaps://, else by STARTTLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.cert, certificates.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        directory = FakeDirectory(listening.getsockname()[1])
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listening.accept()
                    threads.append(threading.Thread(target=meet, args=(connection,)))
                    threads[-1].start()

        def meet(connection: socket.socket) -> None:
            connection.settimeout(20)
            with contextlib.suppress(OSError), connection:
                if not is_encrypted:
                    _converse(connection, directory, context)
                    return
                with context.wrap_socket(connection, server_side=True) as wrapped:
                    _converse(wrapped, directory, context)

        threads: list[threading.Thread] = []
        accepting = threading.Thread(target=serve)
        accepting.start()
        try:
            yield directory
        finally:
            is_over.set()
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()
