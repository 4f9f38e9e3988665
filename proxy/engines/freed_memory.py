"""Does memory that the engine frees stay with the process, so that the next statement need not have it cleared?

DuckDB takes the tables it groups in from the C library, tens of megabytes at a time, which that gives back to the
kernel after each statement: what is mapped on its own, what lies at the end of the heap, and whatever is larger than
the 64 MB heaps of further threads. Changes how long a statement takes, and nothing else.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # names of mallopt(3)
_KEPT_BYTES = 512 * 2**20


def keep_freed_memory() -> bool:
    """Keep up to 512 MB for the whole process, in one heap for all threads; False where the C library is not glibc.

    To be called before there are threads: those that had memory keep the heap they had it from.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_ARENA_MAX, 1) and mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))
