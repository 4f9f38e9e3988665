"""What does the console show the listener in the place of a guest's password, which it does not keep?

A name and a random secret for each browser, by SCRAM. They live in this process alone and open the guest's login only,
until the browser logs out, its time is over, or the guest may no longer log in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from proxy.wire.scram import SALT_BYTES, Verifier, make_verifier

_NAME = "pass:"  # no login from outside or of a users file is called so by chance
_SECRET_BYTES = 24
LIFE_S = 12 * 3600.0
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Pass:
    """login: the guest's name. until_s: by the clock."""

    login: str
    verifier: Verifier = field(repr=False)
    until_s: float


@dataclass(frozen=True, slots=True)
class PassWords:
    """What the console keeps: the name to log in by, and the secret."""

    user: str
    secret: str = field(repr=False)


class Passes(Mapping[str, Pass]):
    """Those of one dataset, by the name to log in by. clock: seconds that never go back."""

    def __init__(self, random_bytes: Callable[[int], bytes], clock: Callable[[], float]) -> None:
        self._random_bytes = random_bytes
        self._clock = clock
        self._known: dict[str, Pass] = {}

    def give(self, login: str) -> PassWords:
        """A new pass for a guest. The oldest of too many end."""
        self._forget_old()
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        words = PassWords(_NAME + self._random_bytes(16).hex(), self._random_bytes(_SECRET_BYTES).hex())
        verifier = make_verifier(words.secret, salt=self._random_bytes(SALT_BYTES))
        self._known[words.user] = Pass(login, verifier, self._clock() + LIFE_S)
        return words

    def take_back(self, user: str) -> None:
        """End one; harmless when repeated."""
        self._known.pop(user, None)

    def take_all_of(self, login: str) -> None:
        """End all of a guest who may no longer log in."""
        for user in [user for user, held in self._known.items() if held.login == login]:
            del self._known[user]

    def logins(self) -> frozenset[str]:
        """Guests with a pass."""
        self._forget_old()
        return frozenset(held.login for held in self._known.values())

    def _forget_old(self) -> None:
        now_s = self._clock()
        for user in [user for user, held in self._known.items() if held.until_s < now_s]:
            del self._known[user]

    def __getitem__(self, user: str) -> Pass:
        self._forget_old()
        return self._known[user]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._known))

    def __len__(self) -> int:
        return len(self._known)
