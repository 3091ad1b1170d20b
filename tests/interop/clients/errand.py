"""Hands one scenario of the conformance suite to the driver that waits at a socket: `python errand.py SOCKET URL`.

The suite starts a client anew for each scenario; this one starts fast, because the driver has everything loaded.
"""

from __future__ import annotations

import json
import os
import socket
import sys

PREFIX = "MCP_CONFORMANCE_"


def main() -> None:
    told = {name: held for name, held in os.environ.items() if name.startswith(PREFIX)}
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(sys.argv[1])
        line.sendall(json.dumps({"url": sys.argv[-1], **told}).encode() + b"\n")
        with line.makefile() as answer:
            sys.stdout.write(answer.read())


if __name__ == "__main__":
    main()
