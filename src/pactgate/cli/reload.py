"""Takes over the configuration file when it changes or on SIGHUP. A file with problems is refused whole, and what runs goes on.

The file is looked at once a second: a look costs microseconds, and works for every way editors and tools have of replacing a file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pactgate.app import Gateway
from pactgate.config.load import load
from pactgate.config.problems import ConfigurationError
from pactgate.core.events import ConfigurationRefused, Emit

LOOK_EVERY_S: Final = 1.0
_SHOWN_PROBLEMS: Final = 20


class Reloader:
    """Watches one file for one gateway. `ask` is what SIGHUP does."""

    def __init__(
        self, gateway: Gateway, path: Path, overrides: Mapping[str, Any], emit: Emit, look_every_s: float = LOOK_EVERY_S
    ) -> None:
        self._gateway = gateway
        self._path = path
        self._overrides = overrides
        self._emit = emit
        self._look_every_s = look_every_s
        self._asked = asyncio.Event()
        self._seen = self._look()

    def ask(self) -> None:
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            was_asked = await self._wait()
            seen = self._look()
            if was_asked or (seen is not None and seen != self._seen):
                self._seen = seen
                await self._reload(was_asked=was_asked)

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(self._look_every_s):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True

    async def _reload(self, *, was_asked: bool) -> None:
        try:
            config = load(self._path, environ=os.environ, overrides=self._overrides)
        except ConfigurationError as error:
            self._emit(ConfigurationRefused(tuple(str(problem) for problem in error.problems[:_SHOWN_PROBLEMS])))
            return
        await self._gateway.reload(config, only_if_news=not was_asked)

    def _look(self) -> tuple[int, int, int] | None:
        """What tells one state of the file from another, or None while there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
