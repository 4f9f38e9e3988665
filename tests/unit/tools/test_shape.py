"""Does the count of folders and names see what is there, and only that?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import shape
from tools.sources import ROOT


@pytest.fixture
def package(tmp_path: Path) -> Path:
    made = tmp_path / "proxy"
    (made / "sql").mkdir(parents=True)
    (made / "__init__.py").write_text("")
    (made / "a.py").write_text("class Known:\n    pass\n\n\nclass _Own:\n    pass\n\n\nKind = int | str\nLIMIT = 1\n")
    (made / "b.py").write_text("class _Own:\n    pass\n\n\nKind = dict[str, int]\nLIMIT = 2\n")
    (made / "sql" / "c.py").write_text("class Known:\n    pass\n")
    return made


def test_modules_are_counted_in_their_own_folder(package: Path) -> None:
    assert shape.modules_of(package) == {"proxy": 2, "proxy/sql": 1}


def test_types_of_one_name_are_found_and_nothing_else(package: Path) -> None:
    assert shape.defined_twice(package) == {
        "Kind": ["proxy/a.py", "proxy/b.py"],
        "Known": ["proxy/a.py", "proxy/sql/c.py"],
    }


def test_no_folder_of_the_program_is_a_heap() -> None:
    folder, number = shape.modules_of(ROOT / "proxy").most_common(1)[0]
    assert number <= shape.MOST_MODULES, folder


def test_a_type_name_has_one_meaning() -> None:
    assert shape.defined_twice(ROOT / "proxy") == {}
