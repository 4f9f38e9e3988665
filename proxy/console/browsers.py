"""Which browsers have shown a password, as which login, and until when?

Sessions live in the memory of this process alone. A cookie's value is kept as its hash; what proves the login to the
listener is kept as it is (docs/decisions/console.md).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.console.wire import Credential, Wires

IDLE_S, LONGEST_S = 1800.0, 12 * 3600.0
_TOKEN_BYTES = 32
_MOST, _MOST_PER_LOGIN = 500, 20


@dataclass(slots=True, kw_only=True)
class Browser:
    """One browser that is logged in. csrf: what each of its changing requests must carry. Times: seconds of a clock.

    wires: its connections to the listener, by what they are for.
    """

    credential: Credential
    csrf: str
    began_s: float
    seen_s: float
    wires: Wires = field(repr=False)

    def may(self, token: str) -> bool:
        """Whether a changing request comes from our own page."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


class Browsers:
    """All of them. clock: seconds that never go back. random_bytes: from the one door for randomness.

    on_end: told of what a forgotten browser had shown.
    """

    def __init__(
        self, clock: Callable[[], float], random_bytes: Callable[[int], bytes], on_end: Callable[[Credential], None]
    ) -> None:
        self._on_end = on_end
        self._clock = clock
        self._random_bytes = random_bytes
        self._known: dict[bytes, Browser] = {}
        self._key = random_bytes(_TOKEN_BYTES)

    def token(self) -> str:
        """A value that nobody can guess."""
        return self._random_bytes(_TOKEN_BYTES).hex()

    def form_token(self, cookie: str) -> str:
        """What the login form carries beside the cookie that came with it."""
        return hmac.digest(self._key, cookie.encode(), "sha256").hex()

    def begin(self, credential: Credential) -> str:
        """Remember a browser; the value of its cookie. The oldest of too many are forgotten."""
        self._forget_old()
        own = [h for h, b in self._known.items() if b.credential.place == credential.place]
        for hashed in own[: max(0, len(own) + 1 - _MOST_PER_LOGIN)]:
            self._forget(hashed)
        while len(self._known) >= _MOST:
            self._forget(next(iter(self._known)))
        cookie, now = self.token(), self._clock()
        self._known[_hashed(cookie)] = Browser(
            credential=credential, csrf=self.token(), began_s=now, seen_s=now, wires=Wires(credential)
        )
        return cookie

    def find(self, cookie: str) -> Browser | None:
        """The browser that sent the cookie, if its time is not over; its idle time starts again."""
        self._forget_old()
        browser = self._known.get(_hashed(cookie))
        if browser is not None:
            browser.seen_s = self._clock()
        return browser

    def end(self, cookie: str) -> None:
        """Log out."""
        self._forget(_hashed(cookie))

    def end_all(self) -> None:
        """Forget everybody, as when the proxy ends."""
        for hashed in tuple(self._known):
            self._forget(hashed)

    def _forget_old(self) -> None:
        now = self._clock()
        late = [h for h, b in self._known.items() if now - b.seen_s > IDLE_S or now - b.began_s > LONGEST_S]
        for hashed in late:
            self._forget(hashed)

    def _forget(self, hashed: bytes) -> None:
        browser = self._known.pop(hashed, None)
        if browser is not None:
            browser.wires.close()
            self._on_end(browser.credential)


def _hashed(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
