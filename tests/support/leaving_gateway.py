"""A gateway that leaves everything behind: `python leaving_gateway.py COMMAND...` runs ours, and a stop only stops it in its tracks.

Whoever started it can still end its whole session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def main() -> None:
    gateway = subprocess.Popen(sys.argv[1:])

    def leave(number: int, frame: object) -> None:
        os.kill(gateway.pid, signal.SIGSTOP)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    gateway.wait()


if __name__ == "__main__":
    main()
