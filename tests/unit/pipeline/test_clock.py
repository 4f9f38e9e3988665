"""A plan that would be another at another time says so, and its release has another name then.

Who reads the clock is known where it is read: no text is searched for words.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from proxy.pipeline.outline import Cuts, Outline
from proxy.pipeline.plans import Planned, Task, plan_near_enough, plan_statement
from proxy.pipeline.target import Target
from proxy.sql.algebra.constants import Constants, Elements, Given, InputText
from proxy.sql.algebra.nodes import Literal
from proxy.sqltypes import SqlType
from tests.unit.sql.corpus import NOW, Setting, policy, setting_of, understood

BY_CLOCK = (
    "seen < now()", "seen < current_timestamp", "joined < current_date", "at_ < localtimestamp",
    "seen < transaction_timestamp()", "seen < statement_timestamp()", "age(seen) > interval '1 year'",
    "age(joined) < interval '2 years'", "extract(year FROM age(joined)) > 3", "seen < 'now'", "joined < 'today'",
    "joined < DATE 'Tomorrow'", "seen < 'yesterday'::timestamptz", "joined < 'now'::text::date",
    "joined IN ('2024-01-01', 'today')", "joined = ANY ('{2024-01-01,today}')", "at_ < 'today 12:00'",
    "joined < date_trunc('month', now())", "joined < now() - interval '1 day'",
    "CASE WHEN now() < '2024-01-01' THEN age > 30 ELSE kids > 2 END",
)  # fmt: skip
STEADY = (
    "plan = 'now'", "city = 'current_date'", "nick = 'localtimestamp now() today'", "joined < '2024-01-01'",
    "seen < TIMESTAMPTZ '2024-01-01 00:00+00'", "plan IN ('today', 'tomorrow')", "age > 30 /* now() */",
    "age(seen, '2024-01-01') > interval '1 year'",
)  # fmt: skip
LATER = NOW + timedelta(days=400)


def read(now: datetime) -> dict[InputText, Given]:
    """What PostgreSQL reads in the texts above at a time."""
    days = tuple(Literal(day, SqlType.DATE) for day in (date(2024, 1, 1), now.date()))
    return {
        InputText("today 12:00", SqlType.TIMESTAMP.oid): Literal(now.replace(tzinfo=None), SqlType.TIMESTAMP),
        InputText("{2024-01-01,today}", SqlType.DATE.array_oid): Elements(days),
    }


def question(condition: str) -> tuple[Outline, Setting]:
    """Counting what passes a condition; at_ is a time without a zone."""
    setting, text = setting_of(policy()), condition.replace("at_", "seen AT TIME ZONE 'UTC'")
    query = understood(f"SELECT count(*) FROM users WHERE {text}", setting.premises).query
    assert isinstance(query, Outline)
    return query, setting


def planned(condition: str, now: datetime) -> Planned:
    query, setting = question(condition)
    return plan_statement(Cuts(), task(query, setting, Constants({}, now, read(now)), setting.share))


def task(query: Outline, setting: Setting, constants: Constants, share: int = 0) -> Task:
    return Task(query=query, premises=setting.premises, terms=setting.terms, constants=constants, share=share)


@pytest.mark.parametrize("condition", BY_CLOCK)
def test_what_reads_the_clock_is_another_release_at_another_time(condition: str) -> None:
    now, later = planned(condition, NOW), planned(condition, LATER)
    assert not now.is_lasting
    assert now.plans[0].fingerprint != later.plans[0].fingerprint


@pytest.mark.parametrize("condition", STEADY)
def test_what_only_has_such_words_is_the_same_at_all_times(condition: str) -> None:
    now, later = planned(condition, NOW), planned(condition, LATER)
    assert now.is_lasting
    assert now.plans[0].fingerprint == later.plans[0].fingerprint


def test_one_select_of_several_that_reads_the_clock_is_enough() -> None:
    setting = setting_of(policy())
    text = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM users WHERE joined < current_date)"
    query = understood(text, setting.premises).query
    assert isinstance(query, Outline)
    found = plan_statement(Cuts(), task(query, setting, Constants({}, NOW)))
    assert [block.reads_clock for block in found.blocks] == [False, True]
    assert not found.is_lasting


@pytest.mark.parametrize(("condition", "is_lasting"), [("joined < current_date", False), ("age > 30", True)])
def test_an_accuracy_that_is_asked_for_changes_nothing_of_that(condition: str, is_lasting: bool) -> None:
    query, setting = question(condition)
    wanted = replace(task(query, setting, Constants({}, NOW)), terms=replace(setting.terms, target=Target(1000.0)))
    precise = plan_statement(Cuts(), replace(wanted, terms=replace(wanted.terms, epsilon=10.0)))
    found = plan_near_enough(Cuts(), wanted, precise.outputs, (None,))
    assert found.is_lasting is is_lasting
