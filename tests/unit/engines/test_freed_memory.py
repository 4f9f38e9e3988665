"""Is freed memory kept, and is another C library no obstacle?"""

from __future__ import annotations

import ctypes
import subprocess
import sys

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
    assert library.said == [(-8, 1), (-4, 0), (-1, 512 * 2**20)]


@pytest.mark.parametrize("library", [_Library(accepts=0), object()])
def test_a_library_without_the_setting_is_left_as_it_is(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert not keep_freed_memory()


_FAULTS = """
import ctypes, resource, threading
from proxy.engines.freed_memory import keep_freed_memory

library, size = ctypes.CDLL(None), 100 * 2**20
library.prctl(41, 1, 0, 0, 0)  # no huge pages, whatever the machine prefers
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
keep_freed_memory()

def use():
    taken = library.malloc(ctypes.c_size_t(size))
    ctypes.memset(taken, 1, size)
    library.free(taken)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    worker = threading.Thread(target=use)
    worker.start()
    worker.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), faults(), faults())
"""


def test_a_large_table_of_another_thread_is_cleared_by_the_kernel_once() -> None:
    """Of 25,600 pages; the thread itself needs some dozens."""
    done = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True, timeout=60)
    first, *later = map(int, done.stdout.split())
    assert first > 1_000
    assert max(later) < first / 10
