"""What statements would cost, asked for in SQL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from proxy.errors import HushError, InvalidParameter, Unsupported
from proxy.session.contract import Parameter, Spliced
from proxy.session.session import ClientSession
from proxy.sqltypes import SqlType
from tests.unit.session.running import Slow, session_with

RANKS = "SELECT min(age), count(*), avg(age) FROM users"


def asked(
    session: ClientSession, text: str, settings: Mapping[str, str] = {}, given: tuple[Parameter, ...] = ()
) -> Spliced:
    async def answered() -> Spliced:
        (piece,) = await session.prepare(text, settings)
        found = await session.release(piece, given, settings)
        assert isinstance(found, Spliced)
        return found

    return asyncio.run(answered())


def test_every_statement_has_its_row_for_every_account(tmp_path: Path) -> None:
    text = f"select * from hush.estimate($$ {RANKS}; {RANKS}; SELECT 1; SELECT age FROM users; RESET ALL; $$) x"
    with session_with(Slow(), tmp_path / "state") as (session, ledger, _workers):
        found = asked(session, text)
        statement, account, *_, reused, fits, error, refusal, told = (array.text for array in found.arrays)
        assert statement == '{"1","1","2","2","3","3","4","5",NULL,NULL}'
        assert account.count("user") == account.count("session") == 4
        assert reused == '{"f","f","t","t","f","f",NULL,NULL,"f","f"}'
        assert fits.count("t") == 8
        assert "min(age): rank within " in error
        assert "avg(age): " in error
        assert " / number of rows" in error
        assert error.count("exact") == 2
        assert "DP004: rows of a private table cannot be shown" in refusal
        assert "SET them before" in refusal
        assert "NULL" in told
        assert found.sql.endswith(" x")
        assert ledger.all_accounts() == ()


def test_of_a_mode_is_told_how_seldom_another_value_is_given(tmp_path: Path) -> None:
    text = "select * from hush.estimate('SELECT mode() WITHIN GROUP (ORDER BY age) FROM users') x"
    with session_with(Slow(), tmp_path / "state") as (session, _ledger, _workers):
        *_, error, _refusal, _told = (array.text for array in asked(session, text).arrays)
    assert "mode() WITHIN GROUP (ORDER BY age): at most 5 % for a value " in error


def test_settings_decide_what_statements_cost(tmp_path: Path) -> None:
    text = f"select * from hush.estimate(({RANKS!r}::text))"
    with session_with(Slow(), tmp_path / "state") as (session, _ledger, _workers):
        capped = asked(session, text, {"hush.epsilon": "2", "hush.max_charge": "1"})
        assert "hush.max_charge allows 1" in capped.arrays[-2].text
        once, twice = (
            asked(session, f"select * from hush.estimate('{RANKS}; {RANKS}')", {"hush.fresh": fresh}).arrays[2].text
            for fresh in ("off", "on")
        )
        assert once.split(",")[2] == '"0.000000000000"'
        assert len(set(twice.removesuffix("}").split(",")[:4])) <= 2
        assert twice.split(",")[2] == once.removeprefix("{").split(",")[0]


def test_several_releases_of_a_statement_share_its_charge(tmp_path: Path) -> None:
    several = "SELECT (SELECT avg(age) FROM users), (SELECT count(*) FROM users), (SELECT max(age) FROM users)"
    with session_with(Slow(), tmp_path / "state") as (session, _ledger, _workers):
        one, three = (
            float(asked(session, f"select * from hush.estimate($$ {text} $$)").arrays[2].text.split('"')[1])
            for text in ("SELECT avg(age) FROM users", several)
        )
        assert one - 5e-12 < three <= one


@pytest.mark.parametrize(
    ("text", "data", "error"),
    [
        ("select * from hush.estimate($1)", b"7", InvalidParameter),
        ("select * from hush.estimate($1)", None, InvalidParameter),
        ("select * from hush.estimate(lower($1))", b"x", Unsupported),
        ("select * from hush.estimate('a', 'b')", b"x", Unsupported),
        (f"select * from hush.estimate('{'select 1;' * 201}')", b"x", Unsupported),
    ],
)
def test_it_takes_one_text(tmp_path: Path, text: str, data: bytes | None, error: type[HushError]) -> None:
    kind = SqlType.INT4 if data == b"7" else SqlType.TEXT
    with session_with(Slow(), tmp_path / "state") as (session, _ledger, _workers):
        given = (Parameter(oid=kind.oid, format=0, data=data),)
        with pytest.raises(error):
            asked(session, text, given=given)
        (piece,) = asyncio.run(session.prepare("select * from hush.estimate($1)", {}))
        assert piece.is_private
        good = (Parameter(oid=SqlType.TEXT.oid, format=0, data=RANKS.encode()),)
        assert asked(session, "select * from hush.estimate($1)", given=good).arrays


def test_stages_are_estimated_as_a_whole(tmp_path: Path) -> None:
    staged = "SELECT count(*) FROM users WHERE score > (SELECT avg(age) FROM users)"
    text = f"select * from hush.estimate($$ {staged}; {staged} $$) x"
    with session_with(Slow(), tmp_path / "state") as (session, ledger, _workers):
        found = asked(session, text, {"hush.epsilon": "1"})
        _, account, _, epsilon, _, reused, _, error, refusal, _ = (array.text for array in found.arrays)
        assert account == '{"user","session","user","session","user","session"}'
        costs = [float(cell.strip('"')) for cell in epsilon.strip("{}").split(",")]
        assert costs == pytest.approx([1, 1, 0, 0, 1, 1], rel=1e-4)
        assert reused == '{"f","f","t","t","f","f"}'
        assert "avg(age)" in error
        assert set(refusal.strip("{}").split(",")) == {"NULL"}
        assert not ledger.all_accounts()
