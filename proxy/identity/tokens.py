"""Who does a token speak of, and is it one of the issuer's, for this server, and in force?

JSON Web Tokens (RFC 7519) under a signature of the issuer's keys. What is not exactly as it should be is refused; what
a token says is not logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import jwt

from proxy.identity.keys import Keys
from proxy.identity.refusals import NotVouched, RefusalReason
from proxy.policy.outside.logins import NoSuchName, TokenLogins, Vouched, login_name


@dataclass(frozen=True, slots=True)
class Tokens:
    """An issuer. clock: seconds since 1970."""

    settings: TokenLogins
    keys: Keys = field(repr=False)
    clock: Callable[[], float] = time.time

    def vouch(self, token: str) -> Vouched:
        """Who a token speaks of. May wait for the issuer's keys. Raises NotVouched.

        Claim (docs/claims/logins-from-outside.md): a token counts only under a signature of a key of the issuer, by an
        algorithm of the list, which has none that needs a secret and not "none"; and with `iss`, `aud` and `exp`.
        """
        claims = self._claims(token)
        self._check_scope(claims)
        return Vouched(
            name=self._name(claims), groups=self._groups(claims), by=self.settings, life_s=self._life_s(claims)
        )

    def _claims(self, token: str) -> Mapping[str, object]:
        """What a token says, once its signature, issuer, audience and times were found right."""
        settings = self.settings
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise _refused("it is no JSON Web Token") from error
        name, algorithm = header.get("kid", ""), header.get("alg")
        if not isinstance(name, str) or "crit" in header:
            raise _refused("its header is not understood")
        if algorithm not in settings.algorithms:
            raise _refused("its signature is of a kind that is not accepted")
        key = self.keys.find(name)
        if key is None or algorithm not in key.algorithms:
            raise _refused("the issuer has no such key")
        try:
            claims: Mapping[str, object] = jwt.decode(
                token, key.key, algorithms=list(key.algorithms), audience=settings.audience, issuer=settings.issuer,
                leeway=settings.leeway_s, options={"require": ["exp", "iss", "aud"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise _refused(type(error).__name__) from error
        return claims

    def _name(self, claims: Mapping[str, object]) -> str:
        """The login, whatever its case in the token."""
        claim = self.settings.login_claim
        found = claims.get(claim)
        if claim == "email" and claims.get("email_verified") is not True:
            raise _refused("its email is not verified")
        try:
            return login_name(found if isinstance(found, str) else "")
        except NoSuchName as error:
            raise NotVouched(RefusalReason.BAD_NAME, f"the claim {claim} cannot be a login") from error

    def _groups(self, claims: Mapping[str, object]) -> frozenset[str]:
        """Those groups of the token that give roles."""
        found = claims.get(self.settings.groups_claim, ())
        listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        return frozenset(group for group, _ in self.settings.groups if group in listed)

    def _check_scope(self, claims: Mapping[str, object]) -> None:
        found = claims.get("scope", claims.get("scp", ""))
        words = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
        if not all(word in words for word in self.settings.required_scope):
            raise _refused("its scope is not enough")

    def _life_s(self, claims: Mapping[str, object]) -> float:
        """How long a session may last that begins now."""
        expires = claims["exp"]
        if not isinstance(expires, int | float):  # digits in a text are a number to the library
            raise _refused("its end is no number")
        return max(0.0, min(expires + self.settings.leeway_s - self.clock(), self.settings.max_session_s))


def _refused(words: str) -> NotVouched:
    return NotVouched(RefusalReason.TOKEN, f"the token is not accepted: {words}")
