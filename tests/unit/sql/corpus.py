"""The cases of tests/cases, and what this tree makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import assert_never
from zoneinfo import ZoneInfo

from ruamel.yaml import YAML

from proxy.admin.files import read_policy
from proxy.analysis.analyse import Lowered
from proxy.analysis.keys import Key, PublicKey
from proxy.dp.accounting import knob_pico
from proxy.errors import HushError
from proxy.front.relations import RELATIONS
from proxy.pipeline.alone import read_alone
from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Task, plan_statement
from proxy.pipeline.premises import Premises, Terms, as_declared
from proxy.pipeline.stages import next_part, resumed
from proxy.pipeline.statements import Understood
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.parts import Part
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import Plan, SetsPlan
from proxy.plan.words.explain_sets import label
from proxy.policy.model import Policy
from proxy.session.asking.binary_values import NOT_HELD
from proxy.session.asking.parameters import read_parameters
from proxy.session.contract import Parameter
from proxy.sql.algebra.constants import Constants, Elements, Given, Readings, Unread, not_understood
from proxy.sql.algebra.describe import describe_aggregate
from proxy.sql.algebra.nodes import Literal, Null
from proxy.sql.literals.plain_texts import read_plain
from proxy.sql.query.block import BoundBlock
from proxy.sql.query.stages import StageRow
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sqltypes import TYPE_NAMES

CASES = Path(__file__).resolve().parents[2] / "cases"
_AS_DECLARED = Lowered()
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=ZoneInfo("UTC"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One statement of a client. facts: as the file spells them. place: file and number, for messages."""

    place: str
    sql: str
    facts: Mapping[str, object]

    @property
    def is_refused(self) -> bool:
        return "refused" in self.facts

    @property
    def told(self) -> tuple[tuple[StageRow, ...], ...]:
        """What the front says of each stage, in order: its values as text after their type, its rows after theirs."""
        given = self.facts.get("told", ())
        assert isinstance(given, (list, tuple))
        return tuple(_told(kind, values) for kind, *values in given)

    @property
    def parameters(self) -> tuple[tuple[str, object], ...]:
        """(type, value) of $1, $2, ..."""
        given = self.facts.get("params", ())
        assert isinstance(given, (list, tuple))
        return tuple((str(kind), value) for kind, value in given)

    @property
    def reads(self) -> Mapping[str, str | None]:
        """What PostgreSQL reads for texts that are not plain, as plain texts."""
        given = self.facts.get("reads", {})
        assert isinstance(given, dict)
        return given


def _told(kind: object, values: list[object]) -> tuple[StageRow, ...]:
    kinds, rows = (kind, values) if isinstance(kind, list) else ([kind], [[v] for v in values])
    if not rows:
        return ((None, *(cell for k in kinds for cell in (str(k), None))),)
    return tuple(("true", *(cell for pair in zip(kinds, row, strict=True) for cell in pair)) for row in rows)  # type: ignore[call-overload]  # of YAML


@cache
def cases() -> tuple[Case, ...]:
    found: list[Case] = []
    for path in sorted(CASES.glob("*.yaml")):
        if path.name != "shop.yaml":
            listed = YAML(typ="safe").load(path)
            found += [
                Case(place=f"{path.stem}-{i}", sql=c["sql"].strip(), facts=c) for i, c in enumerate(listed, start=1)
            ]
    return tuple(found)


@cache
def policy() -> Policy:
    return read_policy(CASES / "shop.yaml", {})


def understood(sql: str, premises: Premises) -> Understood:
    """A statement as a session understands it for which the front keeps nothing. Raises HushError."""
    handle = read_alone(Cuts(), sql, premises).handle
    assert isinstance(handle, Understood), "nothing that the front keeps has its name"
    return handle


def bind(sql: str, served: Policy) -> tuple[BoundBlock, ...]:
    query, setting = understood(sql, premises_of(served)).query, setting_of(served)
    assert isinstance(query, Outline)
    return plan_statement(Cuts(), _task(query, setting, Constants({}, NOW))).blocks


@dataclass(frozen=True, slots=True)
class Setting:
    """With what the statements of the cases are planned. share: what each release costs."""

    premises: Premises
    terms: Terms
    share: int


def plan(case: Case, served: Policy, setting: Setting | None = None) -> tuple[Plan, ...]:
    """What would be released, stage after stage. Raises HushError."""
    setting = setting or setting_of(served)
    handle, found = understood(case.sql, setting.premises), list[Plan]()
    for rows in case.told:
        part = next_part(Cuts(), handle)
        found += _planned(part.query, case, setting, lambda p, at=part.asked, of=handle: of.position(at.original(p)))  # type: ignore[misc]  # defaults
        handle = resumed(Cuts(), handle, part.asked, rows)
    if not isinstance(handle.query, Outline):
        return tuple(found)
    assert not handle.query.stages, "the case says what every stage gives"
    return (*found, *_planned(handle.query, case, setting, handle.position))


