"""`pactgate serve --replicas N`: several gateways on one port of this machine, for a quick try.

Each replica is a `pactgate serve` of its own; the kernel spreads connections over them. Their lines are printed with the number of the
replica in front. A replica stops when its standard input ends, so none outlives this process, however this one ends.
Must not: restart a replica, or be what a service runs in production; a service manager starts replicas there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final

from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
from pactgate.cli.terminal import is_terminal
from pactgate.config.model import Config
from pactgate.config.sections.state import KEY_BYTES, KEY_VARIABLE, NEEDS_STORE

_MAX_LINE_BYTES: Final = 1024 * 1024
_ENDED_S: Final = 5.0


def check_replicas(config: Config) -> None:
    """Refuse what replicas can't do, and say what they can't share."""
    if config.needs_token:
        raise CommandError(
            "Replicas can't generate a token each: clients would need all of them.", "Add one under auth.tokens."
        )
    if config.listen.socket is not None or config.listen.tcp_port is None:
        raise CommandError("Replicas share a port, not a Unix socket.", "Remove listen.socket, and set listen.port.")
    if config.audit.file is not None:
        raise CommandError(
            "Replicas of one configuration can't write the same audit log.",
            "Start each with a configuration of its own, or use one gateway.",
        )
    if config.has_console:
        terminal.warning("Replicas serve no console, as its sessions and calls are those of one gateway.")
    if config.state.url is None:
        terminal.warning(f"Without state.url, replicas can't share {', '.join(NEEDS_STORE)}.")


def serve_replicas(count: int, words: Sequence[str], config: Config) -> int:
    """Run the replicas until one of them can't start, or this process is told to stop. `words` are the arguments of each."""
    check_replicas(config)
    environ = dict(os.environ)
    environ.setdefault(KEY_VARIABLE, secrets.token_hex(KEY_BYTES))
    with _reserved(config.listen.host, config.listen.tcp_port or 0) as place:
        host, port = place.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(
            f"{count} replicas at http://{shown}:{port}/mcp. Each line of their log begins with a number.", flush=True
        )
        return asyncio.run(_run(count, [*words, "--port", str(port)], environ))


def _reserved(host: str, port: int) -> socket.socket:
    """A socket that holds the port for the replicas, and takes no connections itself."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = socket.socket(family)
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        place.bind((host, port))
    except OSError as problem:
        place.close()
        raise CommandError(f"Can't listen on {host}:{port}: {problem.strerror or problem}.", exit_code=1) from None
    return place


async def _run(count: int, words: Sequence[str], environ: dict[str, str]) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    replicas = [await _start(number, words, environ) for number in range(1, count + 1)]

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            _tell(replicas, signal.SIGTERM)  # the second signal for each of them, too
        else:
            print("\nStopping when the running calls have finished. Press Ctrl-C again to stop now.", flush=True)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    loop.add_signal_handler(signal.SIGHUP, _tell, replicas, signal.SIGHUP)
    ended = [asyncio.create_task(replica.ended()) for replica in replicas]
    stopping = asyncio.create_task(stop.wait())
    try:
        waiting = {stopping, *ended}
        while not stop.is_set() and len(waiting) > 1:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        _tell(replicas, signal.SIGTERM)
        await asyncio.wait(ended)
    return 0 if stop.is_set() else 1


class _Replica:
    """One gateway and its lines."""

    def __init__(self, number: int, process: asyncio.subprocess.Process) -> None:
        self._number = number
        self._process = process
        self._lines = asyncio.create_task(self._print_lines())

    def tell(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def ended(self) -> None:
        code = await self._process.wait()
        await asyncio.wait({self._lines}, timeout=_ENDED_S)
        self._lines.cancel()
        if code > 0:
            self._print(f"The replica ended with code {code}.")

    async def _print_lines(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # a line beyond the bound; what is left of it follows
                continue
            if not line:
                return
            self._print(line.decode(errors="backslashreplace").rstrip("\n"))

    def _print(self, text: str) -> None:
        print(f"[{self._number}] {text}", flush=True)


def _tell(replicas: Sequence[_Replica], number: signal.Signals) -> None:
    for replica in replicas:
        replica.tell(number)


async def _start(number: int, words: Sequence[str], environ: dict[str, str]) -> _Replica:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pactgate",
        "serve",
        *words,
        "--is-replica",
        "text" if is_terminal(sys.stdout) else "auto",
        env=environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=_MAX_LINE_BYTES,
        start_new_session=True,  # Ctrl-C is for this process, which tells them
    )
    return _Replica(number, process)
