"""Every failure that was ever found stays found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.corpus_world import FOLDER, load
from tests.fuzz.examine import Examiner

FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_a_past_failure_stays_away(path: Path) -> None:
    world, query, context = load(path)
    with Examiner(world) as examiner:
        examiner.meaning(query, context)
        examiner.sensitivity(query, context)


def test_the_corpus_is_read() -> None:
    assert len(FILES) > 20
