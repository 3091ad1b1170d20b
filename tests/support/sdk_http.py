"""Runs `sdk_http_server.py` beside tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("sdk_http_server.py")


@contextmanager
def official_servers() -> Iterator[dict[str, str]]:
    """The origins of running servers of the official SDK: `streamable`, `json` and `sse`."""
    process = subprocess.Popen([sys.executable, str(PROGRAM)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ports = json.loads(process.stdout.readline())
        yield {kind: f"http://127.0.0.1:{port}" for kind, port in ports.items()}
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
