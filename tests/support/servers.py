"""Real servers for tests: settings of scripted child processes, and what they logged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pactgate.config.sections.rate_limits import RateLimits
from pactgate.config.server_settings import ServerConfig

UNLIMITED = RateLimits(enabled=False)
"""For tests that call more often than a caller may."""
UPSTREAM = Path(__file__).parent / "stdio_upstream.py"


def scripted(server: str = "files", *, options: dict[str, Any] | None = None, **settings: Any) -> ServerConfig:
    """A server that runs `stdio_upstream.py` with these options."""
    return ServerConfig(id=server, command=sys.executable, args=(str(UPSTREAM), json.dumps(options or {})), **settings)


def logged(file: Path) -> list[dict[str, Any]]:
    """What the server received, in order."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def methods(file: Path) -> list[str]:
    return [entry["method"] for entry in logged(file)]
