"""What runs when `hushql` is called?"""

from __future__ import annotations

import faulthandler
import sys

from proxy.admin.cli import build, run
from proxy.admin.commands.serve import Runners
from proxy.app import check_data, explain, profile, serve
from proxy.demo import demo
from proxy.engines.freed_memory import keep_freed_memory


def main() -> None:
    """Run the command line of this process and exit with its status."""
    faulthandler.enable(all_threads=False)  # a mapped file that turns bad would end us without a word
    keep_freed_memory()
    runners = Runners(serve=serve, demo=demo, explain=explain, check_data=check_data)
    sys.exit(run(build(runners, profile), sys.argv[1:]))


if __name__ == "__main__":
    main()
