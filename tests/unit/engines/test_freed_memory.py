"""Is freed memory kept, and is another C library no obstacle?"""

from __future__ import annotations

import ctypes

import pytest

from proxy.engines.freed_memory import keep_freed_memory


class _Library:
    def __init__(self, accepts: int) -> None:
        self.said: list[tuple[int, int]] = []
        self._accepts = accepts

    def mallopt(self, name: int, value: int) -> int:
        self.said.append((name, value))
        return self._accepts


def test_mapped_blocks_are_given_up_and_half_a_gigabyte_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    library = _Library(accepts=1)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert keep_freed_memory()
    assert library.said == [(-4, 0), (-1, 512 * 2**20)]


@pytest.mark.parametrize("library", [_Library(accepts=0), object()])
def test_a_library_without_the_setting_is_left_as_it_is(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert not keep_freed_memory()
