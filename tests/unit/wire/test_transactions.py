"""What a statement does to the transaction that it stands in, told by its first words."""

from __future__ import annotations

import pytest

from proxy.wire.transactions import BlockControl, control_of, leaves_block, takes_snapshot


@pytest.mark.parametrize(
    ("text", "control", "leaves"),
    [
        ("begin", BlockControl.BEGINS, False),
        ("; /* now */ Start Transaction read only", BlockControl.BEGINS, False),
        ("COMMIT", BlockControl.COMMITS, True),
        ("end work", BlockControl.COMMITS, True),
        ("commit and no chain", BlockControl.COMMITS, True),
        ("commit work and chain", BlockControl.ABORTS, False),  # an error where nothing was begun
        ("commit prepared 'x'", BlockControl.NONE, False),
        ("rollback prepared 'x'", BlockControl.NONE, False),
        ("rollback", BlockControl.ABORTS, True),
        ("abort transaction", BlockControl.ABORTS, True),
        ("rollback and chain", BlockControl.ABORTS, False),
        ("rollback to a", BlockControl.ABORTS, False),
        ("rollback work to savepoint chain", BlockControl.ABORTS, False),
        ("savepoint a", BlockControl.ABORTS, False),
        ("release a", BlockControl.ABORTS, False),
        ('"begin"', BlockControl.NONE, False),
        ("select 1", BlockControl.NONE, False),
        ("", BlockControl.NONE, False),
    ],
)
def test_what_becomes_of_a_block(text: str, control: BlockControl, *, leaves: bool) -> None:
    assert (control_of(text), leaves_block(text)) == (control, leaves)


@pytest.mark.parametrize("text", ["select 1", "(select 1)", "insert into t values (1)", "explain select 1", '"begin"'])
def test_what_reads_takes_a_snapshot(text: str) -> None:
    assert takes_snapshot(text)


@pytest.mark.parametrize("text", ["begin; select 1", "set x = 1", "SHOW x", ";;", "", "-- nothing\nfetch 1 from c"])
def test_what_does_not_read_takes_none(text: str) -> None:
    assert not takes_snapshot(text)
