"""Processes that have detached from their server: none outlives the server that started them, nor the gateway."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.upstreams.process.cgroup import own_cgroup
from tests.cli.program import Served, write_config
from tests.cli.test_reload import all_connected, servers, until
from tests.support.children import Witness
from tests.support.eventually import eventually_blocking
from tests.upstreams.confinement import needs_kernel

SERVER = Path(__file__).parents[1] / "support" / "detaching_server.py"
GONE_WITHIN_S = 2.0


def entry(folder: Path, manner: str) -> dict[str, Any]:
    """A server whose descendant detaches; a confined one can't leave its group."""
    kept = "clear" if manner == "cleared" else "keep"
    program = {"command": sys.executable, "args": [str(SERVER), str(folder), kept]}
    effects = {"read": [str(SERVER.parents[2])], "write": [str(folder)], "bestEffort": False}
    return program | ({"effects": effects} if manner == "confined" else {})


def terminate(served: Served, _folder: Path, _manner: str) -> None:
    served.process.send_signal(signal.SIGTERM)


def kill(served: Served, _folder: Path, _manner: str) -> None:
    served.process.send_signal(signal.SIGKILL)


def end_the_server(served: Served, _folder: Path, _manner: str) -> None:
    os.kill(servers(served)["crooked"]["pid"], signal.SIGKILL)


def disable_the_server(served: Served, folder: Path, manner: str) -> None:
    write_config(served.folder, {"crooked": entry(folder, manner) | {"enabled": False}})
    served.process.send_signal(signal.SIGHUP)


@contextmanager
def detached(tmp_path: Path, manner: str) -> Iterator[tuple[Served, Path, Witness]]:
    """A gateway, and who sees the detached process die."""
    folder = tmp_path / "detached"
    folder.mkdir()
    write_config(tmp_path, {"crooked": entry(folder, manner)})
    with Served(tmp_path) as served:
        until(served, all_connected)
        pids = eventually_blocking(lambda: [int(name) for name in os.listdir(folder)])
        try:
            with Witness(pids) as witness:
                yield served, folder, witness
        finally:
            for name in os.listdir(folder):
                left_behind(int(name))


def left_behind(pid: int) -> None:
    """End what a failed test would leave on this machine."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@needs_kernel
@pytest.mark.requirement("S1/XC-003")
@pytest.mark.parametrize("end", [terminate, kill, end_the_server, disable_the_server])
@pytest.mark.parametrize(
    "manner",
    [
        "free",
        "confined",
        pytest.param(
            "cleared", marks=pytest.mark.skipif(own_cgroup() is None, reason="needs a cgroup the gateway may use")
        ),
    ],
)
def test_a_detached_process_ends_with_its_server(
    manner: str, end: Callable[[Served, Path, str], None], tmp_path: Path
) -> None:
    with detached(tmp_path, manner) as (served, folder, witness):
        end(served, folder, manner)
        grace_s = 1.0 if end in (terminate, disable_the_server) else 0.0  # the server itself has this time to go
        assert witness.living_after(GONE_WITHIN_S + grace_s) == set()


@pytest.mark.skipif(own_cgroup() is None, reason="needs a cgroup the gateway may use")
def test_no_cgroup_is_left_after_a_sigkill_of_the_gateway(tmp_path: Path) -> None:
    with detached(tmp_path, "free") as (served, _, _):
        pid = servers(served)["crooked"]["pid"]
        (folder,) = Path(str(own_cgroup())).glob(f"pactgate-*/{pid}")
        kill(served, tmp_path, "free")
        eventually_blocking(lambda: not folder.parent.exists())
