"""What a statement does to the transaction that it stands in, told by its first words."""

from __future__ import annotations

import pytest

from proxy.wire.transactions import Control, control_of, leaves_block, takes_snapshot


@pytest.mark.parametrize(
    ("text", "control", "leaves"),
    [
        ("begin", Control.BEGINS, False),
        ("; /* now */ Start Transaction read only", Control.BEGINS, False),
        ("COMMIT", Control.COMMITS, True),
        ("end work", Control.COMMITS, True),
        ("commit and no chain", Control.COMMITS, True),
        ("commit work and chain", Control.ABORTS, False),  # an error where nothing was begun
        ("commit prepared 'x'", Control.NONE, False),
        ("rollback prepared 'x'", Control.NONE, False),
        ("rollback", Control.ABORTS, True),
        ("abort transaction", Control.ABORTS, True),
        ("rollback and chain", Control.ABORTS, False),
        ("rollback to a", Control.ABORTS, False),
        ("rollback work to savepoint chain", Control.ABORTS, False),
        ("savepoint a", Control.ABORTS, False),
        ("release a", Control.ABORTS, False),
        ('"begin"', Control.NONE, False),
        ("select 1", Control.NONE, False),
        ("", Control.NONE, False),
    ],
)
def test_what_becomes_of_a_block(text: str, control: Control, *, leaves: bool) -> None:
    assert (control_of(text), leaves_block(text)) == (control, leaves)


@pytest.mark.parametrize("text", ["select 1", "(select 1)", "insert into t values (1)", "explain select 1", '"begin"'])
def test_what_reads_takes_a_snapshot(text: str) -> None:
    assert takes_snapshot(text)


@pytest.mark.parametrize("text", ["begin; select 1", "set x = 1", "SHOW x", ";;", "", "-- nothing\nfetch 1 from c"])
def test_what_does_not_read_takes_none(text: str) -> None:
    assert not takes_snapshot(text)
