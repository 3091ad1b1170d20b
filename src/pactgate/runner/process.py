"""The lifecycle of the runner's process: descriptors, loading and reloading the file, shutdown.

The file is polled once a second, which costs microseconds. A new version that fails to load is reported and changes nothing else.
Must not: leave a thread or task that outlives the client.
"""

from __future__ import annotations

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

import msgspec

from pactgate.core.contract import Effect
from pactgate.core.script_metadata import MAX_CHARS, ScriptMetadata, read_script_metadata
from pactgate.protocol.framing import OversizedError
from pactgate.runner import observe
from pactgate.runner.load import LoadedTools, load, neighbours, problems_of
from pactgate.runner.observe import EffectWatch
from pactgate.runner.server import STUCK, RunnerServer, read_lines, write_line
from pactgate.runner.watchdog import Watchdog

LOOK_EVERY_S: Final = 1.0
LEFT_BEHIND: Final = 4
"""The exit code when threads of cancelled calls still run."""


async def run(path: Path, *, refuses: bool, reports: bool, max_result_bytes: int) -> int:
    """Serve until the client closes its side. The exit code is not 0 when threads are left that will not end."""
    source, sink = take_descriptors()
    stuck: asyncio.Event = asyncio.Event()
    server = RunnerServer(
        path,
        partial(write_line, sink),
        refuses=refuses,
        reports=reports,
        max_result_bytes=max_result_bytes,
        on_stuck=stuck.set,
    )
    outside = EffectWatch("", tuple(Effect), refuses=False, on_late=server.tell_late)
    outside.has_ended = True
    observe.install(outside)
    watchdog = Watchdog(lambda: os._exit(STUCK))
    watchdog.start()
    work = [
        asyncio.create_task(keep_loaded(path, server, outside)),
        asyncio.create_task(read_lines(source, server.take)),
        asyncio.create_task(stuck.wait()),
    ]
    done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    watchdog.stop()
    for task in work:
        task.cancel()
    await asyncio.wait(work)
    await server.stop()
    return _exit_code(done, stuck.is_set(), server.calls.abandoned)


def _exit_code(done: set[asyncio.Task[Any]], is_stuck: bool, let_go: int) -> int:
    if is_stuck:
        print("every thread is held by a call that was cancelled and does not end", file=sys.stderr)
        return STUCK
    for task in done:
        problem = task.exception()
        if isinstance(problem, OversizedError | OSError):
            print(f"the conversation can't go on: {problem}", file=sys.stderr)
            return STUCK
        if problem is not None:
            raise problem
    return LEFT_BEHIND if let_go else 0


def take_descriptors() -> tuple[int, int]:
    """Take over stdin and stdout for the protocol. For tools, stdout becomes stderr and stdin is empty."""
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # who prints wants to see it now, not when a buffer is full
    os.register_at_fork(after_in_child=lambda: _close(source, sink))
    return source, sink


def _close(*descriptors: int) -> None:
    """A child process of a tool must not inherit the protocol's descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


async def keep_loaded(path: Path, server: RunnerServer, outside: EffectWatch) -> None:
    """Load the file, and reload it whenever it or a module beside it has changed. Returns when it wants other packages."""
    packages = _packages(path, None)
    while (
        _packages(path, packages) == packages
    ):  # else it is started again, by an interpreter with the packages it wants now
        before = _state(str(path))
        try:
            outcome = await attempt(path, outside)
        except asyncio.CancelledError:
            server.calls.abandoned += 1  # the code of the file still runs in its thread
            raise
        if isinstance(outcome, LoadedTools):
            outside.effects = frozenset(effect for tool in outcome.tools.values() for effect in tool.contract.effects)
            server.offer(outcome)
            files = outcome.files
        else:
            text = "\n".join(str(problem) for problem in problems_of(outcome, path))
            print(text, file=sys.stderr, flush=True)
            server.refuse(text)
            files = tuple(neighbours(path))
        observe.own_files.clear()
        observe.own_files.update(files)
        seen = [before, *_look(files[1:])]
        while _look(files) == seen:  # noqa: ASYNC110 - somebody else changes a file: there is no event to wait for
            await asyncio.sleep(LOOK_EVERY_S)


def _packages(path: Path, before: ScriptMetadata | None) -> ScriptMetadata | None:
    """The packages that the file asks for; as before, where that can't be read now."""
    try:
        with path.open(encoding="utf-8", errors="replace") as source:
            return read_script_metadata(source.read(MAX_CHARS))
    except (OSError, ValueError):
        return before


async def attempt(path: Path, outside: EffectWatch | None = None) -> LoadedTools | BaseException:
    """The tools, or the exception of loading them. In a thread, because the file's code may block."""
    context = copy_context()
    if outside is not None:
        outside.effects = tuple(
            Effect
        )  # a file may look around while it is loaded; later it is held to what its tools declare
        context.run(observe.current.set, outside)
    pool = ThreadPoolExecutor(1, thread_name_prefix="loading")
    try:
        work = asyncio.wrap_future(context.run(pool.submit, load, path))
        await asyncio.wait({work})
        return work.exception() or work.result()
    finally:
        pool.shutdown(wait=False)


def _look(files: tuple[str, ...]) -> list[tuple[int, int, int] | None]:
    return [_state(file) for file in files]


def _state(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def check(path: Path) -> int:
    """Write the tools of the file as JSON and return 0, or its problems to stderr and return 1."""
    outcome = await attempt(path)
    if not isinstance(outcome, LoadedTools):
        for problem in problems_of(outcome, path):
            print(problem, file=sys.stderr)
        return 1
    print(msgspec.json.encode([msgspec.Raw(tool.definition) for tool in outcome.tools.values()]).decode())
    return 0
