"""An answer leaves a session when its charge can no longer be put aside."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from proxy.errors import LedgerFailed, Unsupported
from proxy.ledger.base import Outcome
from tests.unit.session.running import Slow, session_with


def test_no_answer_leaves_before_its_charge_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = Slow()
    noise.may_go_on.set()

    def failing(_handle: int) -> None:
        raise OSError(5, "input/output error")

    with session_with(noise, tmp_path / "state") as (session, ledger, _workers):

        async def answered() -> None:
            (piece,) = await session.prepare("select count(*) from users", {})
            await session.release(piece, (), {})

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing)
            with pytest.raises(LedgerFailed):
                asyncio.run(answered())
        assert noise.sizes, "the marker is waited for when the noise was added"
        (asked,) = ledger.history("shop/ann", 10)
        assert (asked.outcome, asked.cost.pico > 0) == (Outcome.FAILED, True)
        asyncio.run(answered())


def test_all_groups_of_a_public_table_need_known_values(tmp_path: Path) -> None:
    joined = "FROM stores s LEFT JOIN orders o ON o.store_id = s.store_id GROUP BY 1"
    with session_with(Slow(), tmp_path / "state") as (session, ledger, _workers):

        async def answered(text: str) -> None:
            (piece,) = await session.prepare(text, {})
            await session.release(piece, (), {})

        with pytest.raises(Unsupported, match="only where its values are known"):
            asyncio.run(answered(f"SELECT s.name, count(o.order_id) {joined}"))
        assert not ledger.history("shop/ann", 10), "nothing is charged for it"
