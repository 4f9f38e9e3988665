"""How do administrators edit the policy? They see what is wrong as they type, what it opens, and put it in force."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from proxy.admin.kept_policies import Kept
from proxy.admin.ledger_place import inspect
from proxy.console import policies
from proxy.console.consequences import ComparedQuestion, Gain, compared, gains
from proxy.console.policies import Fault, Right, Text, Wrong
from proxy.console.policy_keys import policy_keys
from proxy.console.visits import Console, Visit
from proxy.errors import HushError
from proxy.ledger.base import NOTHING
from proxy.plan.charge import AccountKind, Cost, dataset_of
from proxy.policy.model import Policy

_log = logging.getLogger("hushql")


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """The page and its parts. Every route of it is for administrators of the dataset alone."""

    console: Console

    async def page(self, visit: Visit) -> Response:
        """The file as it is."""
        return await self._page(visit, done="", trouble="")

    async def check(self, visit: Visit) -> Response:
        """What is wrong with an edit, or what it opens, closes and gives away."""
        found = await self._judged(visit)
        if isinstance(found, Wrong):
            return self.console.page("policy_wrong.html", visit, faults=found.faults)
        before, after = await asyncio.to_thread(self._gains, found)
        return self.console.page("policy_right.html", visit, changes=found.changes(), before=before, after=after)

    async def questions(self, visit: Visit) -> Response:
        """What typical questions cost and err, now and after."""
        found = await self._judged(visit)
        if isinstance(found, Wrong):
            return self.console.page("policy_wrong.html", visit, faults=found.faults)
        rows: list[ComparedQuestion] = []
        for question in compared(found.before, found.after):
            if await visit.request.is_disconnected():  # it was cancelled
                break
            rows.append(await asyncio.to_thread(question))
        return self.console.page("policy_questions.html", visit, rows=rows)

    async def _judged(self, visit: Visit) -> Right | Wrong:
        """What the edit means; wrong in line 1 if the file itself cannot be read."""
        served, text = self.console.served(visit), visit.form.get("text", "")
        try:
            return await asyncio.to_thread(lambda: policies.judged(served, policies.read(served), text))
        except HushError as error:
            return Wrong((Fault(1, error.text()),))

    async def apply(self, visit: Visit) -> Response:
        """Write the edit, have it served, or put back what was there and say why."""
        text = visit.form.get("text", "").replace("\r\n", "\n")
        return await self._put(visit, lambda: text)

    async def back(self, visit: Visit) -> Response:
        """Put an earlier version in force."""
        state, place, digest = self.console.serving.state, visit.place, visit.form.get("version", "")
        return await self._put(visit, lambda: policies.version(state, place.database, digest))

    async def _put(self, visit: Visit, wanted: Callable[[], str]) -> Response:
        served, login = self.console.served(visit), visit.place.login
        based_on, kept = visit.form.get("based_on", ""), visit.form.get("text", "")
        try:
            text = await asyncio.to_thread(wanted)
            before = await asyncio.to_thread(policies.write, served, text, based_on=based_on)
        except HushError as error:
            return await self._page(visit, done="", trouble=error.text(), kept=kept)
        trouble = await served.take()
        if trouble:
            await asyncio.to_thread(policies.restore, served, before, text)
            await served.take()
            return await self._page(visit, done="", trouble=trouble, kept=text)
        _log.info("%s: %s has put a policy in force from the console", visit.place.database, login)
        return await self._page(visit, done="The policy is in force.", trouble="")

    async def _page(self, visit: Visit, *, done: str, trouble: str, kept: str = "") -> Response:
        served = self.console.served(visit)
        state, present = self.console.serving.state, Text("")
        versions: tuple[Kept, ...] = ()
        try:
            present = await asyncio.to_thread(policies.read, served)
            versions = await asyncio.to_thread(policies.versions_of, state, visit.place.database)
        except HushError as error:
            trouble = trouble or error.text()
        # an edit that was not taken stays based on what it was: nobody overwrites what somebody else wrote meanwhile
        mark = visit.form.get("based_on", "") if kept else present.mark
        return self.console.page(
            "policy.html", visit, text=kept or present.text, mark=mark, versions=versions, done=done,
            trouble=trouble, keys=policy_keys(), status=409 if trouble else 200,
        )  # fmt: skip

    def _gains(self, right: Right) -> tuple[tuple[Gain, ...], tuple[Gain, ...]]:
        """Now, with what was spent, and after the edit."""
        return gains(right.before, self._spent(right.before)), gains(right.after, {})

    def _spent(self, policy: Policy) -> Mapping[str, Cost]:
        """By everybody, and the most that one role, login and session did; nothing if the books cannot be read."""
        try:
            totals = inspect(self.console.serving.books).totals
        except HushError:
            return {}
        present = policy.privacy.accounting
        ours = [t for t in totals if dataset_of(t.name) == policy.dataset and t.accounting is present]
        most = {
            kind: max((t.spent for t in ours if t.kind is kind), key=lambda cost: cost.pico, default=NOTHING)
            for kind in AccountKind
        }
        return {
            "by everybody" if kind is AccountKind.DATASET else f"by the {kind} that spent most": cost
            for kind, cost in most.items() if cost != NOTHING
        }  # fmt: skip
