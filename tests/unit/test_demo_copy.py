"""Does the demo keep a policy that was edited, and no other?"""

from __future__ import annotations

from pathlib import Path

from proxy.demo import copied_unless_edited


def test_an_edited_copy_stays_and_any_other_is_as_shipped(tmp_path: Path) -> None:
    shipped, folder = tmp_path / "shop.yaml", tmp_path / "demo"
    folder.mkdir()
    shipped.write_text("one")
    written = copied_unless_edited(shipped, folder)
    assert written.read_text() == "one"
    shipped.write_text("two")  # a newer hushql
    assert copied_unless_edited(shipped, folder).read_text() == "two"
    written.write_text("edited")
    assert copied_unless_edited(shipped, folder).read_text() == "edited"
    shipped.write_text("three")
    assert copied_unless_edited(shipped, folder).read_text() == "edited"
    written.unlink()
    assert copied_unless_edited(shipped, folder).read_text() == "three"
