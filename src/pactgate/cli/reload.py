"""Reload the configuration when its file or a file of its secrets changes, or on SIGHUP. An invalid file changes nothing.

The files are polled once a second: that costs microseconds and works for every way in which editors and tools replace a file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pactgate.app import Gateway
from pactgate.config.file_access import FileState, file_state
from pactgate.config.load import load
from pactgate.config.problems import ConfigurationError
from pactgate.core.events import ConfigurationRefused, Emit

POLL_S: Final = 1.0
_SHOWN_PROBLEMS: Final = 20


class Reloader:
    """Watches one file for one gateway. SIGHUP calls `ask`."""

    def __init__(self, gateway: Gateway, path: Path, overrides: Mapping[str, Any], emit: Emit) -> None:
        self._gateway = gateway
        self._path = path
        self._overrides = overrides
        self._emit = emit
        self._requested = asyncio.Event()
        self._seen = self._states()

    def ask(self) -> None:
        self._requested.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            is_requested = await self._wait()
            seen = self._states()
            if is_requested or (seen[0] is not None and seen != self._seen):
                self._seen = seen
                await self._reload(is_requested=is_requested)

    def _states(self) -> list[FileState | None]:
        """The state of the configuration file, then those of the secrets it names and of its lock file."""
        return [file_state(self._path), *map(file_state, self._gateway.config.watched_files)]

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(POLL_S):
                await self._requested.wait()
        except TimeoutError:
            return False
        self._requested.clear()
        return True

    async def _reload(self, *, is_requested: bool) -> None:
        try:
            config = load(self._path, environ=os.environ, overrides=self._overrides)
        except ConfigurationError as error:
            self._emit(ConfigurationRefused(tuple(str(problem) for problem in error.problems[:_SHOWN_PROBLEMS])))
            return
        await self._gateway.reload(config, only_if_news=not is_requested)
