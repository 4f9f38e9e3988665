"""kill -9 at any moment: nobody is charged less than was answered, and the next start finds everything in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.kill_rounds import kill_rounds
from tests.faults.proxied import Site, hushql, launch, processes_under, running, wait_until_it_listens


def check(site: Site, rounds: int) -> None:
    tally = kill_rounds(site, rounds)
    assert tally.problems == []
    assert tally.answered.total() >= rounds
    verified = hushql("ledger", "verify", "--state", str(site.state))
    assert verified.returncode == 0, verified.stderr
    assert "verified" in verified.stdout


def test_never_less_charged_than_answered_over_the_wire(site: Site) -> None:
    check(site, 5)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_never_less_charged_than_answered_in_200_kills(site: Site) -> None:
    check(site, 200)


def test_the_next_start_removes_what_a_killed_proxy_left(site: Site) -> None:
    """Its PostgreSQL, that one's directory, and rows that did not fit in memory."""
    killed = launch(site)
    wait_until_it_listens(killed)
    (record,) = site.state.glob("front-*.json")
    front = Path(json.loads(record.read_text())["directory"])
    (spilled,) = site.state.glob("spill-*")
    (spilled / "rows").write_text("private")
    killed.process.kill()
    killed.process.wait()
    with running(site):
        assert not front.exists()
        assert not spilled.exists()
        assert not processes_under(front)
    assert not list(site.state.glob("front-*"))
    assert not list(site.state.glob("spill-*"))
