"""What was promised of a dataset so far, and what does an earlier charge count for it?

A charge was computed for the promise of its time. When a later policy promises more (a larger group of units, units
that are exchanged), the same release tells more than its charge says. So every charge counts for the strongest promise
that was ever made of its dataset, whoever made it, and whatever the policy of the proxy that charges: no edit lowers
a sum.
See docs/claims/promises.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from proxy.dp.accounting import for_reach_up
from proxy.dp.selection import KeyRule, shown_atto_up
from proxy.errors import LedgerFailed, PolicyForbids
from proxy.ledger.chain import Entry, Origin, Priced
from proxy.plan.charge import Cost, dataset_of
from proxy.policy.model import Accounting, Promise
from proxy.policy.pledge import Pledge, RowsOwner, changed_unit

WEAKEST = Promise()


class UnitChanged(LedgerFailed):
    """The policy protects another unit than the one for which the dataset's accounts were kept."""

    def __init__(self, pledge: Pledge, was: str, difference: str) -> None:
        super().__init__(
            f'the unit of dataset "{pledge.dataset}" is not the one that its accounts were kept for',
            detail=f"{difference}. What was released before says nothing of how much it tells about other units.",
            hint="Give the dataset a new name, which has accounts of its own; or acknowledge with"
            f" 'unit_changed_from: {was}' under privacy that all that was released before is outside the new promise.",
        )


class PromiseRefused(LedgerFailed):
    """What was spent cannot be counted for a larger group of units."""

    def __init__(self, pledge: Pledge, accounts: int) -> None:
        super().__init__(
            f'group_size: {pledge.promise.group_size} cannot be promised of dataset "{pledge.dataset}" any more',
            detail=f"Unlisted groups that {accounts} of its accounts have paid for were shown by thresholds that the"
            " ledger, then of an earlier version, did not keep: nobody can tell how likely they show a larger group.",
            hint="Keep the group_size that it was, or give the dataset a new name, which has accounts of its own.",
        )


class PolicyOutdated(PolicyForbids):
    """Nothing was charged: the statement was planned for a promise that was replaced meanwhile."""

    def __init__(self) -> None:
        super().__init__("the policy has changed while this statement was answered", hint="Ask it again.")


# --- what was promised ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Break:
    """From then on another unit was protected. was, now: the words of the units."""

    at: datetime
    was: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was promised of a dataset so far: the most of each kind.

    unit, owners: as of `Pledge`, of all policies since the last break. digests: of these policies; none if nothing was
    ever stated. acknowledged: which unit the present one is known to replace.
    """

    reach: int = WEAKEST.reach
    group_size: int = WEAKEST.group_size
    unit: str = ""
    owners: Mapping[str, RowsOwner] = field(default_factory=lambda: MappingProxyType({}))
    digests: frozenset[str] = frozenset()
    acknowledged: str = ""
    breaks: tuple[Break, ...] = ()

    @property
    def is_weakest(self) -> bool:
        """Whether nothing more was promised than the least there is."""
        return (self.reach, self.group_size) == (WEAKEST.reach, WEAKEST.group_size)

    def covers(self, promise: Promise) -> bool:
        """Whether at least that was promised."""
        return self.reach >= promise.reach and self.group_size >= promise.group_size

    def covers_as_much(self, other: Standing) -> bool:
        """Whether at least as much was promised: then every charge counts as it does."""
        return self.reach >= other.reach and self.group_size >= other.group_size

    def allows(self, policy_digest: str) -> bool:
        """Whether a policy protects the unit that is protected now."""
        return not self.breaks or policy_digest in self.digests

    def after(self, pledge: Pledge, at: datetime) -> Standing:
        """What is promised from a policy on. Raises UnitChanged unless it is for the same unit, or says that not."""
        promised = replace(
            self,
            reach=max(self.reach, pledge.promise.reach),
            group_size=max(self.group_size, pledge.promise.group_size),
        )
        return promised._stating(pledge, at)

    def _stating(self, pledge: Pledge, at: datetime) -> Standing:
        difference = self._difference(pledge)
        if difference and not self._is_acknowledged(pledge):
            raise UnitChanged(pledge, self.unit, difference)
        if difference or (pledge.changed_from and not self.digests):
            now = Break(at, self.unit or pledge.changed_from, pledge.unit)
            fresh = replace(self, owners={}, digests=frozenset(), breaks=(*self.breaks, now))
            return replace(fresh, acknowledged=pledge.changed_from)._with(pledge)
        return self._with(pledge)

    def _with(self, pledge: Pledge) -> Standing:
        owners = MappingProxyType({**self.owners, **dict(pledge.owners)})
        return replace(self, unit=pledge.unit, owners=owners, digests=self.digests | {pledge.policy_digest})

    def _is_acknowledged(self, pledge: Pledge) -> bool:
        """Whether the policy names the unit that it gives up, and not still the one given up before."""
        is_stale = (pledge.unit, pledge.changed_from) == (self.unit, self.acknowledged)
        return pledge.changed_from == self.unit and not is_stale

    def _difference(self, pledge: Pledge) -> str:
        return changed_unit(self.unit, self.owners, pledge) if self.digests else ""


NEVER_STATED = Standing()

# --- what a charge counts -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromiseTerms:
    """How charges of a dataset count now. stated: promises by the digest of a policy. keys: rules by release."""

    standing: Standing
    stated: Mapping[str, Promise]
    keys: Mapping[int, tuple[KeyRule, ...]]

    def charged(self, origin: Origin, accounting: Accounting, cost: Cost) -> Cost:
        """What a sum of charges counts, without what their deltas count more: see `atto`."""
        pico = for_reach_up(accounting, cost.pico, self._made_for(origin).reach, self.standing.reach)
        return Cost(pico, cost.atto)

    def atto(self, origin: Origin, release_id: int, atto: int) -> int:
        """What the delta of a release counts: at least what was charged.

        Claim: for neighbours as they were promised since, the probability that the release shows a key that only they
        differ in is at most the result, if `is_countable`.
        """
        return self._atto(origin, atto, self.keys.get(release_id, ()))

    def counted(self, origin: Origin, accounting: Accounting, release: Priced) -> Cost:
        """What a release costs somebody who has not paid for it."""
        rules = self.keys.get(release.release_id, release.keys)
        return Cost(self.charged(origin, accounting, release.cost).pico, self._atto(origin, release.cost.atto, rules))

    def is_countable(self, origin: Origin, release_id: int, atto: int) -> bool:
        """Whether the delta of a release can be told for what was promised since.

        Of present entries without rules nothing was shown by one; of earlier ones nobody knows.
        """
        is_known = isinstance(origin, Promise) or release_id in self.keys
        return is_known or not atto or not self.is_more(origin)

    def is_more(self, origin: Origin) -> bool:
        """Whether a larger group of units was promised than a charge was computed for."""
        return self.standing.group_size > self._made_for(origin).group_size

    def _atto(self, origin: Origin, atto: int, rules: tuple[KeyRule, ...]) -> int:
        if not self.is_more(origin):
            return atto
        return max(atto, sum(shown_atto_up(rule, self.standing.group_size) for rule in rules))

    def _made_for(self, origin: Origin) -> Promise:
        """What a charge was computed for; of a policy that nobody knows, the least that there is."""
        return origin if isinstance(origin, Promise) else self.stated.get(origin.policy_digest, WEAKEST)


# --- of all datasets ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A charge for a release whose rules are not known yet, if it has any."""

    dataset: str
    promise: Promise


