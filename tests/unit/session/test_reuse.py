"""What a login was shown answers what follows from it, for that login alone."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry

from proxy.metrics import Metrics
from proxy.session.asking.plancache import PlanCache
from proxy.session.asking.seen_releases import SeenReleases
from proxy.session.contract import Spliced
from proxy.session.session import ClientSession
from tests.unit.plan.shop import plan
from tests.unit.session.running import Slow, session_with
from tests.unit.session.test_estimate import asked

GROUPS = "select plan, count(*) from users group by plan"
TOTAL = "select count(*) from users"
OWNER = ("ann", "policy", "1")
CHEAP = {"hush.epsilon": "1"}


def heard(spliced: Spliced) -> list[str]:
    """The first two words of each notice."""
    return [" ".join(n.message.replace(":", "").split()[:2]) for n in spliced.notices]


def test_an_answer_is_computed_from_what_was_shown(tmp_path: Path) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, ledger, _workers):
        asked(session, GROUPS)
        told = asked(session, TOTAL)
        assert heard(told) == ["charged nothing", "computed from", "the noise"]
        assert ledger.verify().releases == 1
        explained = asked(session, f"explain {TOTAL}").literal_sql
        assert "Reuse: computed from a release that your accounts paid for, up to 4 of its numbers added" in explained
        assert '"added_up": 4' in asked(session, f"explain (format json) {TOTAL}").literal_sql.replace("\\", "")
        anew = asked(session, TOTAL, {"hush.fresh": "on"})
        assert heard(anew) == ["charged epsilon", "the noise"]
        again = asked(session, TOTAL)
        assert heard(again) == ["charged nothing", "the noise"], "its own answer is there now"
        both = asked(session, f"select * from ({TOTAL}) a, ({GROUPS}) b, (select count(*) + 1 from users) c")
        assert heard(both)[:2] == ["charged nothing", "computed from"], "each for less"
        assert ledger.verify().releases == 2


def test_nobody_else_is_answered_from_it_and_a_new_session_pays(tmp_path: Path) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, ledger, workers):
        asked(session, GROUPS, CHEAP)

        def one_more(login: str, name: str) -> ClientSession:
            metrics = Metrics(CollectorRegistry())
            return ClientSession(session._dataset, login, name, workers, PlanCache(), metrics)

        assert heard(asked(one_more("ann", "another"), TOTAL, CHEAP))[:2] == ["charged epsilon", "computed from"]
        assert ledger.verify().releases == 1
        assert heard(asked(one_more("boss", "its own"), TOTAL, CHEAP)) == ["charged epsilon", "the noise"]
        assert ledger.verify().releases == 2


def test_the_least_recently_shown_is_forgotten() -> None:
    known = SeenReleases()
    plans = [plan(f"select plan, count(*) from users where age > {age} group by plan") for age in range(1, 70)]
    known.add(OWNER, plans)
    assert not known.has(OWNER, plans[0].fingerprint)
    assert known.has(OWNER, plans[-1].fingerprint)
    assert not known.has(("bob", "policy", "1"), plans[-1].fingerprint)
    assert known.sources(OWNER) == tuple(reversed(plans[-24:]))
    known.add(OWNER, [plan("select age, joined, count(*) from users group by 1, 2")])
    assert known.sources(OWNER)[0] == plans[-1], "so many cells are not added up"
    for number in range(500):
        known.add((f"login {number}", "policy", "1"), ())
    assert known.sources(OWNER) == ()
