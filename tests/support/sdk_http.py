"""Runs `sdk_http_server.py` beside a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("sdk_http_server.py")


@contextmanager
def official_server(kind: str) -> Iterator[str]:
    """The origin of a running server of the official SDK: `streamable`, `json` or `sse`."""
    process = subprocess.Popen([sys.executable, str(PROGRAM), kind], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