class Promises:
    """What was promised of each dataset, and by which rules releases show keys. Not thread-safe for writers."""

    def __init__(self) -> None:
        self._standings: dict[str, Standing] = {}
        self._stated: dict[str, Promise] = {}
        self._keys: dict[int, tuple[KeyRule, ...]] = {}
        self._waiting: dict[int, _Waiting] = {}

    def standing(self, dataset: str) -> Standing:
        return self._standings.get(dataset, NEVER_STATED)

    def terms(self, dataset: str) -> PromiseTerms:
        """How charges of a dataset count."""
        return PromiseTerms(self.standing(dataset), self._stated, self._keys)

    def terms_after(self, pledge: Pledge, at: datetime) -> PromiseTerms:
        """How they would count. Raises UnitChanged."""
        stated = {**self._stated, pledge.policy_digest: pledge.promise}
        return PromiseTerms(self.standing(pledge.dataset).after(pledge, at), stated, self._keys)

    def is_stated(self, pledge: Pledge) -> bool:
        """Whether the policy is one of those for which the dataset is kept."""
        return pledge.policy_digest in self.standing(pledge.dataset).digests

    def state(self, pledge: Pledge, at: datetime) -> None:
        """Book a promise. Raises UnitChanged."""
        self._standings[pledge.dataset] = self.standing(pledge.dataset).after(pledge, at)
        self._stated[pledge.policy_digest] = pledge.promise

    def keep_rules(self, entry: Entry) -> None:
        """Remember by which rules the releases of an entry show keys, and of which that will be told."""
        if not entry.lines:
            return  # it takes up what was paid for, and charges nothing
        dataset = dataset_of(entry.lines[0].name)
        for release in entry.releases:
            if release.keys:
                self._keys.setdefault(release.release_id, release.keys)
            elif release.cost.atto and isinstance(entry.promise, Promise) and release.release_id not in self._keys:
                self._waiting.setdefault(release.release_id, _Waiting(dataset, entry.promise))

    def awaits_rules(self, release_id: int) -> bool:
        """Whether a release was charged that may show keys, and it was not told by which rules."""
        return release_id in self._waiting

    def is_too_late(self, release_id: int) -> bool:
        """Whether more was promised since such a release was charged, so that its rules would make sums larger."""
        waiting = self._waiting[release_id]
        return self.terms(waiting.dataset).is_more(waiting.promise)

    def tell_rules(self, release_id: int, keys: tuple[KeyRule, ...]) -> None:
        del self._waiting[release_id]
        self._keys[release_id] = keys
