"""The command line in a folder of its own, with an environment of its own: in this process, or as people run it in one of its own.

`run` and `run_on_terminal` start no process, because starting Python takes longer than most commands; `run_program` does.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO
from unittest.mock import patch

from pactgate.cli import main

WAIT_S = 5.0
PROGRAM = [sys.executable, "-m", "pactgate"]
WATCHFUL = [sys.executable, str(Path(__file__).with_name("watchful_gateway.py"))]
"""The same, with short pauses between looks at files."""
UPSTREAM = Path(__file__).parents[1] / "support" / "stdio_upstream.py"
EVIL_SERVER = Path(__file__).with_name("evil_server.py")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of the person who runs the tests: no configuration, no colour settings, no gateway."""
    own = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "TERM": "xterm-256color"}
    return {"PATH": os.environ["PATH"], **own, **more}


def heed_interrupts() -> None:
    """For a child that is to be interrupted: what a shell starts in the background, these tests included, ignores that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run_program(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
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


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The same in this process; not for `serve` and `record`, which need descriptors and signals of their own."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
    with _inside(folder, env, out, err):
        code = main.run(list(words))
    return subprocess.CompletedProcess(words, code, *map(_written, (out, err)))


def run_on_terminal(folder: Path, *words: str, **env: str) -> tuple[int, bytes]:
    """The exit code, and everything a terminal would have received."""
    ours, theirs = pty.openpty()
    received = bytearray()

    def receive() -> None:
        try:
            while chunk := os.read(ours, 65536):
                received.extend(chunk)
        except OSError:
            pass  # how Linux says that the other side of a terminal has closed

    reader = threading.Thread(target=receive)
    reader.start()
    try:
        with open(theirs, "w", encoding="utf-8") as screen, _inside(folder, {"COLUMNS": "80", **env}, screen, screen):
            code = main.run(list(words))
    finally:
        reader.join(WAIT_S)
        os.close(ours)
    return code, bytes(received)


@contextmanager
def _inside(folder: Path, env: dict[str, str], out: TextIO, err: TextIO) -> Iterator[None]:
    """This process as a program of its own would be started there."""
    with (
        patch.dict(os.environ, environment(folder, **env), clear=True),
        chdir(folder),
        open(os.devnull) as nothing,
        patch.object(sys, "stdin", nothing),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        yield


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


class Served:
    """A gateway started by `pactgate serve` on a free port, or on none, and what it printed."""

    def __init__(
        self, folder: Path, *words: str, port: int | None = 0, program: Sequence[str] = PROGRAM, **env: str
    ) -> None:
        self.folder = folder
        self._env = env
        self.log = (folder / "log.jsonl").open("w+b")
        self.process = subprocess.Popen(
            [*program, "serve", *([] if port is None else ["--port", str(port)]), *words],
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

    def run_program(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run_program(self.folder, *words, PACTGATE_URL=self.url, **env)

    def run_on_terminal(self, *words: str, **env: str) -> tuple[int, bytes]:
        return run_on_terminal(self.folder, *words, PACTGATE_URL=self.url, **env)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(2 * WAIT_S)


def write_config(folder: Path, servers: dict[str, Any], **settings: Any) -> Path:
    return put(folder / "pactgate.json", json.dumps({"mcpServers": servers, **settings}))


def put(path: Path, text: str) -> Path:
    """Write a file at one blow, as a gateway may look at it at any moment."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o600)
    return new.replace(path)


def demo(name: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", f"pactgate.demo.{name}"]}


def scripted(**options: Any) -> dict[str, Any]:
    """A server whose manners are set by the options of `stdio_upstream.py`."""
    return {"command": sys.executable, "args": [str(UPSTREAM), json.dumps(options)]}


def evil() -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(EVIL_SERVER)], "era": "legacy"}
