"""Run as a program: `hushql` where no file may grow past so many bytes, the first argument."""

from __future__ import annotations

import resource
import sys

from proxy.__main__ import main

if __name__ == "__main__":
    most = int(sys.argv.pop(1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    main()
