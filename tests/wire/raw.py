"""A client that says exactly what a test wants and shows every message of the answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from proxy.wire import messages
from proxy.wire.responses import parse_fields
from proxy.wire.saslprep import prepare_password

USER = "alice"
PASSWORD = "correct horse"


PROTOCOL_3_0 = 0x30000


def startup_packet(parameters: Mapping[str, str], code: int = PROTOCOL_3_0) -> bytes:
    body = b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items()) + b"\0"
    return struct.pack("!II", len(body) + 8, code) + body


SSL_REQUEST = struct.pack("!II", 8, 80877103)
GSS_REQUEST = struct.pack("!II", 8, 80877104)


@dataclass(frozen=True, slots=True)
class Reply:
    """One message from the server."""

    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        return dict(parse_fields(self.body, "utf-8"))

    @property
    def sqlstate(self) -> str:
        return self.fields["C"]

    @property
    def row(self) -> tuple[bytes | None, ...]:
        return messages.parse_data_row(self.body)

    @property
    def tag(self) -> str:
        return self.body[:-1].decode()


class RawClient:
    """A socket that speaks the protocol in single messages."""

    def __init__(self, place: int | str, timeout_s: float = 60) -> None:
        """place: a port of this machine, or the path of a socket."""
        if isinstance(place, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout_s)
            self.socket.connect(place)
        else:
            self.socket = socket.create_connection(("127.0.0.1", place), timeout=timeout_s)
        self.key = b""
        self._inbox = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *raw: bytes) -> None:
        self.socket.sendall(b"".join(raw))

    def read(self) -> Reply:
        """The next message. Raises ConnectionResetError at the end."""
        while not self._has_message():
            self._receive()
        length = struct.unpack("!I", self._inbox[1:5])[0]
        raw, self._inbox = self._inbox[: length + 1], self._inbox[length + 1 :]
        return Reply(chr(raw[0]), raw[5:])

    def _has_message(self) -> bool:
        inbox = self._inbox
        return len(inbox) >= 5 and len(inbox) >= 1 + struct.unpack("!I", inbox[1:5])[0]

    def _receive(self) -> None:
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionResetError
        self._inbox += part

    def read_waiting(self) -> Iterator[Reply]:
        """The messages that have come already. Raises ConnectionResetError at the end."""
        while select.select([self.socket], [], [], 0)[0]:
            self._receive()
            while self._has_message():
                yield self.read()

    def read_until(self, kinds: str) -> list[Reply]:
        """Messages up to and with one of these kinds."""
        found = [self.read()]
        while found[-1].kind not in kinds:
            found.append(self.read())
        return found

    def is_closed(self) -> bool:
        """Whether the server hangs up; what it still says is thrown away."""
        try:
            while True:
                self.read()
        except TimeoutError:
            return False
        except OSError:
            return True

    def log_in(
        self, user: str = USER, password: str = PASSWORD, database: str = "shop", **parameters: str
    ) -> list[Reply]:
        """Start up and log in; everything from AuthenticationOk to ReadyForQuery, or the error."""
        self.send(startup_packet({"user": user, "database": database, **parameters}))
        return self.answer_scram(user, password)

    def answer_scram(self, user: str, password: str, meanwhile: Callable[[], object] = list) -> list[Reply]:
        first = self.read_until("RE")[-1]  # a negotiation of the version may come before
        if first.kind == "E":
            return [first]
        nonce = base64.b64encode(os.urandom(18)).decode()
        bare = f"n=,r={nonce}"
        initial = f"n,,{bare}".encode()
        self.send(messages.build(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(initial)) + initial))
        server_first = self.read().body[4:].decode()
        fields = dict(part.split("=", 1) for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", prepare_password(password), base64.b64decode(fields["s"]), int(fields["i"])
        )
        without_proof = f"c=biws,r={fields['r']}"
        signed = f"{bare},{server_first},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        meanwhile()
        self.send(messages.build(b"p", f"{without_proof},p={base64.b64encode(proof).decode()}".encode()))
        replies = [self.read()]
        if replies[0].kind == "E":
            return replies
        expected = base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256"))
        assert replies[0].body[4:] == b"v=" + expected
        replies = self.read_until("ZE")
        self.key = next((r.body for r in replies if r.kind == "K"), b"")
        return replies

    def query(self, sql: str) -> list[Reply]:
        """Send a Query; all messages up to ReadyForQuery."""
        self.send(messages.query(sql.encode()))
        return self.read_until("Z")

    def sync(self, *raw: bytes) -> list[Reply]:
        """Send messages and a Sync; all messages up to ReadyForQuery."""
        self.send(*raw, messages.SYNC)
        return self.read_until("Z")


def kinds(replies: list[Reply]) -> str:
    """The types of messages, without notices, settings and repeated rows."""
    shown = ""
    for reply in replies:
        if reply.kind in "NSA" or (reply.kind in "Dd" and shown.endswith(reply.kind)):
            continue
        shown += reply.kind
    return shown


def status(replies: list[Reply]) -> str:
    """The transaction status of the last ReadyForQuery."""
    return replies[-1].body.decode()


def statement(sql: str, *values: bytes | None, name: bytes = b"", portal: bytes = b"", max_rows: int = 0) -> bytes:
    """Parse, Bind, Describe and Execute of one statement, values in text."""
    bind = messages.Bind(portal=portal, statement=name, formats=(), values=values, result_formats=())
    parts = (
        messages.parse(name, sql.encode()),
        messages.bind(bind),
        messages.describe_portal(portal),
        messages.execute(portal, max_rows),
    )
    return b"".join(parts)


def shown(reply: Reply) -> tuple[str, object]:
    """What of a reply must be as PostgreSQL's: not where in its source an error was raised."""
    if reply.kind in "EN":
        return reply.kind, {field: reply.fields.get(field, "") for field in "SVCMPDH"}
    if reply.kind == "T":
        columns = messages.parse_row_description(reply.body)
        return "T", [(c.name, c.oid, c.size, c.typmod, c.format) for c in columns]
    return reply.kind, reply.body
