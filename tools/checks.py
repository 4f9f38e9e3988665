"""Does the tree keep the repository's own rules? Asks all of them in one pass, which reads and parses each file once.

Each rule can also be asked by itself: `python -m tools.sizes`.
"""

from __future__ import annotations

import sys

from tools import claims, doors, paths, sizes, words

RULES = (sizes.main, doors.main, words.main, paths.main, claims.main)


def main() -> int:
    """Asks every rule, also where an earlier one found something; returns the exit status."""
    return max(rule() for rule in RULES)


if __name__ == "__main__":
    sys.exit(main())
