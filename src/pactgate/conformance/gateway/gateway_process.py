"""The gateway under test as a program that a run starts: its command, its output in a file, its end with all its descendants."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

_STOP_S: Final = 5.0
_SHOWN_CHARS: Final = 1500


class StartError(Exception):
    """The command could not be started, or ended at once. The message has its last output."""


class GatewayProcess:
    """One gateway, in a session of its own."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._words: list[str] = []
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, command: str, values: Mapping[str, str]) -> None:
        """Start the command; `{config}`, `{port}` and `{command}` in it are replaced.

        `{command}` is several words, so it is put in before the command is split; in double quotes it is one argument.
        """
        spelled = command.replace("{command}", values.get("command", ""))
        self._words = [_filled(word, values) for word in shlex.split(spelled)]
        await self._spawn()

    async def restart(self) -> None:
        """End what is left of it, and start it again."""
        await self.close()
        await self._spawn()

    async def stop(self, number: signal.Signals, limit_s: float) -> bool:
        """Send a signal to the process alone, as an operator does; whether it ends in time."""
        assert self._process is not None
        self._process.send_signal(number)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), limit_s)
        return self._process.returncode is not None

    async def _spawn(self) -> None:
        with self._log.open("ab") as output:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as problem:
                raise StartError(f"{self._words[0]} can't be started: {problem}") from problem

    def require_running(self) -> None:
        if self._process is not None and self._process.returncode is not None:
            raise StartError(f"The gateway ended with {self._process.returncode}:\n{self.last_output()}")

    def last_output(self) -> str:
        return self._log.read_text(errors="replace")[-_SHOWN_CHARS:] if self._log.is_file() else ""

    async def close(self) -> None:
        """SIGTERM to all of it, and SIGKILL to what is left."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _STOP_S)
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only waits for its parent to notice its end."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except ProcessLookupError:
        return False
    except OSError:  # a system without /proc
        return True
    return state[0] != "Z"


def free_port() -> int:
    """A port that is free now. A gateway that takes its port from its configuration can't be given a socket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word
