"""What the tests of the sandbox share: a world with things to steal, and what a liar achieves in it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.effects import Effects
from pactgate.upstreams.process.child import Launch
from pactgate.upstreams.process.sandbox import confine, probe
from pactgate.upstreams.process.stdio import StdioChannel
from tests.support.children import QUICK, Inbox, guarded

LIAR = str(Path(__file__).parent.parent / "support" / "liar.py")
needs_kernel = pytest.mark.skipif(
    not (probe().abi >= 6 and probe().seccomp),
    reason=f"NOT PROVED HERE: enforced effects need Landlock ABI 6 and seccomp; this kernel: {probe()}",
)

WAIT = 'import os, sys, time\nprint(\'{"jsonrpc":"2.0","method":"hello"}\', flush=True)\n'
"""Says hello, so that a test knows that the program runs; it then waits for a line where it reads one."""
with_and_without_cgroups = pytest.mark.parametrize(
    "options", [{}, {"find_cgroup": lambda: None}], ids=["cgroups", "no cgroups"]
)


def environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.path.expanduser("~")}


def bare(*argv: str) -> Launch:
    return Launch(argv, environment(), "/")


@contextmanager
def world(folder: Path) -> Iterator[dict[str, Any]]:
    """Files and listeners, all of which would serve anybody."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("secret", "victim", "removable"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to(folder / "secret")
    with ExitStack() as stack:

        def listener(family: int, kind: int, address: Any) -> socket.socket:
            sock = stack.enter_context(socket.socket(family, kind))
            sock.bind(address)
            if kind == socket.SOCK_STREAM:
                sock.listen(64)
            return sock

        tcp = listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)).getsockname()[1]
        udp = listener(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)).getsockname()[1]
        abstract = f"pactgate-{os.getpid()}-{tcp}"
        listener(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract)
        listener(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "unix"))
        listener(socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "log"))
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            free = reserved.getsockname()[1]
        names = {name: str(folder / name) for name in ("secret", "victim", "link", "unix", "log")}
        yield {**names, "folder": str(folder), "tcp": tcp, "udp": udp, "abstract": abstract, "free": free}


def attempt(effects: Effects | None, at: dict[str, Any]) -> dict[str, str]:
    """What the liar achieved, by deed."""
    launch = bare(sys.executable, "-I", "-S", LIAR, json.dumps(at))
    if effects is not None:
        launch = confine(launch, effects).launch
    done = subprocess.run(
        launch.argv,
        env=launch.env,
        cwd=launch.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    params: dict[str, str] = json.loads(done.stdout)["params"]
    return params


def run(launch: Launch) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        launch.argv,
        env=launch.env,
        cwd=launch.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@asynccontextmanager
async def bounded(
    code: str, effects: Effects, options: dict[str, Any], *words: str
) -> AsyncIterator[tuple[StdioChannel, Inbox, int]]:
    async with guarded(**options) as child_reaper:
        inbox = Inbox()
        channel = StdioChannel(
            *("bounded", sys.executable, ("-I", "-S", "-c", code, *words), {}, None, inbox.events.append, child_reaper),
            effects=effects,
            shutdown_steps=QUICK,
        )
        await channel.open(inbox)
        await inbox.wait_frames(1)
        assert channel.pid is not None
        try:
            yield channel, inbox, channel.pid
        finally:
            await channel.close()


async def go(channel: StdioChannel) -> None:
    assert channel._stdin is not None
    await channel._stdin.write(b"go\n")
