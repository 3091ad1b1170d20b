"""A stdio server with a descendant that detaches: `detaching_server.py FOLDER MANNER [OPTIONS]`, with the options of `stdio_upstream`.

The descendant leaves the session and the group of the server where it may, is forked twice, writes its number as the name of a file into
FOLDER, and stays. MANNER `keep` keeps its environment, `clear` starts a program with an empty one.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from contextlib import suppress
from pathlib import Path


def detach(folder: Path, manner: str) -> None:
    if os.fork():
        os.wait()
        return
    with suppress(PermissionError):
        os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / str(os.getpid())).touch()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    if manner == "clear":
        os.execve("/bin/sleep", ["sleep", "600"], {})
    while True:
        signal.pause()


if __name__ == "__main__":
    detach(Path(sys.argv[1]), sys.argv[2])
    del sys.argv[1:3]
    runpy.run_path(str(Path(__file__).with_name("stdio_upstream.py")), run_name="__main__")
