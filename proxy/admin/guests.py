"""Who from outside the users file has logged in to a dataset, and may they still?

A guest has an account, a role and a place on the front like a login of the file, from the first login on until nobody
uses it any more. What a directory or a token says is `proxy.identity`'s business; what a users file says, `policy`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from proxy.errors import FrontFailed
from proxy.events import LoggedEvent, tell
from proxy.front.front import Front
from proxy.identity.passes import Passes
from proxy.identity.refusals import NotVouched, RefusalReason, Unreachable
from proxy.identity.vouchers import Voucher
from proxy.policy.model import Guest, Users
from proxy.policy.outside.logins import LdapLogins, NoOutside, TokenLogins, Vouched, role_of, same_place
from proxy.policy.users import is_reserved
from proxy.session.dataset import Dataset

_log = logging.getLogger("hushql")
_Answer = TypeVar("_Answer")
#: Guests whom nobody uses are forgotten after this time, in which those who just came get their session.
IDLE_S = 60.0
#: Looks in a row that may fail because the directory cannot be reached.
_MISSED_LOOKS = 3


def guest_of(users: Users, vouched: Vouched) -> Guest:
    """The guest that somebody is by a users file.

    Claim (docs/claims/logins-from-outside.md): one name is one guest with one account, and none has a name of the
    users file. Raises NotVouched.
    """
    outside = users.outside
    if isinstance(outside, NoOutside) or not same_place(outside, vouched.by):
        raise NotVouched(RefusalReason.CHANGED, "the users file has changed meanwhile")
    if users.is_of_file(vouched.name) or is_reserved(vouched.name):
        raise NotVouched(RefusalReason.NAME_OF_FILE, "the name is taken")
    role = role_of(vouched.groups, outside.groups)
    if not role:
        raise NotVouched(RefusalReason.NO_GROUP, "none of the groups gives a role")
    return Guest(name=vouched.name, role=role, budget=users.roles[role].budget, groups=vouched.groups)


def kept_guests(old: Users, new: Users) -> Mapping[str, Guest]:
    """The guests who may stay once a users file takes the place of another.

    Claim (docs/claims/logins-from-outside.md): whose groups give no role any more, whose directory or issuer is
    another now, or whose name the file has, is a guest no more.
    """
    kept: dict[str, Guest] = {}
    if isinstance(old.outside, LdapLogins | TokenLogins):
        for name, guest in old.guests.items():
            try:
                kept[name] = guest_of(new, Vouched(name=name, groups=guest.groups, by=old.outside))
            except NotVouched:
                continue
    return MappingProxyType(kept)


@dataclass(slots=True, kw_only=True)
class Guests:
    """The guests of one dataset. turn: held while versions or guests change. passes: those of browsers.

    threads: where logins wait for a directory. looking: where looks do, so that logins by the thousand hold up none.
    Nobody else uses either: one directory that does not answer is no matter of another dataset's.
    """

    dataset: Dataset
    front: Front
    threads: Executor
    looking: Executor
    passes: Passes
    clock: Callable[[], float]
    voucher: Voucher
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _told_s: dict[str, float] = field(default_factory=dict)
    _tokens: dict[str, dict[frozenset[str], float]] = field(default_factory=dict)  # until when they say which groups
    _poked: asyncio.Event = field(default_factory=asyncio.Event)

    # --- logging in -------------------------------------------------------------------------------------

    async def by_password(self, login: str, password: str) -> Vouched:
        """Ask the directory. Raises NotVouched."""
        return await self._asked(
            partial(self.voucher.by_password, login, password), self.threads, self.voucher.timeout_s
        )

    async def by_token(self, token: str) -> Vouched:
        """Look at a token, with keys of the issuer. Raises NotVouched."""
        return await self._asked(partial(self.voucher.by_token, token), self.threads, self.voucher.timeout_s)

    async def welcome(self, vouched: Vouched) -> Guest:
        """Make somebody a guest. Raises NotVouched, FrontFailed."""
        async with self.turn:
            users = self.dataset.current.users
            guest = guest_of(users, vouched)
            if users.guests.get(guest.name) != guest:
                guests = MappingProxyType({**users.guests, guest.name: guest})
                await self.front.apply(self.dataset.current.policy, replace(users, guests=guests))
                self.dataset.admit(guests)
            self._told_s[guest.name] = now_s = self.clock()
            if isinstance(vouched.by, TokenLogins):
                told = self._tokens.setdefault(guest.name, {})
                told[guest.groups] = max(told.pop(guest.groups, 0.0), now_s + vouched.life_s)  # the newest stands last
            return guest

    async def _asked(self, question: Callable[[], _Answer], threads: Executor, within_s: float) -> _Answer:
        """What somebody says who is waited for on another thread. Raises NotVouched."""
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.get_running_loop().run_in_executor(threads, question)
        except TimeoutError as error:
            raise Unreachable("no answer in time") from error
        except NotVouched:
            raise
        except Exception as error:
            raise Unreachable(f"no answer that can be read: {type(error).__name__}") from error

    # --- being a guest no more ----------------------------------------------------------------------------

    def poke(self) -> None:
        """Look again at once, as after a reload."""
        self._poked.set()

    async def wait(self) -> None:
        """Until it is time to look again."""
        outside = self.dataset.current.users.outside
        try:
            async with asyncio.timeout(outside.recheck_s if isinstance(outside, LdapLogins) else IDLE_S):
                await self._poked.wait()
        except TimeoutError:
            pass
        self._poked.clear()

    async def look(self, in_use: frozenset[str]) -> frozenset[str]:
        """Ask again about all guests with sessions or passes; those who are guests no more.

        in_use: logins with sessions. Claim (docs/claims/logins-from-outside.md): whom the directory knows no more, or
        in no group that gives a role, is a guest no more after this, and so is whom it could not be asked about for
        three looks in a row. A token gives its groups until it ends, whatever other tokens let in.
        """
        users, used = self.dataset.current.users, in_use | self.passes.logins()
        now_s = self.clock()
        idle = {name for name in users.guests if name not in used and now_s - self._told_s.get(name, 0.0) > IDLE_S}
        asked = [guest for guest in users.guests.values() if guest.name in used]
        found = await asyncio.gather(*(self._groups_now(guest, users) for guest in asked))
        async with self.turn:
            return await self._taken(idle, {g.name: groups for g, groups in zip(asked, found, strict=True)}, users)

    async def _groups_now(self, guest: Guest, users: Users) -> frozenset[str]:
        """The groups of a guest; none for one who is to go."""
        outside = users.outside
        if not isinstance(outside, LdapLogins):
            return self._groups_of_tokens(guest)
        try:
            within_s = max(outside.recheck_s, self.voucher.timeout_s)  # for those before it, too
            groups = await self._asked(partial(self.voucher.groups_of, guest.name), self.looking, within_s)
        except Unreachable as error:
            unknown_s = self.clock() - self._told_s.get(guest.name, 0.0)
            _log.warning("%s: %s cannot be looked up: %s", self.dataset.current.policy.dataset, guest.name, error.words)
            return guest.groups if unknown_s <= _MISSED_LOOKS * outside.recheck_s else frozenset()
        except NotVouched as error:
            _log.info("%s: %s: %s", self.dataset.current.policy.dataset, guest.name, error.words)
            return frozenset()
        self._told_s[guest.name] = self.clock()
        return groups

    def _groups_of_tokens(self, guest: Guest) -> frozenset[str]:
        """What the newest token says that has not ended."""
        now_s = self.clock()
        told = {groups: until_s for groups, until_s in self._tokens.get(guest.name, {}).items() if until_s > now_s}
        self._tokens[guest.name] = told
        return next(reversed(told), frozenset())

    async def _taken(self, idle: set[str], found: Mapping[str, frozenset[str]], asked: Users) -> frozenset[str]:
        """Put what was found in force. Who has logged in meanwhile stays as they are by now."""
        users = self.dataset.current.users
        if users.outside != asked.outside:
            return frozenset()  # a reload came between, which looks again
        now_s = self.clock()
        idle = {name for name in idle if now_s - self._told_s.get(name, 0.0) > IDLE_S}
        guests = {name: guest for name, guest in users.guests.items() if name not in idle}
        for name, groups in found.items():
            if users.guests.get(name) == asked.guests[name]:
                role = role_of(groups, () if isinstance(users.outside, NoOutside) else users.outside.groups)
                if not role:
                    del guests[name]
                elif groups != guests[name].groups:
                    guests[name] = replace(guests[name], role=role, budget=users.roles[role].budget, groups=groups)
        gone = frozenset(users.guests) - frozenset(guests)
        for name in sorted(gone - idle):
            tell(
                LoggedEvent.REVOKED, f"{self.dataset.current.policy.dataset}/{name} may no longer log in",
                {"dataset": self.dataset.current.policy.dataset, "login": name},
            )  # fmt: skip
        if guests != users.guests:
            self.dataset.admit(MappingProxyType(guests))
            self.forget(gone)
            try:
                await self.front.apply(self.dataset.current.policy, self.dataset.current.users)
            except FrontFailed as error:  # whoever is gone is known no more, and reaches the front through us alone
                _log.error("%s: guests are shut out, their roles could not be: %s",
                           self.dataset.current.policy.dataset, error.text())  # fmt: skip
        return gone

    def forget(self, gone: frozenset[str]) -> None:
        """End what those who are guests no more have left here."""
        for name in gone:
            self._told_s.pop(name, None)
            self._tokens.pop(name, None)
            self.passes.take_all_of(name)
