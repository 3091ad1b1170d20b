"""The command line as people run it: a real process, in a folder of its own, with an environment of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

WAIT_S = 5.0
PROGRAM = [sys.executable, "-m", "pactgate"]
UPSTREAM = Path(__file__).parents[1] / "support" / "stdio_upstream.py"
EVIL_SERVER = Path(__file__).with_name("evil_server.py")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of the person who runs the tests: no configuration, no colour settings, no gateway."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm-256color", **more}


def heed_interrupts() -> None:
    """For a child that is to be interrupted: what a shell starts in the background, these tests included, ignores that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        env=environment(folder, **env),
        capture_output=True,
        text=True,
        timeout=4 * WAIT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def run_on_terminal(folder: Path, *words: str, **env: str) -> tuple[int, bytes]:
    """The exit code, and everything a terminal would have received."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *words], cwd=folder, env=environment(folder, **env), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    received = b""
    deadline = time.monotonic() + 4 * WAIT_S
    try:
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            chunk = os.read(ours, 65536)
            if not chunk:
                break
            received += chunk
    except OSError:
        pass  # how Linux says that the other side of a terminal has closed
    finally:
        os.close(ours)
        try:
            code = process.wait(WAIT_S)
        finally:
            process.kill()
    return code, received


class Served:
    """A gateway started by `pactgate serve` on a free port, and what it printed."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self.folder = folder
        self._env = env
        self.log = (folder / "log.jsonl").open("w+b")
        self.process = subprocess.Popen(
            [*PROGRAM, "serve", "--port", "0", *words],
            cwd=folder,
            env=environment(folder, **env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        assert self.process.stdout
        self._stdout = self.process.stdout
        self.printed = ""

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(2 * WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._stdout.close()
            self.log.close()

    @property
    def url(self) -> str:
        return self.wait_for(r"at (http://\S+)/mcp\n")[1]

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first match in what was printed, waiting for it if it is not there yet."""
        deadline = time.monotonic() + 2 * WAIT_S
        while not (found := re.search(pattern, self.printed)):
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._stdout.fileno(), 65536) if ready else b""
            assert chunk, f"{pattern!r} was never printed; this was:\n{self.printed}\n{self.log_text()}"
            self.printed += chunk.decode()
        return found

    def log_text(self) -> str:
        return (self.folder / "log.jsonl").read_text(encoding="utf-8")

    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_text().splitlines()]

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Another command, pointed at this gateway."""
        return run(self.folder, *words, PACTGATE_URL=self.url, **env)

    def run_on_terminal(self, *words: str, **env: str) -> tuple[int, bytes]:
        return run_on_terminal(self.folder, *words, PACTGATE_URL=self.url, **env)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(2 * WAIT_S)


def write_config(folder: Path, servers: dict[str, Any], **settings: Any) -> Path:
    path = folder / "pactgate.json"
    path.write_text(json.dumps({"mcpServers": servers, **settings}), encoding="utf-8")
    path.chmod(0o600)
    return path


def demo(name: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", f"pactgate.demo.{name}"]}


def scripted(**options: Any) -> dict[str, Any]:
    """A server whose manners are set by the options of `stdio_upstream.py`."""
    return {"command": sys.executable, "args": [str(UPSTREAM), json.dumps(options)]}


def evil() -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(EVIL_SERVER)], "era": "legacy"}