def premises_of(served: Policy, dialect: Dialect = DUCKDB) -> Premises:
    return replace(as_declared(served, RELATIONS, salt="salt"), dialect=dialect)


def setting_of(served: Policy, dialect: Dialect = DUCKDB, lowered: Lowered = _AS_DECLARED) -> Setting:
    """With what the statements of the cases are planned."""
    share = knob_pico(served.privacy, 10.0)
    terms = Terms(epsilon=10.0, limits=(share,), lowered=lowered)
    return Setting(premises_of(served, dialect), terms, share)


def _planned(query: Outline, case: Case, setting: Setting, original: Callable[[int], int]) -> tuple[Plan, ...]:
    bindings = {n: _constant(*p) for n, p in enumerate(case.parameters, start=1)}

    def planned(known: Readings) -> tuple[Plan, ...]:
        return plan_statement(Cuts(), _task(query, setting, Constants(bindings, NOW, known))).plans

    known: Readings = {}
    try:
        while True:
            try:
                return planned(known)
            except Unread as wanted:
                known = {**known, **_read(wanted, case.reads)}
    except HushError as error:
        error.position = original(error.position)
        raise


def _task(query: Outline, setting: Setting, constants: Constants) -> Task:
    return Task(query=query, premises=setting.premises, terms=setting.terms, constants=constants, share=setting.share)


def _read(wanted: Unread, reads: Mapping[str, str | None]) -> Readings:
    if any(t.text not in reads for t in wanted.texts):
        raise not_understood(wanted)
    return {t: _reading(t.oid, reads[t.text]) for t in wanted.texts}


def _reading(oid: int, text: str | None) -> Given:
    if text is None:
        return NOT_HELD
    return read_parameters((Parameter(oid=oid, format=0, data=text.encode()),))[1]


def facts_of_all(plans: Sequence[Plan]) -> list[dict[str, object]]:
    """Those of each release, and of each grouping set of it."""
    found = []
    for plan in plans:
        if isinstance(plan, SetsPlan):
            found += [{"set": label(one), **facts_of(one.plan)} for one in plan.sets]
        else:
            found.append(facts_of(plan))
    return found


def stages_of(plan: Plan) -> tuple[str, ...]:
    """The private SQL of a release."""
    plans = [one.plan for one in plan.sets] if isinstance(plan, SetsPlan) else [plan]
    return tuple(sql for one in plans for sql in one.stages)


def facts_of(plan: ReleasePlan) -> dict[str, object]:
    """A release's facts as the case files spell them; no key and no aggregate are left out of the text."""
    bounds, block = plan.analysed.bounds, plan.analysed.owned.block
    facts: dict[str, object] = {"bounds": f"{bounds.rows}/{bounds.rows_per_group}/{bounds.groups}"}
    if plan.analysed.keys:
        facts["keys"] = [_key(k) for k in plan.analysed.keys]
    facts["aggregates"] = [describe_aggregate(a) for a in plan.elects or block.aggregates]
    if plan.parts:
        facts["parts"] = [_limits(p) for p in plan.parts]
    return facts


def _limits(part: Part) -> str:
    """Values in a group, groups, and values in all, of one unit; of quantiles fractions, values, rows and groups.

    Of modes the candidates, rows and groups.
    """
    match part:
        case DistinctPart(limits=limits):
            return f"{limits.values}/{limits.groups}/{limits.in_all}"
        case QuantilePart(grid=grid, ladder=ladder):
            fractions = " ".join(f"{float(f):g}" for f in ladder.fractions)
            ends = "".join(f", ends of {float(f):g}" for f in ladder.bracketed)
            return f"{fractions} of {grid.cells} values, {ladder.move}/{ladder.groups}{ends}"
        case ModePart(poll=poll):
            return f"mode of {poll.candidates} values, {poll.move}/{poll.groups}"
        case _ as never:
            assert_never(never)


def _key(key: Key) -> str:
    return f"public {len(key.values)}" if isinstance(key, PublicKey) else "private"


def _constant(kind: str, value: object) -> Literal | Null | Elements:
    if isinstance(value, list):
        return Elements(tuple(_single(kind.removesuffix("[]"), item) for item in value))
    return _single(kind, value)


def _single(kind: str, value: object) -> Literal | Null:
    if value is None:
        return Null(TYPE_NAMES[kind])
    if isinstance(value, str):
        return Literal(read_plain(value, TYPE_NAMES[kind]), TYPE_NAMES[kind])
    assert isinstance(value, (bool, int, float))
    return Literal(value, TYPE_NAMES[kind])
