"""Run as a program: `hushql` where no file may grow past so many bytes, the first argument.

The limit is lifted once hushql is done: what the interpreter writes at its own end, such as figures of coverage, has
space.
"""

from __future__ import annotations

import resource
import sys

from proxy.__main__ import main

if __name__ == "__main__":
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), before[1]))
    try:
        main()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
