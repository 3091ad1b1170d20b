"""Starts a server and writes down every line it is sent: `python -I -S tap.py LOG COMMAND ARGUMENT...`.

The server's output and errors go where ours would. Needs nothing but the standard library, so that it costs a few milliseconds.
"""

from __future__ import annotations

import subprocess
import sys


def main() -> None:
    log, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server, open(log, "ab", buffering=0) as written:
        assert server.stdin
        for line in iter(sys.stdin.buffer.readline, b""):
            written.write(line)
            server.stdin.write(line)
            server.stdin.flush()


if __name__ == "__main__":
    main()
