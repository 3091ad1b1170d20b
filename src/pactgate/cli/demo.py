"""The servers of the demo: two programs, one of each protocol era, a file of Python tools, and a REST API with an OpenAPI document.

The API inherits a listening socket, so its port is known before it runs. It ends when its stdin is closed. Must not: be imported for
anything but the demo.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pactgate.config.server_settings import ServerConfig

PROGRAMS: Final = ("almanac", "scratchpad")
TOOLS: Final = "pocket"
API: Final = "library"
_END_S: Final = 2.0


@contextmanager
def demo() -> Iterator[dict[str, ServerConfig]]:
    """All servers of the demo, while its API runs."""
    api = DemoApi()
    try:
        yield {**_own_servers(), API: api.server()}
    finally:
        api.close()


def _own_servers() -> dict[str, ServerConfig]:
    """The servers that the gateway starts itself."""
    programs = [
        ServerConfig(id=name, command=sys.executable, args=("-m", f"pactgate.demo.{name}")) for name in PROGRAMS
    ]
    tools = ServerConfig(id=TOOLS, tools=str(Path(__file__).parents[1] / "demo" / f"{TOOLS}.py"))
    return {server.id: server for server in (*programs, tools)}


class DemoApi:
    """The running REST API of the demo."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
            self.port: int = listener.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"pactgate.demo.{API}", str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # http.server logs requests, and a traceback for a client that goes away
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )

    def server(self) -> ServerConfig:
        """The API serves its own OpenAPI document, and its responses are validated against it."""
        address = f"http://127.0.0.1:{self.port}"
        return ServerConfig(id=API, openapi=f"{address}/openapi.json", base_url=address, output_validation="enforce")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_S)
